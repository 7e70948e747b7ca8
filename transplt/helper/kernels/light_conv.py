"""Fairseq's convolutions along time with few weights, and its ban of repeated n-grams."""

from __future__ import annotations

import torch
from torch.nn import functional

from transplt.helper.kernels.recompute import as_compiled, widened

__all__ = [
    "dynamicconv_backward", "dynamicconv_forward", "lightconv_backward", "lightconv_forward", "ngram_repeat_block",
]  # fmt: skip


def _framed(input: torch.Tensor, taps: int, padding_l: int, heads: int) -> torch.Tensor:
    """[batch, heads, channels of a head, time + taps - 1], with zeros before and after."""
    framed = functional.pad(widened(input), [padding_l, taps - 1 - padding_l])
    return framed.unflatten(1, (heads, input.shape[1] // heads))


def _convolved(input: torch.Tensor, weights: torch.Tensor, padding_l: int) -> torch.Tensor:
    """`weights` [batch or 1, heads, taps, time or 1]: those of each place, one tap after the other."""
    heads, taps = weights.shape[1:3]
    framed, length = _framed(input, taps, padding_l, heads), input.shape[2]
    found = framed.new_zeros(*framed.shape[:3], length)
    for tap in range(taps):
        found += framed[..., tap : tap + length] * widened(weights)[:, :, None, tap]
    return found.flatten(1, 2).to(input.dtype)


def _convolved_backward(
    grad: torch.Tensor, input: torch.Tensor, weights: torch.Tensor, padding_l: int
) -> tuple[torch.Tensor, torch.Tensor]:
    heads, taps = weights.shape[1:3]
    framed, length = _framed(input, taps, padding_l, heads), input.shape[2]
    given = widened(grad).unflatten(1, (heads, -1))
    to_framed, shares = torch.zeros_like(framed), []
    for tap in range(taps):
        to_framed[..., tap : tap + length] += given * widened(weights)[:, :, None, tap]
        shares.append((given * framed[..., tap : tap + length]).sum(2))
    to_input = to_framed.flatten(1, 2)[..., padding_l : padding_l + length]
    return to_input.to(input.dtype), torch.stack(shares, 2)  # the second [batch, heads, taps, time]


@as_compiled
def lightconv_forward(input: torch.Tensor, filters: torch.Tensor, padding_l: int) -> list[torch.Tensor]:
    """`input` [batch, channels, time] with `filters` [heads, taps], shared by the channels of a head.

    `padding_l` zeros stand before the first number. One pass for each tap; sums of 16-bit numbers are in float32.
    """
    return [_convolved(input, filters[None, :, :, None], padding_l)]


@as_compiled
def lightconv_backward(
    gradOutput: torch.Tensor, padding_l: int, input: torch.Tensor, filters: torch.Tensor
) -> list[torch.Tensor]:
    """The gradients of `lightconv_forward`: of the input and the filters."""
    to_input, shares = _convolved_backward(gradOutput, input, filters[None, :, :, None], padding_l)
    return [to_input, shares.sum((0, 3)).to(filters.dtype)]


@as_compiled
def dynamicconv_forward(input: torch.Tensor, weight: torch.Tensor, padding_l: int) -> list[torch.Tensor]:
    """`lightconv_forward` with weights of their own for each place, `weight` [batch, heads, taps, time]."""
    return [_convolved(input, weight, padding_l)]


@as_compiled
def dynamicconv_backward(
    gradOutput: torch.Tensor, padding_l: int, input: torch.Tensor, weight: torch.Tensor
) -> list[torch.Tensor]:
    """The gradients of `dynamicconv_forward`: of the input and the weights."""
    to_input, shares = _convolved_backward(gradOutput, input, weight, padding_l)
    return [to_input, shares.to(weight.dtype)]


@as_compiled
def ngram_repeat_block(
    tokens: torch.Tensor, lprobs: torch.Tensor, bsz: int, step: int, beam_size: int, no_repeat_ngram_size: int
) -> torch.Tensor:
    """-inf in `lprobs` [rows, words], in place, for words that would repeat an n-gram of `tokens` [rows, length].

    The words so far are the first step + 1 of a row. The result is `lprobs`.
    """
    size, rows = no_repeat_ngram_size, bsz * beam_size
    starts = step - size + 2
    if starts <= 0:
        return lprobs
    given = tokens[:rows, : step + 1]
    grams = given.unfold(1, size, 1)[:, :starts]  # a last one without an end would say nothing
    if grams.shape[1] == 0:
        return lprobs
    same = (grams[:, :, : size - 1] == given[:, None, starts : starts + size - 1]).all(2)
    row, place = same.nonzero(as_tuple=True)
    lprobs[row, grams[row, place, size - 1]] = float("-inf")
    return lprobs
