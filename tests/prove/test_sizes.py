"""One process and several where their batches cannot be the same (transplt.proof.prove.sizes)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.prove.trainings import ROOT, Told
from transplt.proof.prove.ranks import with_mean_losses
from transplt.proof.prove.sizes import other_sizes
from transplt.proof.prove.tolerance import REORDERED
from transplt.proof.prove.training import Training


def told(*steps: tuple[float, float], lr: float = 0.1, metric: bool = False) -> Training:
    """A training with (loss, gradient) of each step."""
    training = Told().made(lr=lr)
    for loss, gradient in steps:
        training.step(loss=loss, grad=gradient)
        if metric:
            training.tell("scheduler", kind="ReduceLROnPlateau", metric=loss)
    return training.training()


def said(one: Training, *ranks: Training, same_data: bool = True, root: Path = ROOT) -> str:
    return str(other_sizes(one, ranks, with_mean_losses(ranks), REORDERED, same_data=same_data, root=root) or "")


ONE = ((1.0, 0.5), (0.9, 0.4), (0.8, 0.4))


@pytest.mark.parametrize(
    "steps",
    [
        ONE,
        ((1.05, 0.52), (0.9, 0.6), (1.2, 0.3)),  # what batch norms and draws make of it
        ((2.0, 0.5), (0.9, 0.4), (0.8, 0.4)),  # once
        ((2.0, 0.5), (1.8, 0.4), (1.6, 0.4)),  # times the ranks, by which the exchange divides it again
        ((0.5, 0.5), (0.45, 0.4), (0.4, 0.4)),  # a loss that is a sum over the share of each rank, as its gradients are
        ((1.0, 0.5), (5.0, 9.0), (7.0, 9.0)),  # behind the first step all may be others
    ],
)
@pytest.mark.parametrize("same_data", [True, False])
def test_what_the_batches_of_ranks_make_of_it(steps: tuple[tuple[float, float], ...], same_data: bool) -> None:
    assert said(told(*ONE), told(*steps), told(*steps), same_data=same_data) == ""


@pytest.mark.parametrize(
    ("factors", "sentence"),
    [
        ((2.0, 2.0), "the loss of step 1 is 2, with one process 1; multiplied by the 2 ranks"),
        ((2.1, 1.9), "the loss of step 1 is 2.1, with one process 1; multiplied by the 2 ranks"),
        ((1.0, 2.0), "; 2 times as large: summed over the ranks and not divided"),
        ((1.1, 0.5), "; 0.5 times as large: divided by the ranks twice"),
        ((0.5, 0.5), "; 0.5 times as large: the mean over the ranks of a loss that each sums up over its share"),
    ],
)
def test_losses_and_gradients_times_the_ranks(factors: tuple[float, float], sentence: str) -> None:
    steps = [(loss * factors[0], gradient * factors[1]) for loss, gradient in ONE]
    assert sentence in said(told(*ONE), told(*steps), told(*steps))


def clipped(*norms: tuple[float, float]) -> Training:
    """A training whose gradients are clipped to 0.1, with (loss, norm before) of each step."""
    training = Told().made()
    for loss, norm in norms:
        training.tell("clip", 11, bound=0.1, norm=norm).step(loss=loss, grad=0.1)
    return training.training()


def test_gradients_that_are_clipped_are_compared_as_they_were_before() -> None:
    one, twice = clipped(*ONE), clipped(*((loss, 2 * norm) for loss, norm in ONE))
    assert "norm 1, in one process 0.5" in said(one, twice, twice)
    assert said(one, one, one) == ""


@pytest.mark.parametrize(("same_data", "metric"), [(True, False), (False, False), (True, True)])
def test_a_learning_rate_times_the_ranks(same_data: bool, metric: bool) -> None:
    """That of the first step hangs on no data."""
    one, rank = told(*ONE, metric=metric), told(*ONE, lr=0.2, metric=metric)
    assert "the learning rate is 0.2 at step 1, in the original 0.1" in said(one, rank, rank, same_data=same_data)


def test_a_step_behind_more_backward_passes() -> None:
    twice = Told().made()
    for _ in range(2):
        twice.tell("backward", 12, loss=[1.0], dtype=["float32"]).step()
    one = twice.training()
    rank = Told().made().step().step().training()
    sentence = "train.py:14: step 1 follows 1 backward passes, with one process 2"
    assert (said(one, rank, rank), said(one, rank, rank, same_data=False)) == (sentence, "")
    assert said(one, one, one) == ""


@pytest.mark.parametrize(("batches", "cut"), [((1, 1), True), ((4, 2), False), ((1, 2), False)])
def test_a_batch_that_is_cut_into_parts_of_a_size(batches: tuple[int, int], cut: bool) -> None:
    """One process has a batch of W times as many samples; where it has W times the batches it steps too late."""
    one, rank = Told().made(), Told().made()
    for side, given, parts in ((one, batches[0], 4), (rank, batches[1], 2)):
        for number in range(given):
            side.tell("batch", 11, loader=0, epoch=0, indices=[number])
        for _ in range(parts - 1):
            side.tell("backward", 12, loss=[1.0], dtype=["float32"])
        side.step()
    trainings = one.training(), rank.training()
    assert (said(*trainings, trainings[1]) == "") is cut


def test_steps_that_only_one_of_them_takes() -> None:
    one, rank = told(*ONE), told(*ONE[:2])
    assert said(one, rank, rank) == "train.py:14: optimizer 0 takes 2 steps, in the original 3"
    assert said(one, rank, rank, same_data=False) == ""
    cut = replace(rank, cut=True)
    assert said(one, cut, cut) == "" and said(one, told(*ONE), told(*ONE)) == ""


@pytest.mark.parametrize(
    ("same_data", "metric", "told_of"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_a_learning_rate_of_a_later_step(same_data: bool, metric: bool, told_of: bool) -> None:
    """Not where data or what was found in them decides it."""
    sides = []
    for rate in (None, 0.2):
        side = Told().made().step().step(lr=rate)
        sides.append((side.tell("scheduler", kind="ReduceLROnPlateau", metric=1.0) if metric else side).training())
    assert bool(said(sides[0], sides[1], sides[1], same_data=same_data)) is told_of


def test_each_optimizer_is_held_against_itself() -> None:
    """The loss of a second network times the ranks, among those of a first one that are as they were."""
    sides = []
    for factor in (1.0, 2.0):
        side = Told().made()
        for event in [*side.events[1:]]:
            side.tell(event["e"], **{**{key: value for key, value in event.items() if key not in ("e", "at")}, "o": 1})
        for number, (loss, gradient) in enumerate(ONE):
            side.step(loss=loss, grad=gradient)
            side.tell("backward", 22, loss=[factor * loss], dtype=["float32"])
            side.tell("grads", o=1, k=number, g=[[factor * gradient, factor * gradient, 0.0]])
            side.tell("step", 24, o=1, k=number, p=[[1.0, 1.0, 1.0, 1]], b={})
        sides.append(side.training())
    told_of = "train.py:22: the loss of step 1 is 2, with one process 1; multiplied by the 2 ranks"
    assert said(sides[0], sides[1], sides[1]) == told_of
    assert said(sides[0], sides[0], sides[0]) == ""


@pytest.mark.parametrize(
    ("line", "loss", "summed", "told_of"),
    [
        ("loss = f(x)", 1.1, 0.5, True),
        ("loss = f(x) / 2", 1.1, 0.5, False),
        ("loss = f(x)", 0.5, 0.5, False),  # that of a part
        ("loss = f(x)", 1.1, 1.0, False),  # divided behind it
    ],
)
def test_sums_of_gradients_as_they_are(line: str, loss: float, summed: float, told_of: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"{chr(10) * 10}{line}\nloss.backward()\n", encoding="utf-8")
    one, rank = Told().made().step(grad=0.7), Told().made()
    rank.tell("summed", 13, p=[summed, summed / 2, 0.0, 1])
    rank.step(loss=loss, grad=0.5)
    trainings = one.training(), rank.training()
    told = "train.py:13: the gradients of step 1 are sums over the ranks, of a loss about as large as in one process"
    assert (told in said(*trainings, trainings[1], root=tmp_path)) is told_of
