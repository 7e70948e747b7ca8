"""A bias, an activation and a factor in one, with their first and second derivatives, as StyleGAN has them."""

from __future__ import annotations

import torch
from torch.nn import functional

from transplt.helper.kernels.recompute import as_compiled, widened

__all__ = ["bias_act", "fused_bias_act"]

_SELU_SCALE, _SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


@as_compiled
def fused_bias_act(
    input: torch.Tensor, bias: torch.Tensor, refer: torch.Tensor, act: int, grad: int, alpha: float, scale: float
) -> torch.Tensor:
    """`act` 1: input + bias; `act` 3: leaky ReLU of it with the slope `alpha`; all times `scale`.

    `grad` 1 is the derivative: `input` holds gradients, `refer` the output of the forward pass, whose sign decides;
    `grad` 2 is 0. `bias` [channels] goes along dimension 1, an empty one is none, an empty `refer` is 0.
    The result has the shape and type of `input`. Memory: one more tensor of its size.
    """
    x = widened(input)
    if bias.numel():
        x = x + _along(bias.to(x.dtype), input)
    if grad >= 2 and act in (1, 3):
        return torch.zeros_like(input)
    if act == 3 and grad == 0:
        x = functional.leaky_relu(x, alpha)
    elif act == 3:
        sign = widened(refer) if refer.numel() else torch.zeros_like(x)
        x = torch.ops.aten.leaky_relu_backward(x, sign, alpha, False)
    return (x * scale).to(input.dtype)


def _along(bias: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    """`bias` for each element: along dimension 1, over and over where it is shorter or longer than that, as counted."""
    rest = [1] * (input.dim() - 2)
    if bias.numel() == input.shape[1]:
        return bias.reshape(1, -1, *rest)
    counted = torch.arange(input.shape[0] * input.shape[1], device=input.device) % bias.numel()
    return bias[counted].reshape(*input.shape[:2], *rest)


@as_compiled
def bias_act(
    x: torch.Tensor, b: torch.Tensor, xref: torch.Tensor, yref: torch.Tensor, dy: torch.Tensor,
    grad: int, dim: int, act: int, alpha: float, gain: float, clamp: float,
) -> torch.Tensor:  # fmt: skip
    """x + b, an activation, times `gain`, and cut at +-`clamp` where that is 0 or more; or its derivatives.

    `act`: 1 linear, 2 relu, 3 leaky relu (slope `alpha`), 4 tanh, 5 sigmoid, 6 elu, 7 selu, 8 softplus, 9 swish.
    `grad` 0: `x` is the input, and `b` goes along `dim`. 1 and 2: `x` holds gradients; `xref`, `yref` are the input and
    the output of the forward pass, `dy` what came in at the first derivative. Empty tensors stand for none.
    The result has the shape, type and layout of `x`. exp() is torch's, where the kernel is compiled with fast math.
    """
    value, first = widened(x), widened(xref) if xref.numel() else torch.zeros((), device=x.device)
    if b.numel():
        shape = [1] * x.dim()
        shape[dim] = -1
        added = widened(b).reshape(shape)
        value, first = (value + added, first) if grad == 0 else (value, first + added)
    out = widened(yref) if yref.numel() else torch.zeros((), device=x.device)
    y = _activated(value, act, alpha) if grad == 0 else _derived(value, first, out / gain if gain else out * 0, act,
                                                                 grad, alpha)  # fmt: skip
    y = y * gain
    if dy.numel():
        y = y * widened(dy)
    if clamp >= 0 and grad == 0:
        most = torch.full_like(y, clamp)
        y = torch.where((y > -clamp) & (y < clamp), y, torch.where(y >= 0, most, -most))
    elif clamp >= 0:
        out = first * torch.sigmoid(first) * gain if act == 9 else out
        y = torch.where((out > -clamp) & (out < clamp), y, 0)
    return torch.empty_like(x).copy_(y)


def _activated(x: torch.Tensor, act: int, alpha: float) -> torch.Tensor:
    if act == 2:
        return torch.where(x > 0, x, 0)
    if act == 3:
        return functional.leaky_relu(x, alpha)
    if act == 4:
        return torch.tanh(x)
    if act == 5:
        return torch.sigmoid(x)
    if act == 6:
        return torch.where(x >= 0, x, torch.exp(x.clamp(max=0)) - 1)
    if act == 7:
        return torch.where(x >= 0, _SELU_SCALE * x, _SELU_SCALE * _SELU_ALPHA * (torch.exp(x.clamp(max=0)) - 1))
    if act == 8:
        return torch.where(x > 80, x, torch.log(torch.exp(x.clamp(max=80)) + 1))
    if act == 9:
        return x * torch.sigmoid(x)
    if act == 1:
        return x
    raise ValueError(f"bias_act: no activation {act}")


def _derived(
    x: torch.Tensor, xref: torch.Tensor, y: torch.Tensor, act: int, grad: int, alpha: float
) -> torch.Tensor:
    """The first (`grad` 1) or second derivative times `x`, from the input `xref` and the output `y`."""
    if act == 4:
        slope = 1 - y * y
        return x * slope if grad == 1 else x * slope * -2 * y
    if act == 5:
        slope = y * (1 - y)
        return x * slope if grad == 1 else x * slope * (1 - 2 * y)
    if act in (6, 7):
        added, above = (1.0, 1.0) if act == 6 else (_SELU_SCALE * _SELU_ALPHA, _SELU_SCALE)
        return torch.where(y >= 0, x * above if grad == 1 else 0, x * (y + added))
    if act == 8:
        left = torch.exp(-y)
        return x * (1 - left) if grad == 1 else x * left * (1 - left)
    if act == 9:
        share = torch.sigmoid(xref)
        bent = share * (1 - share)
        return x * (share + xref * bent) if grad == 1 else x * bent * (2 + xref * (1 - 2 * share))
    if grad == 1 and act == 1:
        return x
    if grad == 1 and act in (2, 3):
        return torch.ops.aten.leaky_relu_backward(x, y, alpha if act == 3 else 0.0, False)
    return torch.zeros_like(x)
