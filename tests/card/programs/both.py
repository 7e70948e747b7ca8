"""Training on the CPU and on the card, side by side: used by the programs beside this one."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch_npu  # noqa: F401


def moved(value: Any, device: str) -> Any:
    """`value` with its tensors on `device`."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    return type(value)(moved(each, device) for each in value) if isinstance(value, (list, tuple)) else value


def losses(
    model: torch.nn.Module, device: str, batches: Sequence[Any], loss: Callable[..., Any],
    optimizer: Callable[..., torch.optim.Optimizer],
) -> list[float]:  # fmt: skip
    """The loss of each step. `loss` gets the model and what a batch holds."""
    model = copy.deepcopy(model).to(device).train()
    steps = optimizer(model.parameters())
    found = []
    for batch in batches:
        steps.zero_grad()
        result = loss(model, *moved(batch, device))
        result.backward()
        steps.step()
        found.append(result.item())
    return found


def assert_same(
    name: str, model: torch.nn.Module, batches: Sequence[Any], loss: Callable[..., Any],
    optimizer: Callable[..., torch.optim.Optimizer], tolerance: float = 1e-4,
) -> None:  # fmt: skip
    """Both train to the same losses, which are numbers and change."""
    expected, found = (losses(model, device, batches, loss, optimizer) for device in ("cpu", "npu"))
    print(name, expected, found)
    assert all(math.isfinite(value) for value in expected), expected
    assert len(set(expected)) == len(expected), "nothing was learnt"
    for one, other in zip(expected, found, strict=True):
        assert abs(one - other) <= tolerance * max(1, abs(one)), (name, expected, found)
