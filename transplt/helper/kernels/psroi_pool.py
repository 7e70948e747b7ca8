"""Regions whose bins read channels of their own, and move: deformable position-sensitive pooling of DCNv2."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from transplt.helper.kernels.recompute import as_compiled, widened

__all__ = [
    "dcn_v2_psroi_pooling_backward", "dcn_v2_psroi_pooling_forward", "deform_psroi_pooling_cuda_backward",
    "deform_psroi_pooling_cuda_forward",
]  # fmt: skip

#: So many numbers of regions are read at once (float32: 64 MB for each corner).
_PSROI_PIECE = 2**24


class _PsroiBins:
    """Where some regions are read, [regions, output_dim, bins, bins, reads]: `plane` is map and channel, `y` and `x`
    the place within the map, `there` whether it counts; and `part`, `width`, `height`, how offsets move them.
    """

    def __init__(
        self, shape: torch.Size, rois: torch.Tensor, trans: torch.Tensor, no_trans: bool, scale: float,
        output_dim: int, group_size: int, pooled_size: int, part_size: int, sample_per_part: int, trans_std: float,
    ) -> None:  # fmt: skip
        channels, high, wide = shape[1:]
        given = widened(rois)
        whole = torch.where(given >= 0, (given + 0.5).floor(), (given - 0.5).ceil())  # as round() of C
        left, top = whole[:, 1] * scale - 0.5, whole[:, 2] * scale - 0.5
        self.width = ((whole[:, 3] + 1) * scale - 0.5 - left).clamp(min=0.1)
        self.height = ((whole[:, 4] + 1) * scale - 0.5 - top).clamp(min=0.1)
        bins = torch.arange(pooled_size, device=rois.device)
        part = (bins / pooled_size * part_size).floor().long()
        self.part = part[:, None] * part_size + part
        kinds = 1 if no_trans else trans.shape[1] // 2
        self.kind = torch.arange(output_dim, device=rois.device) // (output_dim // kinds)
        x = bins * (self.width / pooled_size)[:, None] + left[:, None]
        y = bins * (self.height / pooled_size)[:, None] + top[:, None]
        x = x[:, None, None, :].expand(-1, output_dim, pooled_size, -1)
        y = y[:, None, :, None].expand(-1, output_dim, -1, pooled_size)
        if not no_trans:
            moved = widened(trans).flatten(2).unflatten(1, (kinds, 2))[:, self.kind][..., self.part] * trans_std
            x = x + moved[:, :, 0] * self.width[:, None, None, None]
            y = y + moved[:, :, 1] * self.height[:, None, None, None]
        step = torch.arange(sample_per_part, device=rois.device)
        x = x[..., None, None] + step * (self.width / pooled_size / sample_per_part).view(-1, 1, 1, 1, 1, 1)
        y = y[..., None, None] + step[:, None] * (self.height / pooled_size / sample_per_part).view(-1, 1, 1, 1, 1, 1)
        x, y = torch.broadcast_tensors(x, y)
        x, y = x.flatten(4), y.flatten(4)
        self.there = (x >= -0.5) & (x <= wide - 0.5) & (y >= -0.5) & (y <= high - 0.5)
        self.x = torch.where(self.there, x.clamp(0, wide - 1), 0)
        self.y = torch.where(self.there, y.clamp(0, high - 1), 0)
        group = (bins * group_size / pooled_size).floor().long().clamp(0, group_size - 1)
        own = torch.arange(output_dim, device=rois.device).view(-1, 1, 1) * group_size
        channel = (own + group[:, None]) * group_size + group
        self.plane = (given[:, 0].long().view(-1, 1, 1, 1) * channels + channel).unsqueeze(4)

    def corners(self, high: int, wide: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]]:
        """The four pixels of each read: number, weight, and the derivatives of that by x and by y."""
        left, top = self.x.floor(), self.y.floor()
        right, bottom = self.x.ceil(), self.y.ceil()
        a, b = self.x - left, self.y - top
        for row, part, grow_y in ((top, 1 - b, -1), (bottom, b, 1)):
            for column, other, grow_x in ((left, 1 - a, -1), (right, a, 1)):
                index = self.plane * (high * wide) + row.long() * wide + column.long()
                yield index, part * other, grow_x * part, grow_y * other


def _psroi_pieces(rois: torch.Tensor, output_dim: int, pooled_size: int, sample_per_part: int) -> Iterator[slice]:
    each = output_dim * pooled_size * pooled_size * sample_per_part * sample_per_part
    step = max(1, _PSROI_PIECE // each)
    return (slice(start, start + step) for start in range(0, rois.shape[0], step))


@as_compiled
def dcn_v2_psroi_pooling_forward(
    input: torch.Tensor, bbox: torch.Tensor, trans: torch.Tensor, no_trans: bool, spatial_scale: float,
    output_dim: int, group_size: int, pooled_size: int, part_size: int, sample_per_part: int, trans_std: float,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Means of the reads of the bins of regions, and their number, [regions, output_dim, pooled_size, pooled_size].

    `input` [batch, output_dim * group_size ** 2, height, width], `bbox` [regions, 5] the number of the map, x1, y1, x2,
    y2, `trans` [regions, 2 * kinds, part_size, part_size] (x, y) how far bins move, in regions, times `trans_std`.
    """
    high, wide = input.shape[2:]
    output = input.new_zeros(bbox.shape[0], output_dim, pooled_size, pooled_size)
    count, flat = torch.zeros_like(output), widened(input).reshape(-1)
    for piece in _psroi_pieces(bbox, output_dim, pooled_size, sample_per_part):
        moved = trans if no_trans else trans[piece]
        bins = _PsroiBins(input.shape, bbox[piece], moved, bool(no_trans), spatial_scale, output_dim, group_size,
                     pooled_size, part_size, sample_per_part, trans_std)  # fmt: skip
        total = torch.zeros((), dtype=flat.dtype, device=flat.device)
        for index, weight, _, _ in bins.corners(high, wide):
            total = total + (flat[index] * weight).masked_fill(~bins.there, 0).sum(4)
        number = bins.there.sum(4)
        output[piece] = (total / number.clamp(min=1)).to(output.dtype)
        count[piece] = number.to(count.dtype)
    return output, count


@as_compiled
def dcn_v2_psroi_pooling_backward(
    out_grad: torch.Tensor, input: torch.Tensor, bbox: torch.Tensor, trans: torch.Tensor, top_count: torch.Tensor,
    no_trans: bool, spatial_scale: float, output_dim: int, group_size: int, pooled_size: int, part_size: int,
    sample_per_part: int, trans_std: float,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of `dcn_v2_psroi_pooling_forward`: of `input` and of `trans`."""
    high, wide = input.shape[2:]
    flat = widened(input).reshape(-1)
    to_input, to_trans = torch.zeros_like(flat), torch.zeros_like(widened(trans))
    for piece in _psroi_pieces(bbox, output_dim, pooled_size, sample_per_part):
        moved = trans if no_trans else trans[piece]
        bins = _PsroiBins(input.shape, bbox[piece], moved, bool(no_trans), spatial_scale, output_dim, group_size,
                     pooled_size, part_size, sample_per_part, trans_std)  # fmt: skip
        share = (widened(out_grad[piece]) / widened(top_count[piece]).clamp(min=1)).unsqueeze(4)
        share = share.masked_fill(~bins.there, 0)
        to_x = to_y = torch.zeros((), dtype=flat.dtype, device=flat.device)
        for index, weight, by_x, by_y in bins.corners(high, wide):
            to_input.index_add_(0, index.flatten(), (share * weight).flatten())
            value = flat[index] * share
            to_x, to_y = to_x + (value * by_x).sum(4), to_y + (value * by_y).sum(4)
        if not no_trans:
            slopes = torch.stack([to_x * bins.width.view(-1, 1, 1, 1), to_y * bins.height.view(-1, 1, 1, 1)], 2)
            parts = to_trans.shape[2] * to_trans.shape[3]
            spread = slopes.new_zeros(slopes.shape[0], output_dim, 2, parts)
            place = bins.part.flatten().expand(*spread.shape[:3], -1)
            spread.scatter_add_(3, place, slopes.flatten(3) * trans_std)
            kinds = spread.new_zeros(slopes.shape[0], trans.shape[1] // 2, 2, parts).index_add_(1, bins.kind, spread)
            to_trans[piece] = kinds.view(to_trans[piece].shape)
    return to_input.view(input.shape).to(input.dtype), to_trans.to(trans.dtype)


@as_compiled
def deform_psroi_pooling_cuda_forward(
    input: torch.Tensor, bbox: torch.Tensor, trans: torch.Tensor, out: torch.Tensor, top_count: torch.Tensor,
    no_trans: bool, spatial_scale: float, output_dim: int, group_size: int, pooled_size: int, part_size: int,
    sample_per_part: int, trans_std: float,
) -> None:  # fmt: skip
    """`dcn_v2_psroi_pooling_forward` into `out` and `top_count`, as mmdetection 1 calls it."""
    found = dcn_v2_psroi_pooling_forward(input, bbox, trans, no_trans, spatial_scale, output_dim, group_size,
                                         pooled_size, part_size, sample_per_part, trans_std)  # fmt: skip
    out.copy_(found[0])
    top_count.copy_(found[1])


@as_compiled
def deform_psroi_pooling_cuda_backward(
    out_grad: torch.Tensor, input: torch.Tensor, bbox: torch.Tensor, trans: torch.Tensor, top_count: torch.Tensor,
    input_grad: torch.Tensor, trans_grad: torch.Tensor, no_trans: bool, spatial_scale: float, output_dim: int,
    group_size: int, pooled_size: int, part_size: int, sample_per_part: int, trans_std: float,
) -> None:  # fmt: skip
    """The gradients of `deform_psroi_pooling_cuda_forward`, added to `input_grad` and `trans_grad`."""
    found = dcn_v2_psroi_pooling_backward(out_grad, input, bbox, trans, top_count, no_trans, spatial_scale, output_dim,
                                          group_size, pooled_size, part_size, sample_per_part, trans_std)  # fmt: skip
    input_grad.add_(found[0])
    if not no_trans:
        trans_grad.add_(found[1])
