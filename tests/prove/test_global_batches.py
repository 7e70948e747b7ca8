"""What one process is given to do the work of several: their batches put together, and whole evaluations once."""

from __future__ import annotations

import pytest

from transplt.proof.prove.loaders import global_batches
from transplt.proof.prove.training import Event, Training


def _rank(rank: int, *batches: list[int], trains: bool) -> Training:
    events = []
    for number, indices in enumerate(batches):
        events.append(Event("batch", {"loader": 0, "epoch": 0, "indices": indices}, None, 2 * number))
        if trains:
            events.append(Event("backward", {}, None, 2 * number + 1))
    return Training(rank, 2, tuple(events), (), {}, {}, False)


@pytest.mark.parametrize(
    ("trains", "one", "other", "together"),
    [
        (True, [[0], [2]], [[1], [3]], [[0, 1], [2, 3]]),
        (False, [[0], [2]], [[1], [3]], [[0, 1], [2, 3]]),
        (False, [[0, 1], [2, 3]], [[0, 1], [2, 3]], [[0, 1], [2, 3]]),
        (False, [[0, 1], [2, 3]], [[3, 1], [0, 2]], [[0, 1], [2, 3]]),
        (True, [[0, 1], [2, 3]], [[3, 1], [0, 2]], [[0, 1, 3, 1], [2, 3, 0, 2]]),
    ],
    ids=["training", "shares", "the same", "another order", "training in another order"],
)
def test_batches_of_one_process(
    trains: bool, one: list[list[int]], other: list[list[int]], together: list[list[int]]
) -> None:
    ranks = [_rank(0, *one, trains=trains), _rank(1, *other, trains=trains)]
    assert global_batches(ranks) == {"0.0": together}
