"""Lines of a file of any size, of bounded length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

_PIECE = 1024 * 1024


def lines_of(file: BinaryIO, longest: int) -> Iterator[bytes]:
    """The lines with their line feeds; what is longer than `longest` bytes comes in pieces of at least that size."""
    rest = b""
    while piece := file.read(_PIECE):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line + b"\n"
        if len(rest) >= longest:
            yield rest
            rest = b""
    if rest:
        yield rest
