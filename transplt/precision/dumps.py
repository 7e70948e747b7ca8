"""What lies at a path: which kind of dump, and its steps and ranks."""

from __future__ import annotations

import os

from transplt.errors import shown
from transplt.precision import msprobe
from transplt.precision.record import Dump, UnusableDump


def open_dump(path: str) -> Dump:
    """The dump at `path`, listed and not read. UnusableDump where there is none."""
    if not os.path.lexists(path):
        raise UnusableDump(f"{shown(path)} does not exist")
    if os.path.isdir(path) and (parts := msprobe.find(path)):
        return Dump(path, "msprobe", parts)
    raise UnusableDump(f"{shown(path)} is no dump: no step*/rank*/dump.json, no ptdbg .pkl, no .npy files in it")
