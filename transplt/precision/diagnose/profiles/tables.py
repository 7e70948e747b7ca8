"""Reads a CSV of a profiler row by row: bounded memory, whatever the file holds.

Headers differ between versions in case, blanks and the sign for micro (`Start Time(us)`, `Start Time (µs)`), and cells
may end with a tab; a table is known by its columns, not by its name.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from typing import BinaryIO

from transplt.precision.diagnose.profiles.lines import lines_of

#: A longer line is no line of a profiler's table.
_LONGEST = 1024 * 1024


class UnreadableProfile(ValueError):
    """What is given is nothing that a profiler wrote; the message is a clause for the user."""


class Table:
    """The rows of a CSV. UnreadableProfile for a file without a header; `broken` says where reading ended early."""

    def __init__(self, file: BinaryIO) -> None:
        self._lines = _lines(file)
        self._reader = csv.reader(self._lines)
        self.broken = ""
        try:
            header = next(self._reader, [])
        except csv.Error as error:
            raise UnreadableProfile("its first line is no header of a table") from error
        self.columns = {_column(name): index for index, name in reversed([*enumerate(header)])}

    def has(self, *columns: str) -> bool:
        """True for a table with all these columns."""
        return all(_column(name) in self.columns for name in columns)

    def place(self, *names: str) -> int:
        """Where the first of these columns that is there stands in a row; -1 for none."""
        return next((self.columns[_column(name)] for name in names if _column(name) in self.columns), -1)

    def __iter__(self) -> Iterator[list[str]]:
        try:
            yield from self._reader
        except (csv.Error, UnreadableProfile) as error:
            self.broken = f"line {self._reader.line_num}: {error}"


def cell(row: list[str], place: int) -> str:
    """The text in a column, empty where the row or the table has none."""
    text = row[place].strip() if 0 <= place < len(row) else ""
    return "" if text == "N/A" else text


def number(row: list[str], place: int) -> float:
    """The number in a column; 0 for none, and for what is no finite number of at least 0."""
    return finite(cell(row, place))


def finite(value: object) -> float:
    """A number of a profile, which is finite and not negative; 0 for anything else."""
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return found if math.isfinite(found) and found > 0 else 0.0


def _column(name: str) -> str:
    return name.lower().replace("\u00b5", "u").replace("\u03bc", "u").replace(" ", "").strip("\ufeff\t")


def _lines(file: BinaryIO) -> Iterator[str]:
    for line in lines_of(file, _LONGEST):
        if len(line) >= _LONGEST:
            raise UnreadableProfile("a line that is longer than 1 MB")
        yield line.decode("utf-8", "backslashreplace").replace("\0", "")
