"""What a tensor of a dump is to the training: a weight, a gradient, an activation, any output."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from transplt.precision.record import BACKWARD, FORWARD, GRADIENT, OPTIMIZER, Record, Row, Tensor
from transplt.rules.torch_callables import TENSOR, names_of

#: Which inputs of functions are weights, where a dump has no modules. Source: the signatures of torch.nn.functional.
_WEIGHTS = {
    "linear": ("input.1", "input.2"), "conv": ("input.1", "input.2"), "embedding": ("input.1",),
    "layer_norm": ("input.2", "input.3"), "group_norm": ("input.2", "input.3"), "batch_norm": ("input.3", "input.4"),
    "instance_norm": ("input.3", "input.4"), "rms_norm": ("input.2",), "prelu": ("input.1",),
    "bilinear": ("input.2", "input.3"),
}  # fmt: skip
_NAMED = ("kwargs.weight", "kwargs.bias")
_CONV = re.compile(r"conv(?:_transpose)?[123]d$")
#: The elements of an activation lie between these; open ends are infinite. Source: the documents of torch.nn.
_RANGES = {
    "sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "softmax": (0.0, 1.0), "relu": (0.0, math.inf), "relu6": (0.0, 6.0),
    "hardsigmoid": (0.0, 1.0), "hardtanh": (-1.0, 1.0), "softplus": (0.0, math.inf), "logsigmoid": (-math.inf, 0.0),
    "log_softmax": (-math.inf, 0.0), "logsoftmax": (-math.inf, 0.0), "gelu": (-0.17, math.inf),
    "silu": (-0.2785, math.inf), "mish": (-0.3089, math.inf), "elu": (-math.inf, math.inf),
}  # fmt: skip
#: Of these, all elements at one end stop the learning.
SATURATE = ("sigmoid", "tanh", "hardsigmoid", "hardtanh")


_CHOOSES = frozenset({"__getitem__", "index_select", "gather", "unbind", "embedding"})
_NUMBERS = ("int", "float")
#: Their outputs are zeros on purpose, or nothing yet.
_BLANK = re.compile(r"(?:new_)?(?:zeros|empty|full)(?:_like|_strided)?|zero_|fill_|masked_fill_?")


def is_floating(tensor: Tensor) -> bool:
    """True for a tensor of floating numbers with figures."""
    return tensor.is_tensor and tensor.max is not None and tensor.min is not None and "float" in tensor.dtype


def is_blank(row: Row) -> bool:
    """True for an operator that makes zeros when it is asked to."""
    return _BLANK.fullmatch(row.api.rpartition(".")[2]) is not None


def hands_zeros_on(row: Row) -> bool:
    """True for an operator that makes zeros when it is asked to, is given zeros (the first states of an optimizer or a
    recurrent network), or chooses a part of a tensor."""
    last = row.api.rpartition(".")[2]
    if is_blank(row) or last in _CHOOSES or last in names_of(TENSOR, "views", "ports"):
        return True
    given = [tensor for tensor in (*row.inputs, *row.parameters) if tensor.max is not None]
    return any(tensor.max == 0 == tensor.min for tensor in given if tensor.is_tensor or tensor.dtype in _NUMBERS)


def weights(record: Record) -> Iterator[tuple[Row, Tensor]]:
    """Each weight once, as it is read in the forward pass: parameters of modules, else inputs of functions."""
    forward = [row for row in record.rows if row.phase == FORWARD and row.kind != OPTIMIZER]
    with_modules = any(row.parameters for row in forward)
    for row in forward:
        taken = row.parameters if with_modules else _weights_of(row)
        yield from ((row, tensor) for tensor in taken if is_floating(tensor))


def _weights_of(row: Row) -> Iterator[Tensor]:
    function = row.api.rpartition(".")[2]
    places = _WEIGHTS.get("conv" if _CONV.match(function) else function)
    yield from (tensor for tensor in row.inputs if places and tensor.name in (*places, *_NAMED))


def gradients(record: Record) -> Iterator[tuple[Row, Tensor]]:
    """The gradients of parameters; where the dump has none, those that backward passes hand on."""
    rows = [row for row in record.rows if row.kind == GRADIENT]
    for row in rows or [row for row in record.rows if row.phase == BACKWARD]:
        yield from ((row, tensor) for tensor in row.outputs if is_floating(tensor))


def outputs(record: Record) -> Iterator[tuple[Row, Tensor]]:
    """The outputs of forward passes."""
    for row in record.rows:
        if row.phase == FORWARD and row.kind != OPTIMIZER:
            yield from ((row, tensor) for tensor in row.outputs if is_floating(tensor))


def activation(row: Row) -> tuple[str, tuple[float, float]] | None:
    """The activation that a row is, and its range; None for another operator."""
    name = row.api.rpartition(".")[2].lower().rstrip("_")
    return (name, _RANGES[name]) if name in _RANGES and row.phase == FORWARD else None
