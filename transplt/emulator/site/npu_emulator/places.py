"""Where a rank is and what it waits for, in memory that outlives it: a process that is killed has no time to say so."""

from __future__ import annotations

import json
import mmap
import os
import sys
import threading
import time
from typing import Any

from .config import config
from .user_code import nearest, nearest_from

_SIZE = 2048
_memory: mmap.mmap | None = None
#: The process that this is about: one that it forks has no place of its own.
_owner = 0
_rank, _world = "", 0
_main = threading.main_thread().ident
#: What was kept last: what, file, line.
_last: tuple[str, str, int] = ("", "", 0)


def begin(rank: str, world: int) -> None:
    """Keep from here on, in `PID.place` beside the records, where this process is: `rank` of `world`."""
    global _memory, _owner, _rank, _world
    if _owner == os.getpid() or not os.path.isdir(config.records):
        return
    with open(os.path.join(config.records, f"{os.getpid()}.place"), "w+b") as file:
        file.write(b" " * _SIZE)
        file.flush()
        _memory, _owner = mmap.mmap(file.fileno(), _SIZE), os.getpid()
    _rank, _world = rank, world


def keep(what: str, waits: bool = False) -> None:
    """This process does `what` (an exchange, how it leaves; "": it computes) in a line of the program, or waits for it.
    """
    global _last
    if _memory is None or _owner != os.getpid():
        return
    path, line = _line()
    if not waits and _last == (what, path, line):
        return
    _last = ("", "", 0) if waits else (what, path, line)
    place = {"path": os.path.abspath(path), "line": line} if path else {}
    text = json.dumps({"rank": _rank, "world": _world, "what": what, "waits": waits, "time": time.time(), **place})
    if len(text) <= _SIZE:
        _memory[:] = text.encode().ljust(_SIZE)


def line_in_words() -> str:
    """The line of the program that this is called from: "train.py:12", or ""."""
    path, line = _line()
    return f"{os.path.relpath(path)}:{line}" if path else ""


def _line() -> tuple[str, int]:
    frame = nearest(2)
    if frame is None and threading.get_ident() != _main:  # a backward pass has a thread of its own
        frame = nearest_from(sys._current_frames().get(_main or 0))
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)


def keep_line(*_: Any) -> None:
    """This process computes. Threads beside the main one say nothing of where it is."""
    if threading.get_ident() == _main:
        keep("")
