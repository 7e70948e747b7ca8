"""Chamfer distance: for each point of two clouds the squared distance to the nearest of the other, and its gradient."""

from __future__ import annotations

import torch

from transplt.helper.kernels.points import point_pieces, squared_distances

__all__ = [
    "chamfer_backward", "chamfer_backward_into", "chamfer_backward_over", "chamfer_distance_backward",
    "chamfer_distance_forward", "chamfer_forward", "chamfer_forward_into",
]  # fmt: skip


def nearest_of(queries: torch.Tensor, points: torch.Tensor, nearest: torch.Tensor, places: torch.Tensor) -> None:
    """Write the squared distance to the nearest of points [B, M, D] and its index, the lower one among equals, for
    queries [B, N, D] into [B, N]; nothing is written where there are no points.
    """
    if points.shape[1] == 0:
        return
    for piece in point_pieces(queries.shape[1], queries.shape[0] * points.shape[1]):
        least, at = squared_distances(queries[:, piece], points).min(-1)
        nearest[:, piece], places[:, piece] = least, at.to(places.dtype)


def add_pull(
    queries: torch.Tensor, points: torch.Tensor, idx: torch.Tensor, grad: torch.Tensor, to_queries: torch.Tensor,
    to_points: torch.Tensor,
) -> None:  # fmt: skip
    """Add the gradients of squared distances from queries [B, N, D] to points [B, M, D] at idx [B, N]."""
    if idx.is_floating_point():
        raise TypeError("idx holds floating-point numbers: the arguments are in another order than known here")
    if points.shape[1] == 0:
        return
    at = idx.long()[..., None].expand(-1, -1, queries.shape[-1])
    pull = 2 * grad[..., None] * (queries - points.gather(1, at))
    to_queries.add_(pull)
    to_points.scatter_add_(1, at, -pull)


def chamfer_distance_forward(
    xyz1: torch.Tensor, xyz2: torch.Tensor, dist1: torch.Tensor, dist2: torch.Tensor, idx1: torch.Tensor,
    idx2: torch.Tensor,
) -> None:  # fmt: skip
    """Squared distances into dist1 [B, N] and dist2 [B, M], the nearest into idx1 and idx2 int32, as in mmcv.

    xyz1: [B, N, D], xyz2: [B, M, D]. Memory: pieces of 64 MiB, where the kernel needs none.
    """
    nearest_of(xyz1, xyz2, dist1, idx1)
    nearest_of(xyz2, xyz1, dist2, idx2)


def chamfer_distance_backward(
    xyz1: torch.Tensor, xyz2: torch.Tensor, idx1: torch.Tensor, idx2: torch.Tensor, graddist1: torch.Tensor,
    graddist2: torch.Tensor, gradxyz1: torch.Tensor, gradxyz2: torch.Tensor,
) -> None:  # fmt: skip
    """Add the gradients of `chamfer_distance_forward` to gradxyz1 [B, N, D] and gradxyz2 [B, M, D], as in mmcv."""
    add_pull(xyz1, xyz2, idx1, graddist1, gradxyz1, gradxyz2)
    add_pull(xyz2, xyz1, idx2, graddist2, gradxyz2, gradxyz1)


def chamfer_forward_into(
    xyz1: torch.Tensor, xyz2: torch.Tensor, dist1: torch.Tensor, dist2: torch.Tensor, idx1: torch.Tensor,
    idx2: torch.Tensor,
) -> int:  # fmt: skip
    """`chamfer_3D.forward` of ChamferDistancePytorch, which gives 1; see `chamfer_distance_forward`.

    Points have 2, 3, 5 or 6 numbers, as there: kernels of that name for 4 differ from one another.
    """
    if xyz1.dim() != 3 or xyz1.shape[-1] not in (2, 3, 5, 6):
        raise ValueError(f"points of shape {list(xyz1.shape)}: the kernel is known for [B, N, 2, 3, 5 or 6]")
    chamfer_distance_forward(xyz1, xyz2, dist1, dist2, idx1, idx2)
    return 1


def chamfer_backward_into(
    xyz1: torch.Tensor, xyz2: torch.Tensor, gradxyz1: torch.Tensor, gradxyz2: torch.Tensor, graddist1: torch.Tensor,
    graddist2: torch.Tensor, idx1: torch.Tensor, idx2: torch.Tensor,
) -> int:  # fmt: skip
    """`chamfer_3D.backward` of ChamferDistancePytorch, which gives 1; see `chamfer_distance_backward`."""
    chamfer_distance_backward(xyz1, xyz2, idx1, idx2, graddist1, graddist2, gradxyz1, gradxyz2)
    return 1


def chamfer_backward_over(
    xyz1: torch.Tensor, xyz2: torch.Tensor, gradxyz1: torch.Tensor, gradxyz2: torch.Tensor, graddist1: torch.Tensor,
    graddist2: torch.Tensor, idx1: torch.Tensor, idx2: torch.Tensor,
) -> None:  # fmt: skip
    """`cd.backward` and `cd.backward_cuda` of pyTorchChamferDistance: as `chamfer_backward_into`, but what the
    gradients held goes.
    """
    gradxyz1.zero_()
    gradxyz2.zero_()
    chamfer_distance_backward(xyz1, xyz2, idx1, idx2, graddist1, graddist2, gradxyz1, gradxyz2)


def chamfer_forward(xyz1: torch.Tensor, xyz2: torch.Tensor) -> list[torch.Tensor]:
    """`chamfer.forward` of GRNet and PoinTr: dist1 [B, N], dist2 [B, M], and int32 indices of the same shapes."""
    dist1, dist2 = xyz1.new_zeros(xyz1.shape[:2]), xyz2.new_zeros(xyz2.shape[:2])
    idx1, idx2 = torch.zeros_like(dist1, dtype=torch.int32), torch.zeros_like(dist2, dtype=torch.int32)
    chamfer_distance_forward(xyz1, xyz2, dist1, dist2, idx1, idx2)
    return [dist1, dist2, idx1, idx2]


def chamfer_backward(
    xyz1: torch.Tensor, xyz2: torch.Tensor, idx1: torch.Tensor, idx2: torch.Tensor, grad_dist1: torch.Tensor,
    grad_dist2: torch.Tensor,
) -> list[torch.Tensor]:  # fmt: skip
    """`chamfer.backward` of GRNet and PoinTr: the gradients of xyz1 [B, N, D] and xyz2 [B, M, D]."""
    grads = [torch.zeros_like(xyz1), torch.zeros_like(xyz2)]
    chamfer_distance_backward(xyz1, xyz2, idx1, idx2, grad_dist1, grad_dist2, *grads)
    return grads
