"""Types that an operator refuses or that the AI CPU computes, looked at before it runs (`npu_emulator.types`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import torch
from npu_emulator import limits
from npu_emulator.config import config
from npu_emulator.limits import Limit
from npu_emulator.record import record
from npu_emulator.types import ALL, ANY, places, types_of
from npu_emulator.user_code import nearest

from ._kind import EMULATED, KIND

#: Type -> what tells of it, or raises.
Known = dict[Any, Callable[[Any], None]]


def judge(
    operator: str, arguments: Sequence[str], refuse: Callable[[Limit, Any], NoReturn]
) -> Callable[[Any, Any], None] | None:
    """What looks at the tensors of a call of `aten::operator`; None where nothing is known of any type. `refuse` raises
    for a limit and a type."""
    found = types_of(operator)
    rows: dict[str, Known] = {}
    for argument, types in found.items():
        slow = functools.partial(_tell_ai_cpu, f"aten::{operator.partition('.')[0]}")
        known: Known = dict.fromkeys(map(_dtype, types.on_cpu), slow)
        known.update({_dtype(name): functools.partial(refuse, limit) for name, limit in types.refuses.items()})
        known.pop(None, None)
        rows[argument] = known
    own = config.own.get(f"aten::{operator}", {})
    if any(own.values()):
        return functools.partial(_look, tuple(arguments), rows, own)
    if not any(rows.values()):
        return None
    every = rows.get(ALL, {})
    watched = [frozenset(_row(rows, name)) | (frozenset() if name in places() else every.keys()) for name in arguments]
    return functools.partial(_glance, tuple(arguments), rows, own, watched)


def _row(rows: dict[str, Known], argument: str) -> Known:
    return rows.get(argument) or ({} if argument in places() else rows.get(ANY, {}))


def _glance(
    arguments: tuple[str, ...],
    rows: dict[str, Known],
    own: dict[str, str],
    watched: list[frozenset[Any]],
    args: Any,
    kwargs: Any,
) -> None:
    """Look closer only where a type occurs of which something is known: this is in the way of every call."""
    for types, value in zip(watched, args, strict=False):
        if types and (value.dtype in types if isinstance(value, torch.Tensor) else isinstance(value, (list, tuple))):
            _look(arguments, rows, own, args, kwargs)
            return
    if kwargs:
        _look(arguments, rows, own, args, kwargs)


def _dtype(name: str) -> Any:
    return getattr(torch, name, None)


def _look(
    arguments: tuple[str, ...], rows: dict[str, Known], own: dict[str, str], args: Any, kwargs: Any
) -> None:
    if own:
        error = own.get(_written((*args, *(kwargs[name] for name in sorted(kwargs)))))
        if error:
            _raise_own(error)
        if error is not None:
            return
    alike: set[Any] = set()
    for name, value in (*zip(arguments, args, strict=False), *kwargs.items()):
        row = _row(rows, name)
        computed = name not in places()
        for dtype in _dtypes(value):
            if computed:
                alike.add(dtype)
            if dtype in row:
                row[dtype](dtype)
    if ALL in rows and len(alike) == 1:
        (dtype,) = alike
        if dtype in rows[ALL]:
            rows[ALL][dtype](dtype)


def _written(values: tuple[Any, ...]) -> str:
    """The types of the tensors of a call as the file of a card writes them: in a list each type once."""
    names: list[str] = []
    for value in values:
        tensors = [each for each in value if isinstance(each, torch.Tensor)] if isinstance(value, (list, tuple)) else ()
        found = [value] if isinstance(value, torch.Tensor) else tensors
        names += dict.fromkeys(str(each.dtype).removeprefix("torch.") for each in found)
    return ",".join(names)


def _raise_own(error: str) -> NoReturn:
    text = limits.text("own card")
    record.finding(nearest(5), text.code, text.message.format(error=error), text.help)
    raise RuntimeError(f"{EMULATED} {error}")


def _dtypes(value: Any) -> Iterator[Any]:
    """The types of the tensors on the card in an argument; those without dimensions or elements go other ways."""
    if isinstance(value, torch.Tensor):
        if value.device.type == KIND and value.dim() and value.numel():
            yield value.dtype
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _dtypes(each) if isinstance(each, torch.Tensor) else ()


def _tell_ai_cpu(operator: str, dtype: Any) -> None:
    text, name = limits.text("ai cpu"), str(dtype).removeprefix("torch.")
    message = text.message.format(name=operator, dtype=name, card=limits.card_title())
    record.finding(nearest(5), text.code, message, text.help, "info")
