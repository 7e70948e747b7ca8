"""One process of the migrated program held against the original: what differs, whether the original repeats itself, and
what that comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from transplt.base.render.cell import many
from transplt.base.render.verdict import Verdict, Word
from transplt.proof.prove import ends, loaders, precision, printed, steps
from transplt.proof.prove.branches import OneSided, Way, one_sided
from transplt.proof.prove.detail import first_other_result
from transplt.proof.prove.found import Difference, Findings, Part
from transplt.proof.prove.noise import drawn_again
from transplt.proof.prove.numbers import of_number
from transplt.proof.prove.ranks import not_loaded
from transplt.proof.prove.runs import TWICE, Replay, Run, Runner, at_once
from transplt.proof.prove.shaken import Shaken
from transplt.proof.prove.structure import Change, changes, is_scheduled, without_figures
from transplt.proof.prove.tolerance import PLAIN, Compare, Held, compared_whole, hold
from transplt.proof.prove.training import Training


@dataclass
class _Compared:
    """Both trainings, as far as both came, and how they differ. `mixed`: only the migrated one is in mixed precision;
    `shaken` runs the original as it was run for this, with its parameters off by roundings; `first` is the first figure
    that differs, `results` are printed and saved ones; of these `left_out` are not compared."""

    one: Training
    other: Training
    stopped: Verdict | None
    mixed: bool
    shaken: Shaken
    found: Findings
    sides: list[OneSided] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    held: Held = field(default_factory=Held)
    first: Difference | None = None
    results: list[Difference] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)

    @property
    def compare(self) -> Compare:
        return precision.comparison(self.mixed)

    @property
    def decisive(self) -> list[Change]:
        return [change for change in self.changed if change.decisive]


@dataclass
class OneProcess:
    """Makes the runs that the comparison of one process needs."""

    original: Runner
    migrated: Runner
    ways: list[Way]
    inserted: dict[str, list[int]]
    announce: Callable[[str], None]

    def part(self, reference: Run, alone: Run, order: Replay) -> Part:
        """A run of the migrated program, made in this `order` of its data, against one of the original."""
        found, title = Findings(), _title(reference)
        not_run = ends.not_run(reference, alone)
        if not_run is not None:
            return Part(title, not_run, found)
        one, other = reference.first, alone.first
        stopped = ends.stopped(reference, alone)
        if stopped is not None and (one is None or other is None or not any(steps.pairs(one, other))):
            return Part(title, stopped, found)
        if one is None or other is None:
            found.reasons.append("no training was seen")
            what = f"ran to the end; nothing to compare: {found.reasons[0]}{ends.caught(alone)}"
            return Part(title, Verdict(Word.RUNS, what), found)
        told = self._prepared(one, other, stopped, found)
        told.sides = self._sides(reference, alone, order, stopped)
        self._compare(told)
        noise = printed.of_parameters(reference.outcome, steps.rounding(told.one))
        if not told.mixed and stopped is None:
            if told.first is None and found.steps:  # the same training: what it says of it is its own
                told.left_out = {*(unsaid := printed.unsaid(reference.outcome, alone.outcome))}
                found.remarks += unsaid.values()
            told.results = printed.other_results(reference.outcome, alone.outcome, told.left_out | noise)
        if (told.first is not None or told.results) and not found.differences:
            self._ask_the_original(told, reference, alone, noise)
        return self._conclude(told, reference, alone, noise)

    def _prepared(self, one: Training, other: Training, stopped: Verdict | None, found: Findings) -> _Compared:
        """The two trainings as they can be held against each other."""
        other = other.numbered_as(one)
        mixed = precision.is_put_in(one, other)
        found.rounding = precision.rounding_between(one, other, PLAIN)
        same = Replay({}, every=False, left_out=precision.left_out(other) if mixed else {})
        if same.left_out:
            # Behind a step that a scaler leaves out the losses are of other parameters.
            self.announce("the original again, without the steps that the scaler skips")
            one = self.original.run(replay=same).first or one
        if stopped is not None:
            one, other = steps.in_common(one, other)
        found.steps = sum(1 for _ in steps.pairs(one, other))
        found.curves = steps.curves(one, other)
        shaken = Shaken(self.original, same, found.rounding, self.announce)
        return _Compared(one, other, stopped, mixed, shaken, found)

    def _sides(self, reference: Run, alone: Run, order: Replay, stopped: Verdict | None) -> list[OneSided]:
        """The branches that only one of the two takes, each time that both run."""
        alike = stopped is None or stopped.word is Word.NOT_RUN  # else one came to lines that the other did not
        sides = one_sided(self.ways, reference.lines, alone.lines) if alike else []
        if not sides:
            return []
        self.announce("both again, to compare their branches")  # one that the clock decides proves nothing
        again = one_sided(self.ways, self.original.run(again=TWICE).lines, self.migrated.run(replay=order).lines)
        return [side for side in sides if side in again]

    @staticmethod
    def _compare(told: _Compared) -> None:
        one, other, found = told.one, told.other, told.found
        told.changed, found.scheduled = changes(one, other), is_scheduled(one)
        faults = (loaders.unshuffled(one, other), drawn_again(other, one))
        found.differences += [each for each in faults if each is not None]
        if precision.is_mixed(other):
            found.remarks.append(f"mixed precision: {precision.summary(other)}")
            found.differences += precision.precision_faults(one, other)
            found.reasons += precision.never_stepped(other)
        told.held = hold(one, other, told.shaken.rounding, told.compare, told.shaken.trainings)
        told.first, found.widths = told.held.first, [*told.held.widths]

    def _ask_the_original(self, told: _Compared, reference: Run, alone: Run, noise: set[str]) -> None:
        """Take back what the original does not repeat itself, when it is run again or shaken."""
        bounds = told.shaken.within(reference.outcome) if told.results else {}
        itself, first = self._not_repeating(told), told.first
        if itself is not None and (first is None or first.step is None or (itself.step or 0) <= first.step):
            told.found.reasons.append(f"two runs of the original differ: {itself.what}")
            told.first, told.results = None, []
        elif bounds:
            told.left_out |= (moved := printed.decided(bounds))
            told.results = printed.other_results(reference.outcome, alone.outcome, told.left_out | noise, bounds)
            if moved:
                what = f"{many(len(moved), 'result')} skipped, which differ between runs of the original"
                told.found.remarks.append(f"{what}: {min(moved).strip()!r}")

    def _conclude(self, told: _Compared, reference: Run, alone: Run, noise: set[str]) -> Part:
        found, left, title = told.found, "", _title(reference)
        if told.held.decided and told.first is None:
            found.steps, left = compared_whole(told.held.decided, found.steps)
            found.reasons += [] if found.steps else [left]
        found.differences += self._caused(told)
        if found.differences:
            found.remarks += [told.stopped.sentence] if told.stopped is not None else []
            return Part(title, Verdict(Word.DIFFERS, str(found.differences[0])), found)
        if told.stopped is not None and not told.sides:
            return self._until_they_stop(reference, alone, found, left)
        if told.sides:
            found.reasons += [str(side) for side in told.sides]
            return Part(title, Verdict(Word.RUNS, f"what was compared agrees, but {told.sides[0]}"), found)
        if found.reasons:
            return Part(title, Verdict(Word.RUNS, f"ran to its end; {found.reasons[0]}"), found)
        if not told.mixed:
            found.printed, found.saved = printed.compared(reference.outcome, told.left_out | noise)
            if noise:
                what = f"{many(len(noise), 'saved tensor')}, whose gradients are only rounding errors"
                found.reasons.append(f"{what}; the first: {min(noise)}")
        reached = ends.reached(self.original.project, told.one)
        missing = " and ".join(f"no {name}" for name, first in reached if first is None)
        left = "; ".join(filter(None, (left, f"{missing} was reached" if missing and told.one.cut else "")))
        found.reasons += [left] if left else []
        found.reasons += _beyond(told.one)
        return Part(title, _equal(found, reference.witness.whose, ends.caught(alone), mixed=told.mixed), found, left)

    def _caused(self, told: _Compared) -> list[Difference]:
        """The first figure or result that differs, with its cause; else the events that do."""
        first = told.first if told.first is not None else next(iter(told.results), None)
        if first is None:
            return [_of_change(change) for change in without_figures(told.changed, told.one, told.other)]
        # Values that differ before the first step were drawn so.
        seeds = [each for each in told.changed if first.step == 0 and any(e.kind == "seed" for e in each.lost)]
        reaching = [*seeds, *(each for each in told.decisive if each.sets or first.figure[:1] != (steps.SETTING,))]
        return [self._with_cause(first, reaching, told.sides, told.one, told.other)]

    @staticmethod
    def _until_they_stop(reference: Run, alone: Run, found: Findings, left: str) -> Part:
        """The part where the steps that both took agree, and a program stops behind them."""
        verdict = ends.stopped(reference, alone, found.steps)
        assert verdict is not None
        if verdict.word is Word.EQUAL and found.reasons:
            verdict = Verdict(Word.RUNS, f"{verdict.sentence}; {found.reasons[0]}")
        found.reasons += [left] if left and left not in found.reasons else []
        found.reasons.append("what is printed and saved, since the programs stop")
        return Part(_title(reference), verdict, found, left)

    def _not_repeating(self, told: _Compared) -> Difference | None:
        """How the training of the original differs from itself when it is run again; None where it does not."""
        self.announce("the original again, to see whether two runs agree")
        again = self.original.run(replay=told.shaken.replay, again=TWICE).first
        if again is None:
            return Difference("the second run ended differently")
        return hold(told.one, again, told.shaken.rounding, told.compare, lambda: ()).first

    def _with_cause(
        self, first: Difference, decisive: list[Change], sides: list[OneSided], one: Training, other: Training
    ) -> Difference:
        """The difference with the line that it comes from: a way not taken, an event, or what a line computed."""
        if sides:
            return replace(first, place=sides[0].place, original=sides[0].original, cause=str(sides[0]), event=True)
        cause = loaders.other_batches(one, other, evaluated=first.step is None) or not_loaded(one, other)
        if cause is not None:
            return replace(first, place=cause.place, original=cause.original, cause=cause.what, event=True)
        if decisive:
            change = _of_change(decisive[0])
            return replace(first, place=change.place, original=change.original, cause=change.what, event=True)
        if first.figure[:1] == (steps.SETTING,):
            return of_number(first, one, other, self.migrated.project.root)
        if first.cause.startswith(printed.LACKS):
            return _of_saved(first, other)
        if first.figure[:1] == ("gradient",) and (made := other.optimizers.get(int(first.figure[1]))) is not None:
            origin = one.optimizers[int(first.figure[1])]
            if made.is_of_no_network(int(first.figure[3])) and not origin.is_of_no_network(int(first.figure[3])):
                what = (
                    "the optimizer updates a tensor that belongs to no network, as after copying or moving the network"
                )
                return replace(first, place=made.place, original=origin.place, cause=what, event=True)
        if first.step == 0 and first.place in {made.place for made in other.optimizers.values()}:
            return replace(first, event=True)  # it was made otherwise, and has the place
        # A result that no step shows is looked for behind the last of them.
        last = max((step.number for step in other.steps), default=-1)
        wanted = max(first.step, 1) if first.step is not None else last + 2
        self.announce(f"both again, line by line, up to step {wanted}")
        order = Replay(loaders.global_batches([one]), every=False)
        same = Replay({}, every=False, left_out=precision.left_out(one))
        left, right = at_once(
            lambda: self.original.run(replay=same, detail=wanted),
            lambda: self.migrated.run(replay=order, detail=wanted),
        )
        if left.first is not None and right.first is not None:
            line = first_other_result(left.first, right.first, self.inserted)
            if line is not None and line.place is not None:
                return replace(first, place=line.place, original=line.original, cause=line.what, callers=line.callers)
        return first


def _title(reference: Run) -> str:
    return f"{reference.witness.title}, and the migrated program on one emulated npu"


def _equal(found: Findings, whose: str, caught: str, *, mixed: bool) -> Verdict:
    at = bool(found.steps)
    compared = [*found.counted[:at], *filter(None, [" and ".join(found.counted[at:])])]
    if not compared:
        what = "ran to the end; no optimizer step, saved tensor, or number behind a word such as loss to compare"
        return Verdict(Word.RUNS, f"{what}{caught}")
    kind = " (mixed precision against float32)" if mixed else ""
    return Verdict(Word.EQUAL, "; ".join([f"{compared[0]} compared with {whose}{kind}", *compared[1:]]))


def _beyond(original: Training) -> list[str]:
    """What no comparison with an original covers, though it agrees."""
    found = [
        f"DataParallel over {event.fields['cards']} cards ({event.place}): "
        "the original was given one card, like the port"
        for event in original.of("shares")[:1]
    ]
    return [*found, "what follows these steps (--steps 0 lets the programs finish)"] if original.cut else found


def _of_change(change: Change) -> Difference:
    lost, gained = change.reported
    around = change.after or change.before
    place = gained[0].place if gained else around.place if around else None
    return Difference(change.sentence, place, lost[0].place if lost else None, event=True)


def _of_saved(first: Difference, other: Training) -> Difference:
    """A tensor that a saved file lacks: the line that keeps it out of the state, else the one that saves."""
    name = first.cause.removeprefix(printed.LACKS).rpartition(".")[2]
    unsaved = [event for event in other.of("unsaved") if event.fields["name"] == name]
    if unsaved:
        return replace(first, place=unsaved[0].place, cause=f"the buffer {name} is not persistent", event=True)
    saves = other.of("save")
    return replace(first, place=saves[-1].place if saves else None, cause="")
