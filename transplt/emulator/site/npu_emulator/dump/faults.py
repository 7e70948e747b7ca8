"""Faults that are planted in operators: what a card that computes wrongly would give in their place."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any

import torch


class Fault:
    """One fault. `op` is `linear`, `Functional.linear`, either with the number of the call in its step behind it;
    `rank` is the rank that has it, None for all."""

    def __init__(self, op: str, kind: str, value: str, rank: int | None) -> None:
        self.op, self.kind, self.value, self.rank = op, kind, value, rank

    def meets(self, api: str, call: int) -> bool:
        """Whether the fault is in call number `call` of `api`."""
        if self.rank is not None and self.rank != int(os.environ.get("RANK", "0")):
            return False
        short = api.partition(".")[2]
        return self.op in (api, short, f"{api}.{call}", f"{short}.{call}")

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What the operator gives with the fault in it."""
        if self.kind == "eps":
            return _with_eps(func, args, kwargs, float(self.value or 1e-2))
        if self.kind == "reduce":
            return _reduced_otherwise(func, args, kwargs)
        result = func(*args, **kwargs)
        change = _CHANGES.get(self.kind)
        if change is None:
            return result
        changed = _each(result, functools.partial(change, value=self.value))
        if _in_place(func, args, result):
            with torch.no_grad():
                return result.copy_(changed)
        return changed

    def added(self) -> Any:
        """The operator that `extra` puts behind the one of the program."""
        return getattr(torch, self.value or "abs")


def _in_place(func: Any, args: Any, result: Any) -> bool:
    """Whether the caller looks at its argument, and not at what is returned; a gradient would not go through."""
    name = str(getattr(func, "__name__", ""))
    given = bool(args) and result is args[0] and isinstance(result, torch.Tensor)
    return given and name.endswith("_") and (result.is_leaf or not torch.is_grad_enabled())


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value) if value.is_floating_point() and value.numel() else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_each(each, change) for each in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_each(each, change) for each in value)
    return value


def _with_nan(tensor: Any, value: str) -> Any:
    bad = torch.zeros(tensor.numel(), dtype=tensor.dtype, device=tensor.device)
    bad[:1] = float("nan")
    return tensor + bad.view(tensor.shape)


_CHANGES: dict[str, Callable[..., Any]] = {
    "scale": lambda tensor, value: tensor * float(value or 1.02),
    "bf16": lambda tensor, value: tensor.to(torch.bfloat16).to(tensor.dtype),
    "sign": lambda tensor, value: -tensor,
    "nan": _with_nan,
}


def _with_eps(func: Any, args: Any, kwargs: Any, eps: float) -> Any:
    try:
        bound = inspect.signature(func).bind(*args, **kwargs)
        known = "eps" in inspect.signature(func).parameters
    except (TypeError, ValueError):
        known = False
    if not known:
        raise SystemExit(f"transplt: --fault: {getattr(func, '__name__', func)} has no eps")
    bound.arguments["eps"] = eps
    return func(*bound.args, **bound.kwargs)


def _reduced_otherwise(func: Any, args: Any, kwargs: Any) -> Any:
    """A mean where there is a sum, and a sum where there is a mean."""
    name = str(getattr(func, "__name__", ""))
    if name in ("mean", "sum"):
        return getattr(torch, "sum" if name == "mean" else "mean")(*args, **kwargs)
    try:
        bound = inspect.signature(func).bind(*args, **kwargs)
        bound.apply_defaults()
        known = bound.arguments.get("reduction") in ("mean", "sum")
    except (TypeError, ValueError):
        known = False
    if not known:
        raise SystemExit(f"transplt: --fault: {name} reduces nothing")
    bound.arguments["reduction"] = "sum" if bound.arguments["reduction"] == "mean" else "mean"
    return func(*bound.args, **bound.kwargs)


def first(result: Any) -> Any:
    """The tensor that an operator gave."""
    return result[0] if isinstance(result, (list, tuple)) else result


_all: list[Fault] = []


def read(given: list[list[Any]]) -> None:
    """The faults of the settings, as (op, kind, value, rank)."""
    _all.extend(Fault(*each) for each in given)


def planted(api: str, call: int) -> Fault | None:
    """The fault in call number `call` of `api`."""
    return next((fault for fault in _all if fault.meets(api, call)), None) if _all else None
