"""Workbooks that are the same bytes for the same rows: a table a sheet, with a frozen header and a filter."""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

#: A sheet opens with at most 65,530 links.
_MAX_LINKS = 65_000
_EPOCH = datetime(1980, 1, 1)
_MODIFIED = re.compile(rb"(<dcterms:(created|modified)[^>]*>)[^<]*")


def new_book() -> Any:
    """A workbook for `add_sheet` and `book_bytes`."""
    from openpyxl import Workbook

    return Workbook(write_only=True)


def book_bytes(book: Any, folder: Path) -> bytes:
    """The bytes of a workbook. `folder` takes the temporary files of the writer."""
    book.properties.created = _EPOCH
    book.properties.creator = "transplt"
    data = io.BytesIO()
    with _temporary_files_in(folder):
        book.save(data)
    return _without_times(data)


def add_sheet(
    book: object,
    name: str,
    columns: Sequence[str],
    widths: Sequence[int],
    rows: Iterable[tuple[str | int | float, ...]],
    links: str | None = None,
) -> None:
    """Adds a sheet. `links` is the way from the workbook to the files of the first column, None for no links."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    assert isinstance(book, Workbook)
    sheet = book.create_sheet(name)
    sheet.freeze_panes = "A2"
    for position, width in enumerate(widths, 1):
        sheet.column_dimensions[get_column_letter(position)].width = width
    header = [WriteOnlyCell(sheet, value=column) for column in columns]
    for each in header:
        each.font = Font(bold=True)
    sheet.append(header)
    count = 1
    for row in rows:
        if links is not None and count < _MAX_LINKS and row[0]:
            linked = WriteOnlyCell(sheet, value=row[0])
            linked.hyperlink = links + quote(str(row[0]).removeprefix("'"))
            sheet.append((linked, *row[1:]))
        else:
            sheet.append(row)
        count += 1
    sheet.auto_filter.ref = f"A1:{get_column_letter(len(columns))}{count}"


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    before = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _without_times(data: io.BytesIO) -> bytes:
    """The same workbook with every date in it, and in the archive around it, set to 1980."""
    stamp = _EPOCH.strftime("%Y-%m-%dT%H:%M:%SZ").encode("ascii")
    out = io.BytesIO()
    with zipfile.ZipFile(data) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "docProps/core.xml":
                content = _MODIFIED.sub(rb"\g<1>" + stamp, content)
            entry = zipfile.ZipInfo(name, _EPOCH.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            new.writestr(entry, content)
    return out.getvalue()
