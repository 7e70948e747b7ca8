"""What the card computes, in families: one function for each operator of aclnn, after the documented formulas.

Most operators are an operator of ATen under another name: the table of functions says which (`of_table`). The others
are here. A function gets the arguments of the call without its outputs, in their order, and gives what goes into them:
one value, or a tuple in the order of the outputs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch

from ..outputs import put

_FAMILIES = (
    "activations", "attention", "convolution", "deformable", "elementwise", "foreach", "fused", "geometry",
    "grouped", "indexing", "inference_attention", "losses", "making", "matrices", "moe", "norms", "optimizers",
    "pooling", "random", "recurrent", "reductions", "resizing", "transforms",
)  # fmt: skip


@dataclass(frozen=True)
class Own:
    """An operator of ours. `arguments` are names and kinds where the table has them not (None: as in the table);
    `sized`: the operator alone knows the size of its outputs; `wants_outputs`: it is given them, for their types;
    `straight`: the function takes `out=`, into which the kernel of the CPU writes without a copy."""

    function: Callable[..., Any]
    arguments: str | None = None
    sized: bool = False
    wants_outputs: bool = False
    straight: bool = False


OWN: dict[str, Own] = {}


def operator(*names: str, arguments: str | None = None, sized: bool = False) -> Callable[[Any], Any]:
    """Let the function below compute the functions `aclnn<name>` for each of `names`; `acl...` is a whole name."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        wants = inspect.isfunction(function) and "outputs" in inspect.signature(function).parameters
        for name in names:
            OWN[name if name.startswith("acl") else f"aclnn{name}"] = Own(function, arguments, sized, wants)
        return function

    return add


def same(functions: dict[str, Callable[..., Any]]) -> None:
    """Likewise for a table of functions; a key may hold several names."""
    for name, function in functions.items():
        operator(*name.split())(function)


def straight(functions: dict[str, Callable[..., Any]]) -> None:
    """Let functions that take `out=` compute the functions `aclnn<name>` for the names of a table. The output is the
    last argument, that of `aclnnInplace<name>` the first, which is an input as well."""
    for name, function in functions.items():
        OWN[f"aclnn{name}"] = OWN[f"aclnnInplace{name}"] = Own(function, straight=True)


def of_straight(function: Callable[..., Any], in_place: bool) -> Callable[[list[Any]], None]:
    """What computes an element-wise operator into its output: with `out=` where that has the shape of an input (else
    the kernel would give it another), and where the kernel takes its type."""

    def run(arguments: list[Any]) -> None:
        if in_place:
            target, given = arguments[0], arguments
        else:
            *given, target = arguments
        shape = target.shape
        for each in given:
            if type(each) is torch.Tensor and each.shape == shape:
                try:
                    function(*given, out=target)
                    return
                except RuntimeError:
                    break
        put(target, function(*given))

    return run


def of_table(aten: str, names: Sequence[str], written: Sequence[int]) -> Callable[[list[Any]], None] | None:
    """What computes a function that is `aten` under another name, its arguments named as in ATen's schema; None where
    no overload takes them."""
    packet = getattr(torch.ops.aten, aten, None) if aten else None
    if packet is None:
        return None
    given = [(at, name) for at, name in enumerate(names) if at not in written]
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        known = {argument.name: argument for argument in schema.arguments if not argument.is_out}
        absent = [each for each in schema.arguments if not each.is_out and each.name not in names]
        if all(name in known for _, name in given) and all(each.has_default_value() for each in absent):
            break
    else:
        return None
    call = getattr(packet, overload)

    def run(arguments: list[Any]) -> None:
        results = call(**{name: arguments[at] for at, name in given})
        if not written:
            return
        if len(written) == 1:
            put(arguments[written[0]], results)
        else:
            for at, value in zip(written, results, strict=True):
                put(arguments[at], value)

    return run


for _family in _FAMILIES:
    import_module(f"{__name__}.{_family}")
