"""Sequences that attend to each other: what training and inference have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

LEAST = torch.finfo(torch.float32).min

#: From a layout to batch, heads, rows, size of a head (BNSD), and back.
TO_BNSD: dict[str, Callable[[Any, int], Any]] = {
    "BSH": lambda tensor, heads: tensor.unflatten(-1, (heads, -1)).transpose(1, 2),
    "SBH": lambda tensor, heads: tensor.unflatten(-1, (heads, -1)).permute(1, 2, 0, 3),
    "BSND": lambda tensor, heads: tensor.transpose(1, 2),
    "BNSD": lambda tensor, heads: tensor,
}
FROM_BNSD: dict[str, Callable[[Any], Any]] = {
    "BSH": lambda tensor: tensor.transpose(1, 2).flatten(-2),
    "SBH": lambda tensor: tensor.permute(2, 0, 1, 3).flatten(-2),
    "BSND": lambda tensor: tensor.transpose(1, 2),
    "BNSD": lambda tensor: tensor,
}


@dataclass
class Part:
    """Sequences of equal length, in float32: query (batch, heads, rows, size), key and value with as many heads as the
    query. `left_out` (True: no weight); `clean`: a row with no key at all gives zeros, not the mean of the values."""

    query: Any
    key: Any
    value: Any
    scale: float
    pse: Any = None
    pse_type: int = 1
    left_out: Any = None
    clean: bool = True
    bits: Any = None
    keep: float = 1.0
    sink: Any = None

    @cached_property
    def scores(self) -> Any:
        """Scores before the softmax."""
        scores = self.query @ self.key.transpose(-1, -2)
        if self.pse is not None and self.pse_type == 1:
            scores = scores + self.pse
        scores = scores * self.scale
        if self.pse is not None and self.pse_type == 0:
            scores = scores + self.pse
        return scores if self.left_out is None else scores.masked_fill(self.left_out, LEAST)

    def weights(self, top: Any, total: Any) -> Any:
        """The softmax, by the greatest score and the sum of a row."""
        weights = torch.exp(self.scores - top) / total
        return weights.masked_fill(self.left_out, 0) if self.clean and self.left_out is not None else weights

    def dropout(self, weights: Any) -> Any:
        """`weights` with what the mask of bits keeps, scaled."""
        return weights if self.bits is None else weights * self.bits / self.keep

    def statistics(self) -> tuple[Any, Any]:
        """The greatest score of a row, and the sum of the exponentials; a sink is one more score of each row."""
        scores = self.scores
        if self.sink is not None:
            sink = self.sink.reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
            scores = torch.cat((scores, sink), -1)
        if not scores.shape[-1]:
            return scores.new_full((*scores.shape[:-1], 1), LEAST), scores.new_ones((*scores.shape[:-1], 1))
        top = scores.amax(-1, keepdim=True)
        return top, torch.exp(scores - top).sum(-1, keepdim=True)

    def attend(self, top: Any, total: Any) -> Any:
        """The weighted values."""
        return self.dropout(self.weights(top, total)) @ self.value

    def backward(self, top: Any, total: Any, output: Any, gradient: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Gradients of query, key, value, scores and sink, by the statistics and the output of the forward: with those
        of all parts of a sequence, the gradients of one part are right, which ring attention relies on."""
        weights = self.weights(top, total)
        inner = (gradient * output).sum(-1, keepdim=True)
        of_scores = weights * (self.dropout(gradient @ self.value.transpose(-1, -2)) - inner)
        of_query = of_scores @ self.key * self.scale
        of_key = of_scores.transpose(-1, -2) @ self.query * self.scale
        of_value = self.dropout(weights).transpose(-1, -2) @ gradient
        of_sink = None
        if self.sink is not None:
            of_sink = -(torch.exp(self.sink.reshape(1, -1, 1, 1) - top) / total * inner).sum((0, 2, 3))
        return of_query, of_key, of_value, of_scores * (self.scale if self.pse_type == 1 else 1), of_sink


def banned(rows: int, columns: int, sparse: int, before: int, after: int) -> Any:
    """What a sparse mode leaves out, True at (query, key): 0 a band from the upper left corner, 2 what is right of the
    diagonal from there, 3 and 6 the same from the lower right corner, 4 a band from there."""
    offset = torch.arange(columns, device="cpu")[None, :] - torch.arange(rows, device="cpu")[:, None]
    if sparse in (3, 4, 6):
        offset = offset - (columns - rows)
    return offset > 0 if sparse in (2, 3, 6) else (offset > after) | (offset < -before)


def joined(tensor: Any, rope: Any) -> Any:
    """Head sizes of a tensor and of its part with a rotary position, one after the other, in float32."""
    tensor = tensor.float()
    return tensor if rope is None or not rope.numel() else torch.cat((tensor, rope.float()), -1)


def grouped(query: Any, *others: Any) -> list[Any]:
    """Keys and values with as many heads as the query has."""
    times, rest = divmod(query.shape[1], others[0].shape[1])
    if rest:
        raise ValueError(f"{query.shape[1]} heads of the query are no multiple of {others[0].shape[1]} of the key")
    return [other.repeat_interleave(times, 1) if times > 1 else other for other in others]
