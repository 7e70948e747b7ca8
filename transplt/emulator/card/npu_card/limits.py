"""What the chosen card refuses, looked at where CANN looks: at the arguments of an operator.

The rows are those of the check (`npu_emulator.types` and `limits`), which have operators of PyTorch; here they are
looked up by the function of CANN that each row names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NoReturn

import torch
from npu_emulator import limits
from npu_emulator.config import config
from npu_emulator.limits import Limit
from npu_emulator.names import read_table
from npu_emulator.record import record
from npu_emulator.types import ALL, ANY, Types, places, types_of
from npu_emulator.user_code import nearest

#: How torch_npu begins the text of an error, in front of what CANN says.
_ITS_OWN = "error code is 161002. "
#: Functions that the rows do not name, and that take what another takes (aclnn_matmul.cpp of hicann/ops-nn).
_ALIKE = {"aclnnMatmul": "aclnnMm"}


#: More dimensions than a tensor has.
_ANY_DIMENSIONS = 1 << 30


class Refused(RuntimeError):
    """What CANN says of arguments that it does not take."""


@dataclass
class _Rows:
    """What is known of a function: the operators that it computes, their types by the name of an argument (of
    PyTorch's schema or of CANN's function, in small letters without underscores), the most dimensions (0: any)."""

    operators: set[str] = field(default_factory=set)
    types: dict[str, Types] = field(default_factory=dict)
    dimensions: tuple[Limit, ...] = ()


@cache
def _functions() -> dict[str, _Rows]:
    found: dict[str, _Rows] = {}
    table = read_table("types")
    for operator, arguments in table["operators"].items():
        known = types_of(operator)
        for argument, by_cards in arguments.items():
            for cards, row in by_cards.items():
                if config.card in cards.split():
                    function, of_cann = table["rows"][row][:2]
                    rows = found.setdefault(function, _Rows())
                    rows.operators.add(operator)
                    for name in (argument,) if argument in (ANY, ALL) else {_plain(argument), _plain(of_cann)}:
                        rows.types[name] = _both(rows.types.get(name), known[argument])
    for each in limits.shapes().values():
        for limit in each:
            rows = found.setdefault(limit.kernel, _Rows())
            rows.dimensions = (limit,)
    return found


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _both(one: Types | None, other: Types) -> Types:
    """What two rows about an argument have in common: the operators of a function may differ."""
    if one is None:
        return other
    refuses = {dtype: limit for dtype, limit in one.refuses.items() if dtype in other.refuses}
    return Types(refuses, one.on_cpu & other.on_cpu)


def check_of(
    name: str, names: Sequence[str], kinds: str, written: Sequence[int], aten: str
) -> Callable[[list[Any]], None] | None:
    """What raises for types that the function `name` does not take; None where nothing is known of any. `names` and
    `kinds` are those of its arguments, `written` the places of its outputs, `aten` the operator that it is."""
    if not config.enforced:
        return None
    given = [(at, _plain(names[at]), kinds[at]) for at in range(len(names)) if at not in written and kinds[at] in "tT"]
    rows = _functions().get(_ALIKE.get(name, name), _Rows())
    bases = {operator.partition(".")[0] for operator in rows.operators} | ({aten} if aten else set())
    own = {
        types: error
        for operator, results in config.own.items()
        if operator.removeprefix("aten::").partition(".")[0] in bases
        for types, error in results.items()
    }
    quiet = {_plain(each) for each in places()}
    known = {at: _known(rows.types.get(of, rows.types.get(ANY)), of in quiet, rows) for at, of, _ in given}
    together = _known(rows.types.get(ALL), False, rows)
    looks = _Look(tuple(at for at, _, _ in given), {at for at, of, _ in given if of not in quiet}, known, together, own)
    most = rows.dimensions[0].most if rows.dimensions else 0
    closely = functools.partial(_look_closely, rows.dimensions[0], looks) if rows.dimensions else looks
    if any(own.values()):
        return closely
    types = {at: frozenset(known[at]) | (frozenset() if of in quiet else frozenset(together)) for at, of, _ in given}
    watched = tuple((at, types[at]) for at, _, _ in given if types[at] or most)
    if not watched:
        return None
    several = any(kind == "T" for at, _, kind in given if types[at] or most)
    return (_glance_at_lists if several else _glance)(watched, most or _ANY_DIMENSIONS, closely)


def _look_closely(limit: Limit, look: _Look, arguments: list[Any]) -> None:
    for at in look.places:
        for each in arguments[at] if isinstance(arguments[at], list) else (arguments[at],):
            if each is not None and each.dim() > limit.most:
                _refuse(limit, "")
    look(arguments)


def _glance(
    watched: tuple[tuple[int, frozenset[Any]], ...], most: int, look: Callable[[list[Any]], None]
) -> Callable[[list[Any]], None]:
    """Look closer only where a type occurs of which something is known, or many dimensions: this is in the way of
    every call."""

    def glance(arguments: list[Any]) -> None:
        for at, types in watched:
            value = arguments[at]
            if value is not None and (value.dtype in types or value.ndim > most):
                return look(arguments)

    return glance


def _glance_at_lists(
    watched: tuple[tuple[int, frozenset[Any]], ...], most: int, look: Callable[[list[Any]], None]
) -> Callable[[list[Any]], None]:
    """Likewise, for operators that take lists of tensors."""

    def glance(arguments: list[Any]) -> None:
        for at, types in watched:
            value = arguments[at]
            for each in value if isinstance(value, list) else (value,):
                if each is not None and (each.dtype in types or each.ndim > most):
                    return look(arguments)

    return glance


def _known(types: Types | None, quiet: bool, rows: _Rows) -> dict[Any, Callable[[], None]]:
    """Type of torch -> what tells of it, or raises."""
    if types is None or (quiet and types is rows.types.get(ANY)):
        return {}
    operator = f"aten::{min(each.partition('.')[0] for each in rows.operators)}"
    found: dict[Any, Callable[[], None]] = {
        getattr(torch, name, None): functools.partial(_tell_ai_cpu, operator, name) for name in types.on_cpu
    }
    for name, limit in types.refuses.items():
        found[getattr(torch, name, None)] = functools.partial(_refuse, limit, name)
    found.pop(None, None)
    return found


@dataclass
class _Look:
    """Looks at the tensors at `places`, of which those `computed` are no positions or masks."""

    places: tuple[int, ...]
    computed: set[int]
    known: dict[int, dict[Any, Callable[[], None]]]
    together: dict[Any, Callable[[], None]]
    own: dict[str, str]

    def __call__(self, arguments: list[Any]) -> None:
        if self.own:
            error = self.own.get(_written([arguments[at] for at in self.places]))
            if error:
                _raise_own(error)
            if error is not None:
                return
        alike: set[Any] = set()
        told: set[Any] = set()
        for at in self.places:
            for dtype in _dtypes(arguments[at]):
                if at in self.computed:
                    alike.add(dtype)
                if dtype in self.known[at] and dtype not in told:
                    told.add(dtype)
                    self.known[at][dtype]()
        if len(alike) == 1 and not alike & told and (tell := self.together.get(*alike)) is not None:
            tell()


def _written(values: list[Any]) -> str:
    """The types of the tensors of a call as the file of a card writes them: in a list each type once."""
    names: list[str] = []
    for value in values:
        tensors = value if isinstance(value, list) else [value] if value is not None else []
        names += dict.fromkeys(str(each.dtype).removeprefix("torch.") for each in tensors)
    return ",".join(names)


def _dtypes(value: Any) -> Iterator[Any]:
    """The types of the tensors in an argument; those without dimensions or elements go other ways."""
    for each in value if isinstance(value, list) else (value,):
        if each is not None and each.dim() and each.numel():
            yield each.dtype


def _refuse(limit: Limit, dtype: str) -> NoReturn:
    record.finding(nearest(3), limit.code, limit.message_for(dtype), limit.help)
    raise Refused(limit.error(dtype).rpartition(_ITS_OWN)[2])


def _raise_own(error: str) -> NoReturn:
    text = limits.text("own card")
    record.finding(nearest(3), text.code, text.message.format(error=error), text.help)
    raise Refused(error)


def _tell_ai_cpu(operator: str, dtype: str) -> None:
    text = limits.text("ai cpu")
    message = text.message.format(name=operator, dtype=dtype, card=limits.card_title())
    record.finding(nearest(3), text.code, message, text.help, "info")
