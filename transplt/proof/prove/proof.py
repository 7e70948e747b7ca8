"""The proof: which runs are made, what is compared, and the word that it comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from transplt.proof.launch.options import RunOptions
from transplt.proof.launch.warm import Warm
from transplt.proof.prove import ends, loaders, precision, printed, steps
from transplt.proof.prove.branches import OneSided, Way, inserted, one_sided, ways
from transplt.proof.prove.detail import first_other_result
from transplt.proof.prove.edited import edits, pointed
from transplt.proof.prove.found import Difference, Findings, Part, Rounding
from transplt.proof.prove.known import Known
from transplt.proof.prove.noise import drawn_again
from transplt.proof.prove.numbers import of_number
from transplt.proof.prove.projects import Project
from transplt.proof.prove.runs import Replay, Run, Runner, at_once
from transplt.proof.prove.several import Several, has_groups
from transplt.proof.prove.shaken import Shaken
from transplt.proof.prove.structure import Change, changes
from transplt.proof.prove.tolerance import PLAIN, Compare, compared_whole, hold
from transplt.proof.prove.training import Training
from transplt.proof.prove.unseeded import as_started
from transplt.render.cell import many
from transplt.render.verdict import Verdict, Word, gravest

#: Names a run that is made to see whether the original repeats itself: the kept one would always be the same.
_TWICE = 2


@dataclass
class Proof:
    """All comparisons of two programs. The verdict is the gravest of theirs, and names what was not compared."""

    parts: list[Part] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        worst = gravest([part.verdict for part in self.parts])
        left = dict.fromkeys(part.left for part in self.parts if part.left)
        return replace(worst, sentence="; ".join([worst.sentence, *left])) if worst.word is Word.EQUAL else worst


@dataclass
class Prover:
    """Makes the runs that a proof needs, and no more: the original again only where something differs."""

    original: Runner
    migrated: Runner
    ways: list[Way]
    inserted: dict[str, list[int]]
    announce: Callable[[str], None]

    def prove(self, worlds: tuple[int, ...]) -> Proof:
        """Compare with each number of processes; one process first, since the others are held against the original."""
        proof = Proof()
        self.announce("the original on a stand-in for CUDA")
        reference = self.original.run()
        self.announce("the migrated program on the emulated npu")
        order = Replay(loaders.global_batches(reference.trainings[:1]), every=False)
        alone = self.migrated.run(replay=order)
        if 1 in worlds or not has_groups(alone):
            proof.parts.append(self._one_process(reference, alone, order))
        if self.migrated.spawns and worlds == (1,):
            worlds = (1, 2)  # it starts a process for each card by itself: with one of them nothing of that is seen
        for world in worlds:
            if world > 1:
                self.announce(f"the migrated program with {world} processes")
                proof.parts += Several(self.original, self.migrated, self.announce).parts(world, reference)
        proof.parts[:] = [self._pointed(part) for part in proof.parts]
        proof.parts[0].findings.remarks += _notes(reference, alone)
        if all(part.verdict.word in (Word.EQUAL, Word.RUNS) for part in proof.parts):
            self.announce("the migrated program as its user starts it")
            started = as_started(self.original, self.migrated, tuple(sorted({*worlds} & {1} | {worlds[-1]})))
            proof.parts += [started] if started is not None else []
        proof.seconds = self.original.seconds + self.migrated.seconds
        if (known := self.original.known) is not None and known.used and proof.parts:
            what = f"{many(known.used, 'run')} of the original made before (--no-cache makes them anew)"
            proof.parts[0].findings.remarks.append(what)
        return proof

    def _pointed(self, part: Part) -> Part:
        """With the line that may cause its first difference."""
        differences = part.findings.differences
        if part.verdict.word is not Word.DIFFERS or not differences:
            return part
        first = differences[0]
        others = edits(self.original.project.root, self.migrated.project.root)
        differences[0] = pointed(first, others, part.findings.lines)
        told = part.verdict.sentence.replace(str(first), str(differences[0]))
        return replace(part, verdict=replace(part.verdict, sentence=told))

    def _one_process(self, reference: Run, alone: Run, order: Replay) -> Part:
        title = "the original on a stand-in for CUDA, and the migrated program on one emulated npu"
        found = Findings()
        not_run = ends.not_run(reference, alone)
        if not_run is not None:
            return Part(title, not_run, found)
        one, other = reference.first, alone.first
        stopped = ends.stopped(reference, alone)
        if stopped is not None and (one is None or other is None or not any(steps.pairs(one, other))):
            return Part(title, stopped, found)
        if one is None or other is None:
            found.reasons.append("no training was seen")
            return Part(title, Verdict(Word.RUNS, f"ran to its end; nothing to compare: {found.reasons[0]}"), found)
        mixed = precision.is_mixed(other) and not precision.is_mixed(one)
        found.rounding = rounding = precision.rounding_between(one, other, PLAIN)
        if mixed and (left_out := precision.left_out(other)):
            # Behind a step that a scaler leaves out the losses are of other parameters.
            self.announce("the original again, without the steps that the scaler leaves out")
            one = self.original.run(replay=Replay({}, every=False, left_out=left_out)).first or one
        if stopped is not None:
            one, other = steps.in_common(one, other)
        found.steps = sum(1 for _ in steps.pairs(one, other))
        found.curves = steps.curves(one, other)
        alike = stopped is None or stopped.word is Word.NOT_RUN  # else one came to lines that the other did not
        sides = one_sided(self.ways, reference.lines, alone.lines) if alike else []
        if sides:
            self.announce("both again: do they take the same branches?")  # one that the clock decides proves nothing
            again = one_sided(self.ways, self.original.run(again=_TWICE).lines, self.migrated.run(replay=order).lines)
            sides = [side for side in sides if side in again]
        every = changes(one, other)
        decisive = [change for change in every if change.decisive]
        unshuffled = loaders.unshuffled(one, other)
        repeated = drawn_again(other, one)
        found.differences += [each for each in (unshuffled, repeated) if each is not None]
        if precision.is_mixed(other):
            found.remarks.append(f"mixed precision: {precision.summary(other)}")
            found.differences += precision.precision_faults(one, other)
            found.reasons += precision.never_stepped(other)
        compare = precision.gaps if mixed else steps.gaps
        same = Replay({}, every=False, left_out=precision.left_out(other) if mixed else {})
        original = Shaken(self.original, same, rounding, self.announce)
        held = hold(one, other, rounding, compare, original.trainings)
        numeric, found.widths = held.first, [*held.widths]
        noise = printed.of_parameters(reference.outcome, steps.rounding(one))
        silent = mixed or stopped is not None
        results = [] if silent else printed.other_results(reference.outcome, alone.outcome, noise)
        unrepeated: set[str] = set()
        left = ""
        if (numeric is not None or results) and not found.differences:
            bounds = original.within(reference.outcome) if results else {}
            itself = self._not_repeating(one, same, rounding, compare)
            if itself is not None and (numeric is None or numeric.step is None or (itself.step or 0) <= numeric.step):
                found.reasons.append(f"the original does not repeat itself: {itself.what}")
                numeric, results = None, []
            elif bounds:
                unrepeated = printed.decided(bounds)
                results = printed.other_results(reference.outcome, alone.outcome, unrepeated | noise, bounds)
                what = f"{many(len(unrepeated), 'result')} left out, which the original does not repeat"
                found.remarks += [f"{what}: {min(unrepeated).strip()!r}"] if unrepeated else []
        if held.decided and numeric is None:
            found.steps, left = compared_whole(held.decided, found.steps)
            found.reasons += [] if found.steps else [left]
        if numeric is not None or results:
            first = numeric if numeric is not None else results[0]
            # Values that differ before the first step were drawn so.
            seeds = [change for change in every if first.step == 0 and any(e.kind == "seed" for e in change.lost)]
            found.differences.append(self._with_cause(first, [*seeds, *decisive], sides, one, other))
        elif decisive:
            found.differences += [_of_change(change) for change in decisive]
        if found.differences:
            found.remarks += [stopped.sentence] if stopped is not None else []
            return Part(title, Verdict(Word.DIFFERS, str(found.differences[0])), found)
        if stopped is not None and not sides:
            return self._until_they_stop(title, reference, alone, found, left)
        if sides:
            found.reasons += [str(side) for side in sides]
            return Part(title, Verdict(Word.RUNS, f"what was compared agrees, but {sides[0]}"), found)
        if found.reasons:
            return Part(title, Verdict(Word.RUNS, f"ran to its end; {found.reasons[0]}"), found)
        if not mixed:
            found.printed, found.saved = printed.compared(reference.outcome, unrepeated | noise)
            if noise:
                what = f"{many(len(noise), 'saved tensor')}, whose gradients are rounding: {min(noise)}"
                found.reasons.append(what)
        found.reasons += [left] if left else []
        found.reasons += _beyond(one)
        return Part(title, _equal(found, mixed), found, left)

    @staticmethod
    def _until_they_stop(title: str, reference: Run, alone: Run, found: Findings, left: str) -> Part:
        """The part where the steps that both took agree, and a program stops behind them."""
        verdict = ends.stopped(reference, alone, found.steps)
        assert verdict is not None
        if verdict.word is Word.EQUAL and found.reasons:
            verdict = Verdict(Word.RUNS, f"{verdict.sentence}; {found.reasons[0]}")
        found.reasons += [left] if left and left not in found.reasons else []
        found.reasons.append("what is printed and saved, since the programs stop")
        return Part(title, verdict, found, left)

    def _not_repeating(self, one: Training, same: Replay, rounding: Rounding, compare: Compare) -> Difference | None:
        """How the training of the original differs from itself when it is run again; None where it does not."""
        self.announce("the original again: does it repeat itself?")
        again = self.original.run(replay=same, again=_TWICE).first
        if again is None:
            return Difference("it ended otherwise the second time")
        return hold(one, again, rounding, compare, lambda: ()).first

    def _with_cause(
        self, first: Difference, decisive: list[Change], sides: list[OneSided], one: Training, other: Training
    ) -> Difference:
        """The difference with the line that it comes from: a way not taken, an event, or what a line computed."""
        if sides:
            return replace(first, place=sides[0].place, original=sides[0].original, cause=str(sides[0]), event=True)
        cause = loaders.other_batches(one, other) or _not_loaded(one, other)
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
                what = "the optimizer has a tensor that is of no network, as one has that was copied or moved later"
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


def between(
    original: Project,
    migrated: Project,
    options: RunOptions,
    announce: Callable[[str], None],
    warm: Warm | None = None,
    known: Known | None = None,
) -> Prover:
    """What proves `migrated` against `original`; `announce` gets a line before each run, `warm` forks it, and `known`
    has those of the original that were made before."""
    branches = ways(original.root, migrated.root)
    watched: tuple[dict[str, list[int]], ...] = ({}, {})
    for way in branches:
        for side in (0, 1):
            watched[side].setdefault(way.path, []).extend((way.header[side], way.first[side]))
    reference = Runner(original, options, "cuda", watched[0], warm=warm, known=known)
    added = inserted(original.root, migrated.root)
    port = Runner(migrated, options, "npu", watched[1], warm=warm, inserted=added)
    return Prover(reference, port, branches, added, announce)


def _notes(*runs: Run) -> list[str]:
    """What the hosts of the runs have to say of themselves, such as how large the data sets are that a stub gives."""
    return [*dict.fromkeys(note for run in runs for process in run.outcome.processes for note in process["notes"])]


def _equal(found: Findings, mixed: bool) -> Verdict:
    results = [(found.printed, "printed result"), (found.saved, "saved tensor")]
    beside = " and ".join(many(count, noun) for count, noun in results if count)
    if not found.steps and not beside:
        return Verdict(Word.RUNS, "ran to its end; it took no step and printed or saved no result to compare")
    kind = " (mixed precision against float32)" if mixed else ""
    if not found.steps:
        return Verdict(Word.EQUAL, f"{beside} compared with the original's{kind}")
    steps_compared = f"{many(found.steps, 'step')} compared with the original's{kind}"
    return Verdict(Word.EQUAL, f"{steps_compared}; {beside}" if beside else steps_compared)


def _beyond(original: Training) -> list[str]:
    """What no comparison with an original covers, though it agrees."""
    found = [
        f"DataParallel over {event.fields['cards']} cards ({event.place}): it had one, as what is migrated has"
        for event in original.of("shares")[:1]
    ]
    more = "what comes after these steps (--steps 0 lets the programs come to their own end)"
    return [*found, more] if original.cut else found


def _of_change(change: Change) -> Difference:
    lost, gained = change.reported
    around = change.after or change.before
    place = gained[0].place if gained else around.place if around else None
    return Difference(change.sentence, place, lost[0].place if lost else None, event=True)


def _not_loaded(one: Training, other: Training) -> Difference | None:
    """A state that is loaded, and lacks what the original finds in it."""
    if one.of("missing"):
        return None
    for event in other.of("missing"):
        names: list[str] = event.fields["names"]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return Difference(f"the state that is loaded has no {names[0]}{more}", event.place)
    return None


def _of_saved(first: Difference, other: Training) -> Difference:
    """A tensor that a saved file lacks: the line that keeps it out of the state, else the one that saves."""
    name = first.cause.removeprefix(printed.LACKS).rpartition(".")[2]
    unsaved = [event for event in other.of("unsaved") if event.fields["name"] == name]
    if unsaved:
        return replace(first, place=unsaved[0].place, cause=f"the buffer {name} is not persistent", event=True)
    saves = other.of("save")
    return replace(first, place=saves[-1].place if saves else None, cause="")
