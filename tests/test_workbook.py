"""Workbooks: what another program reads of them, and that they are the same bytes each time."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from openpyxl import load_workbook

from tests.processes import unmeasured
from transplt.base.render.workbooks import Sheet, workbook

TEXTS = ("a < b & \"c\" 'd'", " a blank before", "", "\x00\x1f\ud800x", "x" * 40_000, "=1+1", "\u4e2d", "#N/A", "=", 7)
ROOT = Path(__file__).resolve().parent.parent


def made() -> bytes:
    columns = [f"c{number}" for number in range(28)]
    rows = [("p/a file.py", 1, 2.5, 11.0, *TEXTS), ("=a.py", "=1+1"), ("", 1)]
    return workbook(
        [
            Sheet("a & b", columns, rows, [10] * 28, "../src/"),
            Sheet("no rows", ("What",), [], (60,)),
            Sheet("plain", ("What", "Count"), [("a", 1)], frozen="B2"),
        ]
    )


def test_what_is_written_is_read() -> None:
    book = load_workbook(io.BytesIO(made()))
    assert book.sheetnames == ["a & b", "no rows", "plain"]
    sheet = book["a & b"]
    row = [cell.value for cell in sheet[2]]
    assert row[:4] == ["p/a file.py", 1, 2.5, 11]
    assert row[4:11] == ["a < b & \"c\" 'd'", " a blank before", None, "x", "x" * 32_767, "=1+1", "\u4e2d"]
    assert row[11:14] == ["#N/A", "=", 7]
    assert {sheet[place].data_type for place in ("J2", "L2", "M2", "A3", "B3")} == {"s"}  # neither formula nor error
    assert sheet["AB1"].value == "c27" and sheet["AB1"].font.b and not sheet["A2"].font.b
    assert sheet["A2"].hyperlink.target == "../src/p/a%20file.py"
    assert sheet["A3"].hyperlink.target == "../src/%3Da.py" and sheet["A4"].hyperlink is None
    assert (sheet.freeze_panes, sheet.auto_filter.ref, sheet.column_dimensions["A"].width) == ("A2", "A1:AB4", 10)
    assert book["no rows"].auto_filter.ref == "A1:A1"
    plain = book["plain"]
    assert (plain.freeze_panes, plain.auto_filter.ref, plain["A1"].font.b) == ("B2", None, False)


def test_the_same_rows_are_the_same_bytes() -> None:
    data = made()
    assert data == made()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))


def elsewhere(*before: str) -> bytes:
    """What another process makes that does something before."""
    lines = (
        "import sys", f"sys.path.insert(0, {str(ROOT)!r})", *before, "import transplt.base.render.workbooks",
        "from tests.test_workbook import made", "sys.stdout.buffer.write(made())",
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], env=unmeasured(), stdout=subprocess.PIPE, check=True
    )
    return done.stdout


@pytest.mark.torch  # which brings numpy
def test_another_clock_and_other_modules_make_no_other_bytes() -> None:
    data = elsewhere()
    assert data.startswith(b"PK")
    assert data == elsewhere("import time", "time.time = lambda: 2e9") == elsewhere("import numpy")


def test_nothing_is_written_beside_a_workbook() -> None:
    assert elsewhere("import tempfile", "tempfile.NamedTemporaryFile = None").startswith(b"PK")


@pytest.mark.torch
def test_what_is_hidden_from_openpyxl_can_be_imported_afterwards() -> None:
    assert elsewhere(
        "import transplt.base.render.workbooks, openpyxl",
        "assert 'numpy' not in sys.modules and not openpyxl.NUMPY and not openpyxl.LXML",
        "import numpy",
        "assert numpy.ones(2).sum() == 2",
    )
