"""Judging a run from the records of its processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from transplt.emulator.edits import EditedFile, Migration
from transplt.emulator.report import as_text, build
from transplt.emulator.runner import ScriptRun


def process(**values: Any) -> dict[str, Any]:
    record: dict[str, Any] = {"pid": 1, "rank": None, "launcher": False, "forked": False, "status": "ended"}
    record |= {"exception": None, "torch": "2.13.0", "operators": {"aten::add.Tensor": 3}, "findings": [], "lines": {}}
    record |= {"notes": {}, "saves": [], "shapes": [], "seconds": 1.0}
    return {**record, **values}


def finding(
    root: Path, line: int = 3, level: str = "warning", count: int = 1, name: str = "train.py"
) -> dict[str, Any]:
    place = {"path": str(root / name), "line": line, "code": "NPU101"}
    return {**place, "message": "torch.cuda.X", "help": "use torch.npu.X", "level": level, "count": count}


def judge(
    *processes: dict[str, Any], code: int = 0, timed_out: bool = False, migration: Migration | None = None
) -> Any:
    return build(ScriptRun(code, processes, 2.0, timed_out=timed_out), migration, ["train.py"], "2.13.0", "2.13")


def test_verified() -> None:
    report = judge(process(), process(rank="1", operators={"aten::add.Tensor": 2}))
    assert (report.verdict, report.reasons) == ("verified", [])
    assert report.as_json()["operators"] == {"calls": 5, "distinct": 1, "counts": {"aten::add.Tensor": 5}}
    assert as_text(report).startswith("transplt run: verified: the script ran to its end")


@pytest.mark.parametrize(
    ("records", "code", "timed_out", "reasons"),
    [
        ([process(exception={"type": "CudaLeftover", "message": "x"})], 1, False, ["cuda-leftover"]),
        ([process(exception={"type": "ValueError", "message": ""})], 1, False, ["script-failed"]),
        ([process(operators={})], 0, False, ["no-npu-operator"]),
        ([process(operators={})], -9, False, ["script-failed", "no-npu-operator"]),
        ([process()], -15, True, ["timed-out"]),
        ([], 2, False, ["script-failed", "no-npu-operator"]),
    ],
)
def test_what_is_not_verified(records: list[dict[str, Any]], code: int, timed_out: bool, reasons: list[str]) -> None:
    report = judge(*records, code=code, timed_out=timed_out)
    assert report.reasons == reasons and report.verdict == reasons[0]
    text = as_text(report)
    assert text.startswith(f"transplt run: {reasons[0]}: ")
    assert ("ended by signal SIGKILL" in text) == (code == -9)


def test_findings_are_summed_up_and_info_does_not_count(tmp_path: Path) -> None:
    records = [
        process(findings=[finding(tmp_path), finding(tmp_path, 9, "info")]),
        process(findings=[finding(tmp_path, count=4)]),
    ]
    migration = Migration(tmp_path, "2.13", ())
    report = judge(*records, migration=migration)
    assert report.reasons == ["findings"]
    assert [(f["path"], f["line"], f["count"]) for f in report.findings] == [("train.py", 3, 5), ("train.py", 9, 1)]
    text = as_text(report)
    assert "train.py:3: NPU101 torch.cuda.X (5 times): use torch.npu.X" in text and "train.py:9" not in text
    assert judge(process(findings=[finding(tmp_path, level="info")])).verdict == "verified"


def test_long_lists_are_cut(tmp_path: Path) -> None:
    report = judge(process(findings=[finding(tmp_path, line) for line in range(1, 31)]))
    assert "... and 10 more" in as_text(report)
    assert len(report.as_json()["findings"]) == 30


def test_lines_of_all_processes_count(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("a = 1\nb = 2\nc = 3\n", encoding="utf-8")
    file = EditedFile(path, {1: frozenset({1}), 2: frozenset({2, 3}), 3: frozenset({3})}, ("a = 1", "b = 2", "c = 3"))
    report = judge(
        process(lines={str(path): [1]}), process(lines={str(path): [2]}), migration=Migration(tmp_path, "2.13", (file,))
    )
    assert [e["line"] for e in report.lines["executed"]] == [1, 2]
    assert report.lines["never_executed"] == [{"path": "train.py", "line": 3, "text": "c = 3"}]
    assert "2 ran, 1 never did" in as_text(report)


def test_notes(tmp_path: Path) -> None:
    idle = judge(
        process(rank="0"), process(rank="1", operators={}, notes={"n": 2}), process(status="running", notes={"n": 1})
    )
    assert idle.notes == [
        "n (3 times)",
        "rank 1 never used the npu",
        "1 process was stopped before it could report everything",
    ]
    assert "note: rank 1 never used the npu" in as_text(idle)


def test_paths_outside_the_migration_stay(tmp_path: Path) -> None:
    outside = finding(Path("/somewhere"), name="else.py")
    report = judge(process(findings=[outside]), migration=Migration(tmp_path, "", ()))
    assert report.findings[0]["path"] == "/somewhere/else.py"
