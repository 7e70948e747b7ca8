"""Convolutions that read at places of their own: deformable convolutions, without and with a mask."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from transplt.helper.kernels.bilinear import bilinear_read
from transplt.helper.kernels.recompute import as_compiled, kernel_gradients, widened

__all__ = [
    "dcn_v2_backward", "dcn_v2_cuda_backward", "dcn_v2_cuda_forward", "dcn_v2_forward", "deform_conv_backward_filter",
    "deform_conv_backward_input", "deform_conv_forward", "modulated_deform_conv_backward",
    "modulated_deform_conv_forward",
]  # fmt: skip

#: So many numbers of the unfolded images are held at once (float32: 128 MB, some six times that with its gradients).
_DEFORM_PIECE = 2**25


def _deformed(
    input: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor | None, weight: torch.Tensor,
    stride: tuple[int, int], pad: tuple[int, int], dilation: tuple[int, int], groups: int, parts: int,
) -> torch.Tensor:  # fmt: skip
    """The convolution without bias. `parts` are the deformable groups: the offsets [batch, parts * taps * 2, height,
    width] hold y and x of each tap, the mask [batch, parts * taps, height, width] a factor.
    """
    batch, channels, high, wide = input.shape
    taps = weight.shape[2] * weight.shape[3]
    height, width = offset.shape[2:]
    moved = offset.view(batch * parts, taps, 2, height, width)
    down, right = (torch.arange(count, device=input.device) for count in weight.shape[2:])
    rows, columns = torch.arange(height, device=input.device), torch.arange(width, device=input.device)
    tap_y = (down * dilation[0])[:, None].expand(-1, weight.shape[3]).reshape(taps, 1, 1)
    tap_x = (right * dilation[1])[None].expand(weight.shape[2], -1).reshape(taps, 1, 1)
    y = (rows * stride[0] - pad[0])[None, :, None] + tap_y + moved[:, :, 0]
    x = (columns * stride[1] - pad[1])[None, None] + tap_x + moved[:, :, 1]
    pixels = input.reshape(batch * parts, channels // parts, high * wide).transpose(1, 2).flatten(0, 1)
    numbers = torch.arange(batch * parts, device=input.device)[:, None]
    found = bilinear_read(pixels, numbers, y.flatten(1), x.flatten(1), high, wide)
    if mask is not None:
        found = found * mask.reshape(batch * parts, -1, 1)
    # [batch, parts, taps, places, channels of a part] -> [batch, groups, channels of a group * taps, places]
    found = found.view(batch, parts, taps, height * width, channels // parts).permute(0, 1, 4, 2, 3)
    unfolded = found.reshape(batch, groups, channels // groups * taps, height * width)
    return (weight.reshape(groups, weight.shape[0] // groups, -1) @ unfolded).view(batch, -1, height, width)


def _in_pieces(input: torch.Tensor, offset: torch.Tensor, taps: int) -> Iterator[slice]:
    """Slices of the batch, of as many images as are unfolded at once."""
    each = input.shape[1] * taps * offset.shape[2] * offset.shape[3]
    step = max(1, _DEFORM_PIECE // max(each, 1))
    return (slice(start, start + step) for start in range(0, input.shape[0], step))


def _run(
    input: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor | None, weight: torch.Tensor,
    stride: tuple[int, int], pad: tuple[int, int], dilation: tuple[int, int], groups: int, parts: int,
) -> torch.Tensor:  # fmt: skip
    out = [
        _deformed(widened(input[piece]), widened(offset[piece]), None if mask is None else widened(mask[piece]),
                  widened(weight), stride, pad, dilation, groups, parts)
        for piece in _in_pieces(input, offset, weight.shape[2] * weight.shape[3])
    ]  # fmt: skip
    return torch.cat(out) if out else input.new_zeros(0, weight.shape[0], *offset.shape[2:])


def _gradients(
    input: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor | None, weight: torch.Tensor, grad: torch.Tensor,
    stride: tuple[int, int], pad: tuple[int, int], dilation: tuple[int, int], groups: int, parts: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor]:  # fmt: skip
    """Those of the input, the offsets, the mask (None without one) and the weight, in the type that is computed in."""
    to_weight = torch.zeros_like(widened(weight))
    found: list[tuple[torch.Tensor, ...]] = []
    grad = grad.reshape(input.shape[0], weight.shape[0], *offset.shape[2:])

    def compute(kernel: torch.Tensor, image: torch.Tensor, moved: torch.Tensor, *factor: torch.Tensor) -> torch.Tensor:
        return _deformed(image, moved, factor[0] if factor else None, kernel, stride, pad, dilation, groups, parts)

    for piece in _in_pieces(input, offset, weight.shape[2] * weight.shape[3]):
        given = [widened(each[piece]) for each in (input, offset, mask) if each is not None]
        first, *rest = kernel_gradients(compute, [widened(weight), *given], grad[piece])
        to_weight += first
        found.append(tuple(rest))
    if not found:
        return input, offset, mask, to_weight
    every = [torch.cat(each) for each in zip(*found)]  # noqa: B905
    return every[0], every[1], None if mask is None else every[2], to_weight


@as_compiled
def deform_conv_forward(
    input: torch.Tensor, weight: torch.Tensor, offset: torch.Tensor, output: torch.Tensor, columns: torch.Tensor,
    ones: torch.Tensor, kW: int, kH: int, dW: int, dH: int, padW: int, padH: int, dilationW: int, dilationH: int,
    group: int, deformable_group: int, im2col_step: int = 1,
) -> int:  # fmt: skip
    """The deformable convolution of `input` [batch, channels, height, width], into `output`.

    Offsets [batch, deformable_group * kH * kW * 2, height, width], y before x; 0 outside. `columns`, `ones` (scratch of
    the kernel) and `im2col_step` are not looked at. Sums of 16-bit numbers are in float32.
    """
    found = _run(input, offset, None, weight, (dH, dW), (padH, padW), (dilationH, dilationW), group, deformable_group)
    output.copy_(found.view(output.shape))
    return 1


@as_compiled
def deform_conv_backward_input(
    input: torch.Tensor, offset: torch.Tensor, gradOutput: torch.Tensor, gradInput: torch.Tensor,
    gradOffset: torch.Tensor, weight: torch.Tensor, columns: torch.Tensor, kW: int, kH: int, dW: int, dH: int,
    padW: int, padH: int, dilationW: int, dilationH: int, group: int, deformable_group: int, im2col_step: int = 1,
) -> int:  # fmt: skip
    """The gradients of `deform_conv_forward`: added to `gradInput`, written into `gradOffset`."""
    image, moved, _, _ = _gradients(input, offset, None, weight, gradOutput, (dH, dW), (padH, padW),
                                    (dilationH, dilationW), group, deformable_group)  # fmt: skip
    gradInput.add_(image.view(gradInput.shape))
    gradOffset.copy_(moved.view(gradOffset.shape))
    return 1


@as_compiled
def deform_conv_backward_filter(
    input: torch.Tensor, offset: torch.Tensor, gradOutput: torch.Tensor, gradWeight: torch.Tensor,
    columns: torch.Tensor, ones: torch.Tensor, kW: int, kH: int, dW: int, dH: int, padW: int, padH: int,
    dilationW: int, dilationH: int, group: int, deformable_group: int, scale: float, im2col_step: int = 1,
) -> int:  # fmt: skip
    """The gradient of `deform_conv_forward` for its weight, times `scale`, added to `gradWeight`.

    Other libraries call it deform_conv_backward_parameters.
    """
    *_, to_weight = _gradients(input, offset, None, torch.zeros_like(gradWeight), gradOutput, (dH, dW), (padH, padW),
                               (dilationH, dilationW), group, deformable_group)  # fmt: skip
    gradWeight.add_((to_weight * scale).to(gradWeight.dtype))
    return 1


@as_compiled
def modulated_deform_conv_forward(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, ones: torch.Tensor, offset: torch.Tensor,
    mask: torch.Tensor, output: torch.Tensor, columns: torch.Tensor, kernel_h: int, kernel_w: int, stride_h: int,
    stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, group: int, deformable_group: int,
    with_bias: bool,
) -> None:  # fmt: skip
    """`deform_conv_forward` with a factor for each read, `mask` [batch, deformable_group * kernel_h * kernel_w, height,
    width], and a bias [channels] where `with_bias`, into `output`.
    """
    found = _run(input, offset, mask, weight, (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), group,
                 deformable_group)  # fmt: skip
    output.copy_((found + bias.view(1, -1, 1, 1) if with_bias else found).view(output.shape))


@as_compiled
def modulated_deform_conv_backward(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, ones: torch.Tensor, offset: torch.Tensor,
    mask: torch.Tensor, columns: torch.Tensor, grad_input: torch.Tensor, grad_weight: torch.Tensor,
    grad_bias: torch.Tensor, grad_offset: torch.Tensor, grad_mask: torch.Tensor, grad_output: torch.Tensor,
    kernel_h: int, kernel_w: int, stride_h: int, stride_w: int, pad_h: int, pad_w: int, dilation_h: int,
    dilation_w: int, group: int, deformable_group: int, with_bias: bool,
) -> None:  # fmt: skip
    """The gradients of `modulated_deform_conv_forward`: added to those of the input, the weight and the bias, written
    into those of the offsets and the mask.
    """
    image, moved, factor, to_weight = _gradients(
        input, offset, mask, weight, grad_output, (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), group,
        deformable_group)  # fmt: skip
    assert factor is not None
    grad_input.add_(image.view(grad_input.shape))
    grad_weight.add_(to_weight.to(grad_weight.dtype))
    grad_offset.copy_(moved)
    grad_mask.copy_(factor)
    if with_bias:
        grad_bias.add_(widened(grad_output).sum((0, 2, 3)).to(grad_bias.dtype))


@as_compiled
def dcn_v2_forward(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor,
    kernel_h: int, kernel_w: int, stride_h: int, stride_w: int, pad_h: int, pad_w: int, dilation_h: int,
    dilation_w: int, deformable_group: int,
) -> torch.Tensor:  # fmt: skip
    """`modulated_deform_conv_forward` as DCNv2 calls it: with a bias, without groups, and the result is returned."""
    found = _run(input, offset, mask, weight, (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), 1,
                 deformable_group)  # fmt: skip
    return (found + bias.view(1, -1, 1, 1)).to(input.dtype)


@as_compiled
def dcn_v2_backward(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor,
    grad_output: torch.Tensor, kernel_h: int, kernel_w: int, stride_h: int, stride_w: int, pad_h: int, pad_w: int,
    dilation_h: int, dilation_w: int, deformable_group: int,
) -> list[torch.Tensor]:  # fmt: skip
    """The gradients of `dcn_v2_forward`: of the input, the offsets, the mask, the weight and the bias."""
    image, moved, factor, to_weight = _gradients(
        input, offset, mask, weight, grad_output, (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), 1,
        deformable_group)  # fmt: skip
    assert factor is not None
    found = [image, moved, factor, to_weight, widened(grad_output).sum((0, 2, 3))]
    return [each.to(one.dtype) for each, one in zip(found, (input, offset, mask, weight, bias))]  # noqa: B905


@as_compiled
def dcn_v2_cuda_forward(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, ones: torch.Tensor, offset: torch.Tensor,
    mask: torch.Tensor, output: torch.Tensor, columns: torch.Tensor, kernel_h: int, kernel_w: int, stride_h: int,
    stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, deformable_group: int,
) -> None:  # fmt: skip
    """`dcn_v2_forward` into `output`, as the first DCNv2 calls it."""
    output.copy_(dcn_v2_forward(input, weight, bias, offset, mask, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w,
                                dilation_h, dilation_w, deformable_group))  # fmt: skip


@as_compiled
def dcn_v2_cuda_backward(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, ones: torch.Tensor, offset: torch.Tensor,
    mask: torch.Tensor, columns: torch.Tensor, grad_input: torch.Tensor, grad_weight: torch.Tensor,
    grad_bias: torch.Tensor, grad_offset: torch.Tensor, grad_mask: torch.Tensor, grad_output: torch.Tensor,
    kernel_h: int, kernel_w: int, stride_h: int, stride_w: int, pad_h: int, pad_w: int, dilation_h: int,
    dilation_w: int, deformable_group: int,
) -> None:  # fmt: skip
    """The gradients of `dcn_v2_cuda_forward`, as `modulated_deform_conv_backward` fills them."""
    modulated_deform_conv_backward(
        input, weight, bias, ones, offset, mask, columns, grad_input, grad_weight, grad_bias, grad_offset, grad_mask,
        grad_output, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, 1, deformable_group,
        True)  # fmt: skip
