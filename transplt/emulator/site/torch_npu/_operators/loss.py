"""Losses."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

__all__ = ["npu_cross_entropy_loss", "npu_softmax_cross_entropy_with_logits"]


def npu_cross_entropy_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> Any:
    """(loss, log-probabilities, z-loss, log-sum-exp); the last two are empty, z-loss is not implemented in
    torch_npu."""
    if input.dim() != 2 or target.dim() != 1:
        raise RuntimeError("[emulated npu] npu_cross_entropy_loss takes 2-D logits and 1-D class targets")
    if lse_square_scale_for_zloss or return_zloss:
        raise RuntimeError("[emulated npu] npu_cross_entropy_loss: z-loss is not implemented in torch_npu")
    loss = F.cross_entropy(
        input, target, weight, reduction=reduction, ignore_index=ignore_index, label_smoothing=label_smoothing
    )
    empty = torch.empty(0, device=input.device)
    return loss, F.log_softmax(input, -1), empty, empty


def npu_softmax_cross_entropy_with_logits(input: Any, labels: Any) -> Any:
    """The cross entropy of each row against a row of probabilities."""
    return -(labels * F.log_softmax(input, -1)).sum(-1)
