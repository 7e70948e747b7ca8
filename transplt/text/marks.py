"""Whether a file holds one of several texts: a search for each of them is much faster than one for their
alternatives, which are tried at every byte.
"""

from __future__ import annotations

import re


class Texts:
    """Texts to look for in bytes; `\\b` at either end of one asks for the edge of a word, as in regular expressions."""

    def __init__(self, *texts: bytes) -> None:
        self._parts = [(text.replace(rb"\b", b""), _edges(text) if rb"\b" in text else None) for text in texts]

    def in_(self, data: bytes) -> bool:
        """True where one of them stands in `data`."""
        for text, edges in self._parts:  # noqa: SIM110 (asked dozens of times for each file, and `any` costs more)
            if text in data and (edges is None or edges.search(data) is not None):
                return True
        return False


def _edges(text: bytes) -> re.Pattern[bytes]:
    inner = re.escape(text.replace(rb"\b", b""))
    return re.compile((rb"\b" if text.startswith(rb"\b") else b"") + inner + (rb"\b" if text.endswith(rb"\b") else b""))
