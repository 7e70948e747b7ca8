"""What lies at a path: which kind of dump, and its steps and ranks."""

from __future__ import annotations

import os

from transplt.base.errors import shown
from transplt.precision import loose, msprobe, ptdbg
from transplt.precision.record import Dump, UnusableDump


def open_dump(path: str) -> Dump:
    """The dump at `path`, listed and not read. UnusableDump where there is none."""
    if not os.path.lexists(path):
        raise UnusableDump(f"{shown(path)} does not exist")
    if os.path.isdir(path) and (parts := msprobe.find(path)):
        return Dump(path, "msprobe", parts)
    if parts := ptdbg.find(path):
        return Dump(path, "ptdbg", parts)
    if parts := loose.find(path):
        return Dump(path, "h5" if os.path.isfile(path) else "npy", parts)
    what = (
        "no step*/rank*/dump.json, no .pkl of ptdbg, no .npy files"
        if os.path.isdir(path)
        else "no .pkl of ptdbg, no .h5"
    )
    raise UnusableDump(f"{shown(path)} is no dump: {what}")
