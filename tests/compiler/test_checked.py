"""Findings of a check beside the compiler's word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from transplt.base.finding import Effort, Finding, Level
from transplt.base.text.source import Source
from transplt.project.checking.compiled import with_compiled
from transplt.project.report.check_results import CheckedFinding, CheckResult
from transplt.proof.compiler.answers import NO, YES, Answer

TEXT = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.sort(tl.load(x + at)))


kernel[(1,)](torch.zeros(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32), BLOCK=64)
"""


class Asked:
    """Stands for the compiler: one answer for each kernel."""

    title = "a card"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def answers(self, kernels: list[dict[str, Any]], _say: object) -> list[Answer]:
        return [self.answer for _ in kernels]


@pytest.mark.parametrize(
    ("code", "answer", "after", "kind"),
    [
        pytest.param("NPU573", (NO, 9), ["NPU573 no int32; the compiler refuses it too"], "refuses",
                     id="it says the same"),
        pytest.param("NPU573", (NO, 8), ["NPU580 kernel kernel does not compile: vsort", "NPU573 no int32"],
                     "refuses", id="it stops elsewhere"),
        pytest.param("NPU573", (YES, 0), [], "refuses", id="it compiles what the table refuses"),
        pytest.param("NPU573", (YES, 0), ["NPU573 no int32"], "remark", id="what it costs stays"),
        pytest.param("NPU573", (YES, 0), ["NPU573 no int32"], "numbers", id="and what it computes"),
        pytest.param("NPU560", (YES, 0), ["NPU560 no int32"], "refuses", id="what it does not look at stays"),
    ],
)  # fmt: skip
def test_findings_of_a_check(tmp_path: Path, code: str, answer: tuple[str, int], after: list[str], kind: str) -> None:
    path = tmp_path / "ops.py"
    path.write_text(TEXT, encoding="utf-8")
    start = TEXT.index("tl.store")
    span = Source(TEXT.encode()).span(start, start + 8)
    level = Level.INFO if kind == "remark" else Level.MANUAL
    blocks = "numbers" if kind == "numbers" else ""
    finding = Finding(str(path), span, code, level, "no int32", "triton", Effort.MEDIUM, "", blocks=blocks)
    word, line = answer
    said = Answer(word, "vsort" if line else "", str(path), line)
    one = (CheckedFinding(finding, "print"),)
    checked = CheckResult(info=one) if level is Level.INFO else CheckResult(items=one)
    result, _ = with_compiled(checked, [str(path)], Asked(said), print)  # type: ignore[arg-type]
    assert [f"{each.finding.code} {each.finding.message}" for each in (*result.items, *result.info)] == after
