"""The independent count: every occurrence of a CUDA-bound word, by our own lexer, the same on every Python."""

from __future__ import annotations

import re
from dataclasses import dataclass

from transplt.base.text.lexer import lex

#: What binds a text to CUDA; any case.
WORDS = (b"cuda", b"nccl", b"cudnn", b"cublas", b"nvtx", b"nvidia", b"nvcc", b"cupti")
#: Words of English that hold one of them and have nothing to do with it: what stands before it, in small letters.
_PART_OF = {b"cuda": b"barra"}


def _alternative(word: bytes) -> bytes:
    """A word, with its first letter in front of what must not stand there: the search goes by first letters."""
    if word not in _PART_OF:
        return word
    return b"%b(?<!%b%b)%b" % (word[:1], _PART_OF[word], word[:1], word[1:])


#: One of `WORDS` in lowered bytes.
WORD = re.compile(b"|".join(map(_alternative, sorted(WORDS, reverse=True))))


#: The words by how they begin: of data most files have none of these.
_BY_BEGIN = tuple((begin, tuple(w for w in WORDS if w.startswith(begin))) for begin in (b"cu", b"nv", b"nccl"))


@dataclass(frozen=True, slots=True)
class Token:
    """One occurrence of a CUDA-bound word at byte `start` of the UTF-8 text; `where` is code, string or comment."""

    start: int
    end: int
    where: str


def mentions_cuda(lowered: bytes) -> bool:
    """True when lowered bytes hold one of `WORDS`, as a part of another word too: what is False needs no look."""
    for begin, words in _BY_BEGIN:  # noqa: SIM110 (asked for every file, and `any` costs more)
        if begin in lowered and any(word in lowered for word in words):
            return True
    return False


def find_tokens(utf8: bytes) -> list[Token]:
    """All tokens of a file, sorted by place."""
    lowered = utf8.lower()
    if not mentions_cuda(lowered):
        return []
    pieces = lex(utf8)  # as far as there are words
    piece = next(pieces, None)
    found = []
    inner = 0
    for match in WORD.finditer(lowered):
        start = match.start()
        while piece is not None and piece.end <= start:
            piece, inner = next(pieces, None), 0
        where = "code"
        if piece is not None and piece.start <= start:
            where = "comment" if piece.is_comment else "string"
            while inner < len(piece.code) and piece.code[inner][1] <= start:
                inner += 1
            if inner < len(piece.code) and piece.code[inner][0] <= start:
                where = "code"  # a field of an f-string, outside of the strings in it
        found.append(Token(start, match.end(), where))
    return found
