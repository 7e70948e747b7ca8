"""The parts of a batch normalization over ranks, between which the project adds up over the ranks itself."""

from __future__ import annotations

import torch

from transplt.helper.kernels.recompute import as_compiled

__all__ = [
    "sync_bn_backward_data", "sync_bn_backward_param", "sync_bn_forward_mean", "sync_bn_forward_output",
    "sync_bn_forward_var",
]  # fmt: skip


@as_compiled
def sync_bn_forward_mean(input: torch.Tensor, mean: torch.Tensor) -> None:
    """Means over batch and pixels of `input` [batch, channels, pixels] into `mean` [channels], float32."""
    mean.copy_(input.to(mean.dtype).mean((0, 2)))


@as_compiled
def sync_bn_forward_var(input: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> None:
    """Mean squares of the distance to `mean` [channels], into `var`."""
    var.copy_((input.to(var.dtype) - mean[:, None]).square().mean((0, 2)))


@as_compiled
def sync_bn_forward_output(
    input: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor,
    running_mean: torch.Tensor, running_var: torch.Tensor, norm: torch.Tensor, std: torch.Tensor,
    output: torch.Tensor, eps: float, momentum: float | torch.Tensor, group_size: int,
) -> None:  # fmt: skip
    """The normalized `input` [batch, channels, pixels] into `norm` (float32) and, times weight plus bias, `output`.

    `std` gets the root of var + eps; the running mean and variance move by `momentum`, the variance made unbiased for
    `group_size` ranks of this many samples. An empty buffer or parameter stands for none.
    """
    root = (var + eps).sqrt()
    found = (input.to(mean.dtype) - mean[:, None]) / root[:, None]
    if norm.numel():
        norm.copy_(found)
    if std.numel():
        std.copy_(root)
    output.copy_(found * weight[:, None] + bias[:, None] if weight.numel() else found)
    if running_mean.numel():
        count = input.shape[0] * input.shape[2] * group_size
        unbiased = var * count / (count - 1) if count > 1 else var
        running_mean.copy_(momentum * mean + (1 - momentum) * running_mean)
        running_var.copy_(momentum * unbiased + (1 - momentum) * running_var)


@as_compiled
def sync_bn_backward_param(
    grad_output: torch.Tensor, norm: torch.Tensor, grad_weight: torch.Tensor, grad_bias: torch.Tensor
) -> None:
    """The gradients of weight and bias of this rank, into `grad_weight` and `grad_bias` [channels]."""
    given = grad_output.to(norm.dtype)
    grad_weight.copy_((given * norm).sum((0, 2)))
    grad_bias.copy_(given.sum((0, 2)))


@as_compiled
def sync_bn_backward_data(
    grad_output: torch.Tensor, weight: torch.Tensor, grad_weight: torch.Tensor, grad_bias: torch.Tensor,
    norm: torch.Tensor, std: torch.Tensor, grad_input: torch.Tensor,
) -> None:  # fmt: skip
    """The gradient of the input into `grad_input`; `grad_weight` and `grad_bias` are those of all ranks, as means."""
    count = grad_output.shape[0] * grad_output.shape[2]
    shared = (grad_weight[:, None] * norm + grad_bias[:, None]) / count
    grad_input.copy_(weight[:, None] * (grad_output.to(norm.dtype) - shared) / std[:, None])
