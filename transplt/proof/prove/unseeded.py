"""The migrated program as its user starts it: no seed of ours, dropout as it is, random numbers as the card draws them.

The other comparisons hold all of this still, so that two runs can be compared. What they hide shows here: ranks whose
weights are equal only because the same seed drew them, and a start that needs that seed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from transplt.base.render.verdict import Verdict, Word
from transplt.proof.prove import ranks
from transplt.proof.prove.ends import error_of
from transplt.proof.prove.found import Findings, Part
from transplt.proof.prove.runs import Run, Runner, at_once

TITLE = "the migrated program as its user starts it, twice"
#: A broadcast that is missing shows before the first step, an exchange of gradients behind it.
STEPS = 2


def as_started(original: Runner, migrated: Runner, worlds: tuple[int, ...]) -> Part | None:
    """The part for these numbers of processes; None where the original stops in the same way."""
    found = Findings()
    for world in worlds:
        for number, run in enumerate(_runs(migrated, world), 1):
            who = f"unseeded start {number}" + (f" with {world} processes" if world > 1 else "")
            if run.stop is not None:
                twins = _runs(original, world if original.project.distributed else 1)
                if any(run.stop.is_that_of(twin.stop) for twin in twins):
                    return None
                return Part(TITLE, Verdict(Word.STOPS, f"{who}: {run.stop}"), found)
            if error := error_of(run):
                return Part(TITLE, Verdict(Word.STOPS, f"{who}: {error}"), found)
            apart = ranks.unequal_ranks(run.trainings) if len(run.trainings) > 1 else None
            if apart is not None:
                found.differences.append(replace(apart, what=f"{who}: {apart.what}"))
                return Part(TITLE, Verdict(Word.DIFFERS, str(found.differences[0])), found)
    came = " and ".join(f"on each of {world} ranks" if world > 1 else "with one process" for world in worlds)
    return Part(TITLE, Verdict(Word.EQUAL, f"started twice without our seeds, {came}: both runs finished"), found)


def _runs(runner: Runner, world: int) -> list[Run]:
    """Two runs, at the same time."""
    return at_once(*[partial(runner.run, world, steps=STEPS, seeded=False)] * 2)
