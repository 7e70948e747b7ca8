"""Losses and their gradients. A reduction is 0 for none, 1 for the mean, 2 for the sum, as ATen numbers it."""

from __future__ import annotations

from typing import Any

import torch

from . import operator

aten = torch.ops.aten

_MEAN = 1
#: Dimensions of a batch of images.
_IMAGES = 4

operator("MseLoss")(aten.mse_loss.default)
operator("SmoothL1Loss")(aten.smooth_l1_loss.default)
operator("SmoothL1LossBackward")(aten.smooth_l1_loss_backward.default)
operator("MultilabelMarginLoss")(aten.multilabel_margin_loss_forward.default)


def _shared(grad: Any, reduction: int, elements: Any) -> Any:
    """The part of `grad` that each of `elements` gets."""
    return grad / elements.numel() if reduction == _MEAN else grad


@operator("L1LossBackward")
def l1_loss_backward(grad: Any, input: Any, target: Any, reduction: int) -> Any:
    """The gradient of the input."""
    return _shared(grad, reduction, input) * torch.sign(input - target)


@operator("BinaryCrossEntropyWithLogitsBackward")
def binary_cross_entropy_with_logits_backward(
    grad: Any, input: Any, target: Any, weight: Any, positive: Any, reduction: int
) -> Any:
    """The gradient of the input; `positive` weighs the targets that are 1."""
    chance = torch.sigmoid(input.float())
    positive = 1 if positive is None else positive
    result = (positive * target + 1 - target) * chance - positive * target
    if weight is not None:
        result = result * weight
    return result * _shared(grad, reduction, input)


@operator("NLLLoss", "NLLLoss2d")
def nll_loss(input: Any, target: Any, weight: Any, reduction: int, ignored: int) -> Any:
    """Loss and total weight; of rows, or of images with a class for each pixel."""
    weight = weight if weight is None else weight.float()
    forward = aten.nll_loss2d_forward if input.dim() == _IMAGES else aten.nll_loss_forward
    return forward(input.float(), target.long(), weight, reduction, ignored)


@operator("NLLLossBackward", "NLLLoss2dBackward")
def nll_loss_backward(grad: Any, input: Any, target: Any, weight: Any, reduction: int, ignored: int, total: Any) -> Any:
    """The gradient of the input."""
    weight = weight if weight is None else weight.float()
    backward = aten.nll_loss2d_backward if input.dim() == _IMAGES else aten.nll_loss_backward
    return backward(grad.float(), input.float(), target.long(), weight, reduction, ignored, total.float())


@operator("KlDiv")
def kl_div(input: Any, target: Any, reduction: int, log_target: bool) -> Any:
    """The divergence of `target` from what `input` is the logarithm of."""
    return aten.kl_div(input, target, reduction, log_target=log_target)


@operator("KlDivBackward")
def kl_div_backward(grad: Any, _input: Any, target: Any, reduction: int, log_target: bool) -> Any:
    """The gradient of the input."""
    chance = target.exp() if log_target else target
    return -chance * _shared(grad, reduction, target)


@operator("KlDivTargetBackward")
def kl_div_target_backward(grad: Any, input: Any, target: Any, reduction: int, log_target: bool) -> Any:
    """The gradient of the target (aclnnKlDivTargetBackward.md)."""
    share = _shared(grad, reduction, target)
    if log_target:
        return target.exp() * (target + 1 - input) * share
    return (target.log() + 1 - input) * share


@operator("CtcLoss")
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, zero_infinity: bool,
    outputs: Any,
) -> Any:  # fmt: skip
    """Loss, and the logarithms of the chances of all beginnings, for which a card makes more room than is used."""
    loss, alpha = aten._ctc_loss(log_probs.float(), targets, input_lengths, target_lengths, blank, zero_infinity)
    room = torch.full(outputs[1].shape, -torch.inf, device="cpu")
    room[tuple(map(slice, alpha.shape))] = alpha
    return loss, room


@operator("CtcLossBackward")
def ctc_loss_backward(
    grad: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, loss: Any, alpha: Any,
    blank: int, zero_infinity: bool,
) -> Any:  # fmt: skip
    """The gradient of `log_probs`."""
    alpha = alpha[..., : 2 * max(target_lengths, default=0) + 1].float().contiguous()
    return aten._ctc_loss_backward(
        grad.float(), log_probs.float(), targets, input_lengths, target_lengths, loss.float(), alpha, blank,
        zero_infinity,
    )  # fmt: skip


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2, None: 1}


def _cross_entropy_weights(target: Any, weight: Any, ignored: int) -> tuple[Any, Any]:
    """The weight of each row (0 for ignored ones), and targets that may be looked up."""
    kept = target != ignored
    classes = target.masked_fill(~kept, 0)
    weights = torch.ones_like(target, dtype=torch.float32) if weight is None else weight.float()[classes]
    return weights * kept, classes


@operator("CrossEntropyLoss")
def cross_entropy_loss(
    input: Any, target: Any, weight: Any, reduction: Any, ignored: int, smoothing: float, _z_scale: float,
    _z_wanted: bool,
) -> Any:  # fmt: skip
    """Loss and logarithms of chances. A loss of the logarithm of the sum (z) has no effect and no result in CANN
    (aclnnCrossEntropyLoss.md)."""
    log_probs = torch.log_softmax(input.float(), 1)
    kind = _REDUCTIONS[reduction]
    loss = torch.nn.functional.nll_loss(log_probs, target, weight, None, ignored, None, reduction or "mean")
    if smoothing:
        by_class = log_probs if weight is None else log_probs * weight.float()
        smooth = -by_class.sum(1) * (target != ignored) / input.shape[1]
        if kind:
            weights, _ = _cross_entropy_weights(target, weight, ignored)
            smooth = smooth.sum() / (weights.sum() if kind == _MEAN else 1)
        loss = (1 - smoothing) * loss + smoothing * smooth
    return loss, log_probs, None, None


@operator("CrossEntropyLossGrad")
def cross_entropy_loss_backward(
    grad: Any, log_probs: Any, target: Any, weight: Any, _z_grad: Any, _log_sum: Any, reduction: Any, ignored: int,
    smoothing: float, _z_scale: float,
) -> Any:  # fmt: skip
    """The gradient of the logits."""
    chances = log_probs.float().exp()
    kind = _REDUCTIONS[reduction]
    weights, classes = _cross_entropy_weights(target, weight, ignored)
    of_probs = torch.zeros_like(chances).scatter_(1, classes.unsqueeze(1), -(1 - smoothing) * weights.unsqueeze(1))
    if smoothing:
        by_class = torch.ones(chances.shape[1], device="cpu") if weight is None else weight.float()
        of_probs = of_probs - smoothing / chances.shape[1] * by_class * (target != ignored).unsqueeze(1)
    share = weights.sum() if kind == _MEAN else 1
    of_probs = of_probs * (grad.float() / share if kind else grad.float().unsqueeze(1))
    return of_probs - chances * of_probs.sum(1, keepdim=True)
