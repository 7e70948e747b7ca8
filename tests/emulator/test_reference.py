"""Comparing a migrated script's output and checkpoints with its original's."""

from __future__ import annotations

from typing import Any

from transplt.proof.launch.reference import compare
from transplt.proof.launch.runner import ScriptRun


def outcome(text: str, saves: list[dict[str, Any]] | None = None, code: int = 0) -> ScriptRun:
    return ScriptRun(code, ({"saves": saves or []},), 1.0, text)


def tensor(sha: str, total: float = 1.0) -> dict[str, Any]:
    return {"shape": [2], "dtype": "torch.float32", "sha256": sha, "sum": total, "norm": 1.0}


def save(sha: str, total: float = 1.0, path: str = "net.pt") -> dict[str, Any]:
    return {"path": path, "rank": None, "tensors": {"weight": tensor(sha, total)}}


def test_equal_up_to_names_of_devices_and_times() -> None:
    first = "device cuda:0, GPU 1\nstep 1 loss 0.51234 (12.3 s)\nnan -1e-3\n"
    second = first.replace("12.3", "11.9")
    migrated = "device npu:0, NPU 1\nstep 1 loss 0.51234 (99 s)\nnan -0.001\n"
    result = compare(outcome(first), outcome(second), outcome(migrated))
    assert (result["reason"], result["numbers"], result["unstable"]) == ("", 6, 1)


def test_a_different_loss() -> None:
    first = "step 1 loss 0.5\nstep 2 loss 0.4\n"
    result = compare(outcome(first), outcome(first), outcome(first.replace("0.4", "0.41")))
    assert result["reason"] == "reference-differs"
    assert result["differences"] == ["the original prints 0.4, the migrated script 0.41 in 'step 2 loss 0.4'"]


def test_a_line_that_is_not_printed() -> None:
    result = compare(outcome("a 1.5\nb 2.5\n"), outcome("a 1.5\nb 2.5\n"), outcome("a 1.5\n"))
    assert result["differences"] == ["the original prints 'b 2.5', the migrated script does not"]


def test_an_original_that_does_not_repeat_itself() -> None:
    result = compare(outcome("step 1 loss 0.5\n"), outcome("step 1 loss 0.6\n"), outcome("step 1 loss 0.7\n"))
    assert result["reason"] == "reference-unstable"
    nothing = compare(outcome("done\n"), outcome("done\n"), outcome("done\n"))
    assert (nothing["reason"], nothing["why"]) == (
        "reference-unstable", "the original prints and saves no results that could be compared")  # fmt: skip
    failed = compare(outcome("x 0.5\n", code=1), outcome("x 0.5\n"), outcome("x 0.5\n"))
    assert (failed["reason"], failed["why"]) == (
        "reference-unstable", "the original itself failed (exit code 1), so nothing could be compared")  # fmt: skip


def test_checkpoints() -> None:
    text = "loss 0.5\n"
    same = compare(outcome(text, [save("a")]), outcome(text, [save("a")]), outcome(text, [save("a")]))
    assert (same["reason"], same["tensors"]) == ("", 1)
    close = compare(outcome(text, [save("a")]), outcome(text, [save("a")]), outcome(text, [save("b", 1.000001)]))
    assert close["reason"] == ""
    other = compare(outcome(text, [save("a")]), outcome(text, [save("a")]), outcome(text, [save("b", 2.0)]))
    assert other["differences"] == ["net.pt: tensor weight differs"]
    absent = compare(outcome(text, [save("a")]), outcome(text, [save("a")]), outcome(text))
    assert absent["differences"] == ["the original saves net.pt, the migrated script does not"]
    named = compare(*(outcome(text, [save("a"), save("b", path=f"{pid}.pt")]) for pid in (31, 32, 33)))
    assert (named["reason"], named["tensors"], named["unstable_tensors"]) == ("reference-unstable", 1, 1)
    unstable = compare(outcome(text, [save("a")]), outcome(text, [save("c", 3.0)]), outcome(text, [save("b", 2.0)]))
    assert (unstable["reason"], unstable["tensors"], unstable["unstable_tensors"]) == ("reference-unstable", 0, 1)
    assert unstable["why"].startswith("two runs of the original differ (0 printed results and 1 saved tensors")
