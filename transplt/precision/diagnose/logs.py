"""Which files are meant by the names of logs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from transplt.base.errors import UsageError, shown

_ENDINGS = (".log", ".txt", ".out", ".err")
_MOST_LOGS = 10_000


class NoLogs(UsageError):
    """A folder holds none."""


def log_files(names: Iterable[str]) -> Iterator[str]:
    """The files that are meant; of a folder those that are named like logs. UsageError for what is not there."""
    for name in names:
        if name != "-" and not os.path.lexists(name):
            raise UsageError(f"{shown(name)} does not exist")
        if name == "-" or not os.path.isdir(name):
            yield name
            continue
        found = [
            os.path.join(where, file)
            for where, _, files in os.walk(name)
            for file in files
            if (file.endswith(_ENDINGS) or ".log." in file) and os.path.isfile(os.path.join(where, file))
        ]
        if not found:
            raise NoLogs(f"{shown(name)} contains no logs ({', '.join(_ENDINGS)})")
        if len(found) > _MOST_LOGS:
            raise UsageError(f"{shown(name)} holds {len(found)} logs; name a folder below it")
        yield from sorted(found)
