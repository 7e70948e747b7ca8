"""xformers' memory_efficient_attention and its masks.

Source of arguments and results: ops/fmha/__init__.py and attn_bias.py of xformers (facebookresearch/xformers@29163217).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch

from transplt.helper.attention_core import Sight, attend
from transplt.helper.attention_varlen import attend_in_blocks

__all__ = [
    "AttentionBias",
    "BlockDiagonalCausalFromBottomRightMask",
    "BlockDiagonalCausalMask",
    "BlockDiagonalMask",
    "LocalAttentionFromBottomRightMask",
    "LowerTriangularFromBottomRightLocalAttentionMask",
    "LowerTriangularFromBottomRightMask",
    "LowerTriangularMask",
    "LowerTriangularMaskWithTensorBias",
    "memory_efficient_attention",
]


class AttentionBias:
    """What `attn_bias` may be beside a tensor."""

    #: Added to the scores, (batch, heads, queries, keys).
    _bias: Any = None

    def to(self, device: Any) -> Any:
        """Itself: masks hold nothing that lies on a device."""
        return self

    def sight(self, scale: float) -> Sight:
        """Which keys a query sees."""
        raise NotImplementedError(f"{type(self).__name__} says nothing of keys")


class LowerTriangularMask(AttentionBias):
    """xformers.ops.LowerTriangularMask: a query sees the keys up to its own place, from the top left corner."""

    def __init__(self, device: Any = None) -> None:
        pass

    def sight(self, scale: float) -> Sight:
        return Sight(scale, right=0, bias=self._bias, top_left=True)

    def add_bias(self, bias: torch.Tensor) -> LowerTriangularMaskWithTensorBias:
        """The same with something that is added to the scores."""
        return LowerTriangularMaskWithTensorBias(bias)


class LowerTriangularMaskWithTensorBias(LowerTriangularMask):
    """xformers.ops.fmha.attn_bias.LowerTriangularMaskWithTensorBias."""

    def __init__(self, bias: torch.Tensor) -> None:
        self._bias = bias

    def to(self, device: Any) -> Any:
        assert self._bias is not None
        return type(self)(self._bias.to(device))


class LowerTriangularFromBottomRightMask(AttentionBias):
    """xformers.ops.fmha.attn_bias.LowerTriangularFromBottomRightMask: the last query sees all keys."""

    def sight(self, scale: float) -> Sight:
        return Sight(scale, right=0)

    def make_local_attention(self, window_size: int) -> LowerTriangularFromBottomRightLocalAttentionMask:
        """Of these, the nearest keys alone."""
        return LowerTriangularFromBottomRightLocalAttentionMask(window_size)


class LowerTriangularFromBottomRightLocalAttentionMask(LowerTriangularFromBottomRightMask):
    """xformers.ops.fmha.attn_bias.LowerTriangularFromBottomRightLocalAttentionMask: the last `_window_size` of them."""

    def __init__(self, _window_size: int) -> None:
        self._window_size = _window_size

    def sight(self, scale: float) -> Sight:
        return Sight(scale, self._window_size - 1, 0)


class LocalAttentionFromBottomRightMask(AttentionBias):
    """xformers.ops.fmha.attn_bias.LocalAttentionFromBottomRightMask: keys around the place of a query."""

    def __init__(self, window_left: int, window_right: int) -> None:
        self.window_left, self.window_right = window_left, window_right

    def sight(self, scale: float) -> Sight:
        return Sight(scale, self.window_left, self.window_right)


class SequenceEnds:
    """Where sequences that lie end to end begin and end."""

    def __init__(self, lengths: Iterable[int], device: Any = None) -> None:
        lengths = [int(each) for each in lengths]
        self.seqstart_py = [0, *accumulate(lengths)]
        self.max_seqlen, self.min_seqlen = max(lengths, default=0), min(lengths, default=0)
        self.seqstart = torch.tensor(self.seqstart_py, dtype=torch.int32, device=device)

    def intervals(self) -> Iterator[tuple[int, int]]:
        """(begin, end) of each."""
        return pairwise(self.seqstart_py)

    def split(self, x: torch.Tensor, batch_sizes: Sequence[int] | None = None) -> list[torch.Tensor]:
        """The sequences of x (1, all, ...), those that were in one tensor together again."""
        parts = list(x.split([end - start for start, end in self.intervals()], 1))
        if batch_sizes is None:
            return parts
        ends = [0, *accumulate(batch_sizes)]
        return [torch.cat(parts[start:end]) for start, end in pairwise(ends)]


class BlockDiagonalMask(AttentionBias):
    """xformers.ops.fmha.attn_bias.BlockDiagonalMask: sequences that lie end to end, each attends to itself alone."""

    def __init__(self, q_seqinfo: Any, k_seqinfo: Any, _batch_sizes: Sequence[int] | None = None) -> None:
        self.q_seqinfo, self.k_seqinfo, self._batch_sizes = q_seqinfo, k_seqinfo, _batch_sizes

    def sight(self, scale: float) -> Sight:
        return Sight(scale)

    @classmethod
    def from_seqlens(cls, q_seqlen: Any, kv_seqlen: Any = None, *, device: Any = None) -> Any:
        """A mask for sequences of some lengths."""
        own = SequenceEnds(q_seqlen, device)
        same = kv_seqlen is None or list(q_seqlen) == list(kv_seqlen)
        return cls(own, own if same else SequenceEnds(kv_seqlen, device))

    @classmethod
    def from_tensor_list(cls, tensors: Sequence[torch.Tensor]) -> tuple[Any, torch.Tensor]:
        """The mask for tensors (batch, sequence, ...) and the tensor of all, (1, all, ...)."""
        mask, together, _, _ = cls.from_tensor_lists_qkv(tensors, tensors)
        return mask, together

    @classmethod
    def from_tensor_lists_qkv(
        cls,
        tensors_q: Sequence[torch.Tensor],
        tensors_k: Sequence[torch.Tensor],
        tensors_v: Sequence[torch.Tensor] | None = None,
    ) -> tuple[Any, torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """The same for queries, keys and values of their own."""
        own, others = (
            [each.shape[1] for each in tensors for _ in range(each.shape[0])] for tensors in (tensors_q, tensors_k)
        )
        mask = cls.from_seqlens(own, others)
        mask._batch_sizes = [each.shape[0] for each in tensors_q]
        joined = [
            None if tensors is None else torch.cat([each.reshape(1, -1, *each.shape[2:]) for each in tensors], 1)
            for tensors in (tensors_q, tensors_k, tensors_v)
        ]
        assert joined[0] is not None and joined[1] is not None
        return mask, joined[0], joined[1], joined[2]

    def split_queries(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The sequences of queries, or of the result."""
        return self.q_seqinfo.split(tensor, self._batch_sizes)  # type: ignore[no-any-return]

    def split_kv(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The sequences of keys or values."""
        return self.k_seqinfo.split(tensor, self._batch_sizes)  # type: ignore[no-any-return]

    def split(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The sequences, where queries and keys have the same lengths."""
        assert self.q_seqinfo is self.k_seqinfo
        return self.split_queries(tensor)

    def make_causal(self) -> BlockDiagonalCausalMask:
        """The same, causal from the top left corner of each."""
        return BlockDiagonalCausalMask(self.q_seqinfo, self.k_seqinfo, self._batch_sizes)

    def make_causal_from_bottomright(self) -> BlockDiagonalCausalFromBottomRightMask:
        """The same, causal up to the bottom right corner of each."""
        return BlockDiagonalCausalFromBottomRightMask(self.q_seqinfo, self.k_seqinfo, self._batch_sizes)


class BlockDiagonalCausalMask(BlockDiagonalMask):
    """xformers.ops.fmha.attn_bias.BlockDiagonalCausalMask."""

    def sight(self, scale: float) -> Sight:
        return Sight(scale, right=0, top_left=True)


class BlockDiagonalCausalFromBottomRightMask(BlockDiagonalMask):
    """xformers.ops.fmha.attn_bias.BlockDiagonalCausalFromBottomRightMask."""

    def sight(self, scale: float) -> Sight:
        return Sight(scale, right=0)


def memory_efficient_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_bias: torch.Tensor | AttentionBias | None = None,
    p: float = 0.0,
    scale: float | None = None,
    *,
    op: Any = None,
    output_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """xformers.ops.memory_efficient_attention by torch's attention, and by torch_npu's on an NPU.

    query, key and value (batch, sequence, heads, size), (batch, sequence, size), or with groups of heads
    (batch, sequence, groups, heads, size). `op`, which chooses a kernel of CUDA, is not looked at.
    """
    shape = (*query.shape[:-1], value.shape[-1])
    bias = attn_bias if isinstance(attn_bias, torch.Tensor) else None
    if query.dim() == 3:
        query, key, value = (each.unsqueeze(2) for each in (query, key, value))
        bias = bias if bias is None else bias.unsqueeze(1)
    elif query.dim() == 5:
        query, key, value = (each.flatten(2, 3) for each in (query, key, value))
        bias = bias if bias is None else bias.flatten(1, 2)
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    mask = attn_bias if isinstance(attn_bias, AttentionBias) else None
    sight = (Sight(scale, bias=bias) if mask is None else mask.sight(scale))._replace(dropout=p)
    if isinstance(mask, BlockDiagonalMask):
        assert query.shape[0] == 1
        ends = mask.q_seqinfo.seqstart_py, mask.k_seqinfo.seqstart_py
        out = attend_in_blocks(query[0], key[0], value[0], *ends, sight)[None]
    else:
        out = attend(query, key, value, sight)
    return out.reshape(shape).to(output_dtype or query.dtype)
