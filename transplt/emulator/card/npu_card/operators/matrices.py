"""Products of matrices, what solves them, and distances of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import operator, same

same({
    "Dot": torch.dot, "Inverse": torch.linalg.inv, "Slogdet": torch.linalg.slogdet, "Pdist": torch.pdist,
    "TriangularSolve": torch.ops.aten.triangular_solve.default,
})  # fmt: skip


same({
    "Baddbmm": lambda self, one, two, beta, alpha, precision: torch.baddbmm(self, one, two, beta=beta, alpha=alpha),
    "Addbmm": lambda self, one, two, beta, alpha, precision: torch.addbmm(self, one, two, beta=beta, alpha=alpha),
    "LinalgCholesky": lambda self, upper: torch.linalg.cholesky(self, upper=upper),
    "LinalgCross": lambda self, other, dim: torch.linalg.cross(self, other, dim=dim),
    "TransformBiasRescaleQkv": lambda qkv, bias, heads: torch.ops.aten._transform_bias_rescale_qkv(qkv, bias, heads),
    "InplaceAddmm": lambda self, one, two, beta, alpha, precision: self.addmm_(one, two, beta=beta, alpha=alpha),
    # `precision` allows the card fewer bits in its products (cube_math_type); the CPU takes all.
    "Mm BatchMatMul Matmul MatmulWeightNz BatchMatMulWeightNz Mv": lambda self, other, precision: (
        torch.matmul(self, other)
    ),
    "Addmm AddmmWeightNz": lambda self, one, two, beta, alpha, precision: (
        torch.addmm(self, one, two, beta=beta, alpha=alpha)
    ),
    # Here alpha comes first.
    "Addmv": lambda self, matrix, vector, alpha, beta, precision: (
        torch.addmv(self, matrix, vector, beta=beta, alpha=alpha)
    ),
})  # fmt: skip


@operator("LinalgQr")
def _qr(self: Any, mode: int) -> Any:
    q, r = torch.linalg.qr(self, ("reduced", "complete", "r")[mode])
    return (None if mode == 2 else q), r


@operator("Svd")
def _svd(self: Any, full_matrices: bool, compute_uv: bool) -> Any:
    """Singular values come first; the last matrix is not transposed."""
    if not compute_uv:
        return torch.linalg.svdvals(self), None, None
    u, values, vh = torch.linalg.svd(self, full_matrices)
    return values, u, vh.mH


#: How a Euclidean distance is found (CdistKernelNpuOpApi.cpp).
_DISTANCES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@operator("Cdist")
def _cdist(one: Any, two: Any, p: float, mode: int) -> Any:
    return torch.cdist(one, two, p, _DISTANCES[mode])


@operator("CdistBackward")
def _cdist_backward(grad: Any, one: Any, two: Any, distances: Any, p: float) -> Any:
    return torch.ops.aten._cdist_backward(grad.contiguous(), one.contiguous(), two.contiguous(), p, distances)


@operator("TransposeBatchMatMul", "TransposeBatchMatMulWeightNz")
def _transpose_batch_matmul(
    one: Any, two: Any, bias: Any, scale: Any, order_one: Sequence[int], order_two: Sequence[int],
    order_out: Sequence[int], precision: int, split: int,
) -> Any:  # fmt: skip
    if scale is not None or split > 1:
        raise NotImplementedError("aclnnTransposeBatchMatMul with a scale or a split batch is not emulated")
    found = torch.matmul(one.permute(order_one), two.permute(order_two))
    return (found if bias is None else found + bias).permute(order_out)
