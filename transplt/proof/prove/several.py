"""W processes of the migrated program: held against each other, and against one that is given the same data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from transplt.base.render.cell import many
from transplt.base.render.verdict import Verdict, Word
from transplt.proof.prove import averages, ends, loaders, precision, printed, properties, races, ranks, shares, steps
from transplt.proof.prove.branches import draws_by_itself, matched
from transplt.proof.prove.detail import first_other_share
from transplt.proof.prove.found import Difference, Findings, Part
from transplt.proof.prove.noise import drawn_by_all, of_the_global_batch
from transplt.proof.prove.numbers import of_number, writing
from transplt.proof.prove.runs import TWICE, Replay, Run, Runner, at_once
from transplt.proof.prove.shaken import Shaken
from transplt.proof.prove.sizes import other_sizes
from transplt.proof.prove.tolerance import PLAIN, REORDERED, Held, compared_whole, hold
from transplt.proof.prove.training import Training

_WITHOUT = "the data come from no loader with a sampler, so one process cannot get the same batches"


@dataclass
class Several:
    """Makes the runs that the comparisons of several processes need."""

    original: Runner
    migrated: Runner
    announce: Callable[[str], None]

    def parts(self, world: int, reference: Run) -> list[Part]:
        """The ranks against each other, and against one process with the same global batches."""
        run = self.migrated.run(world)
        title = f"{world} ranks of the migrated program with each other"
        found = Findings(of_ranks=True)
        for fault in run.faults:  # a condition, or an error, has its line
            sure = fault.condition is not None or fault.kind == "left"
            found.differences.append(Difference(fault.text, fault.place, event=sure))
        turned = properties.other_mode(run.trainings) if found.differences and not found.differences[0].event else None
        if turned is not None:
            found.differences[0] = replace(found.differences[0], place=turned.place, cause=turned.what, event=True)
        not_run = ends.not_run(reference, run)
        stopped = ends.stopped(reference, run) if run.stop is not None else None
        late = not_run is None and stopped is not None and not run.faults and _trained(run)
        if late:
            run = replace(run, trainings=[*steps.in_common(*run.trainings)])
        elif (ended := not_run or stopped) is not None:
            race = races.unordered(run.trainings)
            found.differences += [race] if isinstance(race, Difference) else []
            if found.differences:
                why = str(race if isinstance(race, Difference) else found.differences[0] if turned else run.faults[0])
                ended = Verdict(Word.STOPS, f"{why}; {ended.sentence}")
            return [Part(title, ended, found)]
        if not has_groups(run):
            return [Part(title, Verdict(Word.NOT_RUN, "the program starts no process group"), found)]
        if len(run.trainings) < 2 or not any(training.steps for training in run.trainings):
            what = f"ran to the end, but no rank took an optimizer step{ends.caught(run)}"
            return [Part(title, Verdict(Word.RUNS, what), found)]
        twin = self._twin(world, run, reference)
        self._judge(run, twin, reference, found)
        if found.differences:
            found.remarks += [stopped.sentence] if stopped is not None else []
            return [Part(title, Verdict(Word.DIFFERS, str(found.differences[0])), found)]
        taken = many(found.steps, "step") + ", to the program's end" * (not late and not run.trainings[0].cut)
        equal = Verdict(Word.EQUAL, f"the parameters of {world} ranks are equal after each of {taken}")
        if late:
            equal = ends.stopped(reference, run, found.steps, equal.sentence) or equal
            if equal.word is not Word.EQUAL:
                return [Part(title, equal, found)]
        if found.reasons:
            equal = Verdict(Word.RUNS, f"{equal.sentence}; {found.reasons[0]}")
        second = self._against_ranks(world, run, twin) if twin is not None else self._against_one(world, run, reference)
        if twin is not None and second.verdict.word is Word.DIFFERS:
            second = self._as_one(world, run, twin, reference) or second
        return [Part(title, equal, found), second]

    def _as_one(self, world: int, several: Run, twin: Run, reference: Run) -> Part | None:
        """Against one process, where the port takes other batches than the ranks of the original do: it may divide
        those of one process among its ranks. None where it does not compute what one process does."""
        theirs, ours = (loaders.width(run.trainings) for run in (twin, several))
        if theirs == ours:
            return None
        part = self._against_one(world, several, reference)
        if part.verdict.word is not Word.EQUAL:
            return None
        taken = f"{world} ranks of the original have a global batch of {theirs}"
        part.findings.remarks.append(f"{taken}, those of the migrated program one of {ours}, like one process")
        return part

    def _judge(self, run: Run, twin: Run | None, reference: Run, found: Findings) -> None:
        """What has to hold between the ranks, and of mixed precision."""
        found.steps = min(len(training.steps) for training in run.trainings)
        one = reference.first if reference.stop is None else None
        root = self.migrated.project.root
        twins = twin.trainings if twin is not None else ()
        judged, found.remarks = properties.judge(run.trainings, one, root, run.faults, twins)
        if twin is not None:
            theirs, _ = properties.judge(twin.trainings, one, self.original.project.root)
            judged = properties.excused(judged, theirs, matched(self.original.project.root, root))
        found.properties = [each.as_property for each in judged]
        broken = [
            replace(each.found, event=each.name not in (properties.PARAMETERS, properties.NOISE, properties.BUFFERS))
            for each in judged
            if isinstance(each.found, Difference)
        ]
        found.differences += broken[1 if run.faults else 0 :]
        lost = ranks.not_loaded(one, run.trainings[0]) if one is not None and twin is None else None
        found.differences += [replace(lost, event=True)] if lost is not None else []
        if precision.is_mixed(run.trainings[0]):
            found.remarks.append(f"mixed precision: {precision.summary(run.trainings[0])}")
            plain = twin.first if twin is not None else one
            found.differences += precision.precision_faults(plain, run.trainings[0]) if plain is not None else ()
            found.reasons += precision.never_stepped(run.trainings[0])

    def _twin(self, world: int, several: Run, reference: Run) -> Run | None:
        """The ranks of an original that is distributed itself; None where it has none, or they end otherwise."""
        by_itself = self.original.project.distributed or has_groups(reference)
        if not by_itself and self.migrated.project.distributed:
            return None  # where a framework begins the group of the port, it may begin that of the original, too
        self.announce(f"the original with {world} processes")
        twin = self.original.run(world)
        alike = twin.stop is None if several.stop is None else several.stop.is_that_of(twin.stop) and _trained(twin)
        return twin if alike and len(twin.trainings) == len(several.trainings) and has_groups(twin) else None

    def _against_ranks(self, world: int, several: Run, twin: Run) -> Part:
        title = f"{world} ranks of {twin.witness.name}, and {world} of the migrated program"
        found = Findings(of_ranks=None)
        rank, whose, originals = several.trainings[0], f"the original with {world} processes", twin.trainings
        found.rounding = precision.rounding_between(originals[0], rank, PLAIN)
        mixed = precision.is_put_in(originals[0], rank)
        same = Replay({}, every=False, left_out=precision.left_out(rank) if mixed else {})
        if same.left_out:
            # Behind a step that a scaler leaves out the losses are of other parameters.
            self.announce(f"{whose}, without the steps that the scaler skips")
            originals = self.original.run(world, replay=same).trainings or originals
        if several.stop is not None:
            both = steps.in_common(*originals, *several.trainings)
            originals, several = [*both[: len(originals)]], replace(several, trainings=[*both[len(originals) :]])
        found.steps = sum(1 for _ in steps.pairs(originals[0], rank))
        found.curves = steps.curves(originals[0], rank)
        shaken = Shaken(self.original, same, found.rounding, self.announce, whose, world=world)
        compare = precision.comparison(mixed)
        held = ranks.other_than_the_original(originals, several.trainings, found.rounding, compare, shaken.trainings)
        found.widths = [*held.widths]
        first, ended = held.first, several.stop is not None
        if first is None and not mixed and not ended:
            other = self._other_result(twin, several, shaken, found)
            first = ranks.by_collective(other, originals[0], rank) if other is not None else None
        if first is not None:
            found.differences.append(self._located(first, originals[0], rank))
            return Part(title, Verdict(Word.DIFFERS, str(found.differences[0])), found)
        part = _agreeing(title, found, held)
        if mixed or ended:
            why = "since the programs stop" if ended else "since only one is in mixed precision"
            found.reasons.append(f"what is printed and saved, {why}")
            return part
        left = "" if found.printed or found.saved else "nothing that the ranks print or save is compared"
        told = left or " and ".join(found.counted[bool(found.steps) :])
        return replace(part, verdict=replace(part.verdict, sentence=f"{part.verdict.sentence}; {told}"), left=left)

    def _other_result(self, twin: Run, several: Run, shaken: Shaken, found: Findings) -> Difference | None:
        """What the ranks print or save otherwise than those of the original do each time; counts what is compared."""
        one, other = twin.outcome, several.outcome
        noise = printed.of_parameters(one, steps.rounding(twin.trainings[0]))
        results = printed.other_results(one, other, noise)
        if results:
            self.announce(f"the original with {twin.world} processes again, to see whether two runs agree")
            noise |= {*printed.apart(one, self.original.run(twin.world, again=TWICE).outcome)}
            bounds = shaken.within(one)
            noise |= printed.decided(bounds)
            results = printed.other_results(one, other, noise, bounds)
        found.printed, found.saved = printed.compared(one, noise)
        return next(iter(results), None)

    def _against_one(self, world: int, several: Run, reference: Run) -> Part:
        """W processes against one that is given what they had. Of what is drawn for the samples of all, and of what
        hangs on their order, each rank takes rows that follow each other, or each W-th: one of them has to agree, and
        where none does the one that agrees longer tells more."""
        part = self._in_order(world, several, reference, in_turn=False)
        if part.verdict.word is not Word.DIFFERS or not several.trainings[0].of("batch"):
            return part
        other = self._in_order(world, several, reference, in_turn=True)
        if other.verdict.word is not Word.DIFFERS or of_the_global_batch(several.trainings):
            return other
        return max(part, other, key=lambda each: ((told := each.findings.differences[0]).step or 0, bool(told.figure)))

    def _replayed(self, several: Run, reference: Run, *, in_turn: bool) -> tuple[Runner, Replay]:
        """What starts one process, the original's but where that stops, or begins a group, or draws other numbers, and
        with which batches."""
        draws = draws_by_itself(self.migrated.project.root, self.migrated.inserted)
        other, rank = reference.stop is not None or has_groups(reference) or draws, several.trainings[0]
        other = other or printed.reworded(reference.outcome, several.outcome)
        starter = self.migrated if other else self.original
        alone = reference.first if starter is self.original else rank
        lengths = loaders.lengths(rank, alone) if alone is not None else {}
        batches = loaders.global_batches(several.trainings, in_turn=in_turn)
        return starter, Replay(batches, left_out=precision.left_out(rank), lengths=lengths)

    def _in_order(self, world: int, several: Run, reference: Run, *, in_turn: bool) -> Part:
        """All ranks' samples in one batch, one rank after the other or `in_turn`."""
        title = f"one process, and {world} with the same global batches"
        found = Findings(sides=("one process", f"rank 0 of {world}"), of_ranks=True)
        rank = several.trainings[0]
        self.announce(f"one process with the batches of {world}")
        starter, same = self._replayed(several, reference, in_turn=in_turn)
        single = starter.run(replay=same)
        one = single.first
        if one is None or (single.stop is not None and not one.steps):
            stop = f": {single.stop}" if single.stop is not None else ""
            found.reasons.append(f"one process does not train with the batches of all ranks{stop}")
            if one is None or not self._shares(starter, several.trainings, found):
                return Part(title, Verdict(Word.RUNS, f"not compared: {found.reasons[0]}"), found)
            return self._by_shares(title, world, found)
        mixed = precision.is_put_in(one, rank)
        found.rounding = rounding = precision.rounding_between(one, rank, REORDERED)
        alike = drawn_by_all([one, *several.trainings])
        why, lacks = _incomparable(several.trainings, alike=alike), "" if same.batches or alike else _WITHOUT
        meant = ranks.with_mean_losses(several.trainings)
        if not same.batches and not lacks:  # the loss of a share may be a sum, or a part of the mean of all
            meant, lacks = shares.with_losses_of(one, several.trainings) or (meant, _WITHOUT)
        if several.stop is not None:
            one, meant = steps.in_common(one, meant)
        found.steps = len([*steps.pairs(one, meant)])
        found.curves = steps.curves(one, meant)
        shaken = Shaken(starter, same, rounding, self.announce, f"one process with the batches of {world}")
        shake: Callable[[], Sequence[Training]] = (lambda: ()) if why else shaken.trainings
        held = hold(one, meant, rounding, precision.comparison(mixed), shake)
        first, found.widths = held.first, [*held.widths]
        # Behind steps that agree the same losses are those of the same samples; a loss has no figure.
        lacks = lacks if first is None or (first.step or 0) < 2 or first.figure[:1] in ((), ("number",)) else ""
        told = partial(averages.other_average, single.outcome, several.outcome, rank, world, self.migrated.project.root)
        if first is None and not mixed:  # steps that agree are those of the same draws, whatever is known of these
            first = told() or (None if why or lacks else printed.other_saved(single.outcome, several.outcome, rank))
            why = lacks = ""
        if first is None:
            return _agreeing(title, found, held)
        if why or lacks:
            root = self.migrated.project.root
            sized = other_sizes(one, several.trainings, meant, rounding, same_data=not lacks, root=root)
            if sized is None and why and not mixed:
                sized = told(about=True)
            if sized is not None:
                found.differences.append(self._located(sized, one, rank))
                return Part(title, Verdict(Word.DIFFERS, str(found.differences[0])), found)
            return self._apart(title, starter, several, found, (why, lacks))
        first = ranks.with_cause(first, one, several.trainings, world)
        found.differences.append(self._located(first, one, rank, same))
        return Part(title, Verdict(Word.DIFFERS, str(found.differences[0])), found)

    def _apart(self, title: str, starter: Runner, several: Run, found: Findings, reasons: tuple[str, str]) -> Part:
        """The part where one process rightly computes something else, or cannot get the same batches."""
        why, lacks = reasons
        found.reasons.append(why or lacks)
        found.rounding, found.widths, found.steps = None, [], 0
        if not why:
            left = f"one process and {several.world} are not compared: {lacks}"
            return Part(title, Verdict(Word.RUNS, f"the ranks agree; {left}"), found)
        self._shares(starter, several.trainings, found)
        return self._by_shares(title, several.world, found)

    def _located(self, first: Difference, one: Training, rank: Training, same: Replay | None = None) -> Difference:
        """With the line that set a number of the optimizer, where that is what differs; else with the first line that
        computes something else on a rank than in one process of the `same` batches."""
        if first.figure[:1] == (steps.SETTING,):
            return of_number(first, one, rank, self.migrated.project.root)
        if first.figure[:1] == ("buffer",):
            place = writing(rank, self.migrated.project.root, str(first.figure[-1]).rpartition(".")[2])
            return replace(first, place=place, original=None, event=True) if place is not None else first
        if same is None or first.event or not first.step or first.figure[:1] == ("number",):
            return first
        self.announce(f"one process and {rank.world} again, line by line, up to step {first.step}")
        alone, several = at_once(
            partial(self.migrated.run, replay=same, detail=first.step),
            partial(self.migrated.run, rank.world, detail=first.step),
        )
        line = first_other_share(alone.trainings, several.trainings, first.step)
        if line is None:
            return first
        return replace(first, place=line.place, original=None, cause=line.what, callers=line.callers)

    def _shares(self, starter: Runner, several: Sequence[Training], found: Findings) -> bool:
        """Hold the first step against one process on the share of each rank; whether it could be."""
        self.announce("one process with the share of each rank, for one step")
        each = (Replay(loaders.global_batches([rank])) for rank in several)
        runs = at_once(*(partial(starter.run, replay=share, steps=1) for share in each))
        alone = [run.first for run in runs if run.first is not None]
        first_share = Replay(loaders.global_batches(several[:1]))
        shaken = Shaken(starter, first_share, REORDERED, self.announce, "one process with the share of rank 0", steps=1)
        if len(alone) < len(several) or several[0].of("draw") or precision.is_mixed(several[0]):
            return False
        try:
            first = shares.first_step(alone, several, REORDERED, shaken.trainings())
        except ValueError:
            return False
        found.remarks += [] if first is not None else [shares.REMARK]
        found.differences += [] if first is None else [first]
        return True

    @staticmethod
    def _by_shares(title: str, world: int, found: Findings) -> Part:
        """The part where only shares could be compared, or nothing but the ranks with each other."""
        if found.differences:
            return Part(title, Verdict(Word.DIFFERS, str(found.differences[0])), found)
        how = "compared in the first step only" if shares.REMARK in found.remarks else "not compared"
        left = f"one process and {world} are {how}: {found.reasons[0]}"
        return Part(title, Verdict(Word.EQUAL, f"the ranks agree; {left}"), found, left)


def _agreeing(title: str, found: Findings, held: Held) -> Part:
    """The part where no figure is more than roundings away; those that roundings decide are not compared."""
    if not held.decided:
        return Part(title, Verdict(Word.EQUAL, f"{many(found.steps, 'step')} compared"), found)
    found.steps, left = compared_whole(held.decided, found.steps)
    found.reasons.append(left)
    word = Word.EQUAL if found.steps else Word.RUNS
    return Part(title, Verdict(word, f"{many(found.steps, 'step')} compared; {left}"), found)


def has_groups(run: Run) -> bool:
    """Whether a process of a run began a process group."""
    return any(training.of("group") for training in run.trainings)


def _trained(run: Run) -> bool:
    """Whether each rank of several took a step that all took."""
    together = steps.in_common(*run.trainings)
    return has_groups(run) and len(together) > 1 and all(training.steps for training in together)


def _incomparable(trainings: list[Training], *, alike: bool) -> str:
    """Why one process may rightly compute something else, "" where it may not; `alike`: all draw the same numbers."""
    first = trainings[0]
    if "running_mean" in {name.rpartition(".")[2] for step in first.steps for name in step.buffers}:
        return "batch norms use the statistics of a card's share of the batch"
    uneven = loaders.uneven_from(trainings)
    if uneven is not None:
        return f"batch {uneven + 1} cannot be divided evenly among the ranks (drop_last would skip it)"
    draws = first.of("draw")
    if draws and not alike and not of_the_global_batch(trainings):
        others = "one process draws others" if drawn_by_all(trainings) else "each rank draws its own"
        return f"random numbers are drawn in training ({draws[0].place}), and {others}"
    return ""
