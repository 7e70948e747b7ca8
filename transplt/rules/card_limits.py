"""What a card refuses or changes at run time: rules/support/card_limits.json.

The emulated card reads the same table (`npu_emulator.limits`, built by scripts/build_emulator_tables.py), so that a
finding of the check and an error of a run say the same thing under the same code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

from transplt.rules.tables import read_table

_table = partial(read_table, "support/card_limits.json")


@dataclass(frozen=True, slots=True)
class LimitText:
    """The words for one limit: code, message (`{name}` stands for the operator or collective) and help."""

    code: str
    message: str
    help: str


@cache
def limit_text(key: str) -> LimitText:
    """The text `key` of the table, such as "gloo". KeyError for one that is not there."""
    row = _table()["texts"][key]
    return LimitText(row["code"], row["message"], row["help"])


@cache
def cards() -> tuple[str, ...]:
    """The cards that can be chosen, the default first."""
    table = _table()
    first: str = table["default"]
    return (first, *(name for name in table["cards"] if name != first))


@cache
def documented_cards() -> tuple[str, ...]:
    """The names under which the documentation of torch_npu speaks of cards: A2, A3, 950DT."""
    return tuple(row["documented"] for row in _table()["cards"].values() if "documented" in row)


def card_named(name: str) -> str:
    """The card of either name: `A2` and `910B` are one."""
    return next((card for card, row in _table()["cards"].items() if name in (card, row.get("documented"))), name)


def card_title(name: str) -> str:
    """What a card is called for people."""
    title: str = _table()["cards"][card_named(name)]["title"]
    return title


def documented_as(name: str) -> str:
    """The name that the documentation has for a card of either name; that name itself where it has none."""
    documented: str = _table()["cards"].get(card_named(name), {}).get("documented", name)
    return documented


@cache
def collectives_under(key: str) -> frozenset[str]:
    """Names below torch.distributed that the limits with text `key` speak of."""
    return frozenset(name for row in _table()["collectives"] if row["text"] == key for name in row["kernels"])
