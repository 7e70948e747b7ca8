"""A notebook as it is written in its file: the cells, their texts, and where each byte of them stands.

nbformat gives the texts without their places, and writes the file anew in its own layout. Source of the format:
nbformat.readthedocs.io, "The Notebook file format", versions 3 to 4.5.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from transplt.base.finding import Finding
from transplt.base.text.json_text import Decoded, Path, values

_BLANK = rb"[ \t\r\n]*"
_GAP = re.compile(_BLANK + rb"," + _BLANK)
_FIRST_GAP = re.compile(rb"\[(" + _BLANK + rb")\"")
#: Keys that lead from the list of cells to a line of one: 3, source, 5.
_DEPTH = 3


class UnreadableNotebook(Exception):
    """A file that is no notebook: why, as a clause."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its number from 1, its kind as the notebook gives it, its place, that of its text, and the text.

    `lines` are the literals of a text that is a list of them, None for one of a single string; `gap` is what stands
    between two of them. `language` is empty where the cell does not give it.
    """

    number: int
    kind: str
    extent: tuple[int, int]
    source: tuple[int, int]
    lines: tuple[tuple[int, int], ...] | None
    gap: str
    text: Decoded
    language: str = ""

    @property
    def utf8(self) -> bytes:
        return bytes(self.text.utf8)


@dataclass(frozen=True, slots=True)
class Notebook:
    """The cells of a notebook in their order, the language of its kernel, and whether it writes é or \\u00e9."""

    cells: tuple[Cell, ...]
    language: str
    escapes: bool

    def place(self, offset: int) -> str:
        """The cell, and the line of its text, in which a byte of the file stands; empty outside of the cells."""
        index = bisect_right(self.cells, offset, key=lambda cell: cell.extent[0]) - 1
        if index < 0 or offset > self.cells[index].extent[1]:
            return ""
        cell = self.cells[index]
        if not cell.source[0] <= offset <= cell.source[1] or not cell.text.utf8:
            return f"cell {cell.number}"
        # The first offset of the text whose byte stands at that place of the file or behind it.
        at = bisect_right(range(len(cell.text.utf8)), offset - 1, key=cell.text.start)
        return f"cell {cell.number}, line {cell.text.line(at)}"


def in_cells(findings: Iterable[Finding], utf8: bytes) -> tuple[Finding, ...]:
    """The findings of a notebook with the cells that they stand in; as they are where it cannot be read."""
    try:
        book = read_notebook(utf8)
    except UnreadableNotebook:
        return tuple(findings)
    return tuple(replace(each, within=book.place(each.span.start)) for each in findings)


@lru_cache(maxsize=2)
def read_notebook(utf8: bytes) -> Notebook:
    """The notebook of a file. UnreadableNotebook for what is none."""
    try:
        data = json.loads(utf8.decode("utf-8"))
    except RecursionError:
        raise UnreadableNotebook("it is nested too deeply to be read") from None
    except json.JSONDecodeError as error:
        why = f"it is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise UnreadableNotebook(why) from None
    except ValueError as error:
        raise UnreadableNotebook(f"it is not JSON: {error}") from None
    place: Path
    match data:
        case {"worksheets": [sheet, *others]}:
            place = ("worksheets", 0, "cells")
        case _:
            place, sheet, others = ("cells",), data, []
    cells = sheet.get("cells") if isinstance(sheet, dict) else None
    if not isinstance(cells, list) or not all(isinstance(each, dict) for each in cells):
        raise UnreadableNotebook("it has no list of cells")
    if others:
        raise UnreadableNotebook("it has several worksheets (nbformat 3); `jupyter nbconvert --to notebook` joins them")
    every = values(utf8, len(place) + _DEPTH)
    spans = {path: (start, end) for path, start, end in every if path[: len(place)] == place}
    found = tuple(
        cell
        for index, each in enumerate(cells)
        if (cell := _cell(utf8, spans, (*place, index), each, index + 1)) is not None
    )
    return Notebook(found, _language(data), utf8.isascii())


def _language(data: dict[str, Any]) -> str:
    """The language of the kernel, Python where the notebook does not give it."""
    match data.get("metadata"):
        case {"language_info": {"name": str(name)}} if name:
            return name.lower()
        case {"kernelspec": {"language": str(name)}} if name:
            return name.lower()
    return "python"


def _cell(utf8: bytes, spans: dict[Path, tuple[int, int]], path: Path, data: Any, number: int) -> Cell | None:
    """One cell; None for one whose text is none, or not the one that JSON gives for it (a key twice)."""
    key = "source" if "source" in data else "input"
    lines_or_text, source = data.get(key), spans.get((*path, key))
    if source is None or path not in spans or not isinstance(lines_or_text, (str, list)):
        return None
    lines: tuple[tuple[int, int], ...] | None = None
    if isinstance(lines_or_text, list):
        places = ((*path, key, index) for index in range(len(lines_or_text)))
        lines = tuple(spans[place] for place in places if place in spans)
    text = Decoded()
    try:
        for start, end in [source] if lines is None else lines:
            text.add(utf8, start, end)
        if bytes(text.utf8) != ("".join(lines_or_text) if isinstance(lines_or_text, list) else lines_or_text).encode():
            return None
    except (ValueError, TypeError):
        return None
    gap = "" if lines is None else _gap(utf8, source, lines)
    return Cell(number, str(data.get("cell_type")), spans[path], source, lines, gap, text, _language_of(data))


def _gap(utf8: bytes, source: tuple[int, int], lines: tuple[tuple[int, int], ...]) -> str:
    """What stands between two literals, in the layout of the list."""
    if len(lines) > 1 and _GAP.fullmatch(utf8, lines[0][1], lines[1][0]):
        return utf8[lines[0][1] : lines[1][0]].decode()
    match = _FIRST_GAP.match(utf8, source[0])
    return "," + (match.group(1).decode() if match and match.group(1) else " ")


def _language_of(cell: dict[str, Any]) -> str:
    """The language that a cell has for itself: nbformat 3, and what editors such as VS Code write."""
    match cell:
        case {"language": str(language)} | {"metadata": {"vscode": {"languageId": str(language)}}}:
            return language.lower()
    return ""
