"""A small training step in plain Python, recorded as msprobe does, with a fault planted where a test asks for one."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.precision.recorder import tensor, write_rank

Values = list[float]
#: The operators of four kinds of models; each runs on what the one before made.
KINDS = {
    "convolution": ("conv2d", "batch_norm", "relu", "conv2d", "relu", "max_pool2d", "linear"),
    "transformer": ("embedding", "linear", "softmax", "linear", "layer_norm", "gelu", "linear", "layer_norm", "linear"),
    "recurrent": ("linear", "tanh", "linear", "sigmoid", "linear", "tanh", "linear", "tanh", "linear"),
    "gan": ("linear", "leaky_relu", "linear", "tanh", "linear", "leaky_relu", "linear", "sigmoid"),
}
_WEIGHED = ("conv2d", "linear", "embedding", "batch_norm", "layer_norm")


def bfloat16(values: Values) -> Values:
    return [struct.unpack(">f", struct.pack(">f", value)[:2] + b"\0\0")[0] for value in values]


def single(values: Values) -> Values:
    return [struct.unpack("f", struct.pack("f", value))[0] for value in values]


def norm(values: Values, eps: float = 1e-5) -> Values:
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    return [(value - mean) / math.sqrt(variance + eps) for value in values]


def softmax(values: Values) -> Values:
    powers = [math.exp(value) for value in values]
    return [power / sum(powers) for power in powers]


def gelu(values: Values) -> Values:
    return [value * 0.5 * (1 + math.erf(value / math.sqrt(2))) for value in values]


def gelu_by_tanh(values: Values) -> Values:
    inner = math.sqrt(2 / math.pi)
    return [value * 0.5 * (1 + math.tanh(inner * (value + 0.044715 * value**3))) for value in values]


_FUNCTIONS: dict[str, Callable[[Values], Values]] = {
    "batch_norm": norm, "layer_norm": norm, "softmax": softmax, "gelu": gelu,
    "relu": lambda values: [max(value, 0.0) for value in values],
    "leaky_relu": lambda values: [value if value > 0 else 0.01 * value for value in values],
    "tanh": lambda values: [math.tanh(value) for value in values],
    "sigmoid": lambda values: [1 / (1 + math.exp(-value)) for value in values],
    "max_pool2d": lambda values: [max(values[i], values[i ^ 1]) for i in range(len(values))],
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """`kind` at the operator of that number, in the forward or the backward pass."""

    kind: str
    at: int = 2
    backward: bool = False


def _faulty(kind: str, values: Values, before: Values, api: str) -> Values:
    if kind == "sign":
        return [-value for value in values]
    if kind.startswith("scale"):
        return [value * float(kind.partition(":")[2]) for value in values]
    if kind == "bf16":
        return bfloat16(values)
    if kind == "nan":
        return [math.nan, *values[1:]]
    if kind == "eps":
        return norm(before, 1e-2)
    if kind == "tanh":
        return gelu_by_tanh(before)
    return values


def record(folder: Path, model: str, fault: Fault | None = None, seed: int = 1, rank: int | None = None) -> None:
    """One step of `model`, as the dump of one rank in `folder`; ranks have data of their own."""
    chance = random.Random(f"{model} {seed} {rank}")
    weights = random.Random(f"{model} {seed}")
    kind, at = (fault.kind, fault.at) if fault else ("", -1)
    values = single([chance.gauss(0, 1) for _ in range(16)])
    if kind == "batch":
        values = single([random.Random(99).gauss(0, 1) for _ in range(16)])
    shape = [2, 8]
    if kind == "shape":
        values, shape = values[:8], [1, 8]
    data: dict[str, Any] = {}
    stacks: dict[str, list[str]] = {}
    count: dict[str, int] = {}
    calls: list[tuple[str, Values, Values, Values]] = []
    names = [*KINDS[model]]
    if kind == "drop":
        del names[at]
    elif kind == "extra":
        names.insert(at, "hardswish")
    elif kind == "other":
        names[at] = "hardswish"
    for number, api in enumerate(names):
        weight = single([weights.gauss(0, 0.5) for _ in range(16)]) if api in _WEIGHED else []
        if kind == "weights" and number == at:
            weight = single([value + 0.01 for value in weight])
        made = _FUNCTIONS.get(api, lambda each: [value * 0.9 + 0.01 for value in each])(values)
        if weight:
            turned = made[3:] + made[:3]
            made = [a * w + 0.5 * b for a, b, w in zip(made, turned, weight, strict=False)]
        at_this = number == at and fault is not None and not fault.backward
        made = single(_faulty(kind, made, values, api) if at_this else made)
        call = count[api] = count.get(api, -1) + 1
        name = f"Functional.{api}.{call}"
        dtype = "float16" if kind == "dtype" and at_this else "float32"
        inputs = [tensor(values, shape), *([tensor(weight, [16])] if weight else [])]
        data[f"{name}.forward"] = {"input_args": inputs, "output": [tensor(made, shape, dtype)]}
        stacks[f"{name}.forward"] = [f'File "model.py", line {10 + number}, in forward, \n x = F.{api}(x)']
        if weight:
            parameters = {"weight": tensor(weight, [16])}
            entry = {"input_args": inputs[:1], "parameters": parameters, "output": [tensor(made, shape, dtype)]}
            data[f"Module.{api}{call}.Layer.forward.0"] = entry
        calls.append((name, values, made, weight))
        values = made
    total = sum(value * value for value in values)
    loss = [total if kind == "reduction" else total / len(values)]
    reduction = {"reduction": {"type": "str", "value": "sum" if kind == "reduction" else "mean"}}
    data["Functional.mse_loss.0.forward"] = {
        "input_args": [tensor(values, shape)], "input_kwargs": reduction, "output": [tensor(loss, [])]
    }  # fmt: skip
    stacks["Functional.mse_loss.0.forward"] = ['File "train.py", line 5, in <module>, \n loss = F.mse_loss(x, y)']
    gradient = single([2 * value / len(values) for value in values])
    data["Functional.mse_loss.0.backward"] = {"input": [tensor([1.0], [])], "output": [tensor(gradient, shape)]}
    for number in range(len(calls) - 1, -1, -1):
        name, before, after, weight = calls[number]
        here = number == at and fault is not None and fault.backward
        if kind == "missing" and here:
            break
        made = single([g * (0.5 + 0.1 * b) for g, b in zip(gradient, before, strict=True)])
        if here:
            made = single(_faulty(kind, made, gradient, name))
        outputs = [tensor(made, shape)]
        if weight:
            outputs.append(tensor(single([g * a for g, a in zip(gradient, after, strict=True)]), [len(gradient)]))
        data[f"{name}.backward"] = {"input": [tensor(gradient, shape)], "output": outputs}
        gradient = made
    for number, (_, _, _, weight) in enumerate(each for each in calls if each[3]):
        step = single([value - 0.1 * (1.5 if kind == "optimizer" and number == 0 else 1) for value in weight])
        entry = {"input_args": [tensor(weight, [16])], "output": [tensor(step, [16])]}
        data[f"Tensor.add_.{number}.forward"] = entry
    write_rank(folder / "step0" / ("proc7" if rank is None else f"rank{rank}"), data, stacks)


def record_ranks(folder: Path, model: str, faults: Sequence[Fault | None]) -> None:
    """A run of several ranks, of which each may have its fault."""
    for rank, fault in enumerate(faults):
        record(folder, model, fault, rank=rank)
