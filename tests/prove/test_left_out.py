"""Steps that a scaler leaves out: the original is compared without them, and what never stepped is not called equal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.planted.planting import prove
from transplt.proof.prove.found import Rounding
from transplt.proof.prove.precision import gaps, left_out, never_stepped
from transplt.proof.prove.tolerance import PLAIN, ROUNDING, hold
from transplt.proof.prove.training import Optimizer, Training, TrainingStep

# A learning rate that moves far in one step: a loss that is one step behind is another one.
_ORIGINAL = """
import torch

torch.manual_seed(1)
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for step in range({steps}):
    x = torch.arange(8.0).reshape(2, 4).cuda() / 8 + step % 2
    loss = 40 * (model(x) - 3).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print("loss", loss.item())
"""


def _ported(text: str, scale: str) -> str:
    for old, new in (
        ("import torch\n", "import torch\nimport torch_npu\n"),
        (".cuda()", ".npu()"),
        ("optimizer = ", f"scaler = torch.npu.amp.GradScaler({scale})\noptimizer = "),
        ("    loss = ", "    with torch.autocast('npu', dtype=torch.float16):\n        out = model(x)\n    loss = "),
        ("model(x) - 3", "out - 3"),
        ("    loss.backward()\n", "    scaler.scale(loss).backward()\n    scaler.unscale_(optimizer)\n"),
        ("    optimizer.step()\n", "    scaler.step(optimizer)\n    scaler.update()\n"),
    ):
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.torch
@pytest.mark.parametrize(
    ("steps", "scale", "verdict", "count"),
    [
        (16, "init_scale=2.0 ** 10", "equal", 3),
        (2, "init_scale=2.0 ** 10", "runs", 2),
        (8, "init_scale=128.0, dynamic=False", "equal", 0),
    ],
)
def test_the_original_is_compared_without_the_steps(
    steps: int, scale: str, verdict: str, count: int, tmp_path: Path
) -> None:
    text = _ORIGINAL.format(steps=steps)
    for name, written in (("original", text), ("migrated", _ported(text, scale))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text(written, encoding="utf-8")
    found = prove(tmp_path / "original", tmp_path / "migrated", tmp_path, "1")
    assert found.verdict == verdict, found.output
    assert f"{count} of {steps} steps skipped" in found.output


def _training(*steps: TrainingStep) -> Training:
    return Training(0, 1, (), steps, {which: Optimizer("SGD", None, ["w"], ["float32"]) for which in (0, 1)}, {}, False)


def _step(which: int, number: int, gradient: float = 1.0, *, skipped: bool = False) -> TrainingStep:
    return TrainingStep(which, number, None, 0, (), [], [[gradient, gradient]], skipped=skipped)


def test_steps_that_are_left_out() -> None:
    training = _training(
        _step(0, 0, skipped=True), _step(1, 0, skipped=True), _step(0, 1), _step(1, 1, skipped=True)
    )  # fmt: skip
    assert left_out(training) == {0: [0], 1: [0, 1]}
    assert [text.partition(";")[0] for text in never_stepped(training)] == [
        "the scaler skipped all 2 steps of optimizer 1 (SGD)"
    ]


@pytest.mark.parametrize(("skipped", "told"), [(False, False), (True, True)])
def test_gradients_are_compared_until_any_optimizer_has_stepped(skipped: bool, told: bool) -> None:
    one = _training(_step(0, 0, skipped=skipped), _step(1, 0, 1.0))
    other = _training(_step(0, 0, skipped=skipped), _step(1, 0, 2.0))
    assert (next(gaps(one, other, PLAIN), None) is not None) == told


@pytest.mark.parametrize(("skipped", "told"), [(False, True), (True, False)])
def test_a_step_that_is_left_out_reads_no_learning_rate(skipped: bool, told: bool) -> None:
    steps = (_step(0, 0), _step(0, 1, skipped=skipped))
    one, other = (_training(steps[0], replace(steps[1], hyper=[{"lr": rate}])) for rate in (0.1, 0.2))
    assert [gap.difference.what for gap in gaps(one, other, PLAIN)] == (
        ["the learning rate is 0.2 at step 2, in the original 0.1"] if told else []
    )


@pytest.mark.parametrize(
    ("dtype", "gradients", "told"),
    [
        (
            "float16",
            ([3e-12, 1e-12], [7.5e-8, -4e-8]),
            False,
        ),  # sums that cancel: nothing is left
        ("float32", ([3e-12, 1e-12], [7.5e-8, -4e-8]), True),
        ("float16", ([1e-5, 1e-5], [2e-5, 2e-5]), True),
    ],
)
def test_a_small_gradient_in_half_precision_is_measured_by_all_of_them(
    dtype: str, gradients: tuple[list[float], list[float]], told: bool
) -> None:
    one, other = (replace(_step(0, 0), gradients=[[1e-4, 1e-4], each]) for each in gradients)
    pair = [replace(_training(each), optimizers={0: Optimizer("SGD", None, ["w", "b"])}) for each in (one, other)]
    held = hold(*pair, Rounding(ROUNDING[dtype]), gaps, lambda: ())
    assert (held.first is not None) == told
