"""What the training does, in its order: events that one lost, gained or does elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.prove.trainings import Told
from transplt.proof.prove.structure import changes, without_figures
from transplt.proof.prove.training import Training

#: Lines that set gradients to zero, and the optimizer whose they are.
Clears = Sequence[tuple[int, int | None]]
CLIP = "the clipping of gradients at 1.0"


def training(*events: str, steps: int = 2, cut: bool = False) -> Training:
    """Steps with these events between the backward pass and the step."""
    told = Told().made()
    for _ in range(steps):
        told.step(between=events)
    if cut:
        told.tell("limit")
    return told.training()


def said(one: Training, other: Training) -> list[str]:
    return [change.sentence for change in changes(one, other) if change.decisive]


@pytest.mark.parametrize("events", [(), ("clip",), ("mode", "clip"), ("scale", "unscale", "update")])
def test_the_same_events(events: Sequence[str]) -> None:
    assert changes(training(*events), training(*events)) == []


@pytest.mark.parametrize("added", [("scale",), ("update",), ("autocast",), ("autocast", "scale", "update")])
def test_mixed_precision_adds_events(added: Sequence[str]) -> None:
    assert said(training(), training(*added)) == []


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (("clip",), (), f"{CLIP} of the original is missing"),
        (("scheduler",), (), "a step of StepLR of the original is missing"),
        (("mode",), (), "the switch to training of the original is missing"),
        ((), ("clip",), f"{CLIP} is not in the original"),
        ((), ("zero_grad",), "zero_grad is not in the original"),
        (("clip",), ("scheduler",), f"a step of StepLR appears where the original has {CLIP}"),
        (("clip", "mode"), ("mode", "clip"), "the switch to training appears where the original does not have it"),
        (("no_grad",), (), "no_grad of the original is missing"),
    ],
)
def test_other_events(one: Sequence[str], other: Sequence[str], told: str) -> None:
    assert said(training(*one), training(*other))[:1] == [told]


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("mode clip mode", "clip mode mode", []),
        ("mode mode step", "mode step", []),
        ("step", "mode step", []),
        ("no_grad mode no_grad", "mode no_grad", []),
        ("save scheduler", "scheduler save", []),
        ("mode step", "step", ["the switch to training of the original is missing"]),
        ("no_grad step", "step", ["no_grad of the original is missing"]),
        ("clip step clip step", "clip step step", [f"{CLIP} of the original is missing"]),
        ("step scheduler", "step scheduler scheduler", ["a step of StepLR is not in the original"]),
        ("step", "step scheduler", []),  # the learning rate was set in another way
        ("step scheduler", "step", ["a step of StepLR of the original is missing"]),
        ("save step", "step", []),  # by its tensors
        ("zero_grad step", "step", []),
        ("step load", "step", []),
    ],
)
def test_what_counts_where_no_figure_differs(one: str, other: str, told: list[str]) -> None:
    """Not the order, nor a mode that is chosen again, nor what the figures show."""
    trainings = []
    for events in (one, other):
        begun = Told().made()
        for event in events.split():
            if event == "step":
                begun.step()
            else:
                begun.tell(event, train=True, bound=1.0, kind="StepLR", file="w.pt")
        trainings.append(begun.training())
    assert [each.sentence for each in without_figures(changes(*trainings), *trainings)] == told


@pytest.mark.parametrize(("rates", "told"), [((0.1, 0.1), True), ((0.1, 0.01), False)])
def test_a_schedule_shows_in_learning_rates_that_change(rates: Sequence[float], *, told: bool) -> None:
    trainings = []
    for kind in ("StepLR", "LambdaLR"):
        begun = Told().made()
        for rate in rates:
            begun.step(lr=rate).tell("scheduler", kind=kind)
        trainings.append(begun.training())
    assert bool(without_figures(changes(*trainings), *trainings)) is told


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (("autocast", "clip"), (), f"{CLIP} of the original is missing"),
        (("autocast", "clip"), ("mode",), f"the switch to training appears where the original has {CLIP}"),
        (("clip",), ("autocast",), f"{CLIP} of the original is missing"),
        (("autocast",), ("no_grad", "clip"), f"{CLIP} is not in the original"),
    ],
)
def test_a_change_is_told_by_what_decides(one: Sequence[str], other: Sequence[str], told: str) -> None:
    assert said(training(*one), training(*other))[:1] == [told]


@pytest.mark.parametrize(
    ("one", "other", "lines"),
    [
        ([(11, 0), (12, 1)], [(11, 0), (13, 1)], []),
        ([(11, 0), (12, 1)], [(12, 1)], [11]),  # the line of the original that has no counterpart
        ([(11, 0), (12, 1)], [(11, 0)], [12]),
        ([(11, 0), (12, 1)], [(12, None)], [12]),  # nobody knows whose
    ],
)
def test_gradients_are_set_to_zero_of_an_optimizer(one: Clears, other: Clears, lines: list[int]) -> None:
    trainings = []
    for clears in (one, other):
        told = Told().made()
        for line, optimizer in clears:
            told.tell("zero_grad", line, **({} if optimizer is None else {"o": optimizer}))
        trainings.append(told.training())
    lost = [event.place for change in changes(*trainings) for event in change.lost]
    assert lines == [place.line for place in lost if place is not None]


@pytest.mark.parametrize(("event", "sets"), [("scheduler", True), ("mode", False), ("zero_grad", False)])
def test_what_sets_a_number_of_an_optimizer(event: str, *, sets: bool) -> None:
    assert changes(training(event), training())[0].sets is sets


@pytest.mark.parametrize(("path", "count"), [("", 0), ("/w.pt", 1)])
def test_what_is_saved_in_memory_is_no_file(path: str, count: int) -> None:
    """Objects that are sent to other ranks are."""
    saved = Told().made().step().tell("save", file=path[1:], path=path).training()
    assert len(changes(training(steps=1), saved)) == count


def test_a_change_knows_its_lines() -> None:
    (change,) = changes(training("clip", steps=1), training(steps=1))
    assert [str(event.place) for event in change.lost] == ["train.py:13"]
    assert change.before is not None and str(change.before.place) == "train.py:12"
    assert change.after is not None and str(change.after.place) == "train.py:14"


def test_the_last_events_of_runs_that_were_cut_may_be_missing() -> None:
    one = Told().made().step().tell("scheduler", kind="StepLR").tell("limit").training()
    other = Told().made().step().tell("limit").training()
    assert changes(one, other) == []
    assert said(training("clip", cut=True), training(cut=True)) != []


UUIDS = ("eb84338d-d8f2-407b-9ef5-3bbca0a9218f", "cb7219a2-1973-4bd3-a932-469701fa0fe3")


def saving(*files: str, kind: str = "save") -> Training:
    """A step behind which these files are saved."""
    told = Told().made().step()
    for file in files:
        told.tell(kind, file=file)
    return told.training()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        [f"model_{each}.pt" for each in UUIDS],
        [each.replace("-", "") for each in UUIDS],
        ("model_1795891402.1178257.pt", "model_1795891400.0171325.pt"),
        ("2026-11-28_18-40-01.pt", "2026-11-28_18-41-07.pt"),
    ],
)
def test_times_and_uuids_in_names_of_files_are_no_difference(one: str, other: str) -> None:
    assert said(saving(one), saving(other)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("best.pt", "last.pt"),
        (f"best_{UUIDS[0]}.pt", f"last_{UUIDS[1]}.pt"),
        # Eight characters of a UUID are those of any other name: what is in the files tells.
        ("model_eb84338d.pt", "model_cb7219a2.pt"),
        # The sum of a file, which both programs know alike.
        ("d41d8cd98f00b204e9800998ecf8427e.pt", "9e107d9d372bb6826bd81d3542a419d6.pt"),
    ],
)
def test_other_names_of_files_are_a_difference(one: str, other: str) -> None:
    assert len(said(saving(one), saving(other))) == 1
