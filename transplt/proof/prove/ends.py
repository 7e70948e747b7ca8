"""How the runs of two programs ended, and what that says of the migrated one before or behind a comparison."""

from __future__ import annotations

import re

from transplt.base.errors import shown
from transplt.base.render.cell import many
from transplt.base.render.verdict import Verdict, Word
from transplt.proof.launch.host import too_small
from transplt.proof.prove.projects import Project
from transplt.proof.prove.runs import Run
from transplt.proof.prove.training import Event, Training

_MIGRATED = "the migrated program"
#: The last line of a traceback.
_ERROR = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?::|$)")


def not_run(reference: Run, run: Run) -> Verdict | None:
    """Why nothing can be said of the migrated program's `run`: the machine, or that nothing came to a card."""
    small = too_small(reference.outcome) or too_small(run.outcome)
    if small:
        return Verdict(Word.NOT_RUN, small)
    if run.stop is None and (error := error_of(run)):
        return Verdict(Word.STOPS, f"{_MIGRATED}: {error}")
    if run.operators or (run.stop is not None and reference.stop is None):
        return None
    alike = run.stop is not None and run.stop.is_that_of(reference.stop)
    if run.stop is not None and (
        not any(training.steps for training in run.trainings) if alike else reference.operators
    ):
        return None  # `stopped` says why
    ends = [f"{reference.witness.itself} stops: {reference.stop}"] if reference.stop is not None else []
    if run.stop is not None:
        ends.append(f"{_MIGRATED} stops there too" if alike else run.stop.of(_MIGRATED))
    if reference.operators:
        asked = next((each for each in run.findings if each["level"] == "warning"), None)
        where = [f"{asked['path']}:{asked['line']}: {asked['message']}: {asked['help']}"] if asked else []
        return Verdict(Word.NOT_RUN, "; ".join(["nothing was computed on the NPU", *where, *ends]))
    return Verdict(Word.NOT_RUN, "; ".join(["neither program computes anything on a card", *ends]))


def error_of(run: Run) -> str:
    """What the card would not have done, though the emulated one went on: the first of the findings that say so."""
    first = next((finding for finding in run.findings if finding["level"] == "error"), None)
    return f"{first['path']}:{first['line']}: {first['code']} {first['message']}" if first is not None else ""


def caught(run: Run) -> str:
    """The last line that a program which ended well printed of an error, as a clause; "" without one."""
    if run.stop is not None:
        return ""
    lines = [line.strip() for line in f"{run.outcome.output}\n{run.outcome.errors}".splitlines()]
    errors = [line for line in lines if _ERROR.match(line)]
    return f"; it caught an error and went on: {shown(errors[-1][:200])}" if errors else ""


def stopped(reference: Run, run: Run, steps: int = 0, agree: str = "") -> Verdict | None:
    """What it comes to that one of the two stopped, or both, after so many steps that `agree`; None where both
    ended."""
    mine, theirs, itself = run.stop, reference.stop, reference.witness.itself
    agreed = f", after {many(steps, 'step')} that {'agrees' if steps == 1 else 'agree'}" if steps else ""
    if mine is not None and mine.is_that_of(theirs):
        if steps:
            compared = agree or f"{many(steps, 'step')} compared with {reference.witness.whose}"
            return Verdict(Word.EQUAL, f"{compared}, then both stop: {mine}")
        return Verdict(Word.NOT_RUN, f"{itself} stops: {theirs}; {_MIGRATED} stops there too")
    if mine is not None:
        too = f"; {itself} stops: {theirs}" if theirs is not None else ""
        return Verdict(Word.STOPS, f"{mine.of(_MIGRATED, agreed)}{too}")
    if theirs is not None:
        ran = "" if steps else f"{_MIGRATED} ran to the end; nothing to compare: "
        return Verdict(Word.RUNS, f"{ran}{itself} stops{agreed}: {theirs}")
    return None


def reached(project: Project, training: Training) -> list[tuple[str, Event | None]]:
    """The first evaluation and the first checkpoint of a program that has them; None for what it did not come to."""
    evaluated = [event for event in training.of("mode") if not event.fields["train"]]
    parts = [("evaluation", project.evaluates, evaluated), ("checkpoint", project.saves, training.of("save"))]
    return [(name, next(iter(events), None)) for name, has, events in parts if has]
