"""Resizing, padding and other layers of image and speech models, in the older interface of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from .named_operators import all_named, named
from .operators.losses import ctc_loss, ctc_loss_backward
from .operators.norms import group_norm

_ATEN = torch.ops.aten


def _sampling(align_corners: bool, half_pixel_centers: bool) -> bool:
    """Whether corners are aligned; PyTorch has no third way."""
    if align_corners == half_pixel_centers:
        raise NotImplementedError("a bilinear resize from whole pixels is not emulated")
    return align_corners


@named("ResizeBilinearV2")
def resize_bilinear(input: Any, size: Any, *, align_corners: bool, half_pixel_centers: bool) -> Any:
    """To the size that a tensor holds."""
    return _ATEN.upsample_bilinear2d(input, size.tolist(), _sampling(align_corners, half_pixel_centers))


@named("ResizeBilinearV2Grad")
def resize_bilinear_backward(grad: Any, input: Any, *, align_corners: bool, half_pixel_centers: bool) -> Any:
    """The gradient of the input, of which the sizes count."""
    aligned = _sampling(align_corners, half_pixel_centers)
    return _ATEN.upsample_bilinear2d_backward(grad, grad.shape[2:], input.shape, aligned)


all_named({
    # To the size that a tensor holds.
    "ResizeNearestNeighborV2": lambda input, size: _ATEN.upsample_nearest2d(input, size.tolist()),
    # By the input.
    "HardSigmoidGrad": lambda grad, input: _ATEN.hardsigmoid_backward(grad, input),
    # By the input.
    "HardSwishGrad": lambda grad, input: _ATEN.hardswish_backward(grad, input),
})  # fmt: skip


@named("ResizeNearestNeighborV2Grad")
def resize_nearest_backward(grad: Any, size: Any) -> Any:
    """The gradient of an input of the size that a tensor holds."""
    return _ATEN.upsample_nearest2d_backward(grad, grad.shape[2:], [*grad.shape[:2], *size.tolist()])


@named("GroupNormSwish")
def group_norm_swish(
    input: Any, weight: Any, bias: Any, *, num_groups: int, eps: float, activate_swish: bool
) -> Any:
    """Result, mean and inverse deviation of each group."""
    batch, channels = input.shape[:2]
    area = input.numel() // max(batch * channels, 1)
    result, mean, inverse = group_norm(input, weight, bias, batch, channels, area, num_groups, eps)
    return _ATEN.silu(result) if activate_swish else result, mean, inverse


@named("Elu")
def elu(input: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
    """With its three scales."""
    return _ATEN.elu(input, alpha, scale, input_scale)


@named("EluGradV2")
def elu_backward(
    grad: Any, values: Any, *, alpha: float, scale: float, input_scale: float, is_result: bool
) -> Any:
    """By the input, or by the result."""
    return _ATEN.elu_backward(grad, alpha, scale, input_scale, is_result, values)


def _paddings(amounts: Any, dimensions: int) -> list[int]:
    """Paddings as PyTorch has them, the last axis first, without those of batch and channels."""
    found: list[int] = amounts.reshape(-1, 2).flip(0).reshape(-1).tolist()
    return found[: 2 * dimensions - 4]


@named("MirrorPad")
def mirror_pad(input: Any, amounts: Any, *, mode: str) -> Any:
    """Without the edge itself."""
    if mode != "REFLECT":
        raise NotImplementedError(f"MirrorPad with mode {mode} is not emulated")
    return functional.pad(input, _paddings(amounts, input.dim()), mode="reflect")


@named("PadV3Grad")
def pad_backward(grad: Any, amounts: Any, *, mode: str, outputs: Sequence[Any]) -> Any:
    """The gradient of a padded input, whose numbers do not matter."""
    kind = {"reflect": "reflection", "edge": "replication"}.get(mode)
    if kind is None:
        raise NotImplementedError(f"PadV3Grad with mode {mode} is not emulated")
    input = torch.empty(outputs[0].shape, dtype=grad.dtype, device="cpu")
    backward = getattr(_ATEN, f"{kind}_pad{input.dim() - 2}d_backward")
    return backward(grad, input, _paddings(amounts, input.dim()))


@named("CTCLossV2")
def ctc(
    log_probs: Any, targets: Any, inputs: Any, lengths: Any, *, blank: int, zero_infinity: bool,
    outputs: Sequence[Any],
) -> Any:  # fmt: skip
    """Lengths are tensors here; on the label of blanks torch_npu heaps the longest target times the number of labels
    (op-plugin, CtcLossKernelNpu.cpp)."""
    blank %= log_probs.shape[2]
    return ctc_loss(log_probs, targets, inputs.tolist(), lengths.tolist(), blank, zero_infinity, outputs)


@named("CTCLossV2Grad")
def ctc_backward(
    grad: Any, log_probs: Any, targets: Any, inputs: Any, lengths: Any, loss: Any, alpha: Any, *, blank: int,
    zero_infinity: bool,
) -> Any:  # fmt: skip
    """See `ctc`."""
    blank %= log_probs.shape[2]
    return ctc_loss_backward(
        grad, log_probs, targets, inputs.tolist(), lengths.tolist(), loss, alpha, blank, zero_infinity
    )


@named("Eye")
def eye(*, num_rows: int, num_columns: int) -> Any:
    """Ones on the diagonal."""
    return torch.eye(num_rows, num_columns, device="cpu")
