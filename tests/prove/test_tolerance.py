"""How far figures may be apart: an original, the same with its parameters off by roundings, and a port."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.prove.trainings import Told, figures, first_difference, trained
from transplt.proof.prove.found import Rounding, Width
from transplt.proof.prove.steps import gaps
from transplt.proof.prove.tolerance import PLAIN, REORDERED, compared_whole, hold, in_words
from transplt.proof.prove.training import Training

Steps = list[dict[str, Any]]


def told(one: Steps, port: Steps, *shaken: Steps, rounding: Rounding = PLAIN) -> str:
    found = first_difference(trained(*one), trained(*port), rounding, [trained(*each) for each in shaken])
    return found.what if found is not None else ""


@pytest.mark.parametrize(
    ("one", "shaken", "port"),
    [
        ([{"loss": 1.0}], [{"loss": 1.0}], [{"loss": 1.00001}]),
        ([{"loss": 1.0}], [{"loss": 1.0 + 2e-6}], [{"loss": 1.0001}]),
        # The gradient is steady, whatever the loss is.
        ([{"grad": 0.5}], [{"loss": 1.1, "grad": 0.5}], [{"grad": 0.501}]),
        # Roundings move it, and the port is far beyond.
        ([{"grad": 0.5}], [{"grad": 0.5001}], [{"grad": 0.9}]),
        # What came later in the run that was shaken does not excuse the first step.
        ([{}, {}], [{}, {"loss": 1.5}], [{"loss": 1.01}, {}]),
        # No rounding takes a gradient away, a step or a learning rate.
        ([{"grad": 0.5}], [{"grad": 0.6}], [{"grad": None}]),
        ([{}, {}], [{"loss": 1.5}, {}], [{}]),
        ([{"lr": 0.1}], [{"lr": 0.1, "loss": 1.5}], [{"lr": 0.2}]),
        ([{"loss": 1.0}], [{"loss": 1.5}], [{"loss": math.nan}]),
    ],
)
def test_more_than_rounding(one: Steps, shaken: Steps, port: Steps) -> None:
    assert told(one, port, shaken)


@pytest.mark.parametrize(
    ("one", "shaken", "port"),
    [
        ([{"loss": 1.0}], [{"loss": 1.0}], [{"loss": 1.0}]),
        ([{"loss": 1.0}], [{"loss": 1.0}], [{"loss": 1.0 + 1e-6}]),
        ([{}, {"loss": 1.0}], [{}, {"loss": 1.01}], [{}, {"loss": 1.02}]),
        ([{"grad": 0.5}], [{"grad": 0.501}], [{"grad": 0.496}]),
        ([{"value": 0.9}], [{"value": 0.9001}], [{"value": 0.9005}]),
        ([{"buffers": {"m": 1.0}}], [{"buffers": {"m": 1.001}}], [{"buffers": {"m": 1.002}}]),
        # What a step moved, later ones may move as well.
        ([{}, {}], [{"loss": 1.01}, {}], [{}, {"loss": 1.02}]),
        ([{"loss": math.nan}], [{"loss": math.nan}], [{"loss": math.nan}]),
    ],
)
def test_rounding(one: Steps, shaken: Steps, port: Steps) -> None:
    assert told(one, port, shaken) == ""


def test_the_most_of_several_shaken_runs_counts() -> None:
    one, port, still, moved = ([{"loss": value}] for value in (1.0, 1.0005, 1.0, 1.0001))
    assert told(one, port, still)
    assert told(one, port, still, moved) == told(one, port, moved, still) == ""


def test_what_moves_half_of_the_gradients_of_a_step_may_move_any() -> None:
    def step(*gradients: float) -> Any:
        made = Told().made(start=[1.0] * len(gradients))
        return made.tell("grads", o=0, k=0, g=[[each, each / 2, 0.0] for each in gradients]).tell(
            "step", 14, o=0, k=0, p=[None] * len(gradients), b={}
        ).training()  # fmt: skip

    one, port = step(1.0, 1.0, 1.0), step(1.0, 1.0, 1.001)
    assert first_difference(one, port, PLAIN, [step(1.0, 1.0 + 2e-6, 1.0)])
    assert first_difference(one, port, PLAIN, [step(1.0002, 1.0002, 1.0)]) is None


@pytest.mark.parametrize(("rounding", "apart"), [(PLAIN, True), (REORDERED, False), (Rounding(9.8e-4), False)])
def test_a_few_roundings_are_room_without_any_run(rounding: Rounding, apart: bool) -> None:
    assert bool(told([{"loss": 1.0}], [{"loss": 1.00001}], rounding=rounding)) == apart


def test_nothing_is_shaken_where_all_is_equal_or_no_rounding_brings_it_about() -> None:
    def shaken() -> list[Any]:
        raise AssertionError("not needed")

    for port in ([{}], [{"grad": None}]):
        hold(trained({}), trained(*port), PLAIN, gaps, shaken)


def test_the_widest_bounds_of_each_step() -> None:
    one, port = [{}, {}], [{"loss": 1.001}, {"loss": 1.001, "grad": 0.5001}]
    shaken = trained({"loss": 1.001}, {"grad": 0.501})
    held = hold(trained(*one), trained(*port), PLAIN, gaps, lambda: [shaken])
    assert held.first is None
    assert [(width.step, width.gradient is None, width.parameter) for width in held.widths] == [
        (0, True, None), (1, False, None),
    ]  # fmt: skip
    assert all(width.loss == pytest.approx(0.008, rel=0.01) for width in held.widths)


def moved(average: float, metric: float, buffer: float) -> Training:
    """A training with an average of weights that no optimizer has, a schedule that is given a metric, and a buffer."""
    ended = Told().made().step(buffers={"m": buffer}).tell("scheduler", 15, kind="ReduceLROnPlateau", metric=metric)
    return ended.tell("end", p={"Average.w": figures(average)}, b={}, steps={}).training()


def test_bounds_of_buffers_metrics_and_what_no_optimizer_has() -> None:
    held = hold(moved(1.0, 1.0, 1.0), moved(1.001, 1.002, 1.003), PLAIN, gaps, lambda: [moved(1.001, 1.001, 1.001)])
    assert held.first is None
    assert [(width.step, width.buffer is None, width.metric is None) for width in held.widths] == [
        (0, False, True), (None, True, False),
    ]  # fmt: skip
    assert held.widths[1].end == pytest.approx(0.008, rel=0.01)
    assert in_words(held.widths).startswith(
        "relative: buffers 0.00799392, metrics of schedules 0.00799392, tensors at the end 0.00799392; "
    )


def test_what_moves_by_more_than_a_tenth_says_nothing_whatever_it_is() -> None:
    held = hold(moved(1.0, 1.0, 1.0), moved(1.1, 1.1, 1.1), PLAIN, gaps, lambda: [moved(1.1, 1.1, 1.1)])
    assert held.first is None
    assert {gap.figure[0] for gap in held.decided} == {"buffer", "metric", "end"}
    assert held.widths == ()


def test_figures_that_roundings_decide_are_not_compared() -> None:
    one, port = [{}, {"grad": 0.5}, {"loss": 1.0}], [{}, {"grad": 0.6}, {"loss": 1.1}]
    shaken = trained({}, {"grad": 0.6}, {"loss": 1.1})
    held = hold(trained(*one), trained(*port), PLAIN, gaps, lambda: [shaken])
    assert compared_whole(held.decided, 3) == (
        2,
        "2 figures from step 2 on not compared: rounding errors decide them",
    )


def test_bounds_in_words() -> None:
    widths = [Width(0, 0, 1e-5, 2e-4, None), Width(0, 1, 3e-5, 2e-4, None)]
    assert in_words(widths) == (
        "relative: losses 0.00001 to 0.00003, gradients 0.0002; 8 times what rounding errors change"
    )
    assert in_words([]) == "none was needed: the results are bit-identical"
