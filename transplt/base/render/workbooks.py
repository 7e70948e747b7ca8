"""Workbooks, a table a sheet: the same rows are the same bytes, whenever and wherever they are written.

Importing openpyxl costs 0.08 s, so this module is imported when there is a workbook to write.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote


@contextmanager
def _hidden(*names: str) -> Iterator[None]:
    """Meanwhile the modules `names` cannot be imported, as though they were not installed."""
    there = {name: sys.modules[name] for name in names if name in sys.modules}
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]
        sys.modules.update(there)


# openpyxl takes what it finds beside it: lxml, which writes other bytes, and numpy, which costs more than openpyxl.
with _hidden("lxml.etree", *({"numpy"} - sys.modules.keys())):
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.packaging.core import DocumentProperties
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet._writer import WorksheetWriter
    from openpyxl.writer.excel import ExcelWriter

#: A sheet opens with at most 65,530 links.
_MAX_LINKS = 65_000
#: A cell holds at most so many characters.
_MAX_CHARACTERS = 32_767
_EPOCH = datetime(1980, 1, 1)
#: Characters that XML 1.0 has no way to write.
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_HEADER = Font(name="Calibri", size=11, family=2, bold=True)

Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table. One with `widths` of its columns has a filter, too, and its header is bold."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Value]]
    widths: Sequence[int] = ()
    links: str | None = None  #: the way from the workbook to the files that the first column names
    frozen: str = "A2"  #: the first cell that scrolls


def workbook(sheets: Iterable[Sheet]) -> bytes:
    """The bytes of a workbook."""
    book = Workbook(write_only=True)
    book.properties = DocumentProperties(creator="transplt", created=_EPOCH, modified=_EPOCH)
    for sheet in sheets:
        _write(sheet, book.create_sheet(sheet.name))
    data = io.BytesIO()
    ExcelWriter(book, _Archive(data, "w", zipfile.ZIP_DEFLATED)).save()
    return data.getvalue()


def _write(sheet: Sheet, out: Any) -> None:
    out.freeze_panes = sheet.frozen
    for position, width in enumerate(sheet.widths, 1):
        out.column_dimensions[get_column_letter(position)].width = width
    out._writer = _InMemory(out, io.BytesIO())
    out._writer.write_top()
    header = [_text(out, name, alone=True) for name in sheet.columns]
    for cell in header if sheet.widths else ():
        cell.font = _HEADER
    out.append(header)
    count = 1
    for count, row in enumerate(sheet.rows, 2):
        cells: list[Any] = [_text(out, value) if isinstance(value, str) else value for value in row]
        if sheet.links is not None and count <= _MAX_LINKS and row[0]:
            cells[0] = _text(out, str(row[0]), alone=True)
            cells[0].hyperlink = sheet.links + quote(str(row[0]).removeprefix("'"))
        out.append(cells)
    if sheet.widths:
        out.auto_filter.ref = f"A1:{get_column_letter(len(sheet.columns))}{count}"


def _text(out: Any, text: str, *, alone: bool = False) -> Any:
    """A text for a row: as a cell, which costs more, where it is `alone` or looks like a formula or an error of one."""
    text = _REFUSED.sub("", text[:_MAX_CHARACTERS])
    if not alone and not text.startswith(("=", "#")):
        return text
    cell = WriteOnlyCell(out, text)
    cell.data_type = "s"
    return cell


class _InMemory(WorksheetWriter):
    """A sheet that is written to memory; openpyxl's own goes through the folder of temporary files."""

    def cleanup(self) -> None:
        """There is no file to remove."""


class _Archive(zipfile.ZipFile):
    """Parts without the clock, the owner and the system that they are written by."""

    def write(self, sheet: io.BytesIO, name: str) -> None:  # type: ignore[override]
        self.writestr(name, sheet.getvalue())

    def writestr(self, name: str, data: bytes | str) -> None:  # type: ignore[override]
        entry = zipfile.ZipInfo(name, _EPOCH.timetuple()[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.create_system = 3
        entry.external_attr = 0o644 << 16
        super().writestr(entry, data)
