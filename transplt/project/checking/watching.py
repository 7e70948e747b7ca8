"""Tells when the files that a check looks at have changed: `watchfiles` says when to look again, where it is installed
(the extra `watch`); else a look follows the other after a pause."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from transplt.base.disk.cache_folder import NoCache, cache_folder
from transplt.base.errors import UsageError
from transplt.project.checking.inputs import find_inputs
from transplt.project.options import Options

#: Seconds between two looks, and how much longer than the look itself they are at least.
_PAUSE, _SHARE = 0.5, 10
#: Milliseconds after which there is a look without an event: one that came while nobody waited is lost.
_LONGEST = 5000
_State = dict[str, tuple[int, int]]


def each_change(paths: Sequence[Path], options: Options) -> Iterator[int]:
    """Yields the number of files that are looked at: at once, and each time one of them is another, is new or has gone.

    Settings are read anew each time; while they cannot be read, as in the middle of an edit, nothing is yielded.
    """
    state = _state(paths, options)
    yield len(state)
    while True:
        began = time.monotonic()
        try:
            now = _state(paths, options)
        except UsageError:
            now = state
        if now != state:
            state = now
            yield len(state)
        _wait(state, time.monotonic() - began)


def _wait(state: _State, took: float) -> None:
    """Until a file may be another; `took` are the seconds of the last look."""
    try:
        from watchfiles import watch
    except ModuleNotFoundError:
        time.sleep(max(_PAUSE, _SHARE * took))
        return
    folders = {os.path.dirname(path) for path in state}
    events = watch(
        *(each for each in folders if os.path.isdir(each)), watch_filter=None, recursive=False, debounce=200, step=50,
        rust_timeout=_LONGEST, yield_on_timeout=True,
    )  # fmt: skip
    next(events, None)


def _state(paths: Sequence[Path], options: Options) -> _State:
    found: _State = {}
    own, printed = _own_folder(), _printed()
    for project in find_inputs(paths, options):
        names = {entry.path for entry in (*project.wanted, *(project.every or ()))}
        for name in (*names, "pyproject.toml", *map(str, project.config.extended)):
            if own and f"{project.root}/{name}".startswith(own):
                continue
            try:
                known = os.stat(project.root / name)  # absolute for what the settings extend
            except OSError:
                continue
            if (known.st_dev, known.st_ino) not in printed:
                found[f"{project.root}/{name}"] = (known.st_mtime_ns, known.st_size)
    return found


def _own_folder() -> str:
    """The folder of the cache, with a slash: it may lie in the project, and each check writes there."""
    try:
        return f"{os.path.realpath(cache_folder())}/"
    except NoCache:
        return ""


def _printed() -> set[tuple[int, int]]:
    """The files into which the findings are printed (`check . --watch > log.txt`), as device and inode."""
    found = set()
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            known = os.fstat(stream.fileno()) if stream is not None else None
        except (OSError, ValueError):  # closed
            continue
        if known is not None:
            found.add((known.st_dev, known.st_ino))
    return found
