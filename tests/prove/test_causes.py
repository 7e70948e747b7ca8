"""What a difference is said to come from, and what is held against each other at the end: trainings made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.prove.trainings import Told, figures, first_difference
from transplt.proof.prove.detail import first_other_result, first_other_share
from transplt.proof.prove.numbers import of_number
from transplt.proof.prove.precision import precision_faults, rounding_between
from transplt.proof.prove.tolerance import PLAIN, ROUNDING
from transplt.proof.prove.training import Training


def ended(steps: int = 1, *, cut: bool = True, **final: float) -> Training:
    """A training of an optimizer of `Net.0`, and the tensors that its networks hold at the end."""
    training = Told().made()
    for _ in range(steps):
        training.step()
    if cut:
        training.tell("limit")
    held = {name.replace("_", "."): figures(value) for name, value in final.items()}
    return training.tell("end", p=held, b={}).training()


@pytest.mark.parametrize("cut", [False, True])
def test_an_average_that_no_optimizer_has(cut: bool) -> None:
    found = first_difference(ended(cut=cut, Average_w=1.0), ended(cut=cut, Average_w=1.1))
    assert found is not None
    assert found.what == "Average.w differs at the end"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ended(Average_w=1.0), ended(Average_w=1.0)),
        # One came further than the other.
        (ended(Average_w=1.0), ended(cut=False, Average_w=1.1)),
        (ended(1, Average_w=1.0), ended(2, Average_w=1.1)),
        # What an optimizer has was compared at each step.
        (ended(Net_0=1.0), ended(Net_0=1.1)),
        (ended(Average_w=1.0), ended(Other_w=1.1)),
    ],
)
def test_nothing_to_hold_against_at_the_end(one: Training, other: Training) -> None:
    assert first_difference(one, other) is None


def scaled(dtype: str, *, half: bool) -> Training:
    training = Told()
    if half:
        training.tell("autocast", dtype="float16", enabled=True)
    training.made().tell("backward", 12, loss=[1.0], dtype=[dtype])
    training.tell("grads", o=0, k=0, g=[[0.5, 0.2, 0.0]]).tell("step", 14, o=0, k=0, p=[figures(0.9)], b={})
    return training.training()


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (scaled("float32", half=True), scaled("float16", half=True), True),
        (scaled("float32", half=False), scaled("bfloat16", half=False), True),
        (scaled("float16", half=True), scaled("float16", half=True), False),
        (scaled("float16", half=True), scaled("float32", half=True), False),
        (scaled("float32", half=True), scaled("float32", half=True), False),
        # Autocast was asked for: what it makes of a loss is its own.
        (scaled("float32", half=False), scaled("float16", half=True), False),
    ],
)
def test_a_loss_in_half_precision(one: Training, other: Training, said: bool) -> None:
    found = [str(each) for each in precision_faults(one, other) if "the loss of step 1" in each.what]
    assert bool(found) == said


def scaling(weights: str, dtype: str = "float32", *, half: bool = False) -> Training:
    """The loss is scaled; the network has `weights` of one type, and its optimizer updates tensors of another."""
    told = Told()
    if half:
        told.tell("autocast", dtype="float16", enabled=True)
    told.made().tell("start", o=0, kind="SGD", names=["Net.0"], dtypes=[dtype], weights=[weights], p=[figures(1.0)])
    return told.tell("scale", enabled=True, loss=1.0).step().training()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (scaling("float32"), True),
        (scaling("float32", half=True), False),
        (scaling("float16", "float16"), False),
        # apex O2: the optimizer updates copies in float32 of weights in half precision.
        (scaling("float16"), False),
        (scaling("bfloat16"), False),
    ],
)
def test_a_loss_that_is_scaled_for_nothing(other: Training, said: bool) -> None:
    one = Told().made().step().training()
    assert any("nothing runs in half precision" in each.what for each in precision_faults(one, other)) == said


def test_the_rounding_is_that_of_the_weights() -> None:
    one = Told().made().step().training()
    for weights in ("float16", "bfloat16"):
        assert rounding_between(one, scaling(weights), PLAIN).share == ROUNDING[weights]


@pytest.mark.parametrize(
    ("dtype", "enabled", "share"),
    [
        ("float32", True, PLAIN.share),
        ("float16", False, PLAIN.share),
        ("float16", True, ROUNDING["float16"]),
        ("bfloat16", True, ROUNDING["bfloat16"]),
    ],
)
def test_the_rounding_is_that_of_autocast(dtype: str, enabled: bool, share: float) -> None:
    told = Told().tell("autocast", dtype=dtype, enabled=enabled).made().step().training()
    assert rounding_between(told, told, PLAIN).share == share


@pytest.mark.parametrize(
    ("source", "before", "line"),
    [
        ("for group in groups:\n    group['lr'] = 0.2\n", 0.1, 2),
        ("for group in groups:\n    group['lr'] *= 0.2\n", 0.1, 2),
        # It is read, another number is set, the file does not parse, or it was made with another number.
        ("print(group['lr'])\n", 0.1, 5),
        ("group['momentum'] = 0.2\n", 0.1, 5),
        ("group['lr'] = (\n", 0.1, 5),
        ("group['lr'] = 0.2\n", 0.3, 5),
    ],
)
def test_what_sets_a_number(source: str, before: float, line: int, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(source, encoding="utf-8")
    one, other = Told().made().step(lr=0.1).training(), Told().made(lr=before).step(lr=0.2).training()
    first = first_difference(one, other)
    assert first is not None
    place = of_number(first, one, other, tmp_path).place
    assert place is not None
    assert place.line == line


def turned(*lines: int, rate: float = 0.1, last: float = 0.1) -> Training:
    """A schedule that is made in the first of the lines, turned in the others, and a second step with another rate."""
    training = Told().made(lr=rate)
    for line in lines:
        training.tell("scheduler", line, kind="StepLR", s=0)
    return training.step().step(lr=last).training()


@pytest.mark.parametrize(
    ("one", "other", "line", "original"),
    [
        (turned(6, 20), turned(7, 20, last=0.2), 7, 6),  # it is made with other arguments
        (turned(6, 20, 20), turned(7, 20, last=0.2), 20, None),  # it is not turned as often
        (turned(6, 14, 14), turned(7, 14, last=0.2), 7, 6),  # and a library turns it, in the line of the step
        (turned(6, 20), turned(7, 20, rate=0.3, last=0.2), 5, 5),  # the optimizer is made with another rate
    ],
)
def test_the_line_of_a_schedule(
    one: Training, other: Training, line: int, original: int | None, tmp_path: Path
) -> None:
    first = first_difference(one, other)
    assert first is not None
    found = of_number(replace(first, step=2, original=None), one, other, tmp_path)
    assert found.place is not None and found.place.line == line
    assert (found.original.line if found.original is not None else None) == original


def called(*calls: tuple[str, float, Sequence[Any]]) -> Training:
    training = Told()
    for number, (name, value, given) in enumerate(calls):
        training.tell("op", 20 + number, name=name, shape=[1], dtype="float32", p=[value] * 4, grad=True, given=given)
    return training.training()


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ([("batch_norm", 1.0, [0.1])], [("batch_norm", 1.0, [0.2])], "20: batch_norm gets different values here"),
        # What gives a different result comes before what is only given other numbers.
        (
            [("pad", 1.0, [0]), ("add", 1.0, [1])], [("pad", 1.0, [1]), ("add", 2.0, [1])],
            "21: add gives a different result here",
        ),
        ([("add", 1.0, [1])], [("add", 1.0, [1])], ""),
        ([("to", 1.0, [0])], [("to", 1.0, [1])], ""),
    ],
)  # fmt: skip
def test_calls(one: Any, other: Any, said: str) -> None:
    found = first_other_result(called(*one), called(*other))
    assert (f"{found.place.line}: {found.what}" if found is not None and found.place else "") == said


@pytest.mark.parametrize(
    ("inserted", "line"),
    [
        (None, 21),
        ({}, 21),
        ({"train.py": [21, 22]}, 25),  # one run with a collective
        ({"train.py": [21, 23]}, 21),  # a line of its own: a person's, or a mistake of the port
        ({"other.py": [21, 22]}, 21),
    ],
)
def test_the_bookkeeping_of_a_port_is_no_cause(inserted: Any, line: int) -> None:
    fields = {"shape": [1], "dtype": "float32", "grad": True, "given": []}
    one = Told().tell("op", 20, name="add", p=[1.0] * 4, **fields).tell("op", 24, name="mul", p=[1.0] * 4, **fields)
    other = Told().tell("op", 20, name="add", p=[1.0] * 4, **fields)
    other.tell("op", 21, name="full_like", p=[1.0] * 4, **fields).tell("coll", 22, kind="broadcast")
    other.tell("op", 25, name="mul", p=[2.0] * 4, **fields)
    found = first_other_result(one.training(), other.training(), inserted)
    assert found is not None and found.place is not None
    assert found.place.line == line


@pytest.mark.parametrize(("inserted", "line"), [({"train.py": [21, 22]}, 25), ({}, 22)])
def test_what_the_helper_of_a_port_does_is_no_cause(inserted: Any, line: int) -> None:
    def op(training: Told, at: int, value: float, **more: Any) -> None:
        fields = {"shape": [1], "dtype": "float32", "grad": True, "given": [], **more}
        training.tell("op", at, name="mul", p=[value] * 4, **fields)

    one, other = Told(), Told()
    op(one, 23, 1.0)
    op(other, 21, 5.0, helper=True)  # in the helper, which this line calls
    op(other, 22, 5.0)  # beside it
    op(other, 25, 2.0)
    found = first_other_result(one.training(), other.training(), inserted)
    assert found is not None and found.place is not None
    assert found.place.line == line


@pytest.mark.parametrize("wraps", [True, False])
def test_what_a_wrapper_cuts_is_no_cause(*, wraps: bool) -> None:
    def op(training: Told, at: int, name: str, value: float = 1.0, *, grad: bool = True) -> None:
        training.tell("op", at, name=name, shape=[1], dtype="float32", p=[value] * 4, grad=grad, given=[])

    one, other = Told(), Told()
    if wraps:
        other.tell("wrap", 21, of="Net", parameters=1, ids=[1])
    op(other, 21, "detach", grad=False)
    op(one, 22, "mul")
    op(other, 22, "mul", 2.0)
    found = first_other_result(one.training(), other.training())
    assert found is not None and found.place is not None
    assert found.place.line == (22 if wraps else 21)


@pytest.mark.parametrize(
    ("shape", "grad", "line"),
    [([], False, 23), ([], True, 21), ([1], False, 21)],  # one number without gradient is there to be printed
)
def test_a_number_that_is_kept_to_be_printed_is_no_cause(shape: list[int], grad: bool, line: int) -> None:
    fields: dict[str, Any] = {"dtype": "float32", "given": []}
    one, other = Told(), Told()
    other.tell("op", 21, name="detach", shape=shape, p=[1.0] * 4, grad=grad, **fields)
    other.tell("op", 22, name="add", shape=shape, p=[1.0] * 4, grad=grad, **fields)
    for training, value in ((one, 1.0), (other, 2.0)):
        training.tell("op", 23, name="mul", shape=[2], p=[value] * 4, grad=True, **fields)
    found = first_other_result(one.training(), other.training())
    assert found is not None and found.place is not None
    assert found.place.line == (22 if (shape, grad) == ([], True) else line)


Op = tuple[int, str, list[int], float]


def ops(*calls: Op, loads: int | None = None) -> Training:
    """A process with these calls, (line, name, shape, value); a loader gives its batches at the line `loads`."""
    training = Told()
    if loads is not None:
        training.tell("loader", loads, loader=0, epoch=0, made=None)
    for line, name, shape, value in calls:
        training.tell("op", line, name=name, shape=shape, dtype="float32", p=[value] * 4, grad=True, given=[])
    return training.training()


@pytest.mark.parametrize(
    ("ranks", "line"),
    [
        ([[(20, "mul", [4], 1.0), (21, "sum", [], 2.0)]], 0),
        ([[(20, "mul", [2], 3.0), (21, "sum", [], 5.0)]], 21),  # the rows of a share, and what comes of them
        ([[(20, "mul", [4], 3.0), (21, "sum", [], 5.0)]], 20),
        ([[(20, "mul", [4], 1.0), (21, "sum", [], 5.0)], [(20, "mul", [4], 3.0)]], 20),  # the first of all ranks
        ([[(20, "mul", [4], 1.0), (21, "sum", [], 5.0)], [(20, "mul_", [4], 3.0)]], 21),
        ([[(19, "add", [4], 3.0), (20, "mul", [4], 1.0), (21, "sum", [], 5.0)]], 21),  # one process has no such call
        # What one process has is the sum, or the mean, of what the ranks have.
        ([[(20, "mul", [4], 0.3), (21, "sum", [], 5.0)], [(20, "mul", [4], 0.7), (21, "sum", [], 5.0)]], 21),
        ([[(20, "mul", [4], 0.3), (21, "sum", [], 1.5)], [(20, "mul", [4], 1.7), (21, "sum", [], 2.5)]], 0),
    ],
)
def test_what_a_rank_computes_otherwise_than_one_process(ranks: list[list[Op]], line: int) -> None:
    one = ops((20, "mul", [4], 1.0), (20, "mul_", [4], 1.0), (21, "sum", [], 2.0))
    found = first_other_share([one], [ops(*calls) for calls in ranks], 1)
    assert (found.place.line if found is not None and found.place else 0) == line


@pytest.mark.parametrize(("step", "line"), [(1, 20), (2, 21)])
def test_the_loss_of_a_share_is_no_cause_behind_steps_that_agree(step: int, line: int) -> None:
    one, rank = Told().made(), Told().made()
    for number in range(2):
        for training, value in ((one, 1.0), (rank, 2.0)):
            fields: dict[str, Any] = {"dtype": "float32", "grad": True, "given": []}
            training.tell("op", 20, name="loss", shape=[], p=[value] * 4, **fields)
            training.tell("op", 21, name="mul", shape=[4], p=[value if number else 1.0] * 4, **fields)
            training.step()
    found = first_other_share([one.training()], [rank.training()], step)
    assert found is not None and found.place is not None and found.place.line == line


@pytest.mark.parametrize(("modes", "line"), [((False, True), 21), ((True, True), 20), ((False, False), 20)])
def test_samples_that_are_evaluated_are_those_of_a_share(modes: tuple[bool, bool], line: int) -> None:
    sides = []
    for value in (1.0, 2.0):
        side = Told()
        for at, name in ((20, "getitem"), (21, "sum")):
            side.tell("mode", 19, train=modes[at - 20])
            side.tell("op", at, name=name, shape=[4], dtype="float32", p=[value] * 4, grad=True, given=[])
        sides.append(side.training())
    found = first_other_share(sides[:1], sides[1:], 1)
    assert found is not None and found.place is not None and found.place.line == line


def test_samples_that_a_loader_reads_are_in_another_order() -> None:
    one, rank = (ops((20, "getitem", [4], value), (21, "sum", [], value), loads=20) for value in (1.0, 2.0))
    found = first_other_share([one], [rank], 1)
    assert found is not None and found.place is not None and found.place.line == 21


def test_what_a_parameter_is_called() -> None:
    made = Told().made(start=(1.0, 2.0)).step().training().optimizers[0]
    assert made.name(1) == "Net.1"
    made.names[1] = "0.1"
    assert made.name(1) == "parameter 1 (of no network)"
    assert made.name(7) == "parameter 7"
