"""What the training does, in its order: events that one lost, gained or does elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.prove.trainings import Told
from transplt.proof.prove.structure import changes
from transplt.proof.prove.training import Training

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
        (("autocast", "clip"), (), f"{CLIP} of the original is missing"),
        (("autocast", "clip"), ("mode",), f"the switch to training appears where the original has {CLIP}"),
        (("clip",), ("autocast",), f"{CLIP} of the original is missing"),
        (("autocast",), ("no_grad", "clip"), f"{CLIP} is not in the original"),
    ],
)
def test_a_change_is_told_by_what_decides(one: Sequence[str], other: Sequence[str], told: str) -> None:
    assert said(training(*one), training(*other))[:1] == [told]


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
