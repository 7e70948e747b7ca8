"""The types that operators of a card take, held against what people saw on cards (tests/data/card_messages.json)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from transplt.rules.card_types import Types, types_of

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data" / "card_messages.json").read_text("utf-8")
)["rows"]
CARDS = ("910B", "A3", "950")


def told(row: dict[str, Any]) -> Types | None:
    """What the table says of the argument of a row; None where it says nothing."""
    arguments = types_of(row["operator"], row["on"])
    return arguments.get(row["argument"]) or arguments.get("any")


def agrees(row: dict[str, Any]) -> bool:
    """Whether the table says of all types of a row what was seen; of what was taken it must say no other."""
    found, types = told(row), set(row["types"].split())
    if row["outcome"] == "taken":
        return found is None or not types & found.refuses
    if found is None:
        return False
    return types <= (found.refuses if row["outcome"] == "refused" else found.on_cpu)


def named(row: dict[str, Any]) -> str:
    return f"{row['operator']}({row['argument']}) {row['outcome']} {row['types']} {row.get('card', '')}"


@pytest.mark.parametrize("row", [row for row in ROWS if "known" not in row], ids=named)
def test_the_table_says_what_was_seen(row: dict[str, Any]) -> None:
    assert agrees(row), row["url"]


@pytest.mark.parametrize("row", [row for row in ROWS if "known" in row and "on" in row], ids=named)
def test_what_it_does_not_say_is_known(row: dict[str, Any]) -> None:
    assert not agrees(row), f"the table says it now: {row['url']} is no longer {row['known']}"
    assert row["why"]
    if row["known"] != "contradicted":
        found = told(row)
        kinds = (found.refuses, found.on_cpu) if found is not None else ()
        seen = set(row["types"].split())
        assert not any(seen & kind for kind in kinds), "of a type that it tells of, it says another thing"


@pytest.mark.parametrize("row", [row for row in ROWS if "on" not in row], ids=named)
def test_cards_that_the_table_says_nothing_of(row: dict[str, Any]) -> None:
    """People call cards of the first generation 910B too: then the list that was printed gives them away."""
    assert row["known"] == "card"
    assert row.get("card") not in CARDS or "bfloat16" not in row["printed"].split()


@pytest.mark.parametrize("row", [row for row in ROWS if "printed" in row and "known" not in row], ids=named)
def test_no_later_list_is_shorter_than_the_printed_one(row: dict[str, Any]) -> None:
    found = told(row)
    assert found is not None
    assert set(row["printed"].split()) <= set(found.takes)


def test_the_sum_of_what_was_seen() -> None:
    """A row that comes to agree loses its reason in the data, and is counted here among those that do."""
    assert Counter(row.get("known", "agrees") for row in ROWS) == {
        "agrees": 26, "silent": 4, "older": 4, "card": 6, "custom": 1,
    }  # fmt: skip
    assert all(row["url"].startswith("https://") and row["date"] for row in ROWS)
