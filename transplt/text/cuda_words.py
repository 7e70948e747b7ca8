"""The independent count: every occurrence of a CUDA-bound word, by our own lexer, the same on every Python."""

from __future__ import annotations

import re
from dataclasses import dataclass

from transplt.text.lexer import lex

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


@dataclass(frozen=True, slots=True)
class Token:
    """One occurrence of a CUDA-bound word at byte `start` of the UTF-8 text; `where` is code, string or comment."""

    start: int
    end: int
    where: str


def mentions_cuda(lowered: bytes) -> bool:
    """True when lowered bytes hold one of `WORDS`, as a part of another word too: what is False needs no look."""
    return any(word in lowered for word in WORDS)


def find_tokens(utf8: bytes) -> list[Token]:
    """All tokens of a file, sorted by place."""
    lowered = utf8.lower()
    if not mentions_cuda(lowered):
        return []
    pieces = list(lex(utf8))
    fields = [span for piece in pieces for span in piece.code]
    found = []
    index = 0
    inner = 0
    for match in WORD.finditer(lowered):
        start = match.start()
        while index < len(pieces) and pieces[index].end <= start:
            index += 1
        where = "code"
        if index < len(pieces) and pieces[index].start <= start:
            where = "comment" if pieces[index].is_comment else "string"
        while inner < len(fields) and fields[inner][1] <= start:
            inner += 1
        if inner < len(fields) and fields[inner][0] <= start:
            where = "code"  # a field of an f-string, outside of the strings in it
        found.append(Token(start, match.end(), where))
    return found
