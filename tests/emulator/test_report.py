"""Judging a run from the records of its processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from transplt.proof.launch.edits import EditedFile, Migration
from transplt.proof.launch.ranks import with_endings
from transplt.proof.launch.report import as_text, build
from transplt.proof.launch.runner import ScriptRun


def process(**values: Any) -> dict[str, Any]:
    record: dict[str, Any] = {"pid": 1, "rank": None, "launcher": False, "forked": False, "status": "ended"}
    record |= {
        "exception": None,
        "leaving": None,
        "printed": None,
        "grouped": None,
        "stack": "",
        "torch": "2.13.0",
        "operators": {"aten::add.Tensor": 3},
        "findings": [],
        "lines": {},
    }
    record |= {"notes": {}, "saves": [], "shapes": [], "seconds": 1.0}
    return {**record, **values}


def finding(
    root: Path, line: int = 3, level: str = "warning", count: int = 1, name: str = "train.py"
) -> dict[str, Any]:
    place = {"path": str(root / name), "line": line, "code": "NPU101"}
    return {**place, "message": "torch.cuda.X", "help": "use torch.npu.X", "level": level, "count": count}


def judge(
    *processes: dict[str, Any],
    code: int = 0,
    timed_out: bool = False,
    migration: Migration | None = None,
    reference: dict[str, Any] | None = None,
) -> Any:
    outcome = ScriptRun(code, processes, 2.0, timed_out=timed_out)
    return build(outcome, migration, ["train.py"], "2.13.0", "2.13", 5.0, reference)


def raised(kind: str, reason: str, time: float = 1.0, **place: Any) -> dict[str, Any]:
    return {"type": kind, "message": reason, "reason": f"{kind}: {reason}", "time": time, **place}


def test_runs() -> None:
    report = judge(process(), process(rank="1", operators={"aten::add.Tensor": 2}))
    assert (report.verdict.word, report.reasons) == ("runs", [])
    told = report.as_json()
    assert told["operators"] == {"calls": 5, "distinct": 1, "counts": {"aten::add.Tensor": 5}}
    assert (told["schema_version"], told["verdict"]) == (2, "runs")
    assert told["sentence"] == "finished without errors; not compared with the original"
    assert as_text(report).startswith(f"transplt run: runs: {told['sentence']}\n")


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (
            [process(), process(rank="1", printed={"path": "/t.py", "line": 9, "reason": "ValueError: no"})],
            "it printed a traceback: rank 1: /t.py:9: ValueError: no",
        ),
        (
            [process(rank=rank, grouped=False) for rank in "01"],
            "each of the 2 ranks ran alone, since they formed no process group",
        ),
        ([process(rank="0", grouped=False), process(rank="1", grouped=True)], ""),
        ([process(rank=rank, grouped=None) for rank in "01"], ""),
        ([process(rank="0", grouped=False)], ""),
    ],
)
def test_what_a_run_that_ends_well_may_hide(records: list[dict[str, Any]], said: str) -> None:
    whole = "; ".join(filter(None, ("finished without errors; not compared with the original", said)))
    assert str(judge(*records).verdict) == f"runs: {whole}"


LEFTOVER = raised("CudaLeftover", "x")
PROBE = {"path": "/t.py", "line": 2, "code": "NPU101", "message": "torch.cuda.is_available", "help": "it answers no"}


@pytest.mark.parametrize(
    ("records", "code", "timed_out", "reasons", "verdict"),
    [
        ([process(exception=LEFTOVER)], 1, False, ["cuda-leftover"], "stops: CudaLeftover: x"),
        (
            [process(exception=raised("ValueError", "no", path="/t.py", line=3))], 1, False,
            ["script-failed"], "stops: /t.py:3: ValueError: no",
        ),
        (
            [process(leaving={"reason": "bad data", "time": 1.0, "path": "/t.py", "line": 3})], 1, False,
            ["script-failed"], "stops: /t.py:3: bad data: it ended with exit code 1",
        ),
        ([process()], 7, False, ["script-failed"], "stops: it ended with exit code 7"),
        (  # a package that is not here says nothing of the program; a name that an installed one lacks does
            [process(exception=raised("ModuleNotFoundError", "No module named 'tqdm'", path="/t.py", line=3),
                     operators={})], 1, False, ["script-failed", "no-npu-operator"],
            "not run: /t.py:3: ModuleNotFoundError: No module named 'tqdm'",
        ),
        (
            [process(exception=raised("ModuleNotFoundError", "No module named 'torch._six'"), operators={})], 1, False,
            ["script-failed", "no-npu-operator"], "stops: ModuleNotFoundError: No module named 'torch._six'",
        ),
        (
            [process(exception=raised("ModuleNotFoundError", "No module named 'tqdm'"))], 1, False,
            ["script-failed"], "stops: ModuleNotFoundError: No module named 'tqdm'",
        ),
        ([process(operators={})], -9, False, ["host-too-small", "no-npu-operator"],
         "not run: a process was killed, probably because memory ran out: this machine may be too small"),
        (
            [process(operators={}, status="running")], -15, True,
            ["timed-out"], "stops: the script did not finish within 5 s; where it was is not known",
        ),
        ([], 2, False, ["script-failed", "no-npu-operator"],
         "not run: the script started no Python process, and ended with exit code 2"),
        ([process(operators={})], 0, False, ["no-npu-operator"],
         "not run: nothing was computed on the NPU, though the script finished (every tensor stayed on the CPU)"),
        ([process(operators={}, torch=None)], 0, False, ["no-npu-operator"],
         "not run: nothing was computed on the NPU, though the script finished (PyTorch was never imported)"),
        ([process(operators={}, findings=[{**PROBE, "level": "warning", "count": 1}])], 0, False,
         ["findings", "no-npu-operator"],
         "not run: nothing was computed on the NPU, though the script finished "
         "(/t.py:2: NPU101 torch.cuda.is_available: it answers no)"),
    ],
)  # fmt: skip
def test_what_stops_and_what_is_not_run(
    records: list[dict[str, Any]], code: int, timed_out: bool, reasons: list[str], verdict: str
) -> None:
    report = judge(*records, code=code, timed_out=timed_out)
    assert (report.reasons, str(report.verdict)) == (reasons, verdict)
    assert as_text(report).startswith(f"transplt run: {verdict}\n")


def test_the_error_that_came_first_is_the_reason() -> None:
    """Not the one of the launcher, and not that of a rank whose peer was gone."""
    first = raised("ValueError", "no", 2.0, path="/t.py", line=3)
    records = [
        process(launcher=True, exception=raised("ChildFailedError", "", 0.5)),
        process(rank="0", exception=raised("RuntimeError", "Connection closed by peer", 3.0, path="/t.py", line=9)),
        process(rank="1", exception=first),
    ]
    assert judge(*records, code=1).verdict.sentence == "rank 1: /t.py:3: ValueError: no"


def at(line: int, what: str = "", waits: bool = False, rank: str = "0") -> dict[str, Any]:
    told = {"rank": rank, "world": 2, "what": what, "waits": waits, "time": 1.0}
    return {**told, "path": "/t.py", "line": line}


CUT: dict[str, Any] = {"status": "running", "torch": None, "operators": {}}
WAITS = process(rank="0", pid=2, place=at(9, "HcclAllReduce of 3 float32 (sum)", waits=True), **CUT)


@pytest.mark.parametrize(
    ("launcher", "rank", "sentence"),
    [
        (
            raised("ChildFailedError", "=====", of=3, ended="by signal SIGKILL"), {"place": at(5), **CUT},
            "rank 1 ended by signal SIGKILL (probably out of memory), last seen at /t.py:5; rank 0 waits in "
            "HcclAllReduce of 3 float32 (sum) at /t.py:9",
        ),
        (
            raised("ChildFailedError", "=====", of=3, ended="with exit code 3"),
            {"leaving": {"reason": "os._exit(3)", "time": 1.0, "path": "/t.py", "line": 4}, "place": at(4)},
            "rank 1: /t.py:4: os._exit(3): it ended with exit code 3; rank 0 waits in HcclAllReduce of 3 float32 (sum) "
            "at /t.py:9",
        ),
        (
            raised("ChildFailedError", "=====", of=3, ended="with exit code 1"),
            {"exception": raised("ValueError", "no", path="/t.py", line=3)},
            "rank 1: /t.py:3: ValueError: no",
        ),
        (  # of torch.multiprocessing, with the traceback
            raised("ProcessRaisedException", "no", of=3, path="/t.py", line=3), {"place": None},
            "rank 1: /t.py:3: ProcessRaisedException: no",
        ),
    ],
)  # fmt: skip
def test_how_a_rank_ended_as_its_launcher_saw_it(
    launcher: dict[str, Any], rank: dict[str, Any], sentence: str
) -> None:
    records = [process(pid=1, exception=launcher), WAITS, process(rank="1", pid=3, **rank)]
    report = judge(*with_endings(records), code=1)
    assert report.verdict.sentence == sentence
    assert "=====" not in as_text(report)


LOST = raised("AclError", "HcclAllReduce: another rank has left: Broken pipe", path="/t.py", line=9)


def test_ranks_that_fail_where_their_launcher_ends_well() -> None:
    failed = process(rank="0", exception=raised("ValueError", "no", path="/t.py", line=3))
    unsaid = "; what started the ranks ended with exit code 0"
    assert judge(failed, process(rank="1")).verdict.sentence == f"rank 0: /t.py:3: ValueError: no{unsaid}"
    killed = process(rank="1", place=at(5), **CUT)
    sentence = judge(process(rank="0", exception=LOST), killed).verdict.sentence
    assert sentence == f"rank 1 was killed, last seen at /t.py:5{unsaid}"
    again = judge(failed, process(rank="1"), process(rank="0"))  # started again by torchrun, and well this time
    assert (again.verdict.word, again.reasons) == ("runs", [])
    child = process(exception=raised("ValueError", "no", path="/t.py", line=3))  # of no rank: the script may expect it
    assert judge(child, process()).verdict.word == "runs"


STACK = """\
["/lib/python3/", "/site-packages/"]
Thread 0x1 (most recent call first):
  File "/lib/python3/threading.py", line 9 in wait
  File "/t.py", line 40 in helper
Current thread 0x2 (most recent call first):
  File "/x/site-packages/torch/distributed/distributed_c10d.py", line 99 in all_reduce
  File "/t\\xe9.py", line 12 in step
  File "/t\\xe9.py", line 20 in <module>
"""
WAITING = '[]\nThread 0x1 (most recent call first):\n  File "/t.py", line 3 in <module>\n'


def test_where_each_rank_stood_when_the_time_was_over() -> None:
    late = {"status": "running", "operators": {}}
    records = [
        process(launcher=True),
        process(rank="10", stack=STACK, **late),
        process(rank="2", stack=WAITING, **late),
        process(rank="3", exception=raised("ValueError", "no", path="/t.py", line=5)),
        process(rank="4"),
        process(rank="5", stack='["/lib/"]\n', **late),
    ]
    report = judge(*records, code=-15, timed_out=True)
    assert report.reasons == ["timed-out"]
    assert report.verdict.sentence == (
        "the script did not finish within 5 s; rank 2 was at /t.py:3, rank 3 had failed: /t.py:5: ValueError: no, "
        "rank 4 had ended, where rank 5 was is not known, rank 10 was at /té.py:12, in step"
    )
    assert report.as_json()["processes"][1]["stood"] == {"path": "/té.py", "line": 12, "function": "step"}
    text = as_text(report)
    assert "computed nothing" not in text and " in the processes that ended normally" in text


def test_processes_that_tell_nothing_are_left_out_unless_there_are_no_others() -> None:
    own, main = process(torch=None, operators={}), process(torch=None, operators={}, leaving={"reason": "no data"})
    assert judge(own, own, code=1).verdict.word == "stops"
    assert len(judge(own, own, code=1).processes) == 2
    assert judge(own, main, code=1).verdict.sentence == "no data: it ended with exit code 1"
    early = process(torch=None, operators={}, status="running", stack=WAITING)
    assert judge(own, early, code=-15, timed_out=True).verdict.sentence.endswith("; it was at /t.py:3")


def test_where_a_crash_happened() -> None:
    report = judge(
        process(status="running", operators={}, stack="[]\nFatal Python error: Aborted\n\n" + STACK[37:]), code=-6
    )
    assert report.verdict.sentence.startswith("it ended by signal SIGABRT; it was at /")
    assert report.reasons == ["script-failed"] and "npu operators: unknown" in as_text(report)


def test_errors_that_were_carried_out_would_stop_a_card(tmp_path: Path) -> None:
    found = [finding(tmp_path, 9, "error"), finding(tmp_path, 3), finding(tmp_path, 12, "error")]
    report = judge(process(findings=found), migration=Migration(tmp_path, "2.13", ()))
    assert (report.verdict.word, report.reasons) == ("stops", ["findings"])
    assert report.verdict.sentence == (
        "train.py:9: NPU101 torch.cuda.X: use torch.npu.X, and 1 more; the program went on after it, which it may not "
        "do on a card"
    )


COMPARED = {
    "original": "old.py",
    "reason": "",
    "why": "",
    "numbers": 8,
    "unstable": 0,
    "tensors": 1,
    "tolerance": 1e-5,
    "differences": [],
}


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ({}, "equal: 8 printed numbers and 1 saved tensor agree with those of old.py, within 1e-05"),
        ({"unstable": 1}, "equal: 8 printed numbers and 1 saved tensor agree with those of old.py, within 1e-05; "
         "1 printed number skipped, which differ between runs of the original"),
        ({"reason": "reference-differs", "differences": ["a", "b", "c"]}, "differs: a, and 2 more differences"),
        ({"reason": "reference-unstable", "why": "so it is"}, "runs: finished without errors; so it is"),
    ],
)  # fmt: skip
def test_a_reference(said: dict[str, Any], verdict: str, tmp_path: Path) -> None:
    report = judge(process(), reference={**COMPARED, "summary": [], **said})
    assert str(report.verdict) == verdict
    assert report.reasons == ([said["reason"]] if "reason" in said else [])
    warned = judge(process(findings=[finding(tmp_path)]), reference={**COMPARED, "summary": [], **said})
    assert str(warned.verdict).startswith(f"{verdict}; 1 warning: ")
    assert judge(process(operators={}), reference={**COMPARED, "summary": []}).verdict.word == "not run"
    assert judge(process(), code=1, reference={**COMPARED, "summary": []}).verdict.word == "stops"


def test_findings_are_summed_up_and_info_does_not_count(tmp_path: Path) -> None:
    records = [
        process(findings=[finding(tmp_path), finding(tmp_path, 9, "info")]),
        process(findings=[finding(tmp_path, count=4)]),
    ]
    migration = Migration(tmp_path, "2.13", ())
    report = judge(*records, migration=migration)
    assert (report.verdict.word, report.reasons) == ("runs", ["findings"])
    assert report.verdict.sentence == (
        "finished without errors; not compared with the original; "
        "1 warning: train.py:3: NPU101 torch.cuda.X: use torch.npu.X"
    )
    assert [(f["path"], f["line"], f["count"]) for f in report.findings] == [("train.py", 3, 5), ("train.py", 9, 1)]
    text = as_text(report)
    assert "train.py:3: NPU101 torch.cuda.X (5 times): use torch.npu.X" in text and "train.py:9" not in text
    quiet = judge(process(findings=[finding(tmp_path, level="info")]))
    assert (quiet.verdict, quiet.reasons) == (judge(process()).verdict, [])


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
    assert "2 ran, 1 did not run" in as_text(report)


def test_lines_of_a_process_that_was_stopped_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("a = 1\n", encoding="utf-8")
    migration = Migration(tmp_path, "2.13", (EditedFile(path, {1: frozenset({1})}, ("a = 1",)),))
    report = judge(process(status="running"), code=-9, timed_out=True, migration=migration)
    assert "migrated lines: unknown, since no process ended normally" in as_text(report)
    assert report.notes == ["1 process did not end normally"]
    torchrun = judge(process(status="running"), process(launcher=True), code=-9, timed_out=True, migration=migration)
    assert "migrated lines: unknown, since no process ended normally" in as_text(torchrun)
    one = judge(process(status="running"), process(), code=-9, timed_out=True, migration=migration)
    assert "migrated lines: 0 ran, 1 did not run" in as_text(one)


def test_a_migration_without_edits_has_no_lines(tmp_path: Path) -> None:
    report = judge(process(), migration=Migration(tmp_path, "", ()))
    assert "migrated lines: none in the Python files" in as_text(report)


def test_what_a_child_process_failed_with_comes_before_what_its_parent_lost(tmp_path: Path) -> None:
    gone = raised("AttributeError", "no seed", time=1.0, path="/t.py", line=3)
    lost = raised("BrokenPipeError", "[Errno 32] Broken pipe", time=2.0, path="/t.py", line=9)
    children = [process(forked=True, exception=gone) for _ in range(3)]
    report = judge(process(exception=lost), *children, code=1)
    assert report.verdict.sentence == "/t.py:3, in a child process: AttributeError: no seed"
    first, second, *_ = as_text(report).splitlines()
    assert first == f"transplt run: stops: {report.verdict.sentence}"
    assert second == "  /t.py:9: BrokenPipeError: [Errno 32] Broken pipe"


def test_notes(tmp_path: Path) -> None:
    idle = judge(
        process(rank="0"), process(rank="1", operators={}, notes={"n": 2}), process(status="running", notes={"n": 1})
    )
    assert idle.notes == [
        "n (3 times)",
        "1 process did not end normally",
    ]
    assert idle.verdict.sentence.endswith("; rank 1 never used the npu")
    assert " operators: 6 calls of 1 operator in the processes that ended normally" in as_text(idle)


def test_paths_outside_the_migration_stay(tmp_path: Path) -> None:
    outside = finding(Path("/somewhere"), name="else.py")
    report = judge(process(findings=[outside]), migration=Migration(tmp_path, "", ()))
    assert report.findings[0]["path"] == "/somewhere/else.py"
