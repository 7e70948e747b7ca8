"""Many numbers into fewer: sums, extremes, norms, statistics, counts; and running ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import operator, same

same({
    "Max": torch.max, "Min": torch.min, "MaxDim": torch.max, "MinDim": torch.min, "AminmaxAll": torch.aminmax,
    "ArgMax": torch.argmax, "ArgMin": torch.argmin, "Cummax": torch.cummax, "Cummin": torch.cummin,
    "All": torch.ops.aten.all.dims, "Any": torch.ops.aten.any.dims, "LogSumExp": torch.logsumexp,
    "Kthvalue": torch.kthvalue, "Bincount": torch.bincount, "Renorm": torch.renorm,
    "InplaceRenorm": torch.Tensor.renorm_,
})  # fmt: skip


@operator("ReduceSum")
def _sum(self: Any, dims: Sequence[int], keepdim: bool, dtype: Any) -> Any:
    return torch.sum(self, dims, keepdim, dtype=dtype)


@operator("ReduceNansum")
def _nansum(self: Any, dims: Sequence[int], keepdim: bool, dtype: Any) -> Any:
    return torch.nansum(self, dims, keepdim, dtype=dtype)


@operator("Mean", "MeanV2")
def _mean(self: Any, dims: Sequence[int], keepdim: bool, dtype: Any) -> Any:
    return torch.mean(self, dims, keepdim, dtype=dtype)


@operator("Prod")
def _prod(self: Any, dtype: Any) -> Any:
    return torch.prod(self, dtype=dtype)


@operator("ProdDim")
def _prod_along(self: Any, dim: int, keepdim: bool, dtype: Any) -> Any:
    return torch.prod(self, dim, keepdim, dtype=dtype)


@operator("Cumsum")
def _cumsum(self: Any, dim: int, dtype: Any) -> Any:
    return torch.cumsum(self, dim, dtype=dtype)


@operator("Cumprod")
def _cumprod(self: Any, dim: Any, dtype: Any) -> Any:
    return torch.cumprod(self, int(dim), dtype=dtype)


@operator("Aminmax")
def _aminmax(self: Any, dims: Sequence[int], keepdim: bool) -> Any:
    return torch.amin(self, dims, keepdim), torch.amax(self, dims, keepdim)


@operator("AminmaxDim")
def _aminmax_along(self: Any, dim: int, keepdim: bool) -> Any:
    return torch.aminmax(self, dim=dim, keepdim=keepdim)


@operator("Norm")
def _norm(self: Any, order: Any, dims: Sequence[int], keepdim: bool) -> Any:
    """No dimensions are all of them, here and below."""
    return torch.linalg.vector_norm(self, order, dims or None, keepdim)


@operator("LinalgVectorNorm")
def _vector_norm(self: Any, order: Any, dims: Sequence[int], keepdim: bool, dtype: Any) -> Any:
    return torch.linalg.vector_norm(self, order, dims or None, keepdim, dtype=dtype)


@operator("Std")
def _std(self: Any, dims: Sequence[int], correction: int, keepdim: bool) -> Any:
    return torch.std(self, dims or None, correction=correction, keepdim=keepdim)


@operator("VarCorrection")
def _var(self: Any, dims: Sequence[int], correction: int, keepdim: bool) -> Any:
    return torch.var(self, dims or None, correction=correction, keepdim=keepdim)


@operator("StdMeanCorrection")
def _std_mean(self: Any, dims: Sequence[int], correction: int, keepdim: bool) -> Any:
    return torch.std_mean(self, dims or None, correction=correction, keepdim=keepdim)


@operator("VarMean")
def _var_mean(self: Any, dims: Sequence[int], correction: int, keepdim: bool) -> Any:
    return torch.var_mean(self, dims or None, correction=correction, keepdim=keepdim)


@operator("Histc")
def _histc(self: Any, bins: int, low: Any, high: Any) -> Any:
    """The card counts whole numbers, too."""
    return torch.histc(self if self.is_floating_point() else self.float(), bins, low, high)
