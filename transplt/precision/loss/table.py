"""Tables in a log: a line of names and lines of numbers below it (CSV, `|`, tabs, columns)."""

from __future__ import annotations

import re

from transplt.precision.loss.curve import normal
from transplt.precision.loss.line import LogEntry, Words, is_bar, number_of

_BOX = str.maketrans("┃│║", "|||")
_STEPS, _EPOCHS = ("step", "global_step", "iter", "iteration", "batch"), ("epoch", "epochs")
_MOST_CELLS = 200


def _cells(text: str, separator: str) -> list[str]:
    if separator == "|":
        text = text.translate(_BOX).strip().strip("|")
    if separator == " ":
        return text.split()
    cells = re.split(r" {2,}", text) if separator == "  " else text.split(separator)
    return [cell.strip().strip('"') for cell in cells]


class Table:
    """The names of the columns, and the entry of a row below them."""

    def __init__(self, names: list[str], separator: str) -> None:
        self._names = names
        # Columns of names that are apart by spaces hold one word each.
        self._separator = " " if separator == "  " else separator

    @classmethod
    def headed(cls, text: str, words: Words) -> Table | None:
        """The table that a line is the head of; None for another line."""
        line = text.translate(_BOX).strip()
        for separator in ("|", "\t", ",", "  ", " "):
            if separator not in line:
                continue
            names = _cells(line, separator)
            if not 2 <= len(names) <= _MOST_CELLS:
                continue
            if any(number_of(name) is not None for name in names) or any(c in line for c in ":=") or "" in names:
                return None
            if any(words.wanted(name) for name in names):
                return cls(names, separator)
        return None

    def row(self, text: str, words: Words) -> LogEntry | None:
        """The entry of a row; None for a line that is none."""
        line = text.translate(_BOX)
        if self._separator not in line:
            return None
        cells = _cells(line.strip("\r\n"), self._separator)
        if not len(self._names) <= len(cells) <= _MOST_CELLS + len(self._names):
            return None
        if self._separator != " " and len(cells) != len(self._names):
            return None
        if self._separator == " " and number_of(cells[0]) is None:
            return None
        entry = LogEntry(redrawn=is_bar(text))
        for name, cell in zip(self._names, cells, strict=False):
            if (value := number_of(cell)) is None:
                if words.wanted(name) and cell:
                    return None
            elif words.wanted(name):
                entry.values.append((name, value))
            elif normal(name) in _STEPS:
                entry.step = value
            elif normal(name) in _EPOCHS:
                entry.epoch = value
                entry.total_epochs = int(cell.partition("/")[2] or 0) if "/" in cell else 0
        return entry if entry.values else None
