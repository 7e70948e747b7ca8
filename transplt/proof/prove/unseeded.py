"""The migrated program as its user starts it: no seed of ours, dropout as it is, random numbers as the card draws them.

The other comparisons hold all of this still, so that two runs can be compared. What they hide shows here: ranks whose
weights are equal only because the same seed drew them, a start that needs that seed, and what each rank decides by a
score with its own dropout in it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from transplt.base.render.verdict import Verdict, Word
from transplt.proof.prove import ranks
from transplt.proof.prove.ends import error_of
from transplt.proof.prove.found import Difference, Findings, Part
from transplt.proof.prove.noise import evaluates_with_draws
from transplt.proof.prove.properties import same_schedules
from transplt.proof.prove.runs import Run, Runner, at_once

TITLE = "the migrated program as its user starts it, twice"
#: A broadcast that is missing shows before the first step, an exchange of gradients behind it.
STEPS = 2


def as_started(original: Runner, migrated: Runner, worlds: tuple[int, ...], seen: Run) -> Part | None:
    """The part for these numbers of processes; None where the original stops in the same way. `seen` is a run that was
    held still: where it evaluates with draws, or trains copies, the starts last as long as that."""
    found = Findings()
    decides = any(evaluates_with_draws(each) or ranks.inner_optimizers(each) for each in seen.trainings)
    for world in worlds:
        for number, run in enumerate(_runs(migrated, world, 0 if decides and world > 1 else STEPS), 1):
            who = f"start {number} without seeds from transplt" + (f", with {world} processes" if world > 1 else "")
            if run.stop is not None:
                twins = _runs(original, world if original.project.distributed else 1, STEPS)
                if any(run.stop.is_that_of(twin.stop) for twin in twins):
                    return None
                return Part(TITLE, Verdict(Word.STOPS, f"{who}: {run.stop}"), found)
            if error := error_of(run):
                return Part(TITLE, Verdict(Word.STOPS, f"{who}: {error}"), found)
            apart = _apart(run, migrated) if len(run.trainings) > 1 else None
            if apart is not None:
                found.differences.append(replace(apart, what=f"{who}: {apart.what}"))
                return Part(TITLE, Verdict(Word.DIFFERS, str(found.differences[0])), found)
    finished = "two runs without seeds from transplt finished"
    if worlds[-1] == 1:
        return Part(TITLE, Verdict(Word.RUNS, finished), found)
    alone = "with one process and " if 1 in worlds else ""
    same = f"{finished}, {alone}on each of {worlds[-1]} ranks, whose parameters agree"
    return Part(TITLE, Verdict(Word.EQUAL, same), found)


def _apart(run: Run, migrated: Runner) -> Difference | None:
    """Where ranks have other parameters than each other, or decide otherwise."""
    steps = min(len(training.steps) for training in run.trainings)
    schedules = same_schedules(run.trainings, steps, migrated.project.root)
    return ranks.unequal_ranks(run.trainings) or (schedules if isinstance(schedules, Difference) else None)


def _runs(runner: Runner, world: int, steps: int) -> list[Run]:
    return at_once(*[partial(runner.run, world, steps=steps, seeded=False)] * 2)


def delayed(migrated: Runner, world: int) -> Part:
    """The part of ranks that wait at random before what others may see: a race that a run wins by luck shows then."""
    assert migrated.options.trace is not None
    seed = migrated.options.trace.seed
    title = f"{world} ranks, each delayed before its files and collectives (--shuffle-ranks, --seed {seed})"
    run, found = migrated.run(world, delayed=True), Findings()
    if run.stop is not None:
        return Part(title, Verdict(Word.STOPS, str(run.stop)), found)
    apart = _apart(run, migrated) if len(run.trainings) > 1 else None
    found.differences += [apart] if apart is not None else []
    same = Verdict(Word.EQUAL, "the parameters of the ranks are equal")
    return Part(title, Verdict(Word.DIFFERS, str(apart)) if apart is not None else same, found)
