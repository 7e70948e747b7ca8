"""Workbooks of our own: what another program reads of them, and that they are the same bytes each time."""

from __future__ import annotations

import io
import zipfile
from xml.etree import ElementTree

from openpyxl import load_workbook

from transplt.report.workbook import Book, add_sheet, book_bytes

TEXTS = ("a < b & \"c\" 'd'", " a blank before", "", "\x00\x1f\ud800x", "x" * 40_000, "=1+1", "\u4e2d")


def made() -> bytes:
    book = Book()
    columns = [f"c{number}" for number in range(28)]
    add_sheet(book, "a & b", columns, [10] * 28, [("p/a file.py", 1, 2.5, 11.0, *TEXTS)], "../src/")
    add_sheet(book, "no rows", ("What",), (60,), [])
    return book_bytes(book)


def test_what_is_written_is_read() -> None:
    book = load_workbook(io.BytesIO(made()))
    assert book.sheetnames == ["a & b", "no rows"]
    sheet = book["a & b"]
    row = [cell.value for cell in sheet[2]]
    assert row[:4] == ["p/a file.py", 1, 2.5, 11]
    assert row[4:11] == ["a < b & \"c\" 'd'", " a blank before", None, "x", "x" * 32_767, "=1+1", "\u4e2d"]
    assert sheet["J2"].data_type == "s"  # no formula
    assert sheet["AB1"].value == "c27" and sheet["AB1"].font.b and not sheet["A2"].font.b
    assert sheet["A2"].hyperlink.target == "../src/p/a%20file.py"
    assert (sheet.freeze_panes, sheet.auto_filter.ref, sheet.column_dimensions["A"].width) == ("A2", "A1:AB2", 10)


def test_the_same_rows_are_the_same_bytes() -> None:
    data = made()
    assert data == made()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))
