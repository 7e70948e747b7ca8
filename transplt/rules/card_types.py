"""Which types of tensors the operators of a card refuse, or compute on its AI CPU: rules/support/card_types.json.

The emulated card reads the same table (`npu_emulator.types`). They are facts of sources (scripts/read_card_types.py):
what is not in the table is not known to be refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from transplt.rules.card_limits import card_named, card_title, documented_cards
from transplt.rules.tables import read_table

_table = partial(read_table, "support/card_types.json")

#: Any argument that is computed with, and all of them together.
ANY, ALL = "any", "*"


@dataclass(frozen=True, slots=True)
class Types:
    """What a function of CANN makes of the types of one argument: those that it refuses, the list in its source (empty
    where none is printed), and those that the AI CPU computes."""

    function: str
    argument: str
    refuses: frozenset[str]
    takes: tuple[str, ...]
    on_cpu: frozenset[str]
    path: str

    @property
    def source(self) -> str:
        return f"{self.function}: {self.path}"


@cache
def types_of(operator: str, card: str) -> dict[str, Types]:
    """By argument, what an operator of ATen (`index.Tensor`; without overload where all are meant) does on a card."""
    table = _table()
    found = table["operators"].get(operator) or table["operators"].get(operator.partition(".")[0], {})
    return {
        argument: _types(table, row)
        for argument, by_cards in found.items()
        for cards, row in by_cards.items()
        if card in cards.split()
    }


def _types(table: dict[str, Any], row: int) -> Types:
    function, argument, *indices = table["rows"][row]
    refuses, takes, on_cpu = (tuple(table["lists"][at].split()) if at >= 0 else () for at in indices)
    return Types(function, argument, frozenset(refuses), takes, frozenset(on_cpu), table["paths"].get(function, ""))


def lists_of(function: str) -> dict[Types, tuple[str, ...]]:
    """What a function of CANN (`aclnnCat`) makes of the types of its arguments, with the cards for which each holds.
    Empty for one that is not in the table."""
    table = _table()
    if all(row[0] != function for row in table["rows"]):
        return {}
    found: dict[Types, list[str]] = {}
    for arguments in table["operators"].values():
        for by_cards in arguments.values():
            for cards, row in by_cards.items():
                if table["rows"][row][0] == function:
                    held = found.setdefault(_types(table, row), [])
                    held += [card for card in cards.split() if card not in held]
    return {types: tuple(cards) for types, cards in found.items()}


def refusal(operator: str, dtype: str, card: str, argument: str = ANY) -> Types | None:
    """What refuses a tensor of this type as that argument of an operator; without one, as every one that is computed
    with. None where no source says so."""
    rows = types_of(operator, card)
    wanted = (argument, ANY) if argument != ANY else (ANY, ALL, *rows)
    places = _table()["places"]
    for name in wanted:
        row = rows.get(name)
        if row is not None and dtype in row.refuses and (name not in places or argument == name):
            return row
    return None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Arguments of operators that refuse some types, all by one list of CANN's."""

    arguments: tuple[str, ...]
    refuses: frozenset[str]
    source: str

    def __str__(self) -> str:
        return f"{' and '.join(self.arguments)}: no {', '.join(sorted(self.refuses))}"


def named_operators(base: str) -> list[str]:
    """The operators in the table with that name, and those with that name and overload; without variants for `out`."""
    return [
        each for each in _table()["operators"]
        if base in (each, each.partition(".")[0]) and "out" not in each.partition(".")[2].split("_")
    ]  # fmt: skip


def refusals_of(operators: Iterable[str]) -> dict[Refusal, list[str]]:
    """What operators refuse, with the titles of the cards that do: what all arguments say is told of each.

    Positions and masks are left out: torch itself wants whole numbers and truth values there.
    """
    places = _table()["places"]
    by_list: dict[tuple[frozenset[str], str], dict[str, list[str]]] = {}
    for operator in operators:
        for card in map(card_named, documented_cards()):
            for argument, row in types_of(operator, card).items():
                if row.refuses and argument not in places and (argument != ALL or len(types_of(operator, card)) == 1):
                    where = by_list.setdefault((row.refuses, row.source), {})
                    shown = operator if argument in (ANY, ALL) else f"{argument} of {operator}"
                    where.setdefault(shown, []).append(card_title(card))
    found: dict[Refusal, list[str]] = {}
    for (refuses, source), where in by_list.items():
        groups: dict[tuple[str, ...], list[str]] = {}
        for argument, titles in where.items():
            groups.setdefault(tuple(titles), []).append(argument)
        found |= {Refusal(tuple(each), refuses, source): list(titles) for titles, each in groups.items()}
    return found
