"""Many numbers into fewer: sums, extremes, norms, statistics, counts; and running ones."""

from __future__ import annotations

import torch

from . import same

same({
    "Max": torch.max, "Min": torch.min, "MaxDim": torch.max, "MinDim": torch.min, "AminmaxAll": torch.aminmax,
    "ArgMax": torch.argmax, "ArgMin": torch.argmin, "Cummax": torch.cummax, "Cummin": torch.cummin,
    "All": torch.ops.aten.all.dims, "Any": torch.ops.aten.any.dims, "LogSumExp": torch.logsumexp,
    "Kthvalue": torch.kthvalue, "Bincount": torch.bincount, "Renorm": torch.renorm,
    "InplaceRenorm": torch.Tensor.renorm_,
})  # fmt: skip


same({
    "ReduceSum": lambda self, dims, keepdim, dtype: torch.sum(self, dims, keepdim, dtype=dtype),
    "ReduceNansum": lambda self, dims, keepdim, dtype: torch.nansum(self, dims, keepdim, dtype=dtype),
    "Mean MeanV2": lambda self, dims, keepdim, dtype: torch.mean(self, dims, keepdim, dtype=dtype),
    "Prod": lambda self, dtype: torch.prod(self, dtype=dtype),
    "ProdDim": lambda self, dim, keepdim, dtype: torch.prod(self, dim, keepdim, dtype=dtype),
    "Cumsum": lambda self, dim, dtype: torch.cumsum(self, dim, dtype=dtype),
    "Cumprod": lambda self, dim, dtype: torch.cumprod(self, int(dim), dtype=dtype),
    "Aminmax": lambda self, dims, keepdim: (torch.amin(self, dims, keepdim), torch.amax(self, dims, keepdim)),
    "AminmaxDim": lambda self, dim, keepdim: torch.aminmax(self, dim=dim, keepdim=keepdim),
    # No dimensions are all of them, here and below.
    "Norm": lambda self, order, dims, keepdim: torch.linalg.vector_norm(self, order, dims or None, keepdim),
    "LinalgVectorNorm": lambda self, order, dims, keepdim, dtype: (
        torch.linalg.vector_norm(self, order, dims or None, keepdim, dtype=dtype)
    ),
    "Std": lambda self, dims, correction, keepdim: (
        torch.std(self, dims or None, correction=correction, keepdim=keepdim)
    ),
    "VarCorrection": lambda self, dims, correction, keepdim: (
        torch.var(self, dims or None, correction=correction, keepdim=keepdim)
    ),
    "StdMeanCorrection": lambda self, dims, correction, keepdim: (
        torch.std_mean(self, dims or None, correction=correction, keepdim=keepdim)
    ),
    "VarMean": lambda self, dims, correction, keepdim: (
        torch.var_mean(self, dims or None, correction=correction, keepdim=keepdim)
    ),
    # The card counts whole numbers, too.
    "Histc": lambda self, bins, low, high: (
        torch.histc(self if self.is_floating_point() else self.float(), bins, low, high)
    ),
})  # fmt: skip
