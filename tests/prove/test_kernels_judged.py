"""What the calls of kernels come to, by kernel: from what both programs computed, without running them."""

from __future__ import annotations

from typing import Any

import pytest

from transplt.base.render.verdict import Word
from transplt.proof.kernels.calls import Calls
from transplt.proof.kernels.judged import KernelResult, judge
from transplt.proof.kernels.report import KernelProof, as_text

TENSOR = {"tensor": {"dtype": "float32", "shape": [4, 8], "values": []}}
#: A gap, and what roundings make one.
GAP = {"argument": "out", "what": "[0] is 2.0, not 1.0; 1 of 32 elements differ", "share": 0.5, "largest": 1.0,
       "elements": 1, "of": 32, "dtype": "float32", "within": False}  # fmt: skip
ROUNDING = {**GAP, "share": 1e-7, "largest": 2e-7, "within": True}


def call(*names: str, arguments: Any = None) -> dict[str, Any]:
    kernels = [{"module": "ops", "name": name, "path": "ops.py", "line": 3} for name in names]
    return {"kind": "function", "module": "ops", "name": "run", "path": "ops.py", "line": 9, "kernels": kernels,
            "arguments": arguments or {"x": TENSOR}}  # fmt: skip


def launch(name: str, gaps: Any = (), changed: bool = False, compared: int = 2) -> dict[str, Any]:
    kernel = {"name": name, "path": "ops.py", "line": 4}
    return {"kernel": kernel, "migrated": kernel, "compared": compared, "gaps": list(gaps), "changed": changed,
            "reasons": ["another grid (8, 4)"] if changed else [], "programs": [8, 8], "ran": [8, 8]}  # fmt: skip


def found(*launches: dict[str, Any], returned: Any = (), paired: bool = True, **sides: Any) -> dict[str, Any]:
    clean = {"error": None, "skipped": None, "orders": [], "findings": []}
    ran = [{"kernel": each["kernel"], "programs": 8, "ran": 8} for each in launches]
    gives = {"compared": 2, "results": 1, "gaps": list(returned), "reasons": ["the kernel was changed"]}
    return {
        "original": {**clean, **sides.get("original", {})}, "migrated": {**clean, **sides.get("migrated", {})},
        "compared": {"paired": paired, "launches": list(launches) if paired else [], "returned": gives},
        "launches": [ran, ran],
    }  # fmt: skip


def judged(asked: dict[str, Any], what: dict[str, Any], left: Any = ()) -> dict[str, KernelResult]:
    calls = Calls({"format": 1, "calls": [asked], "left": list(left), "more": [], "libraries": []})
    return {each.kernel.name: each for each in judge(calls, [what])}


def test_launches_that_agree_are_equal() -> None:
    result = judged(call("a", "a", "b"), found(launch("a"), launch("a"), launch("b")))
    assert {name: str(each.verdict) for name, each in result.items()} == {
        "a": "equal: 2 launches compared", "b": "equal: 1 launch compared",
    }  # fmt: skip
    assert result["a"].shapes == ["x float32[4, 8]"] and result["a"].launches == 2


def test_a_difference_stands_with_its_kernel() -> None:
    result = judged(call("a", "b"), found(launch("a"), launch("b", [GAP]), returned=[GAP]))
    assert result["a"].verdict.word is Word.EQUAL
    assert str(result["b"].verdict) == (
        "differs: ops.py:4: argument out[0] is 2.0, not 1.0; 1 of 32 elements differ, by 1 at most (original: ops.py:3)"
    )


def test_roundings_are_told_with_their_reason() -> None:
    result = judged(call("a"), found(launch("a", [ROUNDING], changed=True)))
    assert str(result["a"].verdict) == (
        "equal: 1 launch compared; rounding errors: 1e-7 of the largest number: another grid (8, 4)"
    )


def test_parts_of_sums_may_be_others_where_the_result_is_the_same() -> None:
    result = judged(call("a"), found(launch("a", [GAP], changed=True)))
    assert result["a"].verdict.word is Word.EQUAL
    assert result["a"].remarks == ["compared by the results of run, which launches kernels differently from the "
                                   "original"]
    # A launch as in the original has no such excuse, and neither has another result.
    assert judged(call("a"), found(launch("a", [GAP])))["a"].verdict.word is Word.DIFFERS
    assert judged(call("a"), found(launch("a", [GAP], changed=True), returned=[GAP]))["a"].verdict.word is Word.DIFFERS


def test_other_kernels_in_their_place_are_compared_by_the_result() -> None:
    assert judged(call("a"), found(launch("a"), paired=False))["a"].verdict.word is Word.EQUAL
    assert judged(call("a"), found(launch("a"), paired=False, returned=[GAP]))["a"].verdict.word is Word.DIFFERS


def test_a_sample_that_wrote_nothing_in_common_says_nothing() -> None:
    result = judged(call("a"), found(launch("a", compared=0)))
    assert str(result["a"].verdict) == "runs: no two of the programs that ran wrote the same elements"


ERROR = {"reason": "kernel b: tl.load takes no float64 [NPU570]", "path": "ops.py", "line": 5}


def test_the_launch_that_stops_is_that_of_the_kernel_that_was_reached() -> None:
    what = found(launch("a"), migrated={"error": ERROR, "findings": [
        {"path": "ops.py", "line": 5, "code": "NPU570", "message": "kernel b: no float64", "level": "error"},
        {"path": "ops.py", "line": 2, "code": "NPU560", "message": "kernel b: 70000", "level": "warning"},
        {"path": "ops.py", "line": 2, "code": "NPU568", "message": "kernel b: slow", "level": "info"},
    ]})  # fmt: skip
    result = judged(call("a", "b"), what)
    assert str(result["b"].verdict) == "stops: ops.py:5: kernel b: tl.load takes no float64 [NPU570]"
    assert result["b"].limits == ["NPU560 ops.py:2: kernel b: 70000"]
    assert result["a"].verdict.word is Word.RUNS  # nothing of it was compared


@pytest.mark.parametrize(
    ("sides", "told"),
    [
        ({"original": {"error": ERROR}}, "runs: the original itself stops: ops.py:5: kernel b: "),
        ({"migrated": {"skipped": "there is no run in ops.py"}}, "not run: the migrated program: there is no run in"),
        ({"migrated": {"skipped": "it has no parameter x any more"}}, "runs: the migrated program: it has no "),
    ],
)
def test_what_cannot_be_called(sides: dict[str, Any], told: str) -> None:
    assert str(judged(call("a"), found(launch("a"), **sides))["a"].verdict).startswith(told)


def test_the_order_of_programs() -> None:
    order = {"order": "interleaved", "kernel": "a", "path": "ops.py", "argument": "out", "what": "[0] is 1, not 8"}
    alone = judged(call("a"), found(launch("a"), migrated={"orders": [order]}))
    assert str(alone["a"].verdict).startswith("differs: ops.py:4: depends on the order of programs: run interleaved, ")
    both = judged(call("a"), found(launch("a"), original={"orders": [order]}, migrated={"orders": [order]}))
    assert str(both["a"].verdict).startswith("runs: the original itself depends on the order of programs: ")
    mended = judged(call("a"), found(launch("a"), original={"orders": [order]}))
    assert mended["a"].verdict.word is Word.RUNS


def test_the_whole_says_how_much_of_what() -> None:
    asked = call("a", "b")
    left = [{"name": "c", "path": "ops.py", "line": 30, "why": "a value of Mask"}]
    recorded = {"format": 1, "calls": [asked], "left": [], "more": [], "libraries": ["flash"]}
    calls = Calls(recorded, "main.py:3: KeyError")
    proof = KernelProof.of(judge(calls, [found(launch("a"), launch("b"))]), calls, ["d (ops.py:40)"], 1.0)
    assert as_text(proof).splitlines() == [
        "transplt prove: equal: 2 kernels compared in 2 launches, bit-identical; 1 never launched",
        "  kernel  place     launches  programs  verdict  largest difference",
        "  a       ops.py:3  1         8         equal    none",
        "  b       ops.py:3  1         8         equal    none",
        "  not compared: d (ops.py:40) (never launched)",
        "  not compared: kernels after the place where the original stopped: main.py:3: KeyError",
        "  not compared: kernels of libraries: flash",
    ]
    result = judged(asked, found(launch("a"), launch("b")), left)
    assert str(result["c"].verdict) == "runs: its arguments cannot be saved: a value of Mask"
