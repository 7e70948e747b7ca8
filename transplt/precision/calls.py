"""A recorded operator as a call that Python can make again: its function by a table, its arguments as literals.

Nothing of a dump becomes code: texts are literals, and a function is called only where the table
(rules/support/operators.json) has its name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from transplt.base.errors import UsageError, shown
from transplt.precision.files import inside
from transplt.precision.record import API, Row, Tensor
from transplt.precision.watch.roles import is_blank
from transplt.rules.tables import read_table
from transplt.rules.torch_callables import TENSOR, names_of

_CALLS = {
    "Functional": "torch.nn.functional.{}(*args, **kwargs)",
    "Torch": "torch.{}(*args, **kwargs)",
    "VF": "torch._VF.{}(*args, **kwargs)",
    "Aten": "torch.ops.aten.{}(*args, **kwargs)",
    "NPU": "torch_npu.{}(*args, **kwargs)",
    "Tensor": "args[0].{}(*args[1:], **kwargs)",
}
#: Modules whose functions are recorded by these names: `Torch.linalg_norm` is `torch.linalg.norm`.
_BELOW = re.compile(r"(linalg|fft|special)_(?=\w)")
#: Their results are drawn: a comparison of two runs shows nothing.
_RANDOM = re.compile(
    r"(?:alpha_|feature_)*dropout\dd?_?|dropout\d?d?_?|feature_alpha_dropout_?|rand\w*|normal_?|uniform_?|bernoulli_?|"
    r"multinomial|exponential_?|poisson|binomial|rrelu_?|gumbel_softmax|cauchy_?|geometric_?|log_normal_?|"
    r"fractional_max_pool\dd(?:_with_indices)?"
)
#: The share that these drop, and whether they do, by place and name. Source: their signatures in torch 2.13.
_DROPPING = {
    "scaled_dot_product_attention": (("input.4", "kwargs.dropout_p"), ()),
    "multi_head_attention_forward": (("input.10", "kwargs.dropout_p"), ("input.13", "kwargs.training")),
    "native_dropout": (("input.1", "kwargs.p"), ("input.2", "kwargs.train")),
    **dict.fromkeys(
        ("lstm", "gru", "rnn_tanh", "rnn_relu"), (("input.5", "kwargs.dropout"), ("input.6", "kwargs.train"))
    ),
}
#: None in an index is not recorded.
_INDEXED = ("__getitem__", "__setitem__")
#: It makes zeros on purpose, and computes all the same.
_COMPUTES = ("masked_fill", "masked_fill_")
_DTYPE = re.compile(r"torch\.\w+")
_KNOWN = frozenset("float16 bfloat16 float32 float64 complex64 complex128 int8 uint8 int16 int32 int64 bool".split())


class Uncallable(UsageError):
    """An operator that cannot be called again: `clause` is why for all such, `detail` of this one."""

    def __init__(self, row: Row, clause: str, detail: str = "") -> None:
        super().__init__(f"{shown(row.name)} {clause}" + (f": {detail}" if detail else ""))
        self.clause, self.detail = clause, detail


def expression(row: Row) -> str:
    """The call of the function of a forward row, of `args` and `kwargs`. Uncallable for what is none, computes nothing,
    or draws random numbers."""
    family, _, function = row.api.partition(".")
    if row.kind != API or family not in _CALLS or not re.fullmatch(r"[A-Za-z_]\w*", function, re.ASCII):
        raise Uncallable(row, f"is not a function that a test can call ({', '.join(_CALLS)})")
    if function in _INDEXED or (is_blank(row) and function not in _COMPUTES):
        raise Uncallable(row, "computes nothing, and dumps contain only part of its arguments")
    if function in names_of(TENSOR, "moves"):
        raise Uncallable(row, "moves data and computes nothing")
    if _RANDOM.fullmatch(function) or _drops(row, function):
        raise Uncallable(row, "draws random numbers: two devices never agree on them")
    if function not in _names(family):
        raise Uncallable(row, "is not a function that a test can call (rules/support/operators.json)")
    return _CALLS[family].format(_BELOW.sub(r"\1.", function) if family == "Torch" else function)


def _drops(row: Row, function: str) -> bool:
    share, training = _DROPPING.get(function, ((), ()))
    values = {tensor.name: tensor.max for tensor in row.inputs if not tensor.is_tensor}
    return any(values.get(name) for name in share) and all(values.get(name) != 0 for name in training)


@cache
def _names(family: str) -> frozenset[str]:
    """The functions of a family that may be called."""
    operators = read_table("support/operators.json")["operators"]
    if family == "NPU":
        known = read_table("support/npu_names.json")["names"].values()
        return frozenset(name.removeprefix("torch_npu.") for names in known for name in names if ".npu_" in name)
    if family == "Aten":
        return frozenset((*operators["Torch"], *operators["Tensor"]))
    return frozenset(operators[family])


@dataclass(slots=True)
class Literals:
    """The arguments of one row as Python. Tensors with elements are `recorded(path, dtype)`; others are
    `drawn(...)` in their shape and range, where that will do."""

    folder: str
    row: Row
    draws: bool = True
    #: What stands for a device among the arguments; with none such operators are refused.
    device: str = ""
    loads: bool = False
    seed: int = 1234

    def arguments(self) -> tuple[str, str]:
        """(args, kwargs). Uncallable where the dump does not have one."""
        return _structure(self.row, [(tensor.name, self.value(tensor)) for tensor in self.row.inputs])

    def value(self, tensor: Tensor) -> str:
        if tensor.is_tensor:
            return self.tensor(tensor)
        kind = tensor.dtype.removeprefix("torch.")
        if kind == "device" or (tensor.name == "kwargs.device" and kind == "str"):
            if self.device:
                return self.device
            raise Uncallable(self.row, "creates a tensor on a device", f"its argument {shown(tensor.name)} is a device")
        if (number := tensor.max) is not None:
            if number - number != 0:
                return f"float({str(number)!r})"
            if tensor.dtype == "bool":
                return str(bool(number))
            whole = tensor.dtype == "int" or (number.is_integer() and "int" in tensor.dtype)
            return str(int(number)) if whole else repr(number)
        text = tensor.digest or "None"
        if tensor.dtype == "str":
            return repr(text)
        if text in ("True", "False", "Ellipsis") or (text == "None" and kind in ("None", "NoneType", "")):
            return text
        if kind in ("dtype", "memory_format", "layout") and _DTYPE.fullmatch(text):
            return text
        detail = f"the dump has no value of the argument {shown(tensor.name)}, of type {shown(tensor.dtype)}"
        raise Uncallable(self.row, "has an argument that is not in the dump", detail)

    def tensor(self, tensor: Tensor) -> str:
        if tensor.dtype not in _KNOWN:
            detail = f"the tensor {shown(tensor.name)} is of type {shown(tensor.dtype)}, which a test cannot draw"
            raise Uncallable(self.row, "has a tensor of an unusual type", detail)
        if tensor.path is not None and os.path.isfile(inside(self.folder, tensor.path)):
            self.loads = True
            return f"recorded({tensor.path!r}, torch.{tensor.dtype})"
        if not self.draws:
            detail = f"its tensor {shown(tensor.name)} has only statistics"
            raise Uncallable(self.row, "has a tensor without elements in the dump", detail)
        low, high = (0.0 if v is None or v - v != 0 else v for v in (tensor.min, tensor.max))
        self.seed += 1
        return f"drawn({tuple(tensor.shape)!r}, torch.{tensor.dtype}, {low!r}, {high!r}, {self.seed})"


def given(backward: Row, outputs: Sequence[Tensor]) -> list[Tensor]:
    """The gradients of the outputs: of both sides of a backward row, recorders differ in their order, what fits."""
    shapes = [tensor.shape for tensor in outputs]
    sides = [side for side in gradients(backward) if side]
    fitting = [side for side in sides if [tensor.shape for tensor in side] == shapes[: len(side)]]
    if not fitting:
        raise Uncallable(backward, "has no gradients of the shapes of its outputs")
    return fitting[0]


def gradients(backward: Row) -> Iterator[list[Tensor]]:
    """Those of both sides of a backward row."""
    for side in (backward.inputs, backward.outputs):
        yield [tensor for tensor in side if tensor.is_tensor]


def _structure(row: Row, values: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """(args, kwargs) as literals, of values by their names: `input.0`, `input.1.0`, `kwargs.mask`."""
    args: dict[str, Any] = {}
    kwargs: dict[str, Any] = {}
    for name, literal in values:
        first, *path = name.split(".")
        at = kwargs if first == "kwargs" else args
        for part in path[:-1] or ():
            at = at.setdefault(part, {})
            if not isinstance(at, dict):
                raise Uncallable(row, "has an argument that is not in the dump", f"{shown(name)} is nested in a value")
        at[path[-1] if path else "0"] = literal
    named = ", ".join(f"{key!r}: {_nested(value)}" for key, value in kwargs.items())
    return _nested(args) if args else "[]", f"{{{named}}}"


def _nested(value: Any) -> str:
    """A list for what has numbers as names, None for those that are missing; else a dict."""
    if not isinstance(value, dict):
        return str(value)
    if all(key.isdecimal() and len(key) < 5 for key in value):
        places = {int(key): each for key, each in value.items()}
        return f"[{', '.join(_nested(places.get(place, 'None')) for place in range(max(places) + 1))}]"
    return f"{{{', '.join(f'{key!r}: {_nested(each)}' for key, each in value.items())}}}"
