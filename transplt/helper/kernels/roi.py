"""Regions of maps on grids of one size: RoIAlign and RoIPool, in the forms of maskrcnn-benchmark and mmcv."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from transplt.helper.kernels.bilinear import bilinear_corners, bilinear_read
from transplt.helper.kernels.recompute import as_compiled, widened

__all__ = [
    "roi_align_backward", "roi_align_forward", "roi_align_into_backward", "roi_align_into_forward", "roi_pool_backward",
    "roi_pool_forward", "roi_pool_into_backward", "roi_pool_into_forward",
]  # fmt: skip

#: So many numbers of regions are read at once (float32: 128 MB, and five times that on the way).
_ROI_PIECE = 2**25
_LEAST = -3.4028234663852886e38  # FLT_MAX below 0, from which the compiled ones begin to look for the largest


class RoiGrids:
    """Where regions are read: so many times a bin along y and x, of `bins` (high, wide) bins.

    `number` [regions] the map of each, `corner` its left and top, `size` its width and height; `turn`, where it is
    turned, the x and y that it is turned around, whose 0 the corner counts from, and the cosine and sine.
    """

    def __init__(
        self, number: torch.Tensor, corner: tuple[torch.Tensor, torch.Tensor], size: tuple[torch.Tensor, torch.Tensor],
        bins: tuple[int, int], sampling_ratio: int, turn: tuple[torch.Tensor, ...] = (),
    ) -> None:  # fmt: skip
        self.map, (self.left, self.top), (self.width, self.height), self.turn = number.long(), corner, size, turn
        self.high, self.wide = bins
        self.step_x, self.step_y = self.width / self.wide, self.height / self.high
        if sampling_ratio > 0:
            self.counts = [(sampling_ratio, sampling_ratio)] * number.shape[0]
        else:
            # a region that is no number is not read, and does not stop the program
            needed = torch.stack([self.step_y, self.step_x], 1).ceil().nan_to_num(0, 0, 0).tolist()
            self.counts = [(max(int(down), 0), max(int(along), 0)) for down, along in needed]

    def groups(self, channels: int) -> Iterator[tuple[tuple[int, int], torch.Tensor]]:
        """Regions that are read equally often, in pieces that fit: how often, and their numbers."""
        every: dict[tuple[int, int], list[int]] = {}
        for number, count in enumerate(self.counts):
            every.setdefault(count, []).append(number)
        for count, numbers in every.items():
            each = math.prod(count) * self.high * self.wide * channels
            step = max(1, _ROI_PIECE // max(each, 1))
            for start in range(0, len(numbers), step):
                yield count, torch.tensor(numbers[start : start + step], device=self.map.device)

    def places(self, count: tuple[int, int], regions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """y and x of each read, [regions, high, wide, reads of a bin]."""
        down, along = count
        step_y, step_x = self.step_y[regions, None, None], self.step_x[regions, None, None]
        y = self.top[regions, None, None] + torch.arange(self.high, device=step_y.device)[:, None] * step_y
        y = y + (torch.arange(down, device=step_y.device) + 0.5) * step_y / max(down, 1)
        x = self.left[regions, None, None] + torch.arange(self.wide, device=step_x.device)[:, None] * step_x
        x = x + (torch.arange(along, device=step_x.device) + 0.5) * step_x / max(along, 1)
        shape = (regions.shape[0], self.high, self.wide, down, along)
        y, x = y[:, :, None, :, None].expand(shape).flatten(3), x[:, None, :, None, :].expand(shape).flatten(3)
        if not self.turn:
            return y, x
        center_x, center_y, cos, sin = (each[regions].view(-1, 1, 1, 1) for each in self.turn)
        return y * cos - x * sin + center_y, y * sin + x * cos + center_x


def roi_grids(
    rois: torch.Tensor, high: int, wide: int, scale: float, sampling_ratio: int, aligned: bool,
    last_pixels: bool = False,
) -> RoiGrids:  # fmt: skip
    """Of upright regions [regions, 5] (map, x1, y1, x2, y2).

    `last_pixels`: x2 and y2 are the last pixels, and a region may be empty.
    """
    rois = widened(rois)
    shift, more = 0.5 if aligned else 0.0, int(last_pixels)
    left, top = rois[:, 1] * scale - shift, rois[:, 2] * scale - shift
    width = (rois[:, 3] + more) * scale - shift - left
    height = (rois[:, 4] + more) * scale - shift - top
    if not aligned:
        width, height = width.clamp(min=1 - more), height.clamp(min=1 - more)
    return RoiGrids(rois[:, 0], (left, top), (width, height), (high, wide), sampling_ratio)


def on_the_map(
    y: torch.Tensor, x: torch.Tensor, high: int, wide: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Places within the map, those up to 1 beyond it on its border, and which are farther away."""
    outside = (y < -1) | (y > high) | (x < -1) | (x > wide)
    return y.clamp(0, high - 1), x.clamp(0, wide - 1), outside


def pixel_rows(input: torch.Tensor) -> torch.Tensor:
    return widened(input).permute(0, 2, 3, 1).reshape(-1, input.shape[1])


def roi_reads(
    rows: torch.Tensor, number: torch.Tensor, y: torch.Tensor, x: torch.Tensor, high: int, wide: int
) -> torch.Tensor:
    y, x, outside = on_the_map(y, x, high, wide)
    found = bilinear_read(rows, number.view(-1, 1, 1, 1), y, x, high, wide)
    return found.masked_fill(outside.unsqueeze(-1), 0)


def spread_between(
    grad: torch.Tensor, plane: torch.Tensor, y: torch.Tensor, x: torch.Tensor, planes: int, high: int, wide: int
) -> torch.Tensor:
    """Gradients added up at places of their own planes, of `planes`: [planes * high * wide]. All of one shape."""
    y, x, outside = on_the_map(y, x, high, wide)
    found = grad.new_zeros(planes * high * wide)
    for index, weight in bilinear_corners(y, x, high, wide):
        share = grad * weight.masked_fill(outside, 0)
        found.index_add_(0, (index + plane * (high * wide)).flatten(), share.flatten())
    return found


def roi_means(
    input: torch.Tensor, grids: RoiGrids, argmax: tuple[torch.Tensor, torch.Tensor] | None = None
) -> torch.Tensor:
    """Means of the reads of each bin, [regions, channels, high, wide]; the largest, and where it was read into
    `argmax` (y and x), where that is given.
    """
    channels, high, wide = input.shape[1:]
    rows = pixel_rows(input)
    found = rows.new_zeros(len(grids.counts), channels, grids.high, grids.wide)
    for count, regions in grids.groups(channels):
        y, x = grids.places(count, regions)
        reads = roi_reads(rows, grids.map[regions], y, x, high, wide)
        if argmax is None:
            found[regions] = (reads.sum(3) / max(math.prod(count), 1)).permute(0, 3, 1, 2)
        elif not math.prod(count):
            found[regions], argmax[0][regions], argmax[1][regions] = _LEAST, -1.0, -1.0
        else:
            most = reads.amax(3)
            order = torch.arange(reads.shape[3], device=reads.device)[:, None]
            first = torch.where(reads == most.unsqueeze(3), order, reads.shape[3] - 1).amin(3)
            found[regions] = most.permute(0, 3, 1, 2)
            for buffer, places in zip(argmax, (y, x)):  # noqa: B905
                buffer[regions] = places.gather(3, first).permute(0, 3, 1, 2).to(buffer.dtype)
    return found


def roi_means_gradient(grad: torch.Tensor, grids: RoiGrids, batch: int, high: int, wide: int) -> torch.Tensor:
    """The gradient of the maps, [batch, channels, high, wide], for that of the means."""
    channels = grad.shape[1]
    rows = widened(grad).new_zeros(batch * high * wide, channels)
    for count, regions in grids.groups(channels):
        y, x, outside = on_the_map(*grids.places(count, regions), high, wide)
        share = widened(grad[regions]).permute(0, 2, 3, 1).unsqueeze(3) / max(math.prod(count), 1)
        first = grids.map[regions].view(-1, 1, 1, 1) * (high * wide)
        for index, weight in bilinear_corners(y, x, high, wide):
            weight = weight.masked_fill(outside, 0).unsqueeze(-1)
            rows.index_add_(0, (index + first).flatten(), (share * weight).flatten(0, 3))
    return rows.view(batch, high, wide, channels).permute(0, 3, 1, 2)


@as_compiled
def roi_align_forward(
    input: torch.Tensor, rois: torch.Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    sampling_ratio: int, aligned: bool = False,
) -> torch.Tensor:  # fmt: skip
    """RoIAlign of `input` [batch, channels, height, width]: [regions, channels, pooled_height, pooled_width].

    `rois` [regions, 5] are the number of the map, x1, y1, x2, y2. Means of sampling_ratio ** 2 reads a bin, as many as
    it has pixels where that is 0 or below. `aligned` shifts by half a pixel and leaves small regions as they are.
    """
    grids = roi_grids(rois, pooled_height, pooled_width, spatial_scale, sampling_ratio, aligned)
    return roi_means(input, grids).to(input.dtype)


@as_compiled
def roi_align_backward(
    grad: torch.Tensor, rois: torch.Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    batch_size: int, channels: int, height: int, width: int, sampling_ratio: int, aligned: bool = False,
) -> torch.Tensor:  # fmt: skip
    """The gradient of `roi_align_forward` for its input, [batch_size, channels, height, width]."""
    grids = roi_grids(rois, pooled_height, pooled_width, spatial_scale, sampling_ratio, aligned)
    return roi_means_gradient(grad, grids, batch_size, height, width).to(grad.dtype).contiguous()


@as_compiled
def roi_align_into_forward(
    input: torch.Tensor, rois: torch.Tensor, output: torch.Tensor, argmax_y: torch.Tensor, argmax_x: torch.Tensor,
    aligned_height: int, aligned_width: int, spatial_scale: float, sampling_ratio: int, pool_mode: int, aligned: bool,
) -> None:  # fmt: skip
    """`roi_align_forward` into `output`, as mmcv calls it.

    `pool_mode` 1 are means, 0 the largest read, whose places go into `argmax_y` and `argmax_x` (-1 where none is).
    """
    grids = roi_grids(rois, aligned_height, aligned_width, spatial_scale, sampling_ratio, aligned)
    output.copy_(roi_means(input, grids, (argmax_y, argmax_x) if pool_mode == 0 else None))


@as_compiled
def roi_align_into_backward(
    grad_output: torch.Tensor, rois: torch.Tensor, argmax_y: torch.Tensor, argmax_x: torch.Tensor,
    grad_input: torch.Tensor, aligned_height: int, aligned_width: int, spatial_scale: float, sampling_ratio: int,
    pool_mode: int, aligned: bool,
) -> None:  # fmt: skip
    """The gradient of `roi_align_into_forward`, added to `grad_input`."""
    batch, channels, high, wide = grad_input.shape
    if pool_mode == 1:
        grids = roi_grids(rois, aligned_height, aligned_width, spatial_scale, sampling_ratio, aligned)
        grad_input.add_(roi_means_gradient(grad_output, grids, batch, high, wide).to(grad_input.dtype))
        return
    plane = rois[:, 0].long().view(-1, 1, 1, 1) * channels + torch.arange(channels, device=rois.device).view(-1, 1, 1)
    share = widened(grad_output).masked_fill(argmax_y == -1, 0)
    found = spread_between(share, plane, widened(argmax_y), widened(argmax_x), batch * channels, high, wide)
    grad_input.add_(found.view(grad_input.shape).to(grad_input.dtype))


# --- the largest number of a bin of whole pixels ---------------------------------------------------------------------


def largest_pixels(
    input: torch.Tensor, number: torch.Tensor, rows: tuple[torch.Tensor, torch.Tensor],
    columns: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor, argmax: torch.Tensor | None,
) -> None:  # fmt: skip
    """The largest number of each bin of pixels, into `output` [regions, channels, bins, bins] and its place, row *
    width + column, into `argmax`; 0 and -1 for an empty bin. `rows`, `columns` [regions, bins] are first and end.
    """
    channels, high, wide = input.shape[1:]
    first_y, end_y = (each.nan_to_num(0).clamp(0, high).long() for each in rows)
    first_x, end_x = (each.nan_to_num(0).clamp(0, wide).long() for each in columns)
    regions = number.shape[0]
    if not regions:
        return
    down, along = int((end_y - first_y).amax().clamp(min=1)), int((end_x - first_x).amax().clamp(min=1))
    step = max(1, _ROI_PIECE // (down * along * first_y.shape[1] * first_x.shape[1] * channels))
    pixels = input.permute(0, 2, 3, 1).reshape(-1, channels)
    far = torch.arange(down * along, device=input.device).view(-1, 1)
    for start in range(0, regions, step):
        piece = slice(start, start + step)
        y = first_y[piece, :, None] + torch.arange(down, device=input.device)
        x = first_x[piece, :, None] + torch.arange(along, device=input.device)
        there = (y < end_y[piece, :, None])[:, :, None, :, None] & (x < end_x[piece, :, None])[:, None, :, None, :]
        place = y.clamp(max=high - 1)[:, :, None, :, None] * wide + x.clamp(max=wide - 1)[:, None, :, None, :]
        place, there = place.flatten(3), there.flatten(3)
        index = place + number[piece].view(-1, 1, 1, 1) * (high * wide)
        reads = pixels.index_select(0, index.flatten()).view(*index.shape, channels)
        reads = torch.where(there.unsqueeze(-1), reads, float("-inf"))
        most = reads.amax(3)
        chosen = torch.where(reads == most.unsqueeze(3), far, down * along - 1).amin(3)
        empty = ~there.any(3).unsqueeze(-1)
        output[piece] = torch.where(empty, 0, most).permute(0, 3, 1, 2).to(output.dtype)
        if argmax is not None:
            found = torch.where(empty, -1, place.gather(3, chosen))
            argmax[piece] = found.permute(0, 3, 1, 2).to(argmax.dtype)


def to_pixels(grad: torch.Tensor, number: torch.Tensor, argmax: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Gradients at the places that `argmax` names, [batch, channels, height, width]."""
    _, channels, high, wide = shape
    plane = number.view(-1, 1, 1, 1) * channels + torch.arange(channels, device=grad.device).view(-1, 1, 1)
    share = widened(grad).masked_fill(argmax < 0, 0)
    index = plane * (high * wide) + argmax.clamp(min=0).long()
    return share.new_zeros(math.prod(shape)).index_add_(0, index.flatten(), share.flatten()).view(shape)


def _nearest(value: torch.Tensor) -> torch.Tensor:
    """Whole numbers as round() of C gives them: halves away from 0."""
    return torch.where(value >= 0, (value + 0.5).floor(), (value - 0.5).ceil())


@as_compiled
def roi_pool_forward(
    input: torch.Tensor, rois: torch.Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest numbers of the bins of regions, rounded to pixels, [regions, channels, pooled_height, pooled_width],
    and their places, row * width + column, int32, -1 where a bin has no pixel and the number is 0.

    maskrcnn-benchmark's form; `rois` [regions, 5] are the number of the map, x1, y1, x2, y2, the last pixels included.
    Memory: the pixels of the largest bin for each bin, in pieces.
    """
    output = input.new_zeros(rois.shape[0], input.shape[1], pooled_height, pooled_width)
    argmax = torch.zeros_like(output, dtype=torch.int32)
    left, top, right, bottom = (_nearest(widened(rois[:, place]) * spatial_scale) for place in (1, 2, 3, 4))
    bins = []
    for first, last, count in ((top, bottom, pooled_height), (left, right, pooled_width)):
        size = (last - first + 1).clamp(min=1) / count
        steps = torch.arange(count + 1, device=rois.device) * size[:, None]
        bins.append((steps[:, :-1].floor() + first[:, None], steps[:, 1:].ceil() + first[:, None]))
    largest_pixels(input, rois[:, 0].long(), bins[0], bins[1], output, argmax)
    return output, argmax


@as_compiled
def roi_pool_backward(
    grad: torch.Tensor, input: torch.Tensor, rois: torch.Tensor, argmax: torch.Tensor, spatial_scale: float,
    pooled_height: int, pooled_width: int, batch_size: int, channels: int, height: int, width: int,
) -> torch.Tensor:  # fmt: skip
    """The gradient of `roi_pool_forward` for its input, [batch_size, channels, height, width]."""
    shape = (batch_size, channels, height, width)
    return to_pixels(grad, rois[:, 0].long(), argmax, shape).to(grad.dtype)


@as_compiled
def roi_pool_into_forward(
    input: torch.Tensor, rois: torch.Tensor, output: torch.Tensor, argmax: torch.Tensor, pooled_height: int,
    pooled_width: int, spatial_scale: float,
) -> None:  # fmt: skip
    """mmcv's RoIPool into `output` and `argmax`: regions are not rounded, only their bins; empty ones are left out."""
    given = widened(rois)
    left, top = given[:, 1] * spatial_scale, given[:, 2] * spatial_scale
    width, height = (given[:, 3] + 1) * spatial_scale - left, (given[:, 4] + 1) * spatial_scale - top
    bins = []
    for first, size, count in ((top, height, pooled_height), (left, width, pooled_width)):
        steps = torch.arange(count + 1, device=rois.device) * (size / count)[:, None] + first[:, None]
        bins.append((steps[:, :-1].floor(), steps[:, 1:].ceil()))
    found, places = torch.zeros_like(output), torch.zeros_like(argmax)
    largest_pixels(input, rois[:, 0].long(), bins[0], bins[1], found, places)
    there = ((width > 0) & (height > 0)).view(-1, 1, 1, 1)
    output.copy_(torch.where(there, found, output))
    argmax.copy_(torch.where(there, places, argmax))


@as_compiled
def roi_pool_into_backward(
    grad_output: torch.Tensor, rois: torch.Tensor, argmax: torch.Tensor, grad_input: torch.Tensor, pooled_height: int,
    pooled_width: int, spatial_scale: float,
) -> None:  # fmt: skip
    """The gradient of `roi_pool_into_forward`, added to `grad_input`."""
    grad_input.add_(to_pixels(grad_output, rois[:, 0].long(), argmax, tuple(grad_input.shape)).to(grad_input.dtype))
