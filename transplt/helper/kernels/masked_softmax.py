"""Softmax of scaled and masked scores, in the forms of Megatron-LM, and rotary embeddings."""

from __future__ import annotations

import torch

from transplt.helper.kernels.recompute import as_compiled, widened

__all__ = [
    "apply_rotary", "scaled_masked_softmax_forward", "scaled_softmax_backward", "scaled_softmax_batch_per_block",
    "scaled_softmax_forward", "scaled_triangular_softmax_backward", "scaled_triangular_softmax_forward",
]  # fmt: skip


@as_compiled
def scaled_softmax_forward(input: torch.Tensor, scale_factor: float) -> torch.Tensor:
    """softmax(input * scale_factor) along the last dimension, computed in float32, in the type of `input`."""
    return torch.softmax(widened(input) * float(scale_factor), -1).to(input.dtype)


@as_compiled
def scaled_masked_softmax_forward(input: torch.Tensor, mask: torch.Tensor, scale_factor: float) -> torch.Tensor:
    """softmax(input * scale_factor) along keys, where scores that `mask` hides are -10000; 0 where it hides all.

    `input` [batch, heads, queries, keys], `mask` [batch or 1, 1, queries, keys], hiding where it is 1 (or True).
    """
    scores = (widened(input) * float(scale_factor)).masked_fill(mask == 1, -10000.0)
    found = torch.softmax(scores, -1)
    return found.masked_fill(scores.amax(-1, keepdim=True) == -10000.0, 0).to(input.dtype)


@as_compiled
def scaled_triangular_softmax_forward(input: torch.Tensor, scale_factor: float) -> torch.Tensor:
    """softmax(input * scale_factor) of [batches, queries, keys], where a query sees keys up to its own number."""
    later = torch.ones(input.shape[-2:], dtype=torch.bool, device=input.device).triu(1)
    scores = (widened(input) * float(scale_factor)).masked_fill(later, float("-inf"))
    return torch.softmax(scores, -1).to(input.dtype)


@as_compiled
def scaled_softmax_backward(
    output_grads: torch.Tensor, softmax_results: torch.Tensor, scale_factor: float
) -> torch.Tensor:
    """The gradient of `scaled_softmax_forward` and of the masked form, from their result."""
    grad = widened(output_grads) * widened(softmax_results)
    found = grad - widened(softmax_results) * grad.sum(-1, keepdim=True)
    return (found * float(scale_factor)).to(output_grads.dtype)


@as_compiled
def scaled_triangular_softmax_backward(
    output_grads: torch.Tensor, softmax_results: torch.Tensor, scale_factor: float
) -> torch.Tensor:
    """The gradient of `scaled_triangular_softmax_forward`, from its result; what comes in for later keys counts not."""
    later = torch.ones(output_grads.shape[-2:], dtype=torch.bool, device=output_grads.device).triu(1)
    return scaled_softmax_backward(output_grads.masked_fill(later, 0), softmax_results, scale_factor)


def scaled_softmax_batch_per_block(query_seq_len: int, key_seq_len: int, batches: int, attn_heads: int) -> int:
    """How many rows a block of the compiled kernel takes, by which Megatron-LM decides whether it calls it."""
    padded = 1 << max(key_seq_len - 1, 0).bit_length()
    return 128 // min(padded, 32) * (2 if padded <= 128 else 1)


@as_compiled
def apply_rotary(
    x1: torch.Tensor, x2: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, out1: torch.Tensor, out2: torch.Tensor,
    conj: bool,
) -> None:  # fmt: skip
    """Pairs (x1, x2) turned by angles, into `out1` and `out2`, which may be x1 and x2; backwards where `conj`.

    All of one shape or broadcast to it; computed in float32, in the type of the outputs.
    """
    a, b, c, s = (widened(each) for each in (x1, x2, cos, sin))
    s = -s if conj else s
    first, second = a * c - b * s, a * s + b * c
    out1.copy_(first)
    out2.copy_(second)
