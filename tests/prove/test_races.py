"""Effects of one rank and reads of another that nothing keeps in order (transplt.proof.prove.races)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.prove.trainings import Told
from transplt.proof.prove.found import Difference
from transplt.proof.prove.races import unordered
from transplt.proof.prove.training import Training

WORDS = ("save", "write", "load", "read", "ask", "remove", "rename")


def rank(number: int, *events: str, group: Sequence[int] = (0, 1)) -> Training:
    """A rank with these events; what is no effect on a file is a collective. `load other` is of another file."""
    told = Told()
    told.tell("group", rank=number, world=2, group=[0, 1])
    for line, event in enumerate(events, 20):
        kind, _, name = event.partition(" ")
        path = {"file": name or "x.pt", "path": f"/project/{name or 'x.pt'}"}
        told.tell(kind, line, **path) if kind in WORDS else told.tell("coll", line, kind=kind, group=[*group])
    return told.step().training()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["save", "barrier"], ["barrier", "load"]),
        (["barrier", "remove"], ["load", "barrier"]),
        (["save", "broadcast"], ["broadcast", "load"]),  # which comes from rank 0
        (["reduce", "rename"], ["load", "reduce"]),  # which goes to rank 0
        (["save", "all_reduce", "all_reduce", "remove"], ["all_reduce", "load", "all_reduce"]),
        (["save"], ["load other"]),
        (["save", "remove"], []),
        (["load"], ["load"]),
        (["save", "load", "remove"], []),
        (["ask", "write", "barrier"], ["barrier", "read"]),
        (["barrier", "write"], ["ask", "barrier"]),
        (["ask"], ["ask", "read"]),
    ],
)
def test_what_is_kept_in_order(first: list[str], second: list[str]) -> None:
    assert not isinstance(unordered([rank(0, *first), rank(1, *second)]), Difference)


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (["save"], ["load"], "train.py:20: rank 0 writes x.pt, and rank 1 loads it, with no collective between them"),
        (["barrier", "save"], ["barrier", "load"], "rank 0 writes x.pt, and rank 1 loads it"),
        (["save", "barrier", "remove"], ["barrier", "load"], "rank 0 removes x.pt, and rank 1 loads it in train.py:21"),
        (["broadcast", "remove"], ["load", "broadcast"], "rank 0 removes"),  # rank 0 waits for nobody
        (["save", "reduce"], ["reduce", "load"], "rank 0 writes"),  # rank 1 waits for nobody
        (["save", "send"], ["send", "load"], "rank 0 writes"),
        (["ask", "write"], ["read"], "train.py:21: rank 0 writes x.pt, and rank 1 reads it in train.py:20, with no"),
        (["ask", "save"], ["ask"], "train.py:20: rank 0 writes x.pt, and rank 1 tests whether it exists, with no"),
    ],
)
def test_what_is_not(first: list[str], second: list[str], sentence: str) -> None:
    assert sentence in str(unordered([rank(0, *first), rank(1, *second)]))


def test_a_group_of_some_ranks_keeps_nobody_else_in_order() -> None:
    found = unordered([rank(0, "save", "barrier", group=[0]), rank(1, "barrier", "load", group=[1])])
    assert isinstance(found, Difference)
