"""What mixed precision runs in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from transplt.helper.ranks import card_kind

__all__ = ["Float32Sigmoid", "in_float32"]


def in_float32(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A loss that runs in float32, whatever its tensors are: under autocast torch refuses binary_cross_entropy."""

    def run(*given: Any, **more: Any) -> Any:
        with torch.autocast(card_kind(), enabled=False):
            floats = [each.float() if torch.is_tensor(each) else each for each in given]
            return loss(*floats, **more)

    return run


class Float32Sigmoid(nn.Sigmoid):  # type: ignore[misc]
    """A sigmoid in float32: in half precision it is 1 from 8.4 on, and its logarithm there has no end."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input.float())
