"""The migrated program with its networks by torch.compile, held against itself without: aot_eager takes the way of a
compiler up to the code that it generates, which no machine without the card can make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from transplt.base.render.cell import many
from transplt.base.render.verdict import Verdict, Word
from transplt.proof.prove import steps
from transplt.proof.prove.found import Findings, Part
from transplt.proof.prove.precision import comparison
from transplt.proof.prove.runs import Replay, Run, Runner, at_once
from transplt.proof.prove.shaken import Shaken
from transplt.proof.prove.tolerance import PLAIN, hold
from transplt.proof.prove.training import Place

BACKEND = "aot_eager"
TITLE = f'the migrated program, eagerly and by torch.compile(backend="{BACKEND}")'
#: So many lines are told of each kind.
_MOST = 10
_SAYS = {"break": "the graph breaks: {why}", "again": "compiled again{times}: {why}"}


@dataclass(frozen=True)
class Said:
    """What Dynamo said of one line: that the graph breaks there, or that its function was compiled `again`."""

    kind: str
    place: Place
    why: str
    times: int

    def __str__(self) -> str:
        times = f" {self.times} times" if self.times > 1 else ""
        return f"{self.place}: {_SAYS[self.kind].format(why=self.why, times=times)}"


def eager_and_compiled(migrated: Runner, announce: Callable[[str], None]) -> Part:
    """Both runs, with one process, and what they come to. A program whose graph breaks `runs`."""
    eagerly, compiled = (
        replace(migrated, options=replace(migrated.options, models=models), watched={}, known=None, inserted={})
        for models in ("eager", BACKEND)
    )
    announce(TITLE)
    one, other = at_once(eagerly.run, compiled.run)
    found = Findings(rounding=PLAIN, sides=("eager", "compiled"))
    if other.stop is not None and not other.stop.is_that_of(one.stop):
        return Part(TITLE, Verdict(Word.STOPS, f"compiled: {other.stop}"), found)
    if one.first is None or other.first is None:
        return Part(TITLE, Verdict(Word.RUNS, "no training was seen"), found)
    found.steps = sum(1 for _ in steps.pairs(one.first, other.first))
    shaken = Shaken(eagerly, Replay({}), PLAIN, announce)
    held = hold(one.first, other.first, PLAIN, comparison(False), shaken.trainings)
    found.widths = [*held.widths]
    said = said_of(other)
    breaks = [each for each in said if each.kind == "break"]
    found.remarks = [*map(str, said[:_MOST])]
    if len(said) > _MOST:
        found.remarks.append(f"and {len(said) - _MOST} more like these")
    if held.first is not None:
        found.differences.append(held.first)
        return Part(TITLE, Verdict(Word.DIFFERS, f"compiled: {held.first}"), found)
    graphs = sum(process.get("compiled", {}).get("graphs", 0) for process in other.outcome.processes)
    counted = f"{many(found.steps, 'step')} agree; {many(graphs, 'graph')}"
    if breaks:
        what = f"the graph breaks at {many(len(breaks), 'line')}; {breaks[0].place}: {breaks[0].why}; {counted}"
        return Part(TITLE, Verdict(Word.RUNS, what), found)
    if not graphs:
        return Part(TITLE, Verdict(Word.RUNS, "no network was compiled"), found)
    return Part(TITLE, Verdict(Word.EQUAL, f"{counted}, no break"), found)


def said_of(run: Run) -> list[Said]:
    """What Dynamo said in a run, breaks first, by place."""
    found = [Said(each["kind"], Place(each["path"], each["line"]), each["why"], each["times"]) for each in run.compiled]
    return sorted(found, key=lambda each: (each.kind != "break", each.place, each.why))
