"""What the programs of this folder share: a computation on the card beside the same in plain PyTorch on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

#: How far a result may lie off one in float32: inputs are rounded alike, so it is the rounding of the result and of
#: what lies between.
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def same(found: Any, wanted: Any, tolerance: float = 2e-5) -> None:
    """Raise unless two tensors are of one shape and near each other."""
    found, wanted = found.detach().cpu(), wanted.detach().cpu()
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    torch.testing.assert_close(found.double(), wanted.double(), rtol=tolerance, atol=tolerance, check_dtype=False)


def compare(
    on_card: Callable[..., Any], on_cpu: Callable[..., Any], inputs: list[torch.Tensor], kind: torch.dtype,
    tolerance: float = 0.0, gradients: bool = True,
) -> None:  # fmt: skip
    """Run both with `inputs` in type `kind` (the CPU in float32), and compare the results and, for a drawn gradient of
    the first result, the gradients of all inputs."""
    tolerance = tolerance or TOLERANCE[kind]
    rounded = [each.to(kind) for each in inputs]
    there = [each.npu().requires_grad_(gradients) for each in rounded]
    here = [each.float().clone().requires_grad_(gradients) for each in rounded]
    found, wanted = on_card(*there), on_cpu(*here)
    assert found.dtype == kind, found.dtype
    same(found, wanted, tolerance)
    if gradients:
        gradient = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1)).to(kind)
        found.backward(gradient.npu())
        wanted.backward(gradient.float())
        for one, other in zip(there, here, strict=True):
            assert one.grad is not None and one.grad.dtype == kind
            same(one.grad, other.grad, 4 * tolerance)


def raises(words: str, function: Callable[[], Any]) -> None:
    """Raise unless `function` does, with `words`."""
    try:
        function()
        torch.npu.synchronize()
    except Exception as error:
        assert words in str(error), error
        return
    raise AssertionError(f"did not raise: {words}")


def run_checks(program: dict[str, Any]) -> None:
    """Call every function `check_...` of a program, in the order in which they stand."""
    torch.manual_seed(0)
    checks = [(name, check) for name, check in program.items() if name.startswith("check_")]
    assert checks
    for name, check in checks:
        check()
        print(name, "ok")
