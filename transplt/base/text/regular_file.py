"""How transplt reads a file of somebody else: a regular one, of bounded size, opened without blocking.

A project may hold a FIFO, a device or a sparse file of terabytes under any name that we look for. Everything that is
read comes through here; tests/test_house.py sees to it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limit:
    """How many bytes of one kind of file are read; `what` is the kind as the subject of `... up to 1 MB`."""

    what: str
    size: int

    def __str__(self) -> str:
        return f"{self.what} up to {self.size // _MB} MB"


SETTINGS = Limit("settings are read", _MB)
REQUIREMENTS = Limit("requirement files are read", _MB)
LOCKS = Limit("lock files are read", 16 * _MB)
IGNORES = Limit("ignore files are read", _MB)
GIT_FILES = Limit("git's own small files are read", _MB)
GIT_INDEX = Limit("the index of git is read", 256 * _MB)
PLANS = Limit("plans are read", 4 * _MB)
RULES = Limit("rule files are read", 64 * _MB)
SOURCE = Limit("Python files are read", 32 * _MB)
NOTEBOOKS = Limit("notebooks are read", 64 * _MB)
#: Larger files that are not Python are copied in pieces, so that memory stays small.
OTHER = Limit("files that are not Python are read whole", 16 * _MB)
RECORDS = Limit("what transplt wrote is read", 256 * _MB)

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link"),
)
#: Of these, what the system has: a FIFO does not block, a terminal does not become ours, Windows changes no bytes.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


def read_regular(path: str | os.PathLike[str], limit: Limit, *, follow: bool = True) -> bytes:
    """All bytes of a regular file. OSError, whose `strerror` is a clause for the user, for anything else or more.

    Without `follow` a link is refused, too.
    """
    with open_regular(path, follow=follow) as file:
        expected = os.fstat(file.fileno()).st_size
        if expected > limit.size:
            raise OSError(errno.EFBIG, too_large(expected, limit))
        return _bounded(file, expected + 1, limit)


def read_stream(stream: BinaryIO, limit: Limit) -> bytes:
    """All bytes of a stream such as standard input, which may block. OSError when there are too many."""
    return _bounded(stream, _MB, limit)


@contextlib.contextmanager
def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> Iterator[BinaryIO]:
    """A regular file of any size, open for reading without a buffer. OSError for anything else, as `read_regular`."""
    try:
        # Opening a device may do something, so it is not tried; what is open is asked again.
        _refuse_others(os.stat(path, follow_symlinks=follow).st_mode)
        handle = os.open(path, _FLAGS | (0 if follow else _NOFOLLOW))
    except ValueError as error:  # a null byte
        raise OSError(errno.ENOENT, "no system has a file of such a name") from error
    with open(handle, "rb", buffering=0) as file:
        _refuse_others(os.fstat(handle).st_mode)
        yield file


def too_large(size: int, limit: Limit) -> str:
    """Why a file of `size` bytes is not read, as a clause for the user."""
    return f"it has {size / _MB:.1f} MB, and {limit}"


def _refuse_others(mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for matches, name in _KINDS if matches(mode)), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, and only regular files are read")


def _bounded(stream: BinaryIO, first: int, limit: Limit) -> bytes:
    pieces = []
    left, size = limit.size + 1, first
    # A regular file says how much it holds; one of /proc says 0, and one that grows says too little.
    while left > 0 and (piece := stream.read(min(size, left))):
        pieces.append(piece)
        left -= len(piece)
        size = _MB
    if left <= 0:
        raise OSError(errno.EFBIG, f"it is too large: {limit}")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
