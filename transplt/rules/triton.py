"""What an NPU refuses of Triton's operations, and what its cores have: rules/support/triton_types.json."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from transplt.rules.card_limits import card_named
from transplt.rules.tables import read_table

_table = partial(read_table, "support/triton_types.json")

#: Types of Triton that the table has under one name.
_FAMILIES = {"float8e4nv": "float8e4", "float8e4b8": "float8e4", "float8e4b15": "float8e4", "float8e5b16": "float8e5"}
#: No float of 8 bits is in the pages' tables of these; the page of each says so in words.
_NO_FLOAT8 = frozenset({"dot", "dot_scaled"})


def types_hold_for(card: str) -> bool:
    """True for a card (`910B`, `A2`) that triton-ascend's documentation speaks of."""
    return card_named(card) in _table()["documented_cards"]


def _row(operation: str, dtype: str) -> tuple[dict[str, Any], str]:
    name = _FAMILIES.get(dtype, dtype)
    return _table()["operations"].get(operation, {}), name


def refuses(operation: str, dtype: str, card: str) -> bool:
    """True where an operation of Triton's language takes a type on a GPU, and the compiler for that card does not."""
    row, name = _row(operation, dtype)
    if name.startswith("float8") and operation in _NO_FLOAT8:
        return types_hold_for(card)
    return bool(name) and name in row.get("refused", {}).get(_typed_as(card), ())


def is_undocumented(operation: str, dtype: str, card: str) -> bool:
    """True where the documentation says that an operation takes no such type on that card, and it compiles."""
    row, name = _row(operation, dtype)
    return types_hold_for(card) and name in row.get("undocumented", ())


def refuses_cast(source: str, target: str, card: str) -> bool:
    """True where both types are there on that card, and none is made of the other."""
    return target in _table()["casts"].get(_typed_as(card), {}).get(source, ())


def _typed_as(card: str) -> str:
    """The card whose types hold for a card."""
    name = card_named(card)
    typed: str = _table()["cards"].get(name, {}).get("types", name)
    return typed


def page_of(operation: str) -> str:
    """The page of triton-ascend's documentation that says what an operation takes; empty for one without."""
    row = _table()["operations"].get(operation)
    source: str = "" if row is None else row["source"].partition(": ")[2]
    return source


@cache
def values_of(argument: str) -> tuple[str, ...]:
    """What an argument of that name takes on an NPU (`sem`, `scope`, `acc`, `out_dtype`)."""
    return tuple(_table()["values"][argument]["takes"])


def memories_of(card: str) -> tuple[int, int] | None:
    """Bytes of the unified buffer of a vector core and of L0C of a cube core; None for a card that needs less of them
    than is counted here: the compiler for the 950 keeps chains of elementwise work in registers."""
    row = _table()["cards"].get(card_named(card))
    return (row["unified_buffer"], row["l0c"]) if row is not None and types_hold_for(card) else None
