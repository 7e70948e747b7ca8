"""Focal losses, in the forms of mmcv and maskrcnn-benchmark."""

from __future__ import annotations

import torch
from torch.nn import functional

from transplt.helper.kernels.recompute import as_compiled, widened

__all__ = [
    "sigmoid_focal_loss_backward", "sigmoid_focal_loss_forward", "sigmoid_focalloss_backward",
    "sigmoid_focalloss_forward", "softmax_focal_loss_backward", "softmax_focal_loss_forward",
]  # fmt: skip

_LEAST_POSITIVE = 1.1754943508222875e-38  # FLT_MIN, below which no logarithm is taken


def _of_targets(weight: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The weight of each sample's class."""
    return widened(weight)[target.long().clamp(0, weight.shape[0] - 1)]


@as_compiled
def sigmoid_focal_loss_forward(
    input: torch.Tensor, target: torch.Tensor, weight: torch.Tensor, output: torch.Tensor, gamma: float, alpha: float
) -> None:
    """The focal loss of each class, into `output` [samples, classes].

    `input` logits [samples, classes], `target` [samples] the class, any other number for none of them; `weight`
    [classes] that of the sample's class, empty for none.
    """
    x = widened(input)
    own = target[:, None] == torch.arange(input.shape[1], device=input.device)
    p = torch.sigmoid(x)
    hit = -alpha * (1 - p) ** gamma * p.clamp(min=_LEAST_POSITIVE).log()
    miss = -(1 - alpha) * p**gamma * (1 - p).clamp(min=_LEAST_POSITIVE).log()
    found = torch.where(own, hit, miss)
    output.copy_(found * _of_targets(weight, target)[:, None] if weight.numel() else found)


@as_compiled
def sigmoid_focal_loss_backward(
    input: torch.Tensor, target: torch.Tensor, weight: torch.Tensor, grad_input: torch.Tensor, gamma: float,
    alpha: float,
) -> None:  # fmt: skip
    """The derivative of `sigmoid_focal_loss_forward`, into `grad_input`; the caller multiplies by its gradient."""
    x = widened(input)
    own = target[:, None] == torch.arange(input.shape[1], device=input.device)
    p = torch.sigmoid(x)
    hit = -alpha * (1 - p) ** gamma * (1 - p - gamma * p * p.clamp(min=_LEAST_POSITIVE).log())
    miss = -(1 - alpha) * p**gamma * (gamma * (1 - p) * (1 - p).clamp(min=_LEAST_POSITIVE).log() - p)
    found = torch.where(own, hit, miss)
    grad_input.copy_(found * _of_targets(weight, target)[:, None] if weight.numel() else found)


@as_compiled
def softmax_focal_loss_forward(
    input: torch.Tensor, target: torch.Tensor, weight: torch.Tensor, output: torch.Tensor, gamma: float, alpha: float
) -> None:
    """The focal loss of probabilities `input` [samples, classes] (a softmax), into `output` [samples].

    0 where the class `target` [samples] is below 0; `weight` [classes], empty for none.
    """
    p = widened(input).gather(1, target.long().clamp(min=0)[:, None])[:, 0]
    found = -alpha * (1 - p) ** gamma * p.clamp(min=_LEAST_POSITIVE).log()
    found = found.masked_fill(target < 0, 0)
    output.copy_(found * _of_targets(weight, target) if weight.numel() else found)


@as_compiled
def softmax_focal_loss_backward(
    input: torch.Tensor, target: torch.Tensor, weight: torch.Tensor, buff: torch.Tensor, grad_input: torch.Tensor,
    gamma: float, alpha: float,
) -> None:  # fmt: skip
    """The derivative of `softmax_focal_loss_forward` for the logits, into `grad_input` [samples, classes].

    `buff` [samples] gets what is the same for all classes of a sample.
    """
    p = widened(input).gather(1, target.long().clamp(min=0)[:, None])[:, 0]
    log = p.clamp(min=_LEAST_POSITIVE).log()
    found = alpha * (-((1 - p) ** gamma) + gamma * (1 - p) ** (gamma - 1) * p * log)
    found = found.masked_fill(target < 0, 0)
    found = found * _of_targets(weight, target) if weight.numel() else found
    buff.copy_(found)
    own = (target[:, None] == torch.arange(input.shape[1], device=input.device)).to(p.dtype)
    grad_input.copy_(torch.where((target < 0)[:, None], 0, found[:, None] * (own - widened(input))))


def _classes_from_one(logits: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Which logits [samples, classes] are of the sample's class, counted from 1, and which are of another."""
    own = targets[:, None] == torch.arange(1, logits.shape[1] + 1, device=logits.device)
    return own, (targets >= 0)[:, None] & ~own


@as_compiled
def sigmoid_focalloss_forward(
    logits: torch.Tensor, targets: torch.Tensor, num_classes: int, gamma: float, alpha: float
) -> torch.Tensor:
    """The focal loss of each class, [samples, num_classes], for classes counted from 1: maskrcnn-benchmark's form.

    `targets` [samples]: 0 is the background, and a sample below 0 has no loss.
    """
    x = widened(logits)
    own, other = _classes_from_one(logits, targets)
    p = torch.sigmoid(x)
    hit = -alpha * (1 - p) ** gamma * p.clamp(min=_LEAST_POSITIVE).log()
    miss = -(1 - alpha) * p**gamma * functional.logsigmoid(-x)
    return torch.where(own, hit, torch.where(other, miss, 0)).to(logits.dtype)


@as_compiled
def sigmoid_focalloss_backward(
    logits: torch.Tensor, targets: torch.Tensor, d_losses: torch.Tensor, num_classes: int, gamma: float, alpha: float
) -> torch.Tensor:
    """The gradient of `sigmoid_focalloss_forward`, [samples, num_classes], for that of its losses."""
    x = widened(logits)
    own, other = _classes_from_one(logits, targets)
    p = torch.sigmoid(x)
    hit = -alpha * (1 - p) ** gamma * (1 - p - p * gamma * p.clamp(min=_LEAST_POSITIVE).log())
    miss = -(1 - alpha) * p**gamma * (functional.logsigmoid(-x) * (1 - p) * gamma - p)
    found = torch.where(own, hit, torch.where(other, miss, 0))
    return (found * widened(d_losses)).to(logits.dtype)
