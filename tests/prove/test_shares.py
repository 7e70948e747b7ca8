"""The first step of several ranks against one process on the share of each (transplt.proof.prove.shares)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.prove.trainings import Told
from transplt.proof.prove.shares import first_step, with_losses_of
from transplt.proof.prove.tolerance import REORDERED
from transplt.proof.prove.training import Training, read_trainings


def told(*steps: tuple[float, float]) -> Training:
    """A training with (loss, gradient) of each step."""
    training = Told().made()
    for loss, gradient in steps:
        training.step(loss=loss, grad=gradient)
    return training.training()


def said(alone: Sequence[Training], ranks: Sequence[Training], shaken: Sequence[Training] = ()) -> str:
    return str(first_step(alone, ranks, REORDERED, shaken) or "")


ALONE = [told((1.0, 0.2)), told((2.0, 0.6))]


@pytest.mark.parametrize(
    "ranks",
    [
        [told((1.0, 0.4)), told((2.0, 0.4))],
        [told((1.00001, 0.40001)), told((2.0, 0.40001))],
        # What comes behind the first step is of other parameters than those of one process.
        [told((1.0, 0.4), (0.5, 9.0)), told((2.0, 0.4), (0.7, 9.0))],
    ],
)
def test_the_mean_of_the_shares(ranks: list[Training]) -> None:
    assert said(ALONE, ranks) == ""


@pytest.mark.parametrize(
    ("gradient", "cause"),
    [
        (0.8, "each gradient is 2 times that of one process: summed over the ranks and not divided"),
        (0.2, "each gradient is 0.5 times that of one process: divided by the ranks twice"),
        (0.5, ""),
    ],
)
def test_another_gradient(gradient: float, cause: str) -> None:
    found = said(ALONE, [told((1.0, gradient)), told((2.0, gradient))])
    # A sum in place of a mean is made where gradients are exchanged: here by the backward pass of a wrapper.
    line = 12 if cause else 14
    assert found.startswith(f"train.py:{line}: the gradient of Net.0 at step 1 is not the mean of those of one process")
    assert found.endswith(cause or "rank's share")


def test_a_rank_with_another_loss_than_its_share_has() -> None:
    found = said(ALONE, [told((1.0, 0.4)), told((2.5, 0.4))])
    assert "the loss of step 1 on rank 0 is not that of one process on the same share" in found


def test_a_gradient_that_is_rounding_says_nothing() -> None:
    tiny = [told((1.0, 0.0)), told((2.0, 0.0))]
    assert said(tiny, [told((1.0, 0.0)), told((2.0, 0.0))]) == ""


def test_what_roundings_make_of_it_is_no_other_gradient() -> None:
    ranks = [told((1.0, 0.41)), told((2.0, 0.41))]
    assert said(ALONE, ranks)
    assert said(ALONE, ranks, [told((1.0, 0.202))]) == ""


def test_no_step() -> None:
    with pytest.raises(ValueError, match="took no step"):
        first_step([told(), told()], [told((1.0, 0.4)), told((2.0, 0.4))], REORDERED, ())


def trace(pid: int, parent: int, event: str, **fields: Any) -> list[dict[str, Any]]:
    begin = {"e": "begin", "pid": pid, "parent": parent, "rank": None}
    return [begin, {"e": event, "at": ["/project/data.py", 3], "t": 0.0, **fields}]


@pytest.mark.parametrize(("parent", "draws"), [(7, 1), (8, 0)])
def test_what_the_workers_of_a_loader_draw_the_rank_draws(parent: int, draws: int) -> None:
    trains = trace(7, 1, "backward", loss=[1.0], dtype=["float32"])
    found = read_trainings([trains, trace(9, parent, "draw")], Path("/project"))
    assert [len(training.of("draw")) for training in found] == [draws]


def given(numbers: list[float], *steps: tuple[float, float]) -> Training:
    """A training whose first call was given so many numbers, with their figures."""
    training = Told().made().tell("others", o=0, p={}, given=numbers)
    for loss, gradient in steps:
        training.step(loss=loss, grad=gradient)
    return training.training()


@pytest.mark.parametrize(
    ("ranks", "shares"),
    [
        ([[4, 0.5], [4, 0.7]], True),
        ([[8, 1.0], [4, 0.7]], True),  # one takes all
        ([[8, 1.0], [8, 1.0]], True),  # each computes with all
        ([[8, 1.0], [8, 0.9]], False),  # a batch of its own
        ([[4, 0.5], []], False),
    ],
)
def test_shares_without_a_loader(ranks: list[list[float]], shares: bool) -> None:
    one = given([8, 1.0], (1.0, 0.2), (2.0, 0.6))
    found = with_losses_of(one, [given(each, (0.5, 0.2), (1.0, 0.6), (3.0, 0.1)) for each in ranks])
    assert (found is not None) == shares
    if found is not None:
        assert [step.losses[0].value for step in found[0].steps] == [1.0, 2.0, 3.0]
