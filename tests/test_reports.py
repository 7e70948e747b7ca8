"""The reports: what they say, that a spreadsheet runs none of it, and that they are the same every time."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import time
import zipfile
from ast import literal_eval
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook

from transplt.base.disk.walk import LeftOut
from transplt.base.finding import Effort, Finding, Level, Operation, Replacement, Span, Status, TokenCount
from transplt.base.render.cell import MAX_CHARACTERS, cell, for_terminal, visible
from transplt.base.settings import Settings
from transplt.project.report import write_reports
from transplt.project.report.change_list import COLUMNS as CHANGE_COLUMNS
from transplt.project.report.change_list import render_change_list
from transplt.project.report.log import render_log
from transplt.project.report.migration_record import FileRecord, RunResult
from transplt.project.report.summary import summary
from transplt.project.report.unsupported_op import COLUMNS, REMARKS, SHEETS, render_unsupported
from transplt.project.torch_version import TorchTarget

TARGET = TorchTarget("2.8", "requirements.txt requires torch==2.8.0", "2.8.0.post5", "8.5.0", "2.8.0")


def at(line: int, column: int = 1, length: int = 3) -> Span:
    start = line * 100 + column
    return Span(line, column, line, column + length, start, start + length)


def edit(path: str, line: int, before: str = "a", after: str = "b", column: int = 1, message: str = "m") -> Finding:
    change = Replacement(Operation.MODIFY, before, after)
    return Finding(path, at(line, column), "NPU101", Level.SAFE, message, edit=change, applied=True)


def manual(path: str, line: int, code: str, api: str = "torch.cuda.x", help: str = "do it") -> Finding:
    return Finding(path, at(line), code, Level.MANUAL, "this is hard", api, Effort.HIGH, help)


def result_of(*findings: Finding, **fields: object) -> RunResult:
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        by_path.setdefault(finding.path, []).append(finding)
    files = tuple(
        FileRecord(path, "python", "0" * 64, tuple(found), changed=any(each.applied for each in found))
        for path, found in sorted(by_path.items())
    )
    values: dict[str, object] = {
        "name": "proj",
        "source": Path("/in/proj"),
        "output": Path("/out/proj_msft"),
        "settings": Settings(torch_version="2.8"),
        "target": TARGET,
        "files": files,
        **fields,
    }
    return RunResult(**values)  # type: ignore[arg-type]


def rows_of(result: RunResult) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_change_list(result).decode("utf-8"), newline="")))


def test_change_list_has_a_row_for_each_applied_edit_in_order() -> None:
    result = result_of(
        edit("b.py", 1),
        edit("a.py", 10, column=5),
        edit("a.py", 10, column=2),
        edit("a.py", 9),
        manual("a.py", 3, "NPU501"),
        Finding("a.py", at(4), "NPU310", Level.UNSAFE, "not asked for", edit=Replacement(Operation.DELETE, "x", "")),
    )
    rows = rows_of(result)
    assert [(row["File"], row["Start Line"], row["Column"]) for row in rows] == [
        ("a.py", "9", "1"), ("a.py", "10", "2"), ("a.py", "10", "5"), ("b.py", "1", "1"),
    ]  # fmt: skip
    assert tuple(rows[0]) == CHANGE_COLUMNS
    assert tuple(rows[0])[:5] == ("File", "Start Line", "End Line", "Operation Type", "Message")
    assert {row["Operation Type"] for row in rows} == {"MODIFY"}


def test_change_list_is_rfc_4180_without_a_mark() -> None:
    data = render_change_list(result_of(edit("a.py", 1, 'say("hi"),\nx', "\x1b[31m\u202e\ud800\0")))
    assert data.startswith(b"File,")
    assert data.count(b"\r\n") == data.count(b"\n") == 2
    row = rows_of(result_of(edit("a.py", 1, 'say("hi"),\nx', "\x1b[31m\u202e\ud800\0")))[0]
    assert row["Before"] == 'say("hi"),\\nx'
    assert row["After"] == "\\x1b[31m\\u202e\\ud800\\x00"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"])
def test_formulas_are_neutralised_everywhere(text: str, tmp_path: Path) -> None:
    assert cell(text).startswith("'")
    assert rows_of(result_of(edit(text, 1, before=text, message=text)))[0]["Before"].startswith("'")
    book = load_workbook(io.BytesIO(render_unsupported(result_of(manual(text, 1, "NPU501", text, text)))))
    for row in book["unsupported"].iter_rows(min_row=2):
        assert all(each.data_type != "f" for each in row)
        assert row[0].value.startswith("'")
        assert row[2].value.startswith("'")


@given(st.text(st.sampled_from("\\n\n'=x\r\t-\x1b"), max_size=12) | st.text(st.characters(codec="utf-8"), max_size=20))
def test_what_an_edit_replaces_can_be_read_back(text: str) -> None:
    row = rows_of(result_of(edit("a.py", 1, before=text)))[0]["Before"]
    read = re.sub(r"\\(?:x..|u.{4}|U.{8}|.)", lambda found: str(literal_eval(f'"{found[0]}"')), row)
    formula = read.lstrip("'").startswith(
        ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
    )
    assert (read.removeprefix("'") if formula else read) == text


def test_a_terminal_is_shown_what_it_might_obey() -> None:
    shown = for_terminal("+a\tb \u00e9\r\n-\x1b]0;x\x07\r\u202e\n".encode() + b"\xff")
    assert shown.decode() == "+a\tb \u00e9\n-\\x1b]0;x\\x07\\r\\u202e\n\\xff"


def test_long_cells_are_cut_and_say_so() -> None:
    text = cell("x" * 100_000)
    assert len(text) < MAX_CHARACTERS + 100
    assert text.endswith("... (cut: 100000 characters in all)")
    assert cell("x" * MAX_CHARACTERS) == "x" * MAX_CHARACTERS


def test_file_names_that_are_not_utf8_show_their_bytes() -> None:
    assert visible(b"caf\xe9.py".decode("utf-8", "surrogateescape")) == "caf\\xe9.py"


@given(st.text(st.characters(), max_size=50))
def test_every_text_makes_a_harmless_cell(text: str) -> None:
    shown = cell(text)
    assert shown.isprintable()
    assert not shown.startswith(("=", "+", "-", "@"))
    shown.encode("utf-8")
    if text.isprintable() and not text.startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")):
        assert shown == text


def workbook(result: RunResult, folder: Path):  # type: ignore[no-untyped-def]
    return load_workbook(io.BytesIO(render_unsupported(result)))


def test_a_sheet_for_each_kind(tmp_path: Path) -> None:
    findings = [
        manual("a.py", 1, "NPU501"),
        manual("a.py", 2, "NPU511", "flash_attn"),
        manual("a.py", 3, "NPU210"),
        manual("a.py", 4, "NPU901"),
        manual("a.py", 5, "NPU991"),
        Finding("a.py", at(6), "NPU601", Level.UNKNOWN, "what is this", "x.cuda"),
        Finding("a.py", at(7), "NPU701", Level.INFO, "good to know"),
        Finding("a.py", at(8), "NPU502", Level.MANUAL, "switched off", ignored="by a comment"),
        edit("a.py", 9),
    ]
    book = workbook(result_of(*findings), tmp_path)
    assert book.sheetnames == ["actions", *SHEETS, "other remarks", "summary"]
    lines = {name: [row[1] for row in book[name].iter_rows(min_row=2, values_only=True)] for name in (*SHEETS, REMARKS)}
    assert lines == {
        "unsupported": [1], "check by hand": [3, 6], "third-party": [2], "unreadable": [4, 5], "other remarks": [7],
    }  # fmt: skip
    header, row = book["unsupported"].iter_rows(values_only=True)
    assert header == COLUMNS
    assert row == ("a.py", 1, "torch.cuda.x", "NPU501", "a day or more", "this is hard. do it")
    for name in SHEETS:
        sheet = book[name]
        assert sheet.freeze_panes == "A2"
        assert sheet.auto_filter.ref == f"A1:F{sheet.max_row}"
        assert sheet.column_dimensions["F"].width > 50
    assert list(tmp_path.iterdir()) == []


def test_no_sheet_is_empty(tmp_path: Path) -> None:
    assert workbook(result_of(edit("a.py", 1)), tmp_path).sheetnames == ["summary"]
    book = workbook(result_of(manual("a.py", 2, "NPU501")), tmp_path)
    assert book.sheetnames == ["actions", "unsupported", "summary"]


def test_the_summary_sheet_adds_up(tmp_path: Path) -> None:
    result = result_of(edit("a.py", 1), manual("a.py", 2, "NPU501"))
    rows = dict(workbook(result, tmp_path)["summary"].iter_rows(min_row=2, values_only=True))
    assert rows["torch"] == "2.8"
    assert rows["torch_npu"] == "2.8.0.post5"
    assert rows["edits"] == 1
    assert rows["in the sheet unsupported"] == 1
    assert rows["files changed"] == 1


def test_reports_do_not_depend_on_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = result_of(edit("a.py", 1), manual("a.py", 2, "NPU501"))
    first = [render_unsupported(result), render_log(result), render_change_list(result)]
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 1e8)
    time.sleep(1.1)
    assert [render_unsupported(result), render_log(result), render_change_list(result)] == first
    with zipfile.ZipFile(io.BytesIO(first[0])) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert b"1980-01-01T00:00:00Z" in archive.read("docProps/core.xml")


@pytest.mark.extra
@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice (soffice) is not installed")
def test_libreoffice_reads_the_workbook(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(render_unsupported(result_of(manual("a.py", 1, "NPU501", "=1+1"))))
    command = ["soffice", "--headless", "--convert-to", "csv", "--outdir", tmp_path, tmp_path / "a.xlsx"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    assert "Replace =1+1: no counterpart on NPU" in (tmp_path / "a.csv").read_text()


def test_the_log_tells_everything_and_no_place() -> None:
    result = result_of(
        edit("a.py", 3, "x\ny", "z"),
        manual("b.py", 2, "NPU501"),
        left_out=(LeftOut("data", "excluded"),),
        large=(LeftOut("w.pt", "larger than 10 MB and read by no rule", 12_000_000),),
        links=("l.py",),
    )
    text = render_log(result).decode()
    assert "a.py:3:1: NPU101 [converted] m\n    MODIFY: x\\ny -> z\n" in text
    assert "b.py:2:1: NPU501 [left] this is hard\n    help: do it\n" in text
    assert "  data: excluded\n" in text
    assert "  w.pt: larger than 10 MB and read by no rule (12000000 bytes)\n" in text
    assert "  l.py\n" in text
    assert "torch 2.8 (requirements.txt requires torch==2.8.0), torch_npu 2.8.0.post5, CANN 8.5.0" in text
    assert "/in/" not in text
    assert "/out/" not in text


def to_do(result: RunResult) -> list[str]:
    """What the summary says of work that is left."""
    return [line.strip() for line in summary(result) if re.match(r"  (to do|nothing|not counted)", line)]


def test_unsafe_edits_are_told_from_the_others() -> None:
    safe = edit("a.py", 3)
    result = result_of(safe, replace(edit("a.py", 4), level=Level.UNSAFE))
    text = render_log(result).decode()
    assert "a.py:3:1: NPU101 [converted] m\n" in text and "a.py:4:1: NPU101 [converted, unsafe] m\n" in text
    assert "  converted: 2 edits (1 unsafe) in 1 of 1 file" in list(summary(result))
    assert "  converted: 1 edit in 1 of 1 file" in list(summary(result_of(safe)))


def test_the_log_names_the_tunings_that_were_asked_for() -> None:
    tuned = result_of(edit("a.py", 1), settings=Settings(tune=(("fused-optimizer", ""), ("profiler", "2-3"))))
    assert "\ntunings: fused-optimizer, profiler=2-3\n" in render_log(tuned).decode()
    assert "tunings" not in render_log(result_of(edit("a.py", 1))).decode()


def test_nothing_left_is_only_said_when_it_is_true() -> None:
    assert to_do(result_of(edit("a.py", 1))) == ["nothing left to do"]
    assert to_do(result_of(manual("a.py", 1, "NPU501"))) == ["to do: 1 action, about 8 hours:"]
    failed = FileRecord("a.py", "python", "", status=Status.UNREADABLE)
    unknown = "not counted: the edits and the work in a.py, not readable"
    assert to_do(result_of(files=(failed,))) == [unknown]
    left = FileRecord("a.py", "python", "", tokens=TokenCount(found=1, unknown=1))
    assert to_do(result_of(files=(left,))) == ["to do: check 1 CUDA word"]
    assert to_do(result_of(files=(failed, left))) == ["to do: check 1 CUDA word", unknown]
    large = (LeftOut("w.pt", "larger than 10 MB and read by no rule", 12_000_000),)
    assert to_do(result_of(large=large)) == ["nothing left to do in the files that were read"]


def test_the_exit_code_follows_what_is_left() -> None:
    assert result_of(edit("a.py", 1)).exit_code == 0
    assert result_of(Finding("a.py", at(1), "NPU701", Level.INFO, "good to know")).exit_code == 0
    assert result_of(Finding("a.py", at(1), "NPU501", Level.MANUAL, "m", ignored="by a comment")).exit_code == 0
    assert result_of(manual("a.py", 1, "NPU501")).exit_code == 1
    assert result_of(unread=(manual("a.py", 1, "NPU909"),)).exit_code == 1
    assert result_of(files=(FileRecord("a.py", "python", "", status=Status.INTERNAL),)).exit_code == 1


def test_the_summary_is_short_however_much_there_is() -> None:
    findings = [manual(f"f{i}.py", 1, f"NPU{500 + i}") for i in range(60)]
    left_out = tuple(LeftOut(f"x{i}", "excluded") for i in range(100))
    result = result_of(*findings, left_out=left_out)
    lines = list(summary(result))
    assert len(lines) <= 15
    assert sum(bool(re.match(r" +\d+\. ", line)) for line in lines) == 5  # three of them have several
    assert any(re.search(r"to do: \d+ actions, about \d+ hours; the first 15:$", line) for line in lines)
    assert "  left out, as the log says why: x0, x1, x2 and 97 more" in lines
    more = list(summary(result, verbose=1))
    assert any(line.startswith("  left out, excluded: x0, x1, ") and line.endswith(", x99") for line in more)
    assert any(re.search(r"; and \d+ more$", line) for line in more)


def test_the_summary_fits_the_terminal() -> None:
    result = result_of(*(manual(f"folder/f{i}.py", 1, f"NPU{500 + i}") for i in range(60)))
    assert all(len(line) <= 60 for line in summary(result, width=60))


def test_more_is_said_of_what_was_done_and_of_remarks_where_it_is_asked_for() -> None:
    found = [edit("a.py", 1), edit("a.py", 2), manual("a.py", 3, "NPU501"), manual("a.py", 4, "NPU201")]
    found += [Finding("a.py", at(5), "NPU405", Level.INFO, "m")]
    found += [Finding("a.py", at(6), "NPU501", Level.MANUAL, "m", ignored="by a comment")]
    result = result_of(*found)
    assert "  to do: 2 actions, about 16 hours:" in list(summary(result))
    assert not [line for line in summary(result) if re.search(r"NPU\d", line)]
    lines = list(summary(result, verbose=1))
    codes = lines[lines.index("  edits by code:") :]
    assert [line.split()[:2] for line in codes if " NPU" in line] == [["2", "NPU101"], ["1", "NPU405"], ["1", "NPU501"]]
    headings = [line.strip() for line in codes if line.endswith(":")]
    assert headings == ["edits by code:", "remarks, which do not stop the program:", "ignored:"]


def test_a_remark_of_the_analysis_that_is_ignored_is_no_remark() -> None:
    remark = Finding("a.py", at(1), "NPU720", Level.INFO, "m")
    lines = list(summary(result_of(remark, replace(remark, ignored="by the settings")), verbose=1))
    told = [line for line in lines if "remarks" in line]
    assert told == ["  remarks of the analysis, by the sheets of unsupported_op.xlsx: 1 advice"]
    assert lines[lines.index("  ignored:") + 1].split()[:2] == ["1", "NPU720"]


def test_a_name_that_is_taken_goes_to_the_project(tmp_path: Path) -> None:
    result, hashes = write_reports(result_of(edit("a.py", 1)), tmp_path, {"change_list.csv"})
    assert sorted(hashes) == ["msFmkTranspltlog.txt", "tokens.csv", "transplt_change_list.csv", "unsupported_op.xlsx"]
    assert result.reports["change_list.csv"] == "transplt_change_list.csv"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(hashes)
