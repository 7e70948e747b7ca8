"""Chrome traces: of torch_npu, of torch, of the old autograd profiler; whole, cut off and hostile."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from tests.profiles.profiles import named, of_trace
from transplt.precision.diagnose.profiles.events import Events
from transplt.precision.diagnose.profiles.tables import UnreadableProfile


def event(name: str, pid: int, us: float, *, tid: int = 1, cat: str = "", **arguments: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": "1704161511420306.491", "dur": us, "cat": cat,
            "args": arguments}  # fmt: skip


def process(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}


def thread(pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}


TORCH_NPU = [
    event("aten::add", 1, 20, cat="cpu_op", **{"Call stack": "/job/net.py(7): forward;\r\n/job/t.py(1): main"}),
    event("AscendCL@aclopCompileAndExecute", 2, 300),
    event("trans_TransData_20", 3, 40, **{"Task Type": "AI_VECTOR_CORE"}),
    event("Conv2D17", 3, 60, **{"Task Type": "Other"}),
    event("Computing", 4, 100), event("Free", 4, 900, tid=3),
    event("hcom_allReduce__1_0", 5, 50, tid=7), event("Notify_Wait", 5, 49, tid=8),
    event("GC", 6, 30),
    process(1, "Python"), process(2, "CANN"), process(3, "Ascend Hardware"), process(4, "Overlap Analysis"),
    process(5, "Communication"), thread(5, 7, "Group 1 Communication"), thread(5, 8, "Plane 0"),
    process(6, "Python GC"),
]  # fmt: skip


def test_the_trace_of_torch_npu() -> None:
    profile = of_trace(TORCH_NPU)
    assert {each.type: each.total.us for each in profile.dearest()} == {
        "Conv2D": 60.0, "hcom_allReduce": 50.0, "TransData": 40.0,
    }  # fmt: skip
    [step] = profile.steps
    assert (step.computing, step.free) == (100.0, 900.0) and profile.host["aten::add"].us == 20.0
    assert {"host-gaps", "compiles", "format-conversion", "garbage"} <= {*named(profile)}
    [line] = profile.lines.values()
    assert (line.frame.path, line.frame.line, line.frame.function) == ("/job/net.py", 7, "forward")


def test_the_trace_of_torch_on_a_host() -> None:
    rows = [event("aten::mm", 9, 20, cat="cpu_op"), event("net.py(1): f", 9, 90, cat="python_function")]
    profile = of_trace({"schemaVersion": 1, "traceEvents": rows, "traceName": "x"})
    assert [*profile.host] == ["aten::mm"] and not profile.operators and named(profile) == {}


def test_the_old_trace_of_autograd() -> None:
    profile = of_trace([event("PTCopy", "NPU functions", 20), event("aten::add", "CPU functions", 5)])  # type: ignore[arg-type]
    assert named(profile)["copies"].us == 20.0 and [*profile.host] == ["aten::add"]


@pytest.mark.parametrize("text", ["[", "[]", '{"traceEvents": []}', " \n[ ,\n]", "\ufeff[]"])
def test_a_trace_without_events(text: str) -> None:
    assert of_trace(text).host == {}


@pytest.mark.parametrize("cut", [1, 2, 50, 100])
def test_a_trace_that_ends_in_the_middle_is_read_to_there(cut: int) -> None:
    text = json.dumps([event("aten::mm", 9, 20), event("aten::mm", 9, 20)])[:-cut]
    profile = of_trace(text)
    assert profile.host["aten::mm"].count in (1, 2) and "is truncated" in profile.remarks[0]


@pytest.mark.parametrize(
    "text", ["", "hello", "1", "{}", '{"a": 1}', "[1" + "9" * 5000 + "]", "[" * 200_000, "[nonsense" + "x" * 5_000_000]
)
def test_what_is_no_trace_is_refused_or_empty(text: str) -> None:
    try:
        assert of_trace(text).host == {}
    except UnreadableProfile as error:
        assert str(error).startswith("it ")


@pytest.mark.parametrize(
    "wrong",
    [{"ph": "X"}, {"ph": "M", "args": 3}, {"ph": ["X"]}, [], 7, None, {"ph": "X", "name": {}, "dur": "x", "args": []},
     {"ph": "X", "name": "n", "dur": float("nan")}, {"ph": "X", "name": "n", "dur": -1, "args": {"Call stack": ["x"]}}],
)  # fmt: skip
def test_events_that_are_none_do_no_harm(wrong: Any) -> None:
    profile = of_trace([wrong, event("aten::mm", 9, 20)])
    assert profile.host["aten::mm"].us == 20.0


def test_pieces_may_cut_characters_and_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transplt.precision.diagnose.profiles.events._PIECE", 7)
    rows = [event(f"\u00e4\u4e2d{number}", 1, 1) for number in range(20)]
    found = [*Events(io.BytesIO(json.dumps({"traceEvents": rows}, ensure_ascii=False).encode()))]
    assert found == rows
