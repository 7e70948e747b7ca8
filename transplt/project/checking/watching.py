"""Tells when the files that a check looks at have changed: by looking again, without a service of the system."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from transplt.base.errors import UsageError
from transplt.disk.cache_folder import NoCache, cache_folder
from transplt.project.checking.inputs import find_inputs
from transplt.project.options import Options

#: Seconds between two looks, and how much longer than the look itself they are at least.
_PAUSE, _SHARE = 0.5, 10
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
        time.sleep(max(_PAUSE, _SHARE * (time.monotonic() - began)))


def _state(paths: Sequence[Path], options: Options) -> _State:
    found: _State = {}
    own = _own_folder()
    for project in find_inputs(paths, options):
        names = {entry.path for entry in (*project.wanted, *(project.every or ()))}
        for name in (*names, "pyproject.toml", *map(str, project.config.extended)):
            if own and f"{project.root}/{name}".startswith(own):
                continue
            try:
                known = os.stat(project.root / name)  # absolute for what the settings extend
            except OSError:
                continue
            found[f"{project.root}/{name}"] = (known.st_mtime_ns, known.st_size)
    return found


def _own_folder() -> str:
    """The folder of the cache, with a slash: it may lie in the project, and each check writes there."""
    try:
        return f"{os.path.realpath(cache_folder())}/"
    except NoCache:
        return ""
