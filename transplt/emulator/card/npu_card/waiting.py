"""Ranks that wait for one another and will not meet: known long before HCCL gives up, which takes it half an hour.

A rank that has waited for some seconds writes into the folder of the run's records what it waits for, and reads what
the others wrote. If every rank waits, and none is busy, or has left, nothing can come any more that would end it. A run
whose ranks are watched from outside (`Config.trace`) needs none of this.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from npu_emulator import places
from npu_emulator.config import config
from npu_emulator.record import record

#: Seconds between two looks; after which a wait is told; for which all that is told has to be true.
_PAUSE, _QUIET, _PATIENCE = 0.2, 3.0, 3.0
#: The share of a processor that a process takes at most while it waits.
_IDLE = 0.1


def wait(over: threading.Event, what: str, world: int, key: str = "", given_up: Callable[[], bool] = bool) -> str:
    """Wait until something is over or `given_up()`. The answer is "", or says why it will never be over: what the
    `world` ranks of the program wait for. Those that have the same `key` are on the way to one another."""
    places.keep(what, waits=True)
    begun = told = time.monotonic()
    spent = time.process_time()
    path = os.path.join(config.records, f"{os.getpid()}-{threading.get_ident()}.waits") if config.records else ""
    try:
        while not over.wait(_PAUSE):
            now = time.monotonic()
            if given_up():
                return ""
            if not path or config.trace is not None or now - begun < _QUIET:
                continue
            busy = time.process_time() - spent > _IDLE * (now - told) + _IDLE
            if busy or told == begun:
                told, spent = now, time.process_time()
                _write(path, what, key)
            elif now - told > _PATIENCE and (standing := _all_stand(world)):
                path = ""  # the others are to see it too
                return standing
        return ""
    finally:
        if path:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _write(path: str, what: str, key: str) -> None:
    at, rank = places.line_in_words(), os.environ.get("RANK", record.rank) or ""
    text = json.dumps({"rank": rank, "what": what + (f" at {at}" if at else ""), "key": key})
    with contextlib.suppress(OSError):
        with open(path + ".part", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".part", path)


def _all_stand(world: int) -> str:
    """What each rank waits for, where that is so of all of them and has been for long enough."""
    found: dict[str, str] = {}
    keys = set()
    for path in glob.glob(os.path.join(glob.escape(config.records), "*.waits")):
        with contextlib.suppress(OSError, ValueError):
            if time.time() - os.path.getmtime(path) < _PATIENCE:
                return ""
            with open(path, encoding="utf-8") as file:
                each = json.load(file)
            found[each["rank"]] = each["what"]
            keys.add(each["key"])
    if len(found) == world and len(keys) == 1 and keys != {""}:
        return ""
    for path in glob.glob(os.path.join(glob.escape(config.records), "*.json")):
        with contextlib.suppress(OSError, ValueError):
            with open(path, encoding="utf-8") as file:
                process = json.load(file)
            if process["rank"] not in found and _has_left(process):
                found[process["rank"]] = "has ended"
    if len(found) < world:
        return ""
    return "; ".join(f"rank {rank}: {found[rank]}" for rank in sorted(found, key=lambda rank: (len(rank), rank)))


def _has_left(process: dict[str, Any]) -> bool:
    """Whether a process was a rank, started as this one was, and is over: ended, or killed."""
    if process["rank"] is None or process["parent"] != os.getppid():
        return False
    if process["status"] != "running":
        return True
    path = os.path.join(config.records, f"{process['pid']}.stack")
    with contextlib.suppress(OSError), open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # held as long as it lives (npu_emulator.stacks)
        return True
    return False
