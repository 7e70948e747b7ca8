"""Steps of optimizers over whole parameters, and the loss scaling of mixed precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from . import operator


@operator("ForeachNonFiniteCheckAndUnscale")
def _unscale(grads: Sequence[Any], found: Any, inverse: Any) -> None:
    factor = inverse.item()
    for grad in grads:
        if not torch.isfinite(grad).all():
            found.fill_(1)
        grad.mul_(factor)


@operator("AmpUpdateScale")
def _update_scale(scale: Any, tracker: Any, found: Any, growth: float, backoff: float, interval: int) -> Any:
    scale, tracker = scale.clone(), tracker.clone()
    torch._amp_update_scale_(scale, tracker, found, growth, backoff, interval)
    return scale, tracker


@operator("ApplyAdamWV2")
def _adamw(
    parameter: Any, first: Any, second: Any, most: Any, grad: Any, step: Any, rate: float, beta1: float, beta2: float,
    decay: float, epsilon: float, amsgrad: bool, maximize: bool,
) -> None:  # fmt: skip
    """torch_npu passes the number of the steps before this one, here and below."""
    torch._fused_adamw_(
        [parameter], [grad], [first], [second], [most] if amsgrad else [], [step.reshape(()).float() + 1], lr=rate,
        beta1=beta1, beta2=beta2, weight_decay=decay, eps=epsilon, amsgrad=amsgrad, maximize=maximize,
    )  # fmt: skip


@operator("FusedAdam")
def _fused_adam(
    parameters: Any, grads: Any, firsts: Any, seconds: Any, most: Any, steps: Any, scale: Any, found: Any, rate: float,
    beta1: float, beta2: float, decay: float, epsilon: float, amsgrad: bool, maximize: bool,
) -> None:  # fmt: skip
    torch._fused_adam_(
        parameters, grads, firsts, seconds, most if amsgrad else [], [each.float() + 1 for each in steps], lr=rate,
        beta1=beta1, beta2=beta2, weight_decay=decay, eps=epsilon, amsgrad=amsgrad, maximize=maximize,
        grad_scale=scale, found_inf=found,
    )  # fmt: skip


@operator("ApplyAdamW")
def _adamw_with_powers(
    parameter: Any, first: Any, second: Any, power1: Any, power2: Any, rate: Any, decay: Any, beta1: Any, beta2: Any,
    epsilon: Any, grad: Any, most: Any, amsgrad: bool, maximize: bool,
) -> None:  # fmt: skip
    """AdamW as of aclnnApplyAdamW's page, from the powers of the betas before this step."""
    power1, power2, rate, decay, beta1, beta2, epsilon = (
        each.reshape(()).item() for each in (power1, power2, rate, decay, beta1, beta2, epsilon)
    )  # fmt: skip
    grad = -grad if maximize else grad
    first.mul_(beta1).add_(grad, alpha=1 - beta1)
    second.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    square = second / (1 - power2 * beta2)
    if amsgrad:
        most.copy_(torch.maximum(most, square))
        square = most
    root = square.sqrt().add_(epsilon)
    parameter.mul_(1 - rate * decay).addcdiv_(first, root, value=-rate / (1 - power1 * beta1))


@operator("ApplyAdam")
def _adam(
    parameter: Any, first: Any, second: Any, power1: Any, power2: Any, rate: Any, beta1: Any, beta2: Any,
    epsilon: Any, grad: Any, locking: bool, nesterov: bool,
) -> None:  # fmt: skip
    """Adam as of aclnnApplyAdam's page (epsilon is not scaled with the correction of the second moment)."""
    power1, power2, rate, beta1, beta2, epsilon = (
        each.reshape(()).item() for each in (power1, power2, rate, beta1, beta2, epsilon)
    )
    step = rate * math.sqrt(1 - power2) / (1 - power1)
    first.add_(grad - first, alpha=1 - beta1)
    second.add_(grad * grad - second, alpha=1 - beta2)
    direction = first * beta1 + grad * (1 - beta1) if nesterov else first
    parameter.addcdiv_(direction, second.sqrt().add_(epsilon), value=-step)


@operator("FusedSgd")
def _fused_sgd(
    parameters: Any, grads: Any, buffers: Any, scale: Any, decay: float, momentum: float, rate: float,
    dampening: float, nesterov: bool, maximize: bool, is_first: bool,
) -> None:  # fmt: skip
    torch._fused_sgd_(
        parameters, grads, buffers or [], weight_decay=decay, momentum=momentum, lr=rate, dampening=dampening,
        nesterov=nesterov, maximize=maximize, is_first_step=is_first, grad_scale=scale,
    )  # fmt: skip
