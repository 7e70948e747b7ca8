"""Texts of reports: visible, harmless in a spreadsheet, of bounded length; numbers of things."""

from __future__ import annotations

#: Longer texts are cut; a spreadsheet takes at most 32,767 characters.
MAX_CHARACTERS = 4000
#: What makes a spreadsheet run a cell as a formula (OWASP, CSV injection).
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """`text` with control characters, odd separators and lone surrogates written as escapes.

    File names that are not UTF-8 come as lone surrogates and show their bytes.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return _ESCAPES.get(character) or character.encode("unicode_escape", "backslashreplace").decode("ascii")


def cell(text: str) -> str:
    """`text` for a cell: a leading apostrophe keeps a spreadsheet from running it; what is cut off is marked."""
    shown = visible(text)
    if len(shown) > MAX_CHARACTERS:
        shown = f"{shown[:MAX_CHARACTERS]}... (cut: {len(shown)} characters in all)"
    return f"'{shown}" if text.startswith(_FORMULA_STARTS) else shown


def many(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
