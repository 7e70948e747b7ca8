"""Which looks at gradients ask for `unscale_` between the backward pass and the step."""

from __future__ import annotations

import pytest

from tests.harness import migrate
from tests.mixed_precision.test_recognise import NET, TRAIN


@pytest.mark.parametrize(
    ("line", "unscaled"),
    [
        ("print(model.weight.grad is None)", False),
        ("assert model.weight.grad is not None", False),
        ("model.bias.grad.zero_()", False),
        ("model.bias.grad.data.zero_()", False),
        ("print(model.weight.grad.norm())", True),
        ("print(model.weight.grad == 0)", True),
    ],
)
def test_values_of_gradients_are_unscaled_first(line: str, unscaled: bool) -> None:
    source = TRAIN.replace("    optimizer.step()\n", f"    {line}\n    optimizer.step()\n")
    result = migrate(source, files={"net.py": NET}, amp="native")
    assert b"scaler.step(optimizer)" in result.data
    assert (b"scaler.unscale_(optimizer)" in result.data) is unscaled


@pytest.mark.parametrize(
    ("line", "unscaled"),
    [
        ("pass", True),
        ("scheduler.step()", True),  # not of an optimizer
        ("optimizer.step()", False),  # it trains by itself
    ],
)
def test_functions_that_clip_are_looked_into(line: str, unscaled: bool) -> None:
    clip = f"def limit():\n    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    {line}\n\n\n"
    scheduler = "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)\n"
    source = TRAIN.replace("for x in", f"{scheduler}\n\n{clip}for x in")
    source = source.replace("    loss.backward()\n", "    loss.backward()\n    limit()\n")
    result = migrate(source, files={"net.py": NET}, amp="native")
    assert (b"scaler.unscale_(optimizer)" in result.data) is unscaled
