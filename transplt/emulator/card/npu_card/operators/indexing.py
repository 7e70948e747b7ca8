"""Numbers chosen and written by their positions; sorting, searching, counting of different ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import operator, same

aten = torch.ops.aten
same({
    "Topk": torch.topk, "MedianDim": torch.median, "NanMedianDim": torch.nanmedian,
    "InplaceMaskedScatter": lambda self, mask, source: self.masked_scatter_(mask.bool(), source),
    "EmbeddingRenorm": lambda self, indices, most, order: torch.embedding_renorm_(self, indices.long(), most, order),
    "ScatterNdUpdate": lambda self, indices, updates: self.index_put_(tuple(indices.long().unbind(-1)), updates),
    "InplaceIndexCopy": lambda self, dim, index, source: self.index_copy_(dim, index.long(), source),
    "InplacePut": lambda self, index, source, accumulate: self.put_(index.long(), source, accumulate),
})  # fmt: skip
#: What a number is scattered with (ScatterKernelNpuOpApi.cpp; ScatterReduceKernelNpuOpApi.cpp has more).
_SCATTER = {0: None, 1: "add", 2: "multiply"}
_SCATTER_REDUCE = {1: "sum", 2: "prod", 3: "amax", 4: "amin", 5: "mean"}
#: unique_consecutive without a dimension (UniqueConsecutiveKernelNpuOpApi.cpp).
_NO_DIM = 1000


def _positions(self: Any, indices: Sequence[Any]) -> list[Any] | None:
    """Indices as PyTorch takes them: where torch_npu has none it passes an empty tensor of the type of what is indexed.
    None where all are empty: then nothing is chosen."""
    if all(each.numel() == 0 for each in indices):
        return None
    whole = self.dtype in (torch.int32, torch.int64)
    found: list[Any] = []
    for each in indices:
        if each.numel() == 0 and each.dim() == 1 and each.dtype == self.dtype:
            found.append(None)
        else:
            found.append(each.long() if each.dtype == torch.int32 else each)
    if not whole and all(each is None for each in found):
        return None
    return found


@operator("Index")
def _index(self: Any, indices: Sequence[Any], outputs: Sequence[Any]) -> Any:
    if not outputs[0].numel():
        return None
    return aten.index.Tensor(self, _positions(self, indices))


@operator("IndexPutImpl")
def _index_put(self: Any, indices: Sequence[Any], values: Any, accumulate: bool, unsafe: bool) -> None:
    positions = _positions(self, indices)
    if positions is not None:
        aten.index_put_(self, positions, values, accumulate)


same({
    "IndexSelect": lambda self, dim, index: torch.index_select(self, dim, index),
    "Gather": lambda self, dim, index: torch.gather(self, dim, index.long()),
    "ScatterAdd": lambda self, dim, index, source: torch.scatter_add(self, dim, index.long(), source),
    "IndexAdd": lambda self, dim, index, source, alpha: torch.index_add(self, dim, index, source, alpha=alpha),
    "IndexAddV2": lambda self, dim, index, source, alpha, mode: torch.index_add(self, dim, index, source, alpha=alpha),
    "IndexCopy": lambda self, dim, index, source: torch.index_copy(self, dim, index.long(), source),
    "IndexFill IndexFillTensor": lambda self, dim, index, value: torch.index_fill(self, dim, _whole(index), value),
    "Take": lambda self, index: torch.take(self, index.long()),
    "Embedding": lambda weight, indices: torch.embedding(weight, indices.long()),
    "Sort": lambda self, stable, dim, descending: torch.sort(self, dim=dim, descending=descending, stable=stable),
    "TopkV2": lambda self, k, dim, largest, ordered, stable: torch.topk(self, k, dim, largest, ordered),
    "Bucketize": lambda self, boundaries, out_int32, right: torch.bucketize(self, boundaries, right=right),
    "InplaceIndexFill InplaceIndexFillTensor": lambda self, dim, index, value: (
        self.index_fill_(dim, _whole(index), value)
    ),
    "EmbeddingDenseBackward": lambda grad, indices, count, padding, scale: (
        aten.embedding_dense_backward(grad, indices.long(), count, padding, scale)
    ),
    "SearchSorted SearchSorteds": lambda ordered, self, out_int32, right, sorter: (
        torch.searchsorted(ordered, self, right=right, sorter=sorter)
    ),
})  # fmt: skip


@operator("GatherV3")
def _gather_slices(self: Any, dim: int, index: Any, batch_dims: int, mode: int) -> Any:
    """As gather of TensorFlow: the slices at any number of positions."""
    if batch_dims:
        raise NotImplementedError("aclnnGatherV3 with batch dimensions is not emulated")
    found = torch.index_select(self, dim, index.reshape(-1))
    return found.unflatten(dim, index.shape) if index.dim() else found.squeeze(dim)


@operator("Scatter", "ScatterValue")
def _scatter(self: Any, dim: int, index: Any, source: Any, how: int) -> Any:
    found = self.clone()
    _scatter_in_place(found, dim, index, source, how)
    return found


@operator("InplaceScatter", "InplaceScatterValue")
def _scatter_in_place(self: Any, dim: int, index: Any, source: Any, how: int) -> None:
    with_what = {"reduce": _SCATTER[how]} if how else {}
    self.scatter_(dim, index.long(), source, **with_what)


@operator("ScatterReduce")
def _scatter_reduce(self: Any, dim: int, index: Any, source: Any, how: int, include_self: bool) -> Any:
    if not how:
        return torch.scatter(self, dim, index.long(), source)
    return torch.scatter_reduce(self, dim, index.long(), source, _SCATTER_REDUCE[how], include_self=include_self)


@operator("InplaceScatterReduce")
def _scatter_reduce_in_place(self: Any, dim: int, index: Any, source: Any, how: int, include_self: bool) -> None:
    self.copy_(_scatter_reduce(self, dim, index, source, how, include_self))


@operator("InplaceScatterUpdate")
def _scatter_update(self: Any, indices: Any, updates: Any, axis: int) -> None:
    """Each of the first dimension of `updates` goes to where its index says along `axis`."""
    if indices.dim() != 1:
        raise NotImplementedError("aclnnInplaceScatterUpdate with indices of two dimensions is not emulated")
    for part, at, update in zip(self, indices.tolist(), updates, strict=False):
        along = axis % self.dim() - 1
        part.narrow(along, at, update.shape[along]).copy_(update)


@operator("ScatterList")
def _scatter_list(
    tensors: Sequence[Any], indices: Any, updates: Any, mask: Any, reduce: str | None, axis: int
) -> None:
    """Update i goes into tensor i, to position i along `axis`; a mask of 0 leaves that tensor alone."""
    if indices.dim() != 1:
        raise NotImplementedError("aclnnScatterList with indices of two dimensions is not emulated")
    for number, (tensor, update) in enumerate(zip(tensors, updates, strict=True)):
        if mask is not None and not mask[number]:
            continue
        tensor.narrow(axis, int(indices[number]), update.shape[axis]).copy_(update)


def _whole(index: Any) -> Any:
    """Positions that came as a tensor of any whole type, or as a list."""
    return index.long() if isinstance(index, torch.Tensor) else torch.tensor(index, dtype=torch.int64, device="cpu")


@operator("EmbeddingBag")
def _embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale: bool, mode: int, sparse: bool, weights: Any, last: bool,
    padding: int, outputs: Sequence[Any],
) -> Any:  # fmt: skip
    """The kernel of the CPU leaves empty what its own backward does not need."""
    found = aten._embedding_bag(weight, indices, offsets, scale, mode, sparse, weights, last, padding)
    return tuple(
        value if value.numel() == out.numel() else None for value, out in zip(found, outputs, strict=True)
    )  # fmt: skip


@operator("ApplyTopKTopP")
def _keep_top(logits: Any, p: Any, k: Any) -> Any:
    """Logits under the k largest of their row, and those of the smallest probabilities that make up 1 - p, become -inf
    (aclnnApplyTopKTopP); the largest stays."""
    ordered, places = torch.sort(logits.float(), dim=-1, stable=True)
    if k is not None:
        least = ordered.gather(-1, (ordered.shape[-1] - k.long()).unsqueeze(-1))
        ordered = ordered.masked_fill(ordered < least, -torch.inf)
    if p is not None:
        below = ordered.softmax(-1).cumsum(-1) <= 1 - p.float().unsqueeze(-1)
        below[..., -1] = False
        ordered = ordered.masked_fill(below, -torch.inf)
    return torch.empty_like(ordered).scatter_(-1, places, ordered)


@operator("Nonzero", sized=True)
def _nonzero(self: Any) -> Any:
    return torch.nonzero(self)


@operator("NonzeroV2", sized=True)
def _nonzero_by_dimension(self: Any) -> Any:
    return torch.nonzero(self).t()


@operator("MaskedSelect", sized=True)
def _masked_select(self: Any, mask: Any) -> Any:
    return torch.masked_select(self, mask.bool())


@operator("Unique", sized=True)
def _unique(self: Any, ordered: bool, inverse: bool) -> Any:
    values, places = torch.unique(self, sorted=True, return_inverse=True)
    return values, places if inverse else None


@operator("Unique2", sized=True)
def _unique_with_counts(self: Any, ordered: bool, inverse: bool, counts: bool) -> Any:
    """The values come sorted whether that is asked or not; nothing else has room for what is not asked."""
    values, places, found = torch.unique(self, sorted=True, return_inverse=True, return_counts=True)
    return values, places if inverse else None, found if counts else None


@operator("UniqueDim", sized=True)
def _unique_along(self: Any, ordered: bool, inverse: bool, dim: int) -> Any:
    return torch.unique(self, sorted=True, return_inverse=True, return_counts=True, dim=dim)


@operator("UniqueConsecutive", sized=True)
def _unique_consecutive(self: Any, inverse: bool, counts: bool, dim: int) -> Any:
    values, places, found = torch.unique_consecutive(
        self, return_inverse=True, return_counts=True, dim=None if dim == _NO_DIM else dim
    )
    return values, places if inverse else None, found if counts else None


@operator("CoalesceSparse")
def _coalesce(unique: Any, groups: Any, indices: Any, values: Any) -> Any:
    """Values of the same place in a sparse tensor become one: `groups` says which place each belongs to."""
    places = torch.empty((unique.shape[0], indices.shape[1]), dtype=indices.dtype, device="cpu")
    places.index_copy_(0, groups.long(), indices)
    sums = torch.zeros((unique.shape[0], *values.shape[1:]), dtype=values.dtype, device="cpu")
    return places, sums.index_add_(0, groups.long(), values)
