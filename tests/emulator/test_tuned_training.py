"""A model trains with the fused operators as it does without: the same losses, on one card and on two."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness import migrate

SCRIPT = Path(__file__).resolve().parents[1] / "data" / "tuned" / "train.py"
NAMES = ("fusion-attention", "rms-norm", "rotary", "swiglu", "finite-masks", "masked-assignment")
OPERATORS = ("npu_fusion_attention", "npu_rms_norm", "npu_rotary_mul", "npu_swiglu")


def losses(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"loss (\d+\.\d+)", text)]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("processes", "amp", "near"),
    [
        (1, "off", 2e-3),
        pytest.param(2, "off", 2e-3, marks=pytest.mark.slow),
        pytest.param(1, "native", 0.1, marks=pytest.mark.slow),
    ],
)
def test_losses_of_the_tuned_script(
    processes: int, amp: str, near: float, transplt_run: Callable[..., tuple[int, dict[str, Any], str]]
) -> None:
    source = SCRIPT.read_text(encoding="utf-8")
    options = ["--nproc", str(processes)] if processes > 1 else []
    found = []
    for tune in ((), tuple((name, "") for name in NAMES)):
        result = migrate(source, tune=tune, amp=amp)
        text = result.data.decode()
        assert all((operator in text) == bool(tune) for operator in OPERATORS)
        code, report, error = transplt_run(text, options=options)
        assert code == 0, (report, error)
        found.append(sorted(losses(report["stdout"])))
    plain, tuned = found
    assert len(plain) == len(tuned) == 30 * processes
    assert min(plain) < 0.2 < 2 < max(plain)
    assert max(abs(a - b) for a, b in zip(plain, tuned, strict=True)) < near
