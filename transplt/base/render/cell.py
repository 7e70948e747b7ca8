"""Texts of reports: visible, harmless in a spreadsheet, of bounded length; numbers of things."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

#: Longer texts are cut; a spreadsheet takes at most 32,767 characters.
MAX_CHARACTERS = 4000
#: Of reports for a terminal: the width of a line, and where the text beside a label begins.
_WIDTH, _MARGIN = 118, 13
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


def exact_cell(text: str) -> str:
    """`cell` of a text that can be read back: backslashes are doubled, and apostrophes before what looks like a formula
    have one more.
    """
    guard = "'" if text.startswith("'") and text.lstrip("'").startswith(_FORMULA_STARTS) else ""
    return guard + cell(text.replace("\\", "\\\\"))


def for_terminal(data: bytes) -> bytes:
    """What a terminal may be shown of a file: its lines and tabs; other control characters are written as escapes."""
    lines = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in lines).encode()


def shortened(text: str, most: int) -> str:
    """`text`, visible, with at most so many characters: a longer one ends with three dots."""
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def labelled(label: str, *texts: str) -> list[str]:
    """Rows of a report for a terminal: the label, and the texts beside it, wrapped; nothing where there are none."""
    lines = [line for text in texts for line in textwrap.wrap(text, _WIDTH - _MARGIN, break_on_hyphens=False) or [""]]
    return [f"   {'' if place else label:<{_MARGIN - 3}}{line}" for place, line in enumerate(lines)]


def figure(value: float, digits: int = 6) -> str:
    """A number as people write it: `0.00001`, `1.5e-7`, `65536`, in place of `1e-05`, `1.5e-07`, `6.5536e+04`."""
    text = f"{value:.{digits}g}"
    mantissa, exponential, exponent = text.partition("e")
    if not exponential:
        return text
    power = int(exponent)
    if power == -5 and len(mantissa) == 1:
        return f"{value:.5f}"
    if 0 < power < 10 and value == int(value):
        return str(int(value))
    return f"{mantissa}e{power}"


def first_of(texts: Sequence[str], most: int, between: str = ", ") -> str:
    """The first of some texts, and how many more there are: `a, b and 3 more`."""
    return between.join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def many(count: int, noun: str) -> str:
    """`1 file`, `2 files`, `3 repositories`, `4 processes`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun[:-1]}ies" if noun.endswith("ry") else f"{count} {noun}{'es' if noun.endswith('s') else 's'}"
