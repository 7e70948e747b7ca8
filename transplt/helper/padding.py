"""Padding taken out and put back, as flash-attn's bert_padding does it.

Source of arguments and results: bert_padding.py of flash-attn 2.8.4 (Dao-AILab/flash-attention@0251105).
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

__all__ = [
    "index_first_axis",
    "index_put_first_axis",
    "pad_input",
    "unpad_input",
    "unpad_input_for_concatenated_sequences",
    "unpad_input_of_four",
]
_Four = tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]
_Five = tuple[torch.Tensor, torch.Tensor, torch.Tensor, int, torch.Tensor]


def unpad_input(
    hidden_states: torch.Tensor, attention_mask: torch.Tensor, unused_mask: torch.Tensor | None = None
) -> _Five:
    """flash_attn.bert_padding.unpad_input from 2.7 on: the rows that a mask keeps, end to end.

    hidden_states (batch, sequence, ...), masks (batch, sequence), 1 where a row is kept. Returns the rows
    (kept, ...), their indices (kept,), where each sequence begins (batch + 1,) as int32, the longest, and how many
    rows of each (batch,) `attention_mask` keeps.
    """
    every = attention_mask if unused_mask is None else attention_mask + unused_mask
    rows, indices, starts, longest = unpad_input_of_four(hidden_states, every)
    return rows, indices, starts, longest, attention_mask.sum(-1, dtype=torch.int32)


def unpad_input_of_four(hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> _Four:
    """flash_attn.bert_padding.unpad_input before 2.7, which returns the first four values."""
    lengths = attention_mask.sum(-1, dtype=torch.int32)
    indices = torch.nonzero(attention_mask.flatten(), as_tuple=False).flatten()
    starts = F.pad(torch.cumsum(lengths, 0, dtype=torch.int32), (1, 0))
    return index_first_axis(hidden_states.flatten(0, 1), indices), indices, starts, int(lengths.max())


def unpad_input_for_concatenated_sequences(
    hidden_states: torch.Tensor, attention_mask_in_length: torch.Tensor
) -> _Four:
    """flash_attn.bert_padding.unpad_input_for_concatenated_sequences: several sequences lie in one row.

    `attention_mask_in_length` (batch, sequence): the lengths of the sequences of each row, then zeros.
    """
    used = attention_mask_in_length.sum(-1, keepdim=True)
    kept = torch.arange(attention_mask_in_length.shape[-1], device=used.device, dtype=used.dtype) < used
    lengths = attention_mask_in_length.flatten()
    lengths = lengths[torch.nonzero(lengths, as_tuple=False).flatten()]
    indices = torch.nonzero(kept.flatten(), as_tuple=False).flatten()
    starts = F.pad(torch.cumsum(lengths, 0, dtype=torch.int32), (1, 0))
    return index_first_axis(hidden_states.flatten(0, 1), indices), indices, starts, int(lengths.max())


def pad_input(hidden_states: torch.Tensor, indices: torch.Tensor, batch: int, seqlen: int) -> torch.Tensor:
    """flash_attn.bert_padding.pad_input: rows (kept, ...) at their indices, 0 elsewhere: (batch, sequence, ...)."""
    return index_put_first_axis(hidden_states, indices, batch * seqlen).unflatten(0, (batch, seqlen))


def index_first_axis(input: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """flash_attn.bert_padding.index_first_axis: rows of (all, ...) by indices, none of them twice."""
    return input.index_select(0, indices)


def index_put_first_axis(values: torch.Tensor, indices: torch.Tensor, first_axis_dim: int) -> torch.Tensor:
    """flash_attn.bert_padding.index_put_first_axis: rows at indices of (first_axis_dim, ...), 0 elsewhere."""
    return values.new_zeros(first_axis_dim, *values.shape[1:]).index_copy(0, indices, values)
