"""Features of cameras pooled by cell of a plane seen from above, as in BEVFusion and BEVDet."""

from __future__ import annotations

import torch

__all__ = [
    "bev_pool_backward", "bev_pool_forward", "bev_pool_v2_backward", "bev_pool_v2_backward_opt", "bev_pool_v2_forward",
]  # fmt: skip


def bev_pool_forward(
    x: torch.Tensor, geom_feats: torch.Tensor, interval_lengths: torch.Tensor, interval_starts: torch.Tensor, b: int,
    d: int, h: int, w: int,
) -> torch.Tensor:  # fmt: skip
    """The sums [b, d, h, w, C] of features x [N, C] over the cells geom_feats [N, 4] (h, w, d, b), as in BEVFusion.

    The intervals say which points share a cell, and are not needed.
    """
    cells = bev_cells(geom_feats, d, h, w)
    sums = torch.zeros(b, d, h, w, x.shape[1], dtype=x.dtype, device=x.device)
    sums.view(-1, x.shape[1]).index_add_(0, cells, x)
    return sums


def bev_pool_backward(
    out_grad: torch.Tensor, geom_feats: torch.Tensor, interval_lengths: torch.Tensor, interval_starts: torch.Tensor,
    b: int, d: int, h: int, w: int,
) -> torch.Tensor:  # fmt: skip
    """The gradient [N, C] of the features of `bev_pool_forward`; out_grad: [b, d, h, w, C]."""
    return out_grad.reshape(b * d * h * w, -1)[bev_cells(geom_feats, d, h, w)]


def bev_cells(geom_feats: torch.Tensor, d: int, h: int, w: int) -> torch.Tensor:
    """Flat places int64 [N] in [b, d, h, w] of cells [N, 4] (h, w, d, b)."""
    at_h, at_w, at_d, at_b = geom_feats.long().unbind(-1)
    return ((at_b * d + at_d) * h + at_h) * w + at_w


def bev_pool_v2_forward(
    depth: torch.Tensor, feat: torch.Tensor, out: torch.Tensor, ranks_depth: torch.Tensor, ranks_feat: torch.Tensor,
    ranks_bev: torch.Tensor, interval_lengths: torch.Tensor, interval_starts: torch.Tensor,
) -> None:  # fmt: skip
    """Sums of products of depth and feat [..., C], by their flat ranks [K], into out [..., C] at ranks_bev, as in
    BEVDet; other cells stay.

    The intervals say which ranks_bev are equal, and are not needed. Memory: [K, C].
    """
    channels = feat.shape[-1]
    products = depth.reshape(-1)[ranks_depth.long()][:, None] * feat.reshape(-1, channels)[ranks_feat.long()]
    sums_over(out, channels, ranks_bev, products)


def sums_over(held: torch.Tensor, channels: int, ranks: torch.Tensor, rows: torch.Tensor) -> None:
    """Write sums of rows [K, channels] into a buffer at flat ranks [K] of its rows; other rows stay."""
    at = ranks.long()
    sums = held.clone().reshape(-1, channels).index_fill_(0, at, 0).index_add_(0, at, rows)
    held.copy_(sums.reshape(held.shape))


def bev_pool_v2_backward(
    out_grad: torch.Tensor, depth_grad: torch.Tensor, feat_grad: torch.Tensor, depth: torch.Tensor, feat: torch.Tensor,
    ranks_depth: torch.Tensor, ranks_feat: torch.Tensor, ranks_bev: torch.Tensor, interval_lengths: torch.Tensor,
    interval_starts: torch.Tensor,
) -> None:  # fmt: skip
    """The gradients of `bev_pool_v2_forward` into depth_grad and feat_grad, in the shapes of depth and feat; what no
    rank names stays.
    """
    by_depth, by_feat = bev_pulls(out_grad, depth, feat, ranks_depth, ranks_feat, ranks_bev)
    sums_over(depth_grad, 1, ranks_depth, by_depth[:, None])
    sums_over(feat_grad, feat.shape[-1], ranks_feat, by_feat)


def bev_pool_v2_backward_opt(
    out_grad: torch.Tensor, depth_grad: torch.Tensor, feat_grad: torch.Tensor, depth: torch.Tensor, feat: torch.Tensor,
    ranks_depth: torch.Tensor, ranks_feat: torch.Tensor, ranks_bev: torch.Tensor, interval_lengths: torch.Tensor,
    interval_starts: torch.Tensor,
) -> None:  # fmt: skip
    """As `bev_pool_v2_backward`, but added to what the gradients hold."""
    by_depth, by_feat = bev_pulls(out_grad, depth, feat, ranks_depth, ranks_feat, ranks_bev)
    sums = torch.zeros_like(depth).reshape(-1).index_add_(0, ranks_depth.long(), by_depth)
    depth_grad.add_(sums.reshape(depth_grad.shape))
    more = torch.zeros_like(feat).reshape(-1, feat.shape[-1]).index_add_(0, ranks_feat.long(), by_feat)
    feat_grad.add_(more.reshape(feat_grad.shape))


def bev_pulls(
    out_grad: torch.Tensor, depth: torch.Tensor, feat: torch.Tensor, ranks_depth: torch.Tensor,
    ranks_feat: torch.Tensor, ranks_bev: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """What each product of `bev_pool_v2_forward` gives depth, [K], and feat, [K, C]."""
    channels = feat.shape[-1]
    grad = out_grad.reshape(-1, channels)[ranks_bev.long()]
    by_depth = (grad * feat.reshape(-1, channels)[ranks_feat.long()]).sum(-1)
    return by_depth, grad * depth.reshape(-1)[ranks_depth.long()][:, None]
