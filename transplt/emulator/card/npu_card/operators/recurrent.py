"""Recurrent layers: LSTM and GRU over a sequence, and the cell of an LSTM.

Gates lie in PyTorch's order. What a card keeps of the forward for its backward (gates of all steps) is written as
zeros: the backward here computes the forward again and lets PyTorch differentiate it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import operator
from .gradients import gradients

_PACKED_GRU = "batchSizes is not supported: only input of three dimensions and fixed length"


def _run(
    layer: Callable[..., Any], input: Any, state: Any, params: Any, batch_sizes: Any, *rest: Any
) -> Any:
    """The results of `torch._VF.lstm` or `gru`. With `batch_sizes` the sequences are padded, one step after the other:
    torch_npu packs them so; what lies beyond the end of a sequence counts for nothing, and is 0 in the result."""
    *options, batch_first = rest
    if batch_sizes is None:
        return layer(input, state, params, *options, batch_first)
    steps = batch_sizes.numel()
    inside = torch.arange(input.shape[0] // steps, device="cpu") < batch_sizes[:, None]
    packed, *last = layer(input[inside.reshape(-1)], batch_sizes, state, params, *options)
    places = inside.reshape(-1).nonzero()[:, 0]
    return torch.zeros(input.shape[0], packed.shape[1], device="cpu").index_copy(0, places, packed.float()), *last


def _given(batch_sizes: Any) -> Any:
    """Numbers of sequences that reach each step; None for sequences of one length."""
    return None if batch_sizes is None or not batch_sizes.numel() else batch_sizes.long()


def _clear(lists: Sequence[Sequence[Any]]) -> list[None]:
    for each in lists:
        for tensor in each or ():
            tensor.zero_()
    return [None] * len(lists)


@operator("LSTM")
def lstm(
    input: Any, params: Any, state: Any, batch_sizes: Any, biased: bool, layers: int, _dropout: float, training: bool,
    both_ways: bool, batch_first: bool, outputs: Any,
) -> Any:  # fmt: skip
    """All steps, the last hidden and the last cell state. CANN takes no dropout here."""
    options = (biased, layers, 0.0, training, both_ways, batch_first)
    results = _run(torch._VF.lstm, input, state, params, _given(batch_sizes), *options)
    return *results, *_clear(outputs[3:])


@operator("LstmBackward")
def lstm_backward(
    input: Any, state: Any, params: Any, grad: Any, hidden_grad: Any, cell_grad: Any, _i: Any, _g: Any, _f: Any,
    _o: Any, _h: Any, _c: Any, _tanh: Any, batch_sizes: Any, biased: bool, layers: int, _dropout: float,
    training: bool, both_ways: bool, batch_first: bool, _wanted: Any,
) -> Any:  # fmt: skip
    """Gradients of the input, of both states, and of the parameters."""
    options = (biased, layers, 0.0, training, both_ways, batch_first)
    sizes = _given(batch_sizes)

    def forward(data: Any, hidden: Any, cell: Any, *weights: Any) -> Any:
        return _run(torch._VF.lstm, data, [hidden, cell], weights, sizes, *options)

    found = gradients(forward, [input, *state, *params], [grad, hidden_grad, cell_grad])
    return *found[:3], list(found[3:])


@operator("GRU")
def gru(
    input: Any, params: Any, state: Any, batch_sizes: Any, biased: bool, layers: int, _dropout: float, training: bool,
    both_ways: bool, batch_first: bool, outputs: Any,
) -> Any:  # fmt: skip
    """All steps and the last state. CANN takes no dropout and no packed sequences here (aclnnGRU)."""
    if _given(batch_sizes) is not None:
        raise ValueError(_PACKED_GRU)
    results = torch._VF.gru(input, state, params, biased, layers, 0.0, training, both_ways, batch_first)
    return *results, *_clear(outputs[2:])


@operator("GRUBackward")
def gru_backward(
    input: Any, params: Any, state: Any, grad: Any, state_grad: Any, _r: Any, _z: Any, _n: Any, _hn: Any, _h: Any,
    batch_sizes: Any, biased: bool, layers: int, both_ways: bool, batch_first: bool,
) -> Any:  # fmt: skip
    """Gradients of the input, of the state, and of the parameters."""
    if _given(batch_sizes) is not None:
        raise ValueError(_PACKED_GRU)

    def forward(data: Any, hidden: Any, *weights: Any) -> Any:
        return torch._VF.gru(data, hidden, weights, biased, layers, 0.0, True, both_ways, batch_first)

    found = gradients(forward, [input, state, *params], [grad, state_grad])
    return *found[:2], list(found[2:])


@operator("ThnnFusedLstmCell")
def lstm_cell(of_input: Any, of_hidden: Any, cell: Any, input_bias: Any, hidden_bias: Any) -> Any:
    """Hidden and cell state, and the four gates."""
    gates = of_input.float() + of_hidden.float()
    if input_bias is not None:
        gates = gates + input_bias + hidden_bias
    inner, forget, new, outer = gates.chunk(4, 1)
    inner, forget, new, outer = inner.sigmoid(), forget.sigmoid(), new.tanh(), outer.sigmoid()
    state = forget * cell + inner * new
    return outer * state.tanh(), state, torch.cat([inner, forget, new, outer], 1)


@operator("ThnnFusedLstmCellBackward")
def lstm_cell_backward(hidden_grad: Any, cell_grad: Any, cell: Any, state: Any, gates: Any, biased: bool) -> Any:
    """Gradients of the gates before their activations, of the cell state, and of the bias."""
    inner, forget, new, outer = gates.float().chunk(4, 1)
    active = state.float().tanh()
    hidden = torch.zeros_like(active) if hidden_grad is None else hidden_grad.float()
    total = hidden * outer * (1 - active.square())
    if cell_grad is not None:
        total = total + cell_grad
    result = torch.cat([
        total * new * inner * (1 - inner),
        total * cell * forget * (1 - forget),
        total * inner * (1 - new.square()),
        hidden * active * outer * (1 - outer),
    ], 1)  # fmt: skip
    return result, total * forget, result.sum(0) if biased else None
