"""Recurrent layers of the older interface of operators, a layer and a direction a call: torch_npu takes them for an
LSTM of several layers, of both directions or without bias, and for types that the newer one does not take.

Tensors are time, batch, features. Gates lie in PyTorch's order, whatever they are called (`gate_order` "ifjo", "ifco",
"rzh").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .named_operators import named


def _order(steps: int, direction: str) -> list[int]:
    """The steps as the layer goes through them."""
    order = list(range(steps))
    return order[::-1] if direction == "REDIRECTIONAL" else order


def _wide(values: Sequence[Any]) -> list[Any]:
    return [None if each is None else each.float() for each in values]


def _before(states: Any, first: Any, order: list[int]) -> Any:
    """The state that each step began with."""
    result = torch.empty_like(states)
    result[order[0]] = first
    result[order[1:]] = states[order[:-1]]
    return result


def _products(states: Any, gates: Any) -> Any:
    """The gradient of a weight by which `states` were multiplied."""
    return states.flatten(0, 1).T @ gates.flatten(0, 1)


def _lstm(
    input: Any, of_input: Any, of_hidden: Any, bias: Any, mask: Any, hidden: Any, cell: Any, order: list[int]
) -> Any:
    """All steps of output, hidden and cell state, of the gates i, j, f, o, and of tanh(cell). A step that the mask
    leaves out gives 0 and keeps the states."""
    projected = input @ of_input
    if bias is not None:
        projected = projected + bias
    if hidden.shape[-1] != of_hidden.shape[0]:
        raise ValueError("a hidden state of another size than the cell's (proj_size) is not supported")
    hidden, cell = hidden.reshape(-1, of_hidden.shape[0]), cell.reshape(-1, of_hidden.shape[0])
    kept: list[Any] = [None] * len(order)
    for at in order:
        inner, forget, new, outer = (projected[at] + hidden @ of_hidden).chunk(4, -1)
        inner, forget, new, outer = inner.sigmoid(), forget.sigmoid(), new.tanh(), outer.sigmoid()
        next_cell = forget * cell + inner * new
        active = next_cell.tanh()
        output = next_hidden = outer * active
        if mask is not None:
            output = output * mask[at]
            next_hidden = torch.where(mask[at] > 0, next_hidden, hidden)
            next_cell = torch.where(mask[at] > 0, next_cell, cell)
        hidden, cell = next_hidden, next_cell
        kept[at] = (output, hidden, cell, inner, new, forget, outer, active)
    return tuple(map(torch.stack, zip(*kept, strict=True)))


def _lstm_backward(
    of_hidden: Any, mask: Any, cells: Any, grads: Any, hidden_grad: Any, cell_grad: Any, gates: Sequence[Any],
    order: list[int],
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Gradients of all gates before their activations, and of both first states. `cells` are those before each step;
    the gradients of the last states are those after the last step."""
    inner, new, forget, outer, active = gates
    result = inner.new_empty(*inner.shape[:2], 4 * inner.shape[2])
    hidden_grad, cell_grad = hidden_grad.reshape(cells.shape[1:]), cell_grad.reshape(cells.shape[1:])
    for at in reversed(order):
        inside = 1 if mask is None else mask[at]
        of_output = (grads[at] + hidden_grad) * inside
        of_cell = cell_grad * inside + of_output * outer[at] * (1 - active[at].square())
        result[at] = torch.cat([
            of_cell * new[at] * inner[at] * (1 - inner[at]),
            of_cell * cells[at] * forget[at] * (1 - forget[at]),
            of_cell * inner[at] * (1 - new[at].square()),
            of_output * active[at] * outer[at] * (1 - outer[at]),
        ], -1)  # fmt: skip
        hidden_grad = result[at] @ of_hidden.T + hidden_grad * (1 - inside)
        cell_grad = of_cell * forget[at] + cell_grad * (1 - inside)
    return result, hidden_grad, cell_grad


@named("DynamicRNN")
def dynamic_rnn(*given: Any, direction: str = "") -> Any:
    """One weight for input and hidden state, one under the other."""
    input, weight, bias, mask, hidden, cell = _wide(given)
    of_input, of_hidden = weight.split([input.shape[2], weight.shape[0] - input.shape[2]])
    return _lstm(input, of_input, of_hidden, bias, mask, hidden, cell, _order(len(input), direction))


@named("DynamicRNNGrad")
def dynamic_rnn_backward(*given: Any, direction: str = "") -> Any:
    """Gradients of weight, bias, input, hidden and cell state."""
    input, weight, _, _, hidden, cell, hiddens, cells, grads, hidden_grad, cell_grad, *gates = _wide(given[:16])
    mask = given[16].float() if given[16] is not None and given[16].dim() else None
    order = _order(len(input), direction)
    of_input, of_hidden = weight.split([input.shape[2], weight.shape[0] - input.shape[2]])
    of_gates, *of_states = _lstm_backward(
        of_hidden, mask, _before(cells, cell, order), grads, hidden_grad, cell_grad, gates, order
    )
    both = torch.cat([input, _before(hiddens, hidden, order)], 2)
    return _products(both, of_gates), of_gates.sum((0, 1)), of_gates @ of_input.T, *of_states


@named("DynamicRNNV2")
def dynamic_rnn_v2(*given: Any, direction: str = "") -> Any:
    """Input and hidden state have weights of their own."""
    input, of_input, of_hidden, bias, mask, hidden, cell = _wide(given)
    return _lstm(input, of_input, of_hidden, bias, mask, hidden, cell, _order(len(input), direction))


@named("DynamicRNNV2Grad")
def dynamic_rnn_v2_backward(*given: Any, direction: str = "") -> Any:
    """Gradients of both weights, of bias, input, hidden and cell state. torch_npu leaves out the axis of time, of the
    one step that a cell has, where it passes what a program holds."""
    input, of_input, of_hidden, _, hidden, cell, *others = _wide(given[:16])
    hiddens, cells, grads, hidden_grad, cell_grad, *gates = others
    shape = gates[0].shape
    input = input.reshape(*shape[:2], -1)
    hiddens, cells, grads = hiddens.reshape(shape), cells.reshape(shape), grads.reshape(shape)
    order = _order(len(input), direction)
    of_gates, *of_states = _lstm_backward(
        of_hidden, None, _before(cells, cell, order), grads, hidden_grad, cell_grad, gates, order
    )
    of_weights = _products(input, of_gates), _products(_before(hiddens, hidden, order), of_gates)
    return *of_weights, of_gates.sum((0, 1)), of_gates @ of_input.T, *of_states


@named("DynamicGRUV2")
def dynamic_gru_v2(*given: Any, direction: str = "") -> Any:
    """All steps of output and state, of the gates update, reset and new, and of what the reset gate multiplies."""
    input, of_input, of_hidden, input_bias, hidden_bias, _, state = _wide(given)
    projected = input @ of_input + input_bias
    state = state.reshape(-1, of_hidden.shape[0])
    order = _order(len(input), direction)
    kept: list[Any] = [None] * len(order)
    for at in order:
        reset, update, new = projected[at].chunk(3, -1)
        reset_state, update_state, inner = (state @ of_hidden + hidden_bias).chunk(3, -1)
        reset, update = (reset + reset_state).sigmoid(), (update + update_state).sigmoid()
        new = (new + reset * inner).tanh()
        state = (1 - update) * new + update * state
        kept[at] = (state, state, update, reset, new, inner)
    return tuple(map(torch.stack, zip(*kept, strict=True)))


@named("DynamicGRUV2Grad")
def dynamic_gru_v2_backward(*given: Any, direction: str = "") -> Any:
    """Gradients of both weights, both biases, the input and the state."""
    input, of_input, of_hidden, _, state, states, grads, state_grad, update, reset, new, inner = _wide(given[:12])
    order = _order(len(input), direction)
    before = _before(states, state, order)
    state_grad = state_grad.reshape(before.shape[1:])
    of_gates = update.new_empty(*update.shape[:2], 3 * update.shape[2])
    of_inner = torch.empty_like(of_gates)
    for at in reversed(order):
        total = grads[at] + state_grad
        of_new = total * (1 - update[at]) * (1 - new[at].square())
        of_update = total * (before[at] - new[at]) * update[at] * (1 - update[at])
        of_reset = of_new * inner[at] * reset[at] * (1 - reset[at])
        of_gates[at] = torch.cat([of_reset, of_update, of_new], -1)
        of_inner[at] = torch.cat([of_reset, of_update, of_new * reset[at]], -1)
        state_grad = total * update[at] + of_inner[at] @ of_hidden.T
    of_weights = _products(input, of_gates), _products(before, of_inner)
    return *of_weights, of_gates.sum((0, 1)), of_inner.sum((0, 1)), of_gates @ of_input.T, state_grad
