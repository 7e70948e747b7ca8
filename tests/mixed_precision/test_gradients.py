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
