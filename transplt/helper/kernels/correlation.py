"""Products of two feature maps, one shifted against the other: FlowNet's correlation, the sampler, and RAFT's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional

from transplt.helper.kernels.recompute import as_compiled, filled, widened

__all__ = [
    "alt_corr_backward", "alt_corr_forward", "correlation_backward", "correlation_forward",
    "correlation_into_backward", "correlation_into_forward", "correlation_sampler_backward",
    "correlation_sampler_forward",
]  # fmt: skip

#: So many products of two pixels are held at once by RAFT's correlation (float32: 256 MB).
_CORRELATION_PIECE = 2**26


# --- one product for each shift: FlowNet2, PWC-Net, spatial_correlation_sampler, mmcv ---------------------------------


def _shifted(
    taps: tuple[list[int], list[int]], shifts: tuple[list[int], list[int]], out: tuple[int, int],
    stride: tuple[int, int],
) -> Iterator[tuple[int, Any, Any]]:  # fmt: skip
    """For each shift and tap: the number of the shift, and where to read in the first and in the second image.

    `taps` are rows and columns of the first image that belong to the first output, `shifts` those added in the second.
    """
    for number, (down, right) in enumerate((y, x) for y in shifts[0] for x in shifts[1]):
        for tap_y in taps[0]:
            for tap_x in taps[1]:
                first = (..., _line(tap_y, out[0], stride[0]), _line(tap_x, out[1], stride[1]))
                second = (..., _line(tap_y + down, out[0], stride[0]), _line(tap_x + right, out[1], stride[1]))
                yield number, first, second


def _line(start: int, count: int, step: int) -> slice:
    return slice(start, start + (count - 1) * step + 1, step)


class _Correlation:
    """Both images with room around them, and where the products are taken. `taps` and `shifts` are in the padded
    images, `margin` is what is added on each side beyond `pad`, so that every place to read exists.
    """

    def __init__(
        self, shape: torch.Size, pad: tuple[int, int], taps: tuple[list[int], list[int]],
        shifts: tuple[list[int], list[int]], stride: tuple[int, int], out: tuple[int, int],
    ) -> None:  # fmt: skip
        self.shape, self.shifts, self.stride, self.out = shape, shifts, stride, out
        self.room: list[int] = []
        moved: list[list[int]] = []
        for axis in (0, 1):
            reach = [tap + shift for tap in taps[axis] for shift in (0, *shifts[axis])]
            end = shape[axis + 2] + 2 * pad[axis]
            before = max(0, -min(reach))
            after = max(0, max(reach) + (out[axis] - 1) * stride[axis] + 1 - end)
            self.room = [pad[axis] + before, pad[axis] + after, *self.room]  # functional.pad names the last axis first
            moved.append([tap + before for tap in taps[axis]])
        self.taps = (moved[0], moved[1])

    def padded(self, image: torch.Tensor) -> torch.Tensor:
        return functional.pad(widened(image), self.room)

    def cut(self, image: torch.Tensor) -> torch.Tensor:
        left, _, top, _ = self.room
        return image[:, :, top : top + self.shape[2], left : left + self.shape[3]]

    def forward(self, one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        """[batch, shifts, height, width] in the type that is computed in: the sums over channels and taps."""
        first, second = self.padded(one), self.padded(two)
        found = first.new_zeros(one.shape[0], len(self.shifts[0]) * len(self.shifts[1]), *self.out)
        for number, here, there in _shifted(self.taps, self.shifts, self.out, self.stride):
            found[:, number] += (first[here] * second[there]).sum(1)
        return found

    def backward(
        self, one: torch.Tensor, two: torch.Tensor, grad: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The gradients of both images for `grad` [batch, shifts, height, width]."""
        first, second = self.padded(one), self.padded(two)
        to_first, to_second = torch.zeros_like(first), torch.zeros_like(second)
        grad = grad.to(first.dtype)
        for number, here, there in _shifted(self.taps, self.shifts, self.out, self.stride):
            share = grad[:, number : number + 1]
            to_first[here] += share * second[there]
            to_second[there] += share * first[here]
        return self.cut(to_first).to(one.dtype), self.cut(to_second).to(two.dtype)


def _flownet(
    input1: torch.Tensor, pad_size: int, kernel_size: int, max_displacement: int, stride1: int, stride2: int
) -> tuple[_Correlation, int]:
    radius, steps = (kernel_size - 1) // 2, max_displacement // stride2
    border = radius + max_displacement
    out = [-((2 * border - side - 2 * pad_size) // stride1) for side in input1.shape[2:]]
    taps = [max_displacement + each for each in range(-radius, radius + 1)]
    shifts = [step * stride2 for step in range(-steps, steps + 1)]
    every = kernel_size * kernel_size * input1.shape[1]
    return _Correlation(input1.shape, (pad_size, pad_size), (taps, taps), (shifts, shifts), (stride1, stride1),
                        (out[0], out[1])), every  # fmt: skip


@as_compiled
def correlation_forward(
    input1: torch.Tensor, input2: torch.Tensor, rbot1: torch.Tensor, rbot2: torch.Tensor, output: torch.Tensor,
    pad_size: int, kernel_size: int, max_displacement: int, stride1: int, stride2: int, corr_multiply: int = 1,
) -> int:  # fmt: skip
    """FlowNet's correlation of two maps [batch, channels, height, width], as means over channels and kernel.

    `output` becomes [batch, shifts, height, width]; shifts run along x first, max_displacement // stride2 steps of
    stride2 to each side. `rbot1`, `rbot2` (scratch of the kernel) stay as they are. Reads outside the padded maps are
    0; the compiled one reads other rows there, with kernel_size over 1 only. Sums are in float32 or wider.
    Memory: both padded maps and one product of their size.
    """
    kernel, every = _flownet(input1, pad_size, kernel_size, max_displacement, stride1, stride2)
    filled(output, kernel.forward(input1, input2) / every)
    return 1


@as_compiled
def correlation_backward(
    input1: torch.Tensor, input2: torch.Tensor, rbot1: torch.Tensor, rbot2: torch.Tensor, grad_output: torch.Tensor,
    grad_input1: torch.Tensor, grad_input2: torch.Tensor,
    pad_size: int, kernel_size: int, max_displacement: int, stride1: int, stride2: int, corr_multiply: int = 1,
) -> int:  # fmt: skip
    """The gradients of `correlation_forward`, into `grad_input1` and `grad_input2`, of any size before.

    They are those of the forward pass; the compiled one leaves pixels between strides at 0 where stride1 is over 1.
    """
    kernel, every = _flownet(input1, pad_size, kernel_size, max_displacement, stride1, stride2)
    first, second = kernel.backward(input1, input2, widened(grad_output) / every)
    filled(grad_input1, first)
    filled(grad_input2, second)
    return 1


def _sampler(
    input1: torch.Tensor, kH: int, kW: int, patchH: int, patchW: int, padH: int, padW: int,
    dilationH: int, dilationW: int, dilation_patchH: int, dilation_patchW: int, dH: int, dW: int,
) -> _Correlation:  # fmt: skip
    taps, shifts, out = [], [], []
    for side, kernel, patch, pad, dilation, dilation_patch, stride in (
        (input1.shape[2], kH, patchH, padH, dilationH, dilation_patchH, dH),
        (input1.shape[3], kW, patchW, padW, dilationW, dilation_patchW, dW),
    ):
        taps.append([tap * dilation for tap in range(kernel)])
        shifts.append([step * dilation_patch - dilation_patch * (patch - 1) // 2 for step in range(patch)])
        out.append((side + 2 * pad - ((kernel - 1) * dilation + 1)) // stride + 1)
    return _Correlation(input1.shape, (padH, padW), (taps[0], taps[1]), (shifts[0], shifts[1]), (dH, dW),
                        (out[0], out[1]))  # fmt: skip


@as_compiled
def correlation_sampler_forward(
    input1: torch.Tensor, input2: torch.Tensor, kH: int, kW: int, patchH: int, patchW: int, padH: int, padW: int,
    dilationH: int, dilationW: int, dilation_patchH: int, dilation_patchW: int, dH: int, dW: int,
) -> torch.Tensor:  # fmt: skip
    """spatial_correlation_sampler: sums over channels and kernel, [batch, patchH, patchW, height, width].

    Both maps are [batch, channels, height, width], 0 outside. Memory: both padded maps and one product of their size.
    """
    kernel = _sampler(input1, kH, kW, patchH, patchW, padH, padW, dilationH, dilationW, dilation_patchH,
                      dilation_patchW, dH, dW)  # fmt: skip
    found = kernel.forward(input1, input2).to(input1.dtype)
    return found.reshape(found.shape[0], patchH, patchW, *found.shape[2:])


@as_compiled
def correlation_sampler_backward(
    input1: torch.Tensor, input2: torch.Tensor, grad_output: torch.Tensor, kH: int, kW: int, patchH: int, patchW: int,
    padH: int, padW: int, dilationH: int, dilationW: int, dilation_patchH: int, dilation_patchW: int, dH: int, dW: int,
) -> list[torch.Tensor]:  # fmt: skip
    """The gradients of both maps of `correlation_sampler_forward`."""
    kernel = _sampler(input1, kH, kW, patchH, patchW, padH, padW, dilationH, dilationW, dilation_patchH,
                      dilation_patchW, dH, dW)  # fmt: skip
    return list(kernel.backward(input1, input2, grad_output.flatten(1, 2)))


@as_compiled
def correlation_into_forward(
    input1: torch.Tensor, input2: torch.Tensor, output: torch.Tensor, kH: int, kW: int, patchH: int, patchW: int,
    padH: int, padW: int, dilationH: int, dilationW: int, dilation_patchH: int, dilation_patchW: int, dH: int, dW: int,
) -> None:  # fmt: skip
    """`correlation_sampler_forward` into `output`, as mmcv calls it."""
    output.copy_(correlation_sampler_forward(input1, input2, kH, kW, patchH, patchW, padH, padW, dilationH, dilationW,
                                             dilation_patchH, dilation_patchW, dH, dW))  # fmt: skip


@as_compiled
def correlation_into_backward(
    grad_output: torch.Tensor, input1: torch.Tensor, input2: torch.Tensor,
    grad_input1: torch.Tensor, grad_input2: torch.Tensor, kH: int, kW: int, patchH: int, patchW: int,
    padH: int, padW: int, dilationH: int, dilationW: int, dilation_patchH: int, dilation_patchW: int, dH: int, dW: int,
) -> None:  # fmt: skip
    """`correlation_sampler_backward` into `grad_input1` and `grad_input2`, as mmcv calls it."""
    first, second = correlation_sampler_backward(
        input1, input2, grad_output, kH, kW, patchH, patchW, padH, padW, dilationH, dilationW, dilation_patchH,
        dilation_patchW, dH, dW)  # fmt: skip
    grad_input1.copy_(first)
    grad_input2.copy_(second)


# --- products around given places: RAFT ------------------------------------------------------------------------------


def _windows(places: torch.Tensor, radius: int, height: int, width: int) -> tuple[torch.Tensor, ...]:
    """For places [pixels, 2] (x, y): which pixels of the second map stand around them, [pixels, side, side] with x
    first, height * width for one outside; and how far each place is beyond its pixel, along x and y, [pixels, 1, 1].
    """
    whole = places.floor()
    beyond = (places - whole)[:, :, None, None]
    step = torch.arange(-radius, radius + 2, device=places.device)
    # far outside is outside, also where an integer would not hold it
    x = whole[:, :1].clamp(-2 * radius - 3, width + radius + 2).long() + step
    y = whole[:, 1:].clamp(-2 * radius - 3, height + radius + 2).long() + step
    inside = ((x >= 0) & (x < width))[:, :, None] & ((y >= 0) & (y < height))[:, None, :]
    index = torch.where(inside, y[:, None, :] * width + x[:, :, None], height * width)
    return index, beyond[:, 0], beyond[:, 1]


def _pieces(pixels: int, others: int) -> Iterator[slice]:
    step = max(1, _CORRELATION_PIECE // max(others, 1))
    return (slice(start, min(start + step, pixels)) for start in range(0, pixels, step))


@as_compiled
def alt_corr_forward(
    fmap1: torch.Tensor, fmap2: torch.Tensor, coords: torch.Tensor, radius: int
) -> list[torch.Tensor]:
    """RAFT's correlation without the whole volume: [batch, n, (2 radius + 1) ** 2, height, width].

    `fmap1`, `fmap2` [batch, height, width, channels], each of its own size, `coords` [batch, n, height, width, 2] as x
    and y in the second map; bilinear between pixels, 0 outside; the windows run along y first. Products of all pixels
    are made in pieces (256 MB at most), so that the cube unit does them; the compiled one makes those of the windows.
    """
    batch, height, width, _ = fmap2.shape
    count, side = coords.shape[1], 2 * radius + 1
    found = fmap1.new_empty(batch, count, *fmap1.shape[1:3], side * side)
    for item in range(batch):
        one, two = widened(fmap1[item]).flatten(0, 1), widened(fmap2[item]).flatten(0, 1)
        for number in range(count):
            places = widened(coords[item, number]).flatten(0, 1)
            for piece in _pieces(one.shape[0], two.shape[0]):
                products = functional.pad(one[piece] @ two.T, [0, 1])
                index, x, y = _windows(places[piece], radius, height, width)
                around = products.gather(1, index.flatten(1)).reshape(index.shape)
                along = around[:, :-1] * (1 - x) + around[:, 1:] * x
                value = along[:, :, :-1] * (1 - y) + along[:, :, 1:] * y
                found[item, number].view(-1, side * side)[piece] = value.flatten(1).to(found.dtype)
    return [found.permute(0, 1, 4, 2, 3).contiguous()]


@as_compiled
def alt_corr_backward(
    fmap1: torch.Tensor, fmap2: torch.Tensor, coords: torch.Tensor, corr_grad: torch.Tensor, radius: int
) -> list[torch.Tensor]:
    """The gradients of `alt_corr_forward`: of both maps, and zeros for the places, as the compiled one gives."""
    batch, height, width, _ = fmap2.shape
    side = 2 * radius + 1
    to_one, to_two = torch.zeros_like(fmap1), torch.zeros_like(fmap2)
    for item in range(batch):
        one, two = widened(fmap1[item]).flatten(0, 1), widened(fmap2[item]).flatten(0, 1)
        first, second = torch.zeros_like(one), torch.zeros_like(two)
        for number in range(coords.shape[1]):
            places = widened(coords[item, number]).flatten(0, 1)
            grads = widened(corr_grad[item, number]).flatten(1).T.reshape(-1, side, side)
            for piece in _pieces(one.shape[0], two.shape[0]):
                index, x, y = _windows(places[piece], radius, height, width)
                grad = grads[piece]
                along = functional.pad(grad * (1 - y), [0, 1]) + functional.pad(grad * y, [1, 0])
                around = functional.pad(along * (1 - x), [0, 0, 0, 1]) + functional.pad(along * x, [0, 0, 1, 0])
                spread = around.new_zeros(around.shape[0], height * width + 1)
                spread = spread.scatter_add_(1, index.flatten(1), around.flatten(1))[:, :-1]
                first[piece] += spread @ two
                second += spread.T @ one[piece]
        to_one[item].copy_(first.reshape(fmap1.shape[1:]))
        to_two[item].copy_(second.reshape(fmap2.shape[1:]))
    return [to_one, to_two, torch.zeros_like(coords)]
