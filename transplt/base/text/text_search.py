"""Whether a file holds one of several texts: a search for each of them is much faster than one for their
alternatives, which are tried at every byte, and faster again among the distinct names of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

#: A byte of a name stays, any other is a blank.
_NAMES_ALONE = bytes(each if each >= 0x80 or chr(each).isalnum() or each == ord("_") else 0x20 for each in range(256))
_NAME = re.compile(rb"[\w\x80-\xff]*")
#: What small letters stay that are s and i in another case to a regular expression.
_ODD = (("\u017f", "s"), ("\u0131", "i"), ("i\u0307", "i"))


@lru_cache(maxsize=2)  # a file is asked for dozens of texts, one fixer after the other
def names_in(data: bytes) -> frozenset[bytes]:
    """The identifiers, keywords and numbers in bytes."""
    return frozenset(words_of(data))


def words_of(data: bytes) -> list[bytes]:
    """The same in their order, as often as each is there."""
    return data.translate(_NAMES_ALONE).split()


def joined(names: Iterable[bytes]) -> str:
    """Names with blanks between them, a character for each byte: `in` takes a tenth of its time in a short `str`."""
    return b" ".join(names).decode("latin-1")


@lru_cache(maxsize=2)
def _names_of(data: bytes) -> str:
    return joined(names_in(data))


def on_lines_with(word: bytes, pattern: re.Pattern[bytes], data: bytes) -> Iterator[re.Match[bytes]]:
    """The matches of a pattern that begins where a line does and holds `word` in that line, as `finditer` gives them.

    A pattern with `^` is tried at every byte; the lines that hold the word are few.
    """
    behind, at = 0, data.find(word)
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, at + len(word)
        if start >= behind:
            match = pattern.match(data, start)
            if match is not None:
                yield match
            behind = match.end() if match is not None else end
        at = data.find(word, max(behind, end))


class Texts:
    """Texts to look for in bytes; `\\b` at either end of one asks for the edge of a word, as in regular expressions."""

    def __init__(self, *texts: bytes) -> None:
        self._parts = [_part(text) for text in texts]

    @property
    def names(self) -> list[str]:
        """What of each text stands in a name: where none of these is, none of the texts is."""
        return [name for name, _, _ in self._parts]

    def in_(self, data: bytes) -> bool:
        """True where one of them stands in `data`."""
        return self.among(_names_of(data), data)

    def among(self, names: str, data: bytes) -> bool:
        """The same for who has the names in `data`, joined, in any order."""
        for name, edges, rest in self._parts:
            if name in names and (edges is None or edges.search(names)) and (rest is None or rest(data)):
                return True
        return False


class Marked:
    """A regular expression for any case, which takes long in every byte: it is asked where a text holds a mark.

    Marks are in small letters, each match has one of them; `\\b` at their ends is that of `Texts`.
    """

    def __init__(self, pattern: str, *marks: str) -> None:
        self._pattern = re.compile(pattern, re.IGNORECASE)
        self._marks = [(mark.replace(r"\b", ""), re.compile(mark) if r"\b" in mark else None) for mark in marks]

    def may_match(self, text: str) -> bool:
        """False for a text without a match: it holds no mark."""
        lowered = text.lower()
        if not text.isascii():
            for odd, letter in _ODD:
                lowered = lowered.replace(odd, letter)
        for mark, edges in self._marks:  # noqa: SIM110 (asked for every line, and `any` costs more)
            if mark in lowered and (edges is None or edges.search(lowered)):
                return True
        return False

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in a text."""
        return self._pattern.search(text) if self.may_match(text) else None


def _part(text: bytes) -> tuple[str, re.Pattern[str] | None, Callable[[bytes], object] | None]:
    """What of a text stands in a name; then what is asked of the names for its edges, and of the data for it."""
    inner = text.replace(rb"\b", b"")
    name = max(_NAME.findall(inner), key=len)
    whole = (rb"\b" if text.startswith(rb"\b") else b"") + re.escape(inner) + (rb"\b" if text.endswith(rb"\b") else b"")
    has_edges = rb"\b" in text
    if name != inner:
        return name.decode("latin-1"), None, re.compile(whole).search if has_edges else lambda data: inner in data
    return name.decode("latin-1"), re.compile(whole.decode("latin-1"), re.ASCII) if has_edges else None, None
