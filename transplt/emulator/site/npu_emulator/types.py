"""Types of tensors that operators of the chosen card refuse, or its AI CPU computes: rules/support/card_types.json."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from . import limits
from .config import config
from .limits import Limit
from .names import read_table

_table = partial(read_table, "types")

#: Any argument that is computed with, and all of them together.
ANY, ALL = "any", "*"


@dataclass(frozen=True)
class Types:
    """What one argument of an operator refuses (type -> limit), and which types run on the AI CPU there."""

    refuses: dict[str, Limit]
    on_cpu: frozenset[str]


@cache
def places() -> frozenset[str]:
    """Names of arguments that are positions, masks and lengths: not computed with."""
    return frozenset(_table()["places"])


@cache
def types_of(operator: str) -> dict[str, Types]:
    """By argument, what an operator of ATen such as `index.Tensor` does on the chosen card."""
    table = _table()
    base = operator.partition(".")[0]
    found = table["operators"].get(operator) or table["operators"].get(base, {})
    return {
        argument: _types(f"aten::{base.removesuffix('_overrideable')}", table["rows"][row], table["lists"])
        for argument, by_cards in found.items()
        for cards, row in by_cards.items()
        if config.card in cards.split()
    }


def _types(name: str, row: list[Any], lists: list[str]) -> Types:
    function, argument, *indices = row
    refuses, takes, on_cpu = (tuple(lists[at].split()) if at >= 0 else () for at in indices)

    def limit(listed: bool) -> Limit:
        words = limits.text("operator" if listed else "operator without a list")
        return Limit(
            name, function, frozenset(refuses), words.code, words.words, words.message, words.help, takes,
            argument=argument,
        )  # fmt: skip

    # A type of the list that is refused all the same is refused elsewhere, without it.
    by_list, else_where = limit(listed=True), limit(listed=False)
    refused = {each: by_list if takes and each not in takes else else_where for each in refuses}
    return Types(refused, frozenset(on_cpu))
