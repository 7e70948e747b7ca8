"""Whether a file holds one of several texts: a search for each of them is much faster than one for their
alternatives, which are tried at every byte, and faster again among the distinct names of the file.
"""

from __future__ import annotations

import re
from functools import lru_cache

#: A byte of a name stays, any other is a blank.
_NAMES_ALONE = bytes(each if each >= 0x80 or chr(each).isalnum() or each == ord("_") else 0x20 for each in range(256))
_NAME = re.compile(rb"[\w\x80-\xff]*")
#: What small letters stay that are s and i in another case to a regular expression.
_ODD = (("\u017f", "s"), ("\u0131", "i"), ("i\u0307", "i"))


@lru_cache(maxsize=2)  # a file is asked for dozens of texts, one fixer after the other
def names_in(data: bytes) -> bytes:
    """The identifiers, keywords and numbers in bytes, each once and with blanks between them, in no order."""
    return b" ".join({*data.translate(_NAMES_ALONE).split()})


class Texts:
    """Texts to look for in bytes; `\\b` at either end of one asks for the edge of a word, as in regular expressions."""

    def __init__(self, *texts: bytes) -> None:
        self._parts = [_part(text) for text in texts]

    def in_(self, data: bytes) -> bool:
        """True where one of them stands in `data`."""
        return self.among(names_in(data), data)

    def among(self, names: bytes, data: bytes) -> bool:
        """The same for who has the names in `data`."""
        for name, rest, edges in self._parts:
            if name not in names or (rest and rest not in data):
                continue
            if edges is None or edges.search(data if rest else names) is not None:
                return True
        return False


class Marked:
    """A regular expression for any case, which takes long in every byte: it is asked where a text holds a mark.

    Marks are in small letters, each match has one of them; `\\b` at their ends is that of `Texts`.
    """

    def __init__(self, pattern: str, *marks: str) -> None:
        self._pattern = re.compile(pattern, re.IGNORECASE)
        self._marks = [(mark.replace(r"\b", ""), re.compile(mark) if r"\b" in mark else None) for mark in marks]

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in a text."""
        lowered = text.lower()
        if not text.isascii():
            for odd, letter in _ODD:
                lowered = lowered.replace(odd, letter)
        for mark, edges in self._marks:
            if mark in lowered and (edges is None or edges.search(lowered) is not None):
                return self._pattern.search(text)
        return None


def _part(text: bytes) -> tuple[bytes, bytes, re.Pattern[bytes] | None]:
    """What of a text can stand in a name, the whole of it where that is not all, and the search for its edges."""
    whole = text.replace(rb"\b", b"")
    name = max(_NAME.findall(whole), key=len)
    return name, b"" if name == whole else whole, _edges(text) if rb"\b" in text else None


def _edges(text: bytes) -> re.Pattern[bytes]:
    inner = re.escape(text.replace(rb"\b", b""))
    return re.compile((rb"\b" if text.startswith(rb"\b") else b"") + inner + (rb"\b" if text.endswith(rb"\b") else b""))
