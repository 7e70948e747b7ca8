"""The first figure at which two trainings differ: hand-made trainings and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from tests.prove.trainings import Told, figures, first_difference, trained
from transplt.proof.prove.steps import curves, rounding
from transplt.proof.prove.tolerance import PLAIN, REORDERED
from transplt.proof.prove.training import Training

#: Arguments of `Told.step`; arguments of the making.
Steps = list[dict[str, Any]]


def said(one: Steps, other: Steps, made: dict[str, Any] | None = None, remade: dict[str, Any] | None = None) -> str:
    found = first_difference(trained(*one, **made or {}), trained(*other, **remade or {}), PLAIN)
    return str(found) if found is not None else ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([], []),
        ([{}, {}], [{}, {}]),
        ([{"loss": 1.0}], [{"loss": 1.0 + 1e-6}]),
        ([{"loss": math.nan}], [{"loss": math.nan}]),
        ([{"loss": math.inf}], [{"loss": math.inf}]),
        ([{"grad": 0.5}], [{"grad": 0.5 + 5e-7}]),
        ([{"grad": None}], [{"grad": None}]),
        ([{"value": 0.9}], [{"value": 0.9 + 1e-7}]),
        ([{"lr": 0.1}], [{"lr": 0.1 + 1e-9}]),
        ([{"buffers": {"a": 1.0}}], [{"buffers": {"a": 1.0, "b": 2.0}}]),
    ],
)
def test_what_agrees(one: Steps, other: Steps) -> None:
    assert said(one, other) == ""


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ([{}, {"loss": 1.0}], [{}, {"loss": 1.5}], "train.py:12: the loss of step 2 is 1.5, in the original 1"),
        (
            [{"loss": 1e-5}],
            [{"loss": 2e-5, "grad": 0.6}],
            "train.py:12: the loss of step 1 is 0.00002, in the original 0.00001",
        ),
        ([{"loss": 1.0}], [{"loss": math.nan}], "train.py:12: the loss of step 1 is nan, in the original 1"),
        ([{"loss": math.inf}], [{"loss": -math.inf}], "train.py:12: the loss of step 1 is -inf, in the original inf"),
        (
            [{"grad": 0.5}], [{"grad": 1.0}],
            "train.py:14: the gradient of Net.0 at step 1 has the norm 1, in the original 0.5",
        ),
        ([{"grad": 0.5}], [{"grad": None}], "train.py:14: Net.0 has no gradient at step 1, in the original one"),
        ([{"grad": None}], [{"grad": 0.5}], "train.py:14: Net.0 has a gradient at step 1, in the original none"),
        ([{}, {"value": 0.8}], [{}, {"value": 0.7}], "train.py:14: Net.0 differs after step 2"),
        ([{"buffers": {"m": 1.0}}], [{"buffers": {"m": 1.1}}], "train.py:14: the buffer m differs after step 1"),
        ([{}, {}], [{}], "train.py:14: optimizer 0 takes 1 steps, in the original 2"),
        ([{}], [{}, {}], "train.py:14: optimizer 0 takes 2 steps, in the original 1"),
    ],
)  # fmt: skip
def test_what_differs(one: Steps, other: Steps, told: str) -> None:
    assert said(one, other) == told


def test_numbers_of_the_optimizer() -> None:
    found = first_difference(trained({}, {"lr": 1e-5}), trained({}, {"lr": 0.1}), PLAIN)
    assert found is not None
    assert (found.what, found.cause) == ("the learning rate is 0.1 at step 2, in the original 0.00001", "")


@pytest.mark.parametrize(
    ("key", "one", "other", "told"),
    [
        ("lr", 0.1, 0.2, "the learning rate is 0.2 at step 1, in the original 0.1"),
        ("weight_decay", 0, 1e-4, "the weight decay is 0.0001 at step 1, in the original 0"),
        ("betas", [0.9, 0.999], [0.5, 0.999], "the betas are [0.5, 0.999] at step 1, in the original [0.9, 0.999]"),
        ("momentum", 0.9, 0.9, ""),
        ("momentum", 0.9, 0.0, "momentum is 0 at step 1, in the original 0.9"),
    ],
)
def test_how_numbers_of_the_optimizer_are_called(key: str, one: Any, other: Any, told: str) -> None:
    def training(value: Any) -> Training:
        told = Told().made()
        told.events[-2]["hyper"] = [{key: value}]
        return told.step().training()

    found = first_difference(training(one), training(other), PLAIN)
    assert ((found.what, found.cause) if found is not None else ("", "")) == (told, "")


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        # (parameters of the group, their weight decay)
        ([(1, 0.1), (1, 0.0)], [(2, 0.1)], "the weight decay is 0.1 at step 1, in the original 0"),
        ([(2, 0.1)], [(1, 0.1), (1, 0.0)], "the weight decay is 0 at step 1, in the original 0.1"),
        ([(1, 0.1), (2, 0.0)], [(2, 0.1), (1, 0.0)], "the weight decay is 0.1 at step 1, in the original 0"),
        ([(1, 0.1), (1, 0.1)], [(2, 0.1)], ""),
        # Shards: only the groups can be compared.
        ([(4, 0.1), (1, 0.0)], [(2, 0.1), (1, 0.0)], ""),
    ],
)
def test_numbers_of_the_optimizer_are_those_of_its_parameters(
    one: list[tuple[int, float]], other: list[tuple[int, float]], told: str
) -> None:
    def training(groups: list[tuple[int, float]]) -> Training:
        hyper = [{"weight_decay": decay} for _, decay in groups]
        made = Told().made(start=(1.0, 2.0)).tell("hyper", o=0, sizes=[size for size, _ in groups], hyper=hyper)
        return made.step().training()

    found = first_difference(training(one), training(other), PLAIN)
    assert (found.what if found is not None else "") == told


def test_before_the_first_step() -> None:
    two = {"start": (1.0, 2.0)}
    assert "SGD has 2 parameters, in the original 1" in said([{}], [{}], remade=two)
    assert "Net.0 starts with other values than in the original" in said([{}], [{}], remade={"start": (1.5,)})


def test_the_loss_comes_before_the_gradient_and_the_parameter() -> None:
    other = [{"loss": 2.0, "grad": 2.0, "value": 2.0}]
    assert "the loss" in said([{}], other)
    assert "the gradient" in said([{}], [{**other[0], "loss": 1.0}])
    assert "differs after" in said([{}], [{"value": 2.0}])


@pytest.mark.parametrize(
    ("loss", "grad", "clip", "found"),
    [
        (7.0, 0.5, None, ""),  # a sum, whose gradients are divided afterwards
        (7.0, 0.6, None, "the loss of step 1 is 7, in the original 1"),
        (7.0, 0.5, (None, None), "the loss of step 1 is 7, in the original 1"),  # clipping makes gradients alike
        (7.0, 0.5, (2.0, 14.0), "the loss of step 1 is 7, in the original 1"),
        (7.0, 0.5, (2.0, 2.0), ""),  # they were so before
    ],
)
def test_another_loss_with_the_same_gradients(
    loss: float, grad: float, clip: Sequence[float | None] | None, found: str
) -> None:
    def step(loss: float, grad: float, which: int) -> Training:
        told = Told().made().tell("backward", 12, loss=[loss], dtype=["float32"])
        if clip is not None:
            told.tell("clip", bound=1.0, norm=clip[which])
        told.tell("grads", o=0, k=0, g=[[grad, grad / 2, 0.0]])
        return told.tell("step", 14, o=0, k=0, p=[[0.9, 0.45, 0.2, 1]], b={}).training()

    first = first_difference(step(1.0, 0.5, 0), step(loss, grad, 1), PLAIN)
    assert (first.what if first is not None else "") == found


def test_the_norms_that_clipping_finds() -> None:
    one, other = (
        Told().made().tell("clip", bound=1.0, norm=norm).step().training() for norm in (2.0, 4.0)
    )  # what is clipped is alike
    found = first_difference(one, other, PLAIN)
    assert found is not None and found.what == "clipping finds the norm 4 in call 1, in the original 2"


def test_a_step_too_much_comes_before_what_follows_of_it() -> None:
    def training(*order: int, loss: float) -> Training:
        told = Told().made()
        told.tell("start", o=1, kind="SGD", names=["Other.0"], dtypes=["float32"], p=[[1.0] * 4])
        for place, which in enumerate(order):
            told.tell("backward", 12, loss=[1.0 if place < 2 else loss], dtype=["float32"])
            told.tell("step", 20 + which, o=which, k=order[:place].count(which), p=[[1.0] * 4], b={})
        return told.training()

    found = first_difference(training(0, 0, 1, loss=1.0), training(0, 1, 0, 1, loss=2.0), PLAIN)
    assert found is not None
    assert str(found).startswith("train.py:21: optimizer 1 takes 2 steps, in the original 1")
    found = first_difference(training(0, 0, 1, loss=1.0), training(0, 0, 1, 1, loss=2.0), PLAIN)
    assert found is not None and found.what.startswith("the loss of step")


def test_sums_in_another_order_have_more_room() -> None:
    one, other = trained({"loss": 1.0}), trained({"loss": 1.00001, "grad": 0.500003})
    assert first_difference(one, other, PLAIN) is not None
    assert first_difference(one, other, REORDERED) is None


def test_the_last_step_of_a_run_that_was_cut_may_be_missing() -> None:
    one = Told().made().step().step().tell("limit").training()
    other = Told().made().step().tell("limit").training()
    assert first_difference(one, other, PLAIN) is None
    assert first_difference(one, Told().made().step().training(), PLAIN) is not None


def test_a_curve_for_each_optimizer() -> None:
    def two() -> Training:
        told = Told().made(kind="Adam").step(loss=3.0)
        told.tell("optimizer", 6, o=1, kind="SGD", sizes=[1], hyper=[{"lr": 0.1}])
        told.tell("start", o=1, kind="SGD", names=["0"], dtypes=["float32"], p=[figures(1.0)])
        told.tell("backward", 15, loss=[7.0], dtype=["float32"]).tell("grads", o=1, k=0, g=[None])
        told.tell("step", 16, o=1, k=0, p=[figures(1.0)], b={})
        return told.step(loss=2.0).training()

    assert [(curve.name, [row[0] for row in curve.rows]) for curve in curves(two(), two())] == [
        ("optimizer 0 (Adam of Net)", [3.0, 2.0]),
        ("optimizer 1 (SGD)", [7.0]),
    ]


def test_the_curve_has_losses_and_the_distance() -> None:
    one = Told().made().step(loss=2.0, value=0.9).step(loss=1.0, value=0.8).skipped(loss=0.5).training()
    other = Told().made().step(loss=2.0, value=0.9).step(loss=1.5, value=0.4).skipped(loss=math.inf).training()
    (curve,) = curves(one, other)
    rows = curve.rows
    assert [row[:2] for row in rows] == [(2.0, 2.0), (1.0, 1.5), (0.5, math.inf)]
    assert rows[0][2] == 0.0 and rows[2][2] is None
    assert rows[1][2] is not None and 0.1 < rows[1][2] < 0.3


def test_parameters_whose_gradients_are_rounding() -> None:
    told = Told().made(start=[1.0, 1.0, 1.0])
    for gradients in ([1.0, 1e-9, 1e-9], [1.0, 1e-9, 0.5]):
        told.tell("grads", o=0, k=told.steps, g=[[each, each, 0.0] for each in gradients])
        told.tell("step", 14, o=0, k=told.steps, p=[figures(1.0)] * 3, b={})
        told.steps += 1
    assert rounding(told.training()) == {"1"}


def test_none_where_another_parameter_may_be_saved_under_the_name() -> None:
    told = Told().made(start=[1.0, 1.0])
    told.events[-1]["names"] = ["Net.bias", "Net.head.bias"]
    told.tell("grads", o=0, k=0, g=[[1e-9, 1e-9, 0.0], [1.0, 1.0, 0.0]])
    told.tell("step", 14, o=0, k=0, p=[figures(1.0)] * 2, b={})
    assert rounding(told.training()) == set()


@pytest.mark.parametrize(("one", "other", "told"), [
    (0.5, 0.5, ""), (0.5, 0.5 + 1e-7, ""), (math.nan, math.nan, ""),
    (0.5, 0.6, "train.py:20: ReduceLROnPlateau gets 0.6 in call 1, in the original 0.5"),
])  # fmt: skip
def test_what_a_schedule_decides_by(one: float, other: float, told: str) -> None:
    both = (Told().made().step().tell("scheduler", 20, kind="ReduceLROnPlateau", metric=each) for each in (one, other))
    found = first_difference(*(each.training() for each in both))
    assert (str(found) if found is not None else "") == told


@pytest.mark.parametrize(
    ("order", "numbers"),
    [
        (("generator", "critic"), [0, 1]),
        (("critic", "generator"), [1, 0]),
        # None of the original, or two that start alike.
        (("critic", "other"), [0, 1]),
        (("critic", "critic"), [0, 1]),
    ],
)
def test_optimizers_have_the_numbers_of_those_that_start_alike(order: tuple[str, str], numbers: list[int]) -> None:
    starts = {"generator": 1.0, "critic": 2.0, "other": 3.0}

    def training(names: tuple[str, str]) -> Training:
        told = Told()
        for which, name in enumerate(names):
            told.tell("optimizer", o=which, kind="SGD", hyper=[])
            told.tell("start", o=which, kind="SGD", names=[name], dtypes=["float32"], p=[figures(starts[name])])
        for which in range(len(names)):
            told.tell("grads", o=which, k=0, g=[None]).tell("step", o=which, k=0, p=[None], b={})
        return told.training()

    renamed = training(order).numbered_as(training(("generator", "critic")))
    assert [step.optimizer for step in renamed.steps] == numbers
    assert [event.fields["o"] for event in renamed.of("step")] == numbers
    assert [renamed.optimizers[which].names[0] for which in numbers] == [*order]


@pytest.mark.parametrize(("order", "rate", "same"), [
    (("w", "b"), 0.1, True), (("b", "w"), 0.1, True), (("b", "w"), 0.2, False), (("b", "other"), 0.1, False),
])  # fmt: skip
def test_parameters_are_held_against_those_of_their_name(order: tuple[str, str], rate: float, same: bool) -> None:
    norms, rates = {"w": 1.0, "b": 2.0, "other": 3.0}, {"w": 0.1, "b": rate, "other": 0.1}

    def training(names: tuple[str, str], rates: dict[str, float]) -> Training:
        told = Told().tell("optimizer", o=0, kind="SGD", hyper=[])
        held = [figures(norms[name]) for name in names]
        told.tell("start", o=0, kind="SGD", names=[*names], dtypes=["float32"] * 2, p=held)
        told.tell("hyper", o=0, hyper=[{"lr": rates[name]} for name in names], sizes=[1, 1])
        told.tell("grads", o=0, k=0, g=held).tell("step", o=0, k=0, p=held, b={})
        return told.training()

    one = training(("w", "b"), {"w": 0.1, "b": 0.1})
    assert (first_difference(one, training(order, rates).numbered_as(one)) is None) == same
