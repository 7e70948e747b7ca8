"""Operators that are known to give wrong numbers without an error, where the program meets their condition.

The table is that of the check and the other readers (rules/support/silent_errors.json); what a source cannot show,
shapes and values, is here. Tensors are asked for `shape`, and masks for their elements; nothing of torch is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from .config import config
from .names import read_table
from .record import record
from .user_code import nearest

_Named = Mapping[str, Any]


def _itself(tensor: Any) -> Any:
    return tensor


#: A tensor with elements that can be looked at without an operator of the device; set by who has tensors.
on_host: Callable[[Any], Any] = _itself


@cache
def _rows() -> dict[str, list[dict[str, Any]]]:
    """Rows that hold for the chosen card, by the names of operators: `npu::npu_fusion_attention`, `aten::gelu`."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in read_table("silent")["rows"]:
        if not row["cards"] or config.card in row["cards"]:
            for name in row["names"]:
                found.setdefault(name, []).append(row)
    return found


def operators() -> frozenset[str]:
    """The names of operators that have a row for the chosen card."""
    return frozenset(_rows())


def look(name: str, given: Callable[[], _Named]) -> None:
    """Note each row of an operator whose condition its arguments meet, once for a line. `given` names them."""
    rows = _rows().get(name)
    if not rows:
        return
    arguments = given()
    for row in rows:
        if all(_holds(test, arguments) for test in row["when"]):
            record.finding(nearest(3), row["code"], row["message"].format(name=name), row["help"], "info")


def named(function: Callable[..., Any], args: Any, kwargs: _Named) -> _Named:
    """The arguments of a call of `function` by their names, without those that were not given."""
    return {**dict(zip(_parameters(function), args, strict=False)), **kwargs}


@cache
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def _holds(test: Mapping[str, Any], arguments: _Named) -> bool:
    value = arguments.get(test["argument"])
    if "missing" in test or "given" in test:
        return (value is None) is bool(test.get("missing"))
    if "value" in test or "value_not" in test:
        value = test.get("default") if value is None else value
        return bool(value == test["value"] if "value" in test else value != test["value_not"])
    shape = getattr(value, "shape", None)
    if value is None or shape is None:
        return False
    if "row_all_true" in test:
        masks = bool(len(shape)) and str(value.dtype) in ("torch.bool", "torch.uint8")
        return masks and bool(on_host(value.detach()).bool().all(-1).any())
    if "shape" in test:
        return len(shape) == len(test["shape"]) and all(map(_fits, test["shape"], shape))
    axis, wanted = test["size"]
    return len(shape) > axis and _fits(wanted, shape[axis])


def _fits(wanted: int | str, size: int) -> bool:
    if isinstance(wanted, int):
        return bool(size == wanted)
    return wanted == "*" or size > int(wanted[1:])
