"""One JSON line an event, written at once: a process that hangs or is killed has recorded how far it came."""

from __future__ import annotations

import atexit
import json
import os
import random
import sys
import threading
import time
from types import FrameType
from typing import IO, Any

from ..config import config
from ..user_code import is_user, kind, nearest

#: How many callers of a line are recorded.
_CALLERS = 8
#: The helper that a port to many cards may bring along: what is done in it is told of the line that calls it.
_HELPER = "npu_port.py"
#: What the module has in itself that a port to many cards has in its place in the portable style.
CHOICE = "_has_npu"

_file: IO[str] | None = None
_owner = 0
_lock = threading.RLock()
_quiet = threading.local()
#: What others may see of this process, or it of them; the longest wait before it, and before all of them, in seconds.
_SEEN = frozenset({"ask", "coll", "load", "read", "remove", "rename", "save", "write"})
_LONGEST, _IN_ALL = 0.3, 20.0
_waits: list[random.Random] = []
_waited = 0.0


def emit(event: str, frame: FrameType | None = None, **fields: Any) -> None:
    """Record `event` with the place of a user's frame (default: the innermost one that called), unless all is quiet."""
    if not is_quiet():
        write(event, frame if frame is not None else nearest(2), **fields)


def write(event: str, frame: FrameType | None, **fields: Any) -> None:
    """Write `event`, whether it is quiet or not; `helper` is set where the helper of a port made it."""
    if event in _SEEN and config.trace and config.trace["delays"] is not None:
        _wait()
    outer = _outside(frame)
    place = place_of(outer) if outer is not None else None
    if outer is not frame:
        fields["helper"] = True
    line = json.dumps({"e": event, "at": place, "t": round(time.monotonic(), 4), **fields}, allow_nan=True)
    with _lock:
        _open().write(line + "\n")


def _wait() -> None:
    """A while that the seed and the rank decide, every other time."""
    global _waited
    if not _waits:
        _waits.append(random.Random(f"{config.trace and config.trace['delays']}:{os.environ.get('RANK')}"))
    while_ = _waits[0].choice((0.0, _waits[0].uniform(0.0, _LONGEST)))
    if _waited + while_ <= _IN_ALL:
        _waited += while_
        time.sleep(while_)


def _outside(frame: FrameType | None) -> FrameType | None:
    """The nearest line of the user's own from a frame of the user's on; that itself where there is no other."""
    outer = frame
    while outer is not None:
        name = outer.f_code.co_filename
        if is_user(name) and os.path.basename(name) != _HELPER and CHOICE not in outer.f_globals:
            return outer
        outer = outer.f_back
    return frame


def place_of(frame: FrameType) -> list[Any]:
    """[path, line] of what a frame is at."""
    return [os.path.abspath(frame.f_code.co_filename), frame.f_lineno]


def callers(frame: FrameType | None) -> list[list[Any]]:
    """The user's lines that led to `frame`, the nearest first."""
    found: list[list[Any]] = []
    frame = _outside(frame)
    frame = frame.f_back if frame is not None else None
    while frame is not None and len(found) < _CALLERS:
        if is_user(frame.f_code.co_filename):
            found.append(place_of(frame))
        frame = frame.f_back
    return found


class quiet:  # reads as the statement it is
    """`with quiet():` what is called in it is our own work, or part of an event that was recorded already."""

    def __enter__(self) -> None:
        _quiet.depth = getattr(_quiet, "depth", 0) + 1

    def __exit__(self, *error: object) -> None:
        _quiet.depth -= 1


def is_quiet() -> bool:
    return bool(getattr(_quiet, "depth", 0))


def called_by_user(depth: int = 2) -> bool:
    """Whether the caller's caller is a line of the user's."""
    return kind(sys._getframe(depth).f_code.co_filename) == "user"


def _open() -> IO[str]:
    global _file, _owner
    if _file is None or _owner != os.getpid():
        _owner = os.getpid()
        # Line by line: what a killed process has recorded is there.
        _file = open(os.path.join(config.records, f"{_owner}.trace"), "a", buffering=1, encoding="utf-8")  # noqa: SIM115
        first = {"e": "begin", "pid": _owner, "parent": os.getppid(), "rank": os.environ.get("RANK")}
        _file.write(json.dumps(first) + "\n")
        atexit.register(_file.flush)
    return _file
