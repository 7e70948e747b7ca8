"""Features of neighbours weighted by scores, as PAConv does it, and their gradients."""

from __future__ import annotations

import torch

from transplt.helper.kernels.points import point_pieces

__all__ = ["assign_score_withk_backward", "assign_score_withk_forward"]


def neighbours_less_center(
    points: torch.Tensor, centers: torch.Tensor, knn_idx: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """points less centers [B, N0, M, O] at knn_idx [B, N1, K], of which the first of each row is the center: [B, N1, K,
    M, O], 0 where an index lies outside; the indices within bounds, the centers' [B, N1, 1], and which count.
    """
    inside = (knn_idx >= 0) & (knn_idx < points.shape[1])
    at = knn_idx.long().clamp(0, max(0, points.shape[1] - 1))
    first = at[..., :1]
    batch = torch.arange(len(points), device=points.device)[:, None, None]
    gone = points[batch, at] - centers[batch, first]
    return torch.where(inside[..., None, None], gone, torch.zeros_like(gone)), at, first, inside


def assign_score_withk_forward(
    points: torch.Tensor, centers: torch.Tensor, scores: torch.Tensor, knn_idx: torch.Tensor, output: torch.Tensor,
    B: int, N0: int, N1: int, M: int, K: int, O: int, aggregate: int,
) -> None:  # fmt: skip
    """Add sums over M of (points at a neighbour - centers at the center) * scores to output [B, O, N1, K], as in mmcv.

    points, centers: [B, N0, M, O]; scores: [B, N1, K, M]; knn_idx: [B, N1, K], the center first. `aggregate` is not
    read, as there. In pieces of at most 2 ** 24 differences, which the kernel does not hold.
    """
    for piece in point_pieces(N1, B * K * M * O):
        gone = neighbours_less_center(points, centers, knn_idx[:, piece])[0]
        output[:, :, piece] += (gone * scores[:, piece, ..., None]).sum(3).permute(0, 3, 1, 2)


def assign_score_withk_backward(
    grad_out: torch.Tensor, points: torch.Tensor, centers: torch.Tensor, scores: torch.Tensor, knn_idx: torch.Tensor,
    grad_points: torch.Tensor, grad_centers: torch.Tensor, grad_scores: torch.Tensor, B: int, N0: int, N1: int, M: int,
    K: int, O: int, aggregate: int,
) -> None:  # fmt: skip
    """Add the gradients of `assign_score_withk_forward` to those of points, centers and scores, in their shapes."""
    sums, more = torch.zeros_like(points).flatten(0, 1), torch.zeros_like(centers).flatten(0, 1)
    batch = torch.arange(B, device=points.device)[:, None, None] * N0
    for piece in point_pieces(N1, B * K * M * O):
        gone, at, first, inside = neighbours_less_center(points, centers, knn_idx[:, piece])
        grad = grad_out[:, :, piece].permute(0, 2, 3, 1)[..., None, :]
        grad_scores[:, piece] += (gone * grad).sum(-1)
        pulls = torch.where(inside[..., None, None], scores[:, piece, ..., None] * grad, torch.zeros_like(gone))
        sums.index_add_(0, (at + batch).reshape(-1), pulls.flatten(0, 2))
        more.index_add_(0, (first + batch).reshape(-1), pulls.sum(2).flatten(0, 1))
    grad_points.add_(sums.view_as(points))
    grad_centers.sub_(more.view_as(centers))
