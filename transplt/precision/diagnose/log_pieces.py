"""The bytes of a log of any size, in pieces that end with a line; what is no text of single bytes is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from transplt.precision.diagnose.lines import MOST_BYTES

PIECE = 4 * 1024 * 1024
#: A line longer than that is looked at in pieces that overlap.
_LONGEST, _OVERLAP = 1024 * 1024, MOST_BYTES


class UnreadableLog(ValueError):
    """What is given is no text; the message is a clause for the user."""


def pieces_of(file: BinaryIO) -> Iterator[bytes]:
    """The bytes in pieces that end with a line, or for very long lines overlap a little; the last one goes to the end.
    UnreadableLog for no text."""
    rest, ahead = b"", file.read(PIECE)
    refuse_what_is_no_text(ahead)
    while read := ahead:
        piece, ahead = rest + read, file.read(PIECE)
        if not ahead:
            # A last line without a line feed stays with those before it.
            yield piece
            return
        cut = piece.rfind(b"\n") + 1
        if len(piece) - cut > _LONGEST:
            cut = len(piece) - _OVERLAP
        yield piece[:cut] if cut else b""
        rest = piece[cut:]
    yield rest


def refuse_what_is_no_text(piece: bytes) -> None:
    """UnreadableLog when a file begins like one that is compressed or UTF-16."""
    if piece[:2] == b"\x1f\x8b" or piece[:4] in (b"PK\x03\x04", b"\x28\xb5\x2f\xfd") or piece[:6] == b"\xfd7zXZ\x00":
        raise UnreadableLog("it is compressed; unpack it first")
    if piece[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UnreadableLog("it is UTF-16; save it as UTF-8 first (iconv -f UTF-16 -t UTF-8)")
