"""Attention from pixel to pixel: masks of PSANet, and the criss-cross form of CCNet."""

from __future__ import annotations

import torch

from transplt.helper.kernels.recompute import as_compiled, widened

__all__ = [
    "ca_backward", "ca_forward", "ca_map_backward", "ca_map_forward", "criss_cross_backward", "criss_cross_forward",
    "criss_cross_map_backward", "criss_cross_map_forward", "psamask_backward", "psamask_forward",
]  # fmt: skip


def _mask_places(
    high: int, wide: int, mask_high: int, mask_wide: int, half_high: int, half_wide: int, device: torch.device
) -> torch.Tensor:
    """Which place of the mask of a pixel stands for another pixel, [pixels, others]; mask_high * mask_wide for none."""
    rows, columns = torch.arange(high, device=device), torch.arange(wide, device=device)
    down = rows - rows[:, None] + half_high
    along = columns - columns[:, None] + half_wide
    there = ((down >= 0) & (down < mask_high))[:, None, :, None]
    there = there & ((along >= 0) & (along < mask_wide))[None, :, None, :]
    place = (down * mask_wide)[:, None, :, None] + along[None, :, None, :]
    return torch.where(there, place, mask_high * mask_wide).view(high * wide, high * wide)


@as_compiled
def psamask_forward(
    input: torch.Tensor, output: torch.Tensor, psa_type: int, num_: int, h_feature: int, w_feature: int, h_mask: int,
    w_mask: int, half_h_mask: int, half_w_mask: int,
) -> None:  # fmt: skip
    """Masks around each pixel, `input` [num_, h_mask * w_mask, height, width], spread over the map into `output`.

    `output` [num_, height * width, height, width]; `psa_type` 0 (collect): the channels are the other pixels, 1
    (distribute): the channels are the pixels that the masks belong to. Where no mask reaches, `output` stays.
    """
    place = _mask_places(h_feature, w_feature, h_mask, w_mask, half_h_mask, half_w_mask, input.device).T
    pixels, none = h_feature * w_feature, h_mask * w_mask
    index = place.clamp(max=none - 1).expand(num_, pixels, pixels)
    read = input.reshape(num_, none, pixels).gather(1, index)  # [num_, others, pixels]
    there = (place < none).expand(num_, pixels, pixels)
    if psa_type == 1:
        read, there = read.transpose(1, 2), there.transpose(1, 2)
    before = output.view(num_, pixels, pixels)
    before.copy_(torch.where(there, read, before))


@as_compiled
def psamask_backward(
    grad_output: torch.Tensor, grad_input: torch.Tensor, psa_type: int, num_: int, h_feature: int, w_feature: int,
    h_mask: int, w_mask: int, half_h_mask: int, half_w_mask: int,
) -> None:  # fmt: skip
    """The gradient of `psamask_forward`, into `grad_input`; what no pixel reads of it stays."""
    place = _mask_places(h_feature, w_feature, h_mask, w_mask, half_h_mask, half_w_mask, grad_output.device).T
    pixels, none = h_feature * w_feature, h_mask * w_mask
    given = grad_output.reshape(num_, pixels, pixels)
    given = given.transpose(1, 2) if psa_type == 1 else given
    before = grad_input.view(num_, none, pixels)
    room = torch.cat([before, before[:, :1]], 1)  # one more row takes what belongs to no place
    room.scatter_(1, place.expand(num_, pixels, pixels), given.to(room.dtype))
    before.copy_(room[:, :none])


# --- criss-cross -----------------------------------------------------------------------------------------------------


def _others(height: int, device: torch.device) -> torch.Tensor:
    """For each row the other rows in their order, [rows, rows - 1]."""
    every = torch.arange(height - 1, device=device).expand(height, -1)
    return every + (every >= torch.arange(height, device=device)[:, None]).long()


def _crossed(weight: torch.Tensor, height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights [batch, height + width - 1, height, width] as those along the row, [batch, height, width, others], and
    along the column, [batch, width, height, others], 0 for the pixel itself, which the row has.
    """
    along = weight[:, :width].permute(0, 2, 3, 1)
    given = weight[:, width:].permute(0, 3, 2, 1)
    down = given.new_zeros(weight.shape[0], width, height, height)
    index = _others(height, weight.device).expand(weight.shape[0], width, -1, -1)
    return along, down.scatter(3, index, given)


def _uncrossed(along: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """The two parts of `_crossed` as one tensor again."""
    height = down.shape[2]
    index = _others(height, down.device).expand(*down.shape[:2], -1, -1)
    return torch.cat([along.permute(0, 3, 1, 2), down.gather(3, index).permute(0, 3, 2, 1)], 1)


@as_compiled
def ca_forward(t: torch.Tensor, f: torch.Tensor, weight: torch.Tensor) -> None:
    """Products of each pixel of `t` with those of `f` in its row, then in its column without itself, added to `weight`.

    `t`, `f` [batch, channels, height, width], `weight` [batch, width + height - 1, height, width].
    """
    one, two = widened(t), widened(f)
    along = one.permute(0, 2, 3, 1) @ two.permute(0, 2, 1, 3)
    down = one.permute(0, 3, 2, 1) @ two.permute(0, 3, 1, 2)
    weight.add_(_uncrossed(along, down))


@as_compiled
def ca_backward(dw: torch.Tensor, t: torch.Tensor, f: torch.Tensor, dt: torch.Tensor, df: torch.Tensor) -> None:
    """The gradients of `ca_forward`, added to `dt` and `df`."""
    along, down = _crossed(widened(dw), *t.shape[2:])
    one, two = widened(t), widened(f)
    dt.add_((along @ two.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            + (down @ two.permute(0, 3, 2, 1)).permute(0, 3, 2, 1))  # fmt: skip
    df.add_((along.mT @ one.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            + (down.mT @ one.permute(0, 3, 2, 1)).permute(0, 3, 2, 1))  # fmt: skip


@as_compiled
def ca_map_forward(weight: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    """Sums over the row and the column of each pixel of `g`, weighed as `ca_forward` gives weights, added to `out`."""
    along, down = _crossed(widened(weight), *g.shape[2:])
    value = widened(g)
    out.add_((along @ value.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
             + (down @ value.permute(0, 3, 2, 1)).permute(0, 3, 2, 1))  # fmt: skip


@as_compiled
def ca_map_backward(
    dout: torch.Tensor, weight: torch.Tensor, g: torch.Tensor, dw: torch.Tensor, dg: torch.Tensor
) -> None:
    """The gradients of `ca_map_forward`, added to `dw` and `dg`."""
    ca_forward(dout, g, dw)
    ca_backward(weight, dout, g, torch.zeros_like(g), dg)


@as_compiled
def criss_cross_forward(t: torch.Tensor, f: torch.Tensor) -> torch.Tensor:
    """The products of `ca_forward`, returned, as CCNet calls it."""
    weight = t.new_zeros(t.shape[0], t.shape[2] + t.shape[3] - 1, *t.shape[2:])
    ca_forward(t, f, weight)
    return weight


@as_compiled
def criss_cross_backward(dw: torch.Tensor, t: torch.Tensor, f: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `criss_cross_forward`, returned."""
    found = torch.zeros_like(t), torch.zeros_like(f)
    ca_backward(dw, t, f, *found)
    return found


@as_compiled
def criss_cross_map_forward(weight: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """The sums of `ca_map_forward`, returned, as CCNet calls it."""
    out = torch.zeros_like(g)
    ca_map_forward(weight, g, out)
    return out


@as_compiled
def criss_cross_map_backward(
    dout: torch.Tensor, weight: torch.Tensor, g: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `criss_cross_map_forward`, returned."""
    found = torch.zeros_like(weight), torch.zeros_like(g)
    ca_map_backward(dout, weight, g, *found)
    return found
