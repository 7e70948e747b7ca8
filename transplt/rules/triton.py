"""What an NPU refuses of Triton's operations, and what its cores have: rules/support/triton_types.json."""

from __future__ import annotations

from functools import cache
from typing import Any

from transplt.rules.card_limits import card_named
from transplt.rules.tables import read_table

#: Types of Triton that the table has under one name.
_FAMILIES = {"float8e4nv": "float8e4", "float8e4b8": "float8e4", "float8e4b15": "float8e4", "float8e5b16": "float8e5"}
#: No float of 8 bits is in the pages' tables of these; the page of each says so in words.
_NO_FLOAT8 = frozenset({"dot", "dot_scaled"})


def _table() -> dict[str, Any]:
    table: dict[str, Any] = read_table("support/triton_types.json")
    return table


def types_hold_for(card: str) -> bool:
    """True for a card (`910B`, `A2`) whose types the documentation gives."""
    return card_named(card) in _table()["typed_cards"]


def refuses(operation: str, dtype: str, card: str) -> bool:
    """True where an operation of Triton's language takes a type on a GPU and not on that card."""
    if not dtype or not types_hold_for(card):
        return False
    name = _FAMILIES.get(dtype, dtype)
    if name.startswith("float8") and operation in _NO_FLOAT8:
        return True
    row = _table()["operations"].get(operation)
    return row is not None and name in row["refused"]


def page_of(operation: str) -> str:
    """The page of triton-ascend's documentation that says what an operation takes; empty for one without."""
    row = _table()["operations"].get(operation)
    source: str = "" if row is None else row["source"].partition(": ")[2]
    return source


@cache
def values_of(argument: str) -> tuple[str, ...]:
    """What an argument of that name takes on an NPU (`sem`, `scope`, `acc`, `out_dtype`)."""
    return tuple(_table()["values"][argument]["takes"])


def unified_buffer(card: str) -> int:
    """Bytes of the unified buffer of one vector core; 0 for a card of which it is not known."""
    size: int = _table()["cards"].get(card_named(card), {}).get("unified_buffer", 0)
    return size
