"""W processes of the migrated program: held against each other, and against one that is given the same data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transplt.proof.prove import averages, ends, loaders, precision, ranks, shares, steps
from transplt.proof.prove.found import Difference, Findings, Part
from transplt.proof.prove.runs import Replay, Run, Runner
from transplt.proof.prove.tolerance import PLAIN, REORDERED
from transplt.proof.prove.training import Training
from transplt.proof.prove.unsteady import REORDERED_ROUNDINGS, Unsteady, compared_whole
from transplt.render.cell import many
from transplt.render.verdict import Verdict, Word


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
        found = Findings()
        faults = run.faults
        found.differences += [Difference(fault.text, fault.place) for fault in faults]
        stopped = ends.not_run(reference, run) or (ends.stopped(reference, run) if run.stop is not None else None)
        if stopped is not None:
            if faults:
                stopped = Verdict(Word.STOPS, f"{faults[0].text}; {stopped.sentence}")
            return [Part(title, stopped, found)]
        if not has_groups(run):
            return [Part(title, Verdict(Word.NOT_RUN, "the program begins no process group"), found)]
        if len(run.trainings) < 2 or not any(training.steps for training in run.trainings):
            return [Part(title, Verdict(Word.RUNS, "ran to its end; no rank took a step that was seen"), found)]
        found.steps = min(len(training.steps) for training in run.trainings)
        for check in (
            ranks.same_card(run.trainings), ranks.unequal_ranks(run.trainings), loaders.same_data(run.trainings),
            loaders.same_order(run.trainings[0]),
        ):  # fmt: skip
            if check is not None:
                found.differences.append(check)
        if precision.is_mixed(run.trainings[0]):
            found.remarks.append(f"mixed precision: {precision.summary(run.trainings[0])}")
        if found.differences:
            return [Part(title, Verdict(Word.DIFFERS, str(found.differences[0])), found)]
        taken = many(found.steps, "step")
        equal = Verdict(Word.EQUAL, f"the parameters of {world} ranks are equal after each of {taken}")
        twin = self._against_ranks(world, run) if self.original.project.distributed else None
        return [Part(title, equal, found), twin or self._against_one(world, run, reference)]

    def _against_ranks(self, world: int, several: Run) -> Part | None:
        """The ranks against those of an original that is distributed itself; None where it has none, or they stop."""
        self.announce(f"the original with {world} processes")
        twin = self.original.run(world)
        if twin.stop is not None or len(twin.trainings) != len(several.trainings) or not has_groups(twin):
            return None
        found = Findings()
        found.steps = sum(1 for _ in steps.pairs(twin.trainings[0], several.trainings[0]))
        found.curves = steps.curves(twin.trainings[0], several.trainings[0])
        title = f"{world} ranks of the original, and {world} of the migrated program"
        tolerance = precision.tolerance_of(twin.trainings[0], several.trainings[0], PLAIN)
        first = ranks.other_than_the_original(twin.trainings, several.trainings, tolerance)
        if first is not None:
            found.differences.append(first)
            return Part(title, Verdict(Word.DIFFERS, str(first)), found)
        found.tolerance = tolerance
        return Part(title, Verdict(Word.EQUAL, f"{many(found.steps, 'step')} compared"), found)

    def _against_one(self, world: int, several: Run, reference: Run) -> Part:
        """W processes against one that is given what they had, all ranks' samples in one batch."""
        title = f"one process, and {world} with the same global batches"
        found = Findings(sides=("one process", f"rank 0 of {world}"))
        rank = several.trainings[0]
        self.announce(f"one process with the batches of {world}")
        replay = loaders.global_batches(several.trainings)
        starter = self.migrated if reference.stop is not None or has_groups(reference) else self.original
        same = Replay(replay, left_out=precision.left_out(rank))
        single = starter.run(replay=same)
        one = single.first
        if one is None or (single.stop is not None and not one.steps):
            stop = f": {single.stop}" if single.stop is not None else ""
            found.reasons.append(f"one process does not train with the batches of all ranks{stop}")
            if one is None or not self._shares(starter, several.trainings, found):
                return Part(title, Verdict(Word.RUNS, f"not compared: {found.reasons[0]}"), found)
            return self._by_shares(title, world, found)
        mixed = precision.is_mixed(rank) and not precision.is_mixed(one)
        found.tolerance = tolerance = precision.tolerance_of(one, rank, REORDERED, precision.HALF_REORDERED)
        meant = ranks.with_mean_losses(several.trainings)
        found.steps = sum(1 for _ in steps.pairs(one, meant))
        found.curves = steps.curves(one, meant)
        compare = precision.differences if mixed else steps.differences
        apart = list(compare(one, meant, tolerance))
        first = apart[0] if apart else None
        why = _incomparable(several.trainings)
        lacks = "" if replay else "the data come from no loader with a sampler, so one process cannot be given the same"
        explained: list[Difference] = []
        if first is not None and not why and not lacks:
            self.announce(f"one process with the batches of {world} again, with parameters off by a few roundings")
            off = precision.rounding_of(rank) if precision.is_mixed(rank) else REORDERED_ROUNDINGS
            again = starter.run(replay=same, shake=off).first
            if again is not None:
                first, explained = Unsteady.between(one, again, tolerance, compare).left(apart)
        if first is None and not mixed and not why and not lacks:
            root = self.migrated.project.root
            first = averages.other_average(single.outcome, several.outcome, rank, world, root)
        if first is None and explained:
            found.steps, left = compared_whole(explained, found.steps, "one process's")
            found.reasons.append(left)
            word = Word.EQUAL if found.steps else Word.RUNS
            return Part(title, Verdict(word, f"{many(found.steps, 'step')} compared; {left}"), found)
        if first is None:
            return Part(title, Verdict(Word.EQUAL, f"{many(found.steps, 'step')} compared"), found)
        if why or lacks:
            found.reasons.append(why or lacks)
            found.tolerance, found.steps = None, 0
            if not why:
                left = f"one process and {world} are not compared: {lacks}"
                return Part(title, Verdict(Word.RUNS, f"the ranks agree; {left}"), found)
            self._shares(starter, several.trainings, found)
            return self._by_shares(title, world, found)
        found.differences.append(ranks.with_cause(first, one, several.trainings, world))
        return Part(title, Verdict(Word.DIFFERS, str(found.differences[0])), found)

    def _shares(self, starter: Runner, several: Sequence[Training], found: Findings) -> bool:
        """Hold the first step against one process on the share of each rank; whether it could be."""
        self.announce("one process with the share of each rank, for one step")
        runs = [starter.run(replay=Replay(loaders.global_batches([rank])), steps=1).first for rank in several]
        alone = [training for training in runs if training is not None]
        if len(alone) < len(several) or several[0].of("draw") or precision.is_mixed(several[0]):
            return False
        try:
            first = shares.first_step(alone, several, REORDERED)
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


def has_groups(run: Run) -> bool:
    """Whether a process of a run began a process group."""
    return any(training.of("group") for training in run.trainings)


def _incomparable(trainings: list[Training]) -> str:
    """Why one process may rightly compute something else; empty where it may not."""
    first = trainings[0]
    names = {name.rpartition(".")[2] for step in first.steps for name in step.buffers}
    if "running_mean" in names:
        return "batch norms take the statistics of a card's share of the batch"
    uneven = loaders.uneven_from(trainings)
    if uneven is not None:
        return f"batch {uneven + 1} is not shared evenly by the ranks (drop_last would leave it out)"
    draws = first.of("draw")
    if draws:
        return f"random numbers are drawn in training ({draws[0].place}), and each rank draws its own"
    return ""
