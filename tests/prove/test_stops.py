"""Programs that stop, or compute nothing on a card: which of the two it is, where, and what was compared before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.prove.trainings import ROOT, trained
from transplt.base.render.verdict import Word
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.proof import Proof, Prover
from transplt.proof.prove.runs import Run, Stop
from transplt.proof.prove.several import Several
from transplt.proof.prove.training import Place
from transplt.proof.prove.witness import CUDA, REDIRECTED, Witness

LOST = Stop("ModuleNotFoundError: No module named 'x'", Place("train.py", 3))
BROKEN = Stop("RuntimeError: found cuda:0 and cpu", Place("train.py", 9))
BROKEN_THERE = Stop("RuntimeError: found npu:0 and cpu", Place("train.py", 10))
RANK = Stop("ValueError: no", Place("train.py", 9), 1)


def run(steps: list[dict[str, Any]] | None, stop: Stop | None = None, operators: int = 9) -> Run:
    """A run that took these steps; None where it began no training."""
    training = [trained(*steps)] if steps is not None else []
    return Run(training, stop, ScriptRun(0, (), 0.0), 1, {}, operators, [], [])


def _same(each: Run) -> Callable[..., Run]:
    """What runs so, however it is asked to."""
    return lambda world=1, **how: each


def _side(runs: Callable[..., Run], **more: Any) -> SimpleNamespace:
    """One of the two programs, as far as a proof asks for it."""
    project = SimpleNamespace(root=ROOT, distributed=False, evaluates=False, saves=False)
    held = {"ran": {}, "project": project, "seconds": 0.0, "known": None, "spawns": False, "witness": CUDA, "run": runs}
    return SimpleNamespace(**{**held, **more})


def told(original: Run, migrated: Run) -> str:
    return str(proven(original, migrated).verdict)


def proven(original: Run, migrated: Run) -> Proof:
    sides = (_side(lambda world=1, each=each, **how: each) for each in (original, migrated))
    return Prover(*sides, [], {}, lambda text: None).prove((1,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("original", "migrated", "verdict"),
    [
        # Nothing stops.
        (run([{}, {}]), run([{}, {}]), "equal: 2 steps compared with the original's"),
        (run([{}], operators=0), run([{}]), "equal: 1 step compared with the original's"),
        # Nothing is on a card.
        (run([{}], operators=0), run([{}], operators=0), "not run: neither program computes anything on a card"),
        (run([{}]), run([{}], operators=0), "not run: nothing was computed on the NPU"),
        # Before a step.
        (run(None, LOST, 0), run(None, LOST, 0),
         f"not run: the original itself stops: train.py:3: {LOST.reason}; the migrated program stops there too"),
        (run(None, LOST, 0), run([{}]), "runs: the migrated program ran to the end; nothing to compare: the original "
         f"itself stops: train.py:3: {LOST.reason}"),
        (run([{}]), run(None, LOST, 0), f"stops: the migrated program: train.py:3: {LOST.reason}"),
        (run([{}], LOST), run(None, BROKEN, 0), f"stops: the migrated program: train.py:9: {BROKEN.reason}; the "
         f"original itself stops: train.py:3: {LOST.reason}"),
        # Nothing is on a card, and a program stops.
        (run(None, LOST, 0), run(None, BROKEN, 0), "not run: neither program computes anything on a card; the "
         f"original itself stops: train.py:3: {LOST.reason}; the migrated program: train.py:9: {BROKEN.reason}"),
        (run([{}], BROKEN, 0), run([{}] * 2, None, 0), "not run: neither program computes anything on a card; the "
         f"original itself stops: train.py:9: {BROKEN.reason}"),
        (run([{}], BROKEN, 0), run([{}], BROKEN_THERE, 0), "not run: neither program computes anything on a card; the "
         f"original itself stops: train.py:9: {BROKEN.reason}; the migrated program stops there too"),
        (run([{}], BROKEN), run([{}], BROKEN_THERE, 0), "not run: nothing was computed on the NPU; the original "
         f"itself stops: train.py:9: {BROKEN.reason}; the migrated program stops there too"),
        (run([{}], BROKEN), run([{}] * 2, None, 0), "not run: nothing was computed on the NPU; the original itself "
         f"stops: train.py:9: {BROKEN.reason}"),
        (run([{}], operators=0), run([{}], BROKEN_THERE, 0), "stops: the migrated program, after 1 step that agrees: "
         f"train.py:10: {BROKEN_THERE.reason}"),
        (run([{}]), run(None, RANK), "stops: rank 1 of the migrated program: train.py:9: ValueError: no"),
        (run([], BROKEN), run([], BROKEN_THERE), f"not run: the original itself stops: train.py:9: {BROKEN.reason}; "
         "the migrated program stops there too"),
        # Behind some.
        (run([{}, {}, {}], BROKEN), run([{}, {}, {}], BROKEN_THERE),
         f"equal: 3 steps compared with the original's, then both stop: train.py:10: {BROKEN_THERE.reason}"),
        (run([{}, {}, {}], BROKEN), run([{}, {}], BROKEN_THERE),
         f"equal: 2 steps compared with the original's, then both stop: train.py:10: {BROKEN_THERE.reason}"),
        (run([{}] * 5), run([{}, {}], BROKEN_THERE),
         f"stops: the migrated program, after 2 steps that agree: train.py:10: {BROKEN_THERE.reason}"),
        (run([{}] * 5), run([{}], RANK),
         "stops: rank 1 of the migrated program, after 1 step that agrees: train.py:9: ValueError: no"),
        (run([{}, {}], BROKEN), run([{}] * 5),
         f"runs: the original itself stops, after 2 steps that agree: train.py:9: {BROKEN.reason}"),
        # A step differs before.
        (run([{}, {}, {}], BROKEN), run([{}, {"loss": 2.0}, {}], BROKEN_THERE),
         "differs: train.py:12: the loss of step 2 is 2, in the original 1"),
        (run([{}] * 5), run([{}, {"loss": 2.0}], BROKEN),
         "differs: train.py:12: the loss of step 2 is 2, in the original 1"),
        (run([{}, {"loss": 2.0}], BROKEN), run([{}] * 5),
         "differs: train.py:12: the loss of step 2 is 1, in the original 2"),
    ],
)  # fmt: skip
def test_what_is_said(original: Run, migrated: Run, verdict: str) -> None:
    assert told(original, migrated) == verdict


_BY_ITSELF = "what torch_npu's transfer_to_npu makes of the original"
_REDIRECTED = "the original with torch_npu's transfer_to_npu"


@pytest.mark.parametrize(
    ("original", "migrated", "verdict"),
    [
        (run([{}, {}]), run([{}, {}]), f"equal: 2 steps compared with {_BY_ITSELF}"),
        (run([{}], BROKEN_THERE), run([{}], BROKEN),
         f"equal: 1 step compared with {_BY_ITSELF}, then both stop: train.py:9: {BROKEN.reason}"),
        (run([{}], BROKEN_THERE), run([{}, {}]),
         f"runs: {_REDIRECTED} stops, after 1 step that agrees: train.py:10: {BROKEN_THERE.reason}"),
        (run(None, LOST, 0), run([{}]), "runs: the migrated program ran to the end; nothing to compare: "
         f"{_REDIRECTED} stops: train.py:3: {LOST.reason}"),
        (run(None, LOST, 0), run(None, LOST, 0),
         f"not run: {_REDIRECTED} stops: train.py:3: {LOST.reason}; the migrated program stops there too"),
        (run([{}], LOST), run(None, BROKEN, 0), f"stops: the migrated program: train.py:9: {BROKEN.reason}; "
         f"{_REDIRECTED} stops: train.py:3: {LOST.reason}"),
    ],
)  # fmt: skip
def test_what_is_said_against_the_vendors_own_way(original: Run, migrated: Run, verdict: str) -> None:
    assert told(replace(original, witness=REDIRECTED), migrated) == verdict


@pytest.mark.parametrize(("witness", "portable", "left"), [(CUDA, True, False), (REDIRECTED, False, False),
                                                           (REDIRECTED, True, True)])  # fmt: skip
def test_a_portable_program_is_not_held_on_cuda_there(witness: Witness, portable: bool, left: bool) -> None:
    sides = (
        _side(lambda world=1, **how: run([{}]), witness=each, options=SimpleNamespace(portable=portable))
        for each in (witness, CUDA)
    )
    part = Prover(*sides, [], {}, lambda text: None).prove((1,)).parts[0]  # type: ignore[arg-type]
    assert ("the migrated program on CUDA (leave out --against)" in part.findings.reasons) == left


def test_what_stops_later_is_said_of_a_difference_too() -> None:
    part = proven(run([{}, {}]), run([{}, {"loss": 2.0}], BROKEN)).parts[0]
    assert part.findings.remarks == [f"the migrated program: train.py:9: {BROKEN.reason}"]


ERROR = {"level": "error", "path": "train.py", "line": 8, "code": "NPU501", "message": "no such operator"}
WARNING = {**ERROR, "level": "warning"}


def started(seeded: Run, unseeded: Run, original: Run) -> list[str]:
    """The verdicts of the parts, where the migrated program ends otherwise when nobody seeds."""
    def migrated(world: int = 1, **how: Any) -> Run:
        return seeded if how.get("seeded", True) else unseeded

    sides = map(_side, (lambda world=1, **how: original, migrated))
    return [str(part.verdict) for part in Prover(*sides, [], {}, lambda text: None).prove((1,)).parts]  # type: ignore[arg-type]


CAME_UP = "runs: two runs without seeds from transplt finished"


@pytest.mark.parametrize(
    ("seeded", "unseeded", "original", "verdict"),
    [
        (run([{}]), run([{}]), run([{}]), CAME_UP),
        (run([{}]), replace(run([{}]), findings=[WARNING, ERROR]), run([{}]),
         "stops: start 1 without seeds from transplt: train.py:8: NPU501 no such operator"),
        (run([{}]), replace(run([{}]), findings=[WARNING]), run([{}]), CAME_UP),
        # Both stop later: the first steps are started all the same.
        (run([{}], BROKEN), run([{}]), run([{}], BROKEN), CAME_UP),
        (run([{}], BROKEN), run([{}], LOST), run([{}], BROKEN),
         f"stops: start 1 without seeds from transplt: train.py:3: {LOST.reason}"),
        (run([{}], BROKEN), run([{}], BROKEN), run([{}], BROKEN), ""),
    ],
)  # fmt: skip
def test_an_unseeded_start(seeded: Run, unseeded: Run, original: Run, verdict: str) -> None:
    assert started(seeded, unseeded, original)[1:] == ([verdict] if verdict else [])


@pytest.mark.parametrize(
    ("reference", "ranks", "verdict"),
    [
        (run([{}]), run([{}], RANK), "stops: rank 1 of the migrated program: train.py:9: ValueError: no"),
        (run([{}], LOST), run([{}], RANK), "stops: rank 1 of the migrated program: train.py:9: ValueError: no; the "
         f"original itself stops: train.py:3: {LOST.reason}"),
        (run(None, LOST), run(None, LOST), f"not run: the original itself stops: train.py:3: {LOST.reason}; the "
         "migrated program stops there too"),
        (run([{}], operators=0), run([{}], operators=0), "not run: neither program computes anything on a card"),
        (run([{}]), run([{}]), "not run: the program starts no process group"),
    ],
)  # fmt: skip
def test_what_is_said_of_ranks(reference: Run, ranks: Run, verdict: str) -> None:
    side = SimpleNamespace(run=lambda world: ranks)
    parts = Several(side, side, lambda text: None).parts(2, reference)  # type: ignore[arg-type]
    assert [str(part.verdict) for part in parts] == [verdict]
    assert parts[0].verdict.word in (Word.STOPS, Word.NOT_RUN)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("NameError: name 'x' is not defined", "NameError: name 'x' is not defined", True),
        ("RuntimeError: modified: [torch.cuda.FloatTensor [64, 1]] is at version 2",
         "RuntimeError: modified: [npuFloatType [64, 1]] is at version 2", True),
        ("RuntimeError: found cuda:0 and cpu", "RuntimeError: found npu:0 and cpu", True),
        ("ended with exit code -6: loss 0.5", "ended with exit code -6: loss 0.4", True),
        ("ended with exit code -6: loss 0.5", "ended with exit code 1: loss 0.5", False),
        ("NameError: name 'x' is not defined", "NameError: name 'y' is not defined", False),
        ("RuntimeError: modified: [torch.cuda.FloatTensor [64, 1]] is at version 2",
         "RuntimeError: modified: [npuHalfType [64, 1]] is at version 2", False),
    ],
)  # fmt: skip
def test_the_same_reason(one: str, other: str, same: bool) -> None:
    assert Stop(one, Place("a.py", 1)).is_that_of(Stop(other, Place("a.py", 2))) == same


def test_a_program_that_ends_stops_for_no_reason() -> None:
    assert not Stop("NameError", None).is_that_of(None)


def test_known_silent_errors_are_remarks() -> None:
    """What is equal on the CPU may not be so on the card: the proof says where an operator met such a condition."""
    place = {"path": "net.py", "line": 7, "level": "info"}
    gelu = {**place, "code": "NPU736", "message": "aten::gelu is known", "help": "do so"}
    found = [gelu, gelu, {**gelu, "code": "NPU710"}]
    proof = proven(run([{}]), replace(run([{}]), findings=found))
    assert proof.verdict.word is Word.EQUAL
    assert proof.parts[0].findings.remarks == ["net.py:7: aten::gelu is known (NPU736): do so"]
