"""Tensors made, copied, filled, moved about and put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import operator, same

same({
    "InplaceCopy": torch.Tensor.copy_, "InplaceFillScalar": torch.Tensor.fill_, "InplaceZero": torch.Tensor.zero_,
    "Cat": torch.cat, "Stack": torch.stack, "ChunkCat": torch.ops.aten._chunk_cat.default, "Complex": torch.complex,
    "ConstantPadNd": torch.constant_pad_nd,
})  # fmt: skip


same({
    # The output has the type already.
    "Cast": lambda self, dtype: self,
    "Range": lambda start, end, step, outputs: torch.arange(outputs[0].numel(), device="cpu") * step + start,
    "Eye": lambda rows, columns, outputs: torch.eye(rows, columns, dtype=outputs[0].dtype, device="cpu"),
    "SplitWithSize": lambda self, sizes, dim: list(torch.split(self, list(sizes), dim)),
    "RepeatInterleave": lambda self, repeats, size: torch.repeat_interleave(self, repeats.long()),
    "RepeatInterleaveWithDim": lambda self, repeats, dim, size: torch.repeat_interleave(self, repeats.long(), dim),
    "RepeatInterleaveInt": lambda self, repeats, size: torch.repeat_interleave(self, repeats),
    "RepeatInterleaveIntWithDim": lambda self, repeats, dim, size: torch.repeat_interleave(self, repeats, dim),
    "RepeatInterleaveTensor": lambda repeats, size: torch.repeat_interleave(repeats.long()),
    "UnfoldGrad": lambda grad, sizes, dim, size, step: torch.ops.aten.unfold_backward(grad, sizes, dim, size, step),
    # A private format of the card holds the same numbers; here they keep their order.
    "NpuFormatCast": lambda source: source,
    "InplaceFillTensor": lambda self, value: self.copy_(value.reshape(())),
    "InplaceOne": lambda self: self.fill_(1),
    "Linspace": lambda start, end, steps, outputs: (
        torch.linspace(start, end, steps, dtype=outputs[0].dtype, device="cpu")
    ),
    "LogSpace": lambda start, end, steps, base, outputs: (
        torch.logspace(start, end, steps, base, dtype=outputs[0].dtype, device="cpu")
    ),
    "ConfusionTranspose": lambda self, order, shape, transpose_first: (
        self.permute(order).reshape(shape) if transpose_first else self.reshape(shape).permute(order)
    ),
})  # fmt: skip


@operator("Arange")
def _arange(start: Any, end: Any, step: Any, outputs: Sequence[Any]) -> Any:
    """torch_npu has counted the numbers; so many are made, of the type of the output."""
    (out,) = outputs
    return torch.arange(start, end, step, dtype=out.dtype, device="cpu")[: out.numel()]


@operator("OneHot")
def _one_hot(self: Any, classes: int, on: Any, off: Any, axis: int) -> Any:
    """Numbers outside of the classes are cold everywhere, as documented for the operator."""
    found = self.unsqueeze(-1) == torch.arange(classes, device="cpu")
    return torch.where(found, on.reshape(()), off.reshape(())).movedim(-1, axis)


@operator("StridedSlice")
def _strided_slice(
    self: Any, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], begin_mask: int, end_mask: int,
    ellipsis_mask: int, new_axis_mask: int, shrink_axis_mask: int,
) -> Any:  # fmt: skip
    """Slices as of TensorFlow: bit i of a mask is about position i of the lists."""
    if ellipsis_mask or new_axis_mask:
        raise NotImplementedError("slices with an ellipsis or a new axis are not emulated")
    part = self
    for axis, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        size = self.shape[axis]
        if shrink_axis_mask >> axis & 1:
            chosen = [first % size]
        else:
            first_given = None if begin_mask >> axis & 1 else first
            last_given = None if end_mask >> axis & 1 else last
            chosen = list(range(size))[slice(first_given, last_given, step)]
        part = part.index_select(axis, torch.tensor(chosen, dtype=torch.int64, device="cpu"))
    return part


@operator("RepeatInterleaveGrad")
def _repeat_interleave_grad(grad: Any, repeats: Any, axis: int, outputs: Sequence[Any]) -> Any:
    source = torch.repeat_interleave(repeats.reshape(-1).long())
    if repeats.numel() == 1:
        size = outputs[0].shape[axis]
        source = torch.arange(size, device="cpu").repeat_interleave(grad.shape[axis] // max(size, 1))
    found = torch.zeros(outputs[0].shape, dtype=grad.dtype, device="cpu")
    return found.index_add(axis, source, grad)
