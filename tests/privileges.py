"""Root without what lets it read and write everything: its files and folders are closed to it as to any other owner.

Another user would not do: it need not be able to read the checkout or the interpreter (`/root` is closed to others),
so that a test would fail for what is imported late, and pass where a test before it had imported that.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: linux/capability.h: the version of the structures, and what passes over the modes of files.
_VERSION_3 = 0x20080522
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1 << 1, 1 << 2


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Data(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]


@contextmanager
def as_any_owner() -> Iterator[None]:
    """The modes of files hold for this thread and what it forks. The test is skipped where that cannot be had."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root reads and writes everything, and only on Linux can it do without that for a while")
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = _Header(_VERSION_3, 0), (_Data * 2)()

    def carried_out(function: str) -> None:
        if getattr(libc, function)(ctypes.byref(header), data):
            raise OSError(ctypes.get_errno(), function)

    carried_out("capget")
    before = data[0].effective
    data[0].effective = before & ~(_DAC_OVERRIDE | _DAC_READ_SEARCH)
    carried_out("capset")
    try:
        if closed := next((path for path in _needed() if not _is_open(path)), None):
            pytest.skip(f"{closed} is closed to root without its privileges: it belongs to somebody else")
        yield
    finally:
        data[0].effective = before
        carried_out("capset")


def _needed() -> list[Path]:
    """Of all that is imported or read late, one file of each folder that it comes from."""
    return [Path(module).resolve() for module in (__file__, os.__file__, pytest.__file__, sys.executable)]


def _is_open(path: Path) -> bool:
    try:
        path.open("rb").close()
    except PermissionError:
        return False
    return True
