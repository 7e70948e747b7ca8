"""`async` as a name: a keyword since Python 3.7, so that no newer Python reads a file that has it.

PyTorch called the argument of `cuda()`, `copy_()` and the like `async` up to 0.3 and `non_blocking` since 0.4 (release
notes of 0.4.0). LibCST and `ast` read no such file, so the name is replaced among the tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from transplt.base.text.lexer import lex
from transplt.base.text.source import Source

OLD, NEW = b"async", b"non_blocking"
#: Methods of tensors, storages and modules whose argument it was. Source: torch/tensor.py and torch/_utils.py of 0.3.1.
_METHODS = frozenset(
    b"cuda to copy_ type cpu double float half long int short char byte bool _cuda _type npu".split()
)
_WORD = re.compile(rb"[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*|[()\[\]{},.:=]|\n|[^\sA-Za-z_]")
_SUSPECT = re.compile(rb"(?<![\w.])async\b(?!\s+(?:def|for|with)\b)")


@dataclass(frozen=True, slots=True)
class Renamed:
    """A text with `async` replaced, and where: byte offsets of the old text, in order."""

    utf8: bytes
    places: tuple[int, ...]

    def old_offset(self, offset: int, *, end: bool = False) -> int:
        """The place in the old text of one in the new; of one inside a new name, where the old begins or ends."""
        grown = len(NEW) - len(OLD)
        for count, place in enumerate(self.places):
            start = place + count * grown
            if offset <= start:
                return offset - count * grown
            if offset < start + len(NEW):
                return place + (len(OLD) if end else 0)
        return offset - len(self.places) * grown


def may_hold_old_names(data: bytes) -> bool:
    """Whether bytes may use `async` as a name; True also where they only say so."""
    return OLD in data and _SUSPECT.search(data) is not None


def renamed(source: Source) -> Renamed | None:
    """The text with `async` renamed; None where it is no name, or where somebody else may know it by that name."""
    code = bytearray(source.utf8)
    for piece in lex(source.utf8):
        code[piece.start : piece.end] = re.sub(rb"[^\r\n]", b" ", source.utf8[piece.start : piece.end])
    places = [match.start() for match in _SUSPECT.finditer(bytes(code))]
    if not places or re.search(rb"\b" + NEW + rb"\s*=", bytes(code)) is not None:
        return None
    if not _only_our_names(bytes(code), {*places}):
        return None
    utf8 = bytearray(source.utf8)
    for place in reversed(places):
        utf8[place : place + len(OLD)] = NEW
    return Renamed(bytes(utf8), tuple(places))


def _only_our_names(code: bytes, places: set[int]) -> bool:
    """True when each `async` is an argument of such a method, or of a function that this file defines, or a read."""
    tokens = [(match.group(), match.start()) for match in _WORD.finditer(code) if match.group() != b"\n"]
    defined: set[bytes] = set()  # functions of this file with a parameter of that name
    called: set[bytes] = set()  # functions that are called with it
    open_: list[bytes] = []  # what stands before each open bracket
    for index, (word, at) in enumerate(tokens):
        before = tokens[index - 1][0] if index else b""
        after = tokens[index + 1][0] if index + 1 < len(tokens) else b""
        if word in b"([{":
            is_def = index > 1 and tokens[index - 2][0] == b"def"
            open_.append((b"def " if is_def else b"") + (before if word == b"(" else b""))
        elif word in b")]}" and open_:
            open_.pop()
        elif at in places:
            holder = open_[-1] if open_ else b""
            if before in (b"(", b",") and after == b"=" and not holder.startswith(b"def "):
                called.add(holder)
            elif before in (b"(", b",") and holder.startswith(b"def "):
                defined.add(holder[4:])
            elif after == b"=" and (index + 2 >= len(tokens) or tokens[index + 2][0] != b"="):
                return False  # a variable of its own: what it is for is not known
    return called - _METHODS <= defined and bool(called & _METHODS)
