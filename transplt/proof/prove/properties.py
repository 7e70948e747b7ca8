"""What has to hold between the ranks of one run, property by property."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from transplt.base.render.cell import many
from transplt.base.render.verdict import Verdict, Word
from transplt.proof.prove import evaluation, loaders, noise, races, ranks
from transplt.proof.prove.collectives import CollectiveFault
from transplt.proof.prove.found import Difference, Property
from transplt.proof.prove.numbers import assignment
from transplt.proof.prove.rank_conditions import read_source
from transplt.proof.prove.slices import behind_loop
from transplt.proof.prove.steps import alike, in_common, pairs, shown
from transplt.proof.prove.training import Place, Training, TrainingStep

COLLECTIVES, CARD, PARAMETERS = "collectives", "a card for each rank", "same parameters"
NOISE, BUFFERS, FILES = "noise", "same buffers", "files"
#: Events with a number that has to be the same on all ranks, what they do with it, and why it is not where the ranks
#: exchange something between them and the step.
_DECIDE = (
    ("scheduler", "metric", "steps {kind} with", ""),
    ("clip", "norm", "clips gradients with the norm", "they are clipped before they are exchanged"),
)


@dataclass(frozen=True)
class Judged:
    """A property, and how it is broken, or how it holds; "" where nothing of it was seen."""

    name: str
    found: Difference | str

    @property
    def as_property(self) -> Property:
        broken = isinstance(self.found, Difference)
        return Property(self.name, Verdict(Word.DIFFERS if broken else Word.EQUAL, str(self.found)))


def judge(
    trainings: Sequence[Training], one: Training | None, root: Path, faults: Sequence[CollectiveFault] = (),
    originals: Sequence[Training] = (),
) -> tuple[list[Judged], list[str]]:
    """The properties of these ranks that were seen, and remarks. `one` is the original in one process, where it came
    to its end: what it does itself is right. `root` is the folder of the program, `originals` are the ranks of a
    distributed original."""
    world, first = len(trainings), trainings[0]
    steps = min(len(training.steps) for training in trainings)
    made = len(first.of("coll"))
    asked = many(made, "collective")
    chosen = f"each of {world} ranks has its own" if all(training.of("card") for training in trainings) else ""
    buffers, remarks = evaluation.same_buffers(trainings)
    results, more = evaluation.together(trainings, one)
    if isinstance(results, Difference) and (at := results.place) is not None:  # to where they are made use of
        results = replace(results, place=Place(at.path, behind_loop(read_source(str(root / at.path)) or "", at.line)))
    drawn = _noise(trainings, one) or noise.as_of(trainings, originals)
    if not drawn and any(training.of("noise") for training in trainings):
        more.append(f"{NOISE}: not judged: no loader tells which samples the random numbers are drawn for")
    apart = ranks.unequal_ranks(trainings)
    schedules = same_schedules(trainings, steps, root, apart is not None)
    if isinstance(results, Difference) and isinstance(schedules, Difference) and schedules.figure == ("scheduler",):
        schedules = replace(schedules, place=results.place, cause=results.what)  # the metric is that of a share
    fault = next((Difference(fault.text, fault.place) for fault in faults), None)
    found = [
        Judged(COLLECTIVES, fault or (f"{asked} of rank {first.rank} match those of the other ranks" if made else "")),
        Judged(CARD, ranks.same_card(trainings) or chosen),
        Judged(PARAMETERS, _same_parameters(apart, steps, schedules)),
        Judged("shares of the data", loaders.shared_out(trainings, one)),
        Judged("order of each epoch", _order(first, one)),
        Judged(NOISE, drawn),
        Judged(BUFFERS, buffers),
        Judged("results of all ranks", results),
        Judged("same schedules", schedules),
        Judged(FILES, _files(trainings)),
        Judged("order of effects", races.unordered(trainings)),
    ]
    return [each for each in found if each.found], [*remarks, *more, *_never_sent(trainings, buffers)]


def excused(found: Sequence[Judged], originals: Sequence[Judged], lines: Mapping[Place, Place]) -> list[Judged]:
    """With what the original breaks in the same way, with as many processes, as it is there: at the line that stands
    for the same in both (`lines`: of the original -> of the migrated program), or with the same file."""
    theirs = {each.name: each.found for each in originals if isinstance(each.found, Difference)}
    return [
        Judged(each.name, f"as in the original: {twin}")
        if isinstance(each.found, Difference)
        and each.name not in (COLLECTIVES, CARD, PARAMETERS)
        and (twin := theirs.get(each.name)) is not None
        and (
            each.found.what == twin.what
            if each.name == FILES
            else each.found.place == (twin.place and lines.get(twin.place))
        )
        else each
        for each in found
    ]


def _same_parameters(found: Difference | None, steps: int, schedules: Difference | str) -> Difference | str:
    """Whether the parameters are those of all ranks, and where they are not, the schedule that makes them differ."""
    if found is None:
        return f"the same bytes after each of {many(steps, 'step')}"
    if isinstance(schedules, Difference) and (schedules.step or 0) <= (found.step or 0):
        return replace(found, place=schedules.place, cause="; ".join(filter(None, (schedules.what, schedules.cause))))
    return found


def _order(first: Training, one: Training | None) -> Difference | str:
    found = loaders.same_order(first, one) or (loaders.in_step(first, one) if one is not None else None)
    epochs = loaders.counted_epochs(first)
    return found or (f"new in each of {epochs} epochs" if epochs > 1 else "")


def _noise(trainings: Sequence[Training], one: Training | None) -> Difference | str:
    found = noise.of_its_own(trainings, one)
    if isinstance(found, Difference) or one is None:
        return found
    return next(filter(None, (noise.drawn_again(training, one) for training in trainings)), found)


def same_schedules(trainings: Sequence[Training], steps: int, root: Path, apart: bool = False) -> Difference | str:
    """Whether every rank decides by the same metric, and steps with the same learning rate and other numbers. Where
    the parameters are `apart`, other norms to clip come of that."""
    first = trainings[0]
    for other in trainings[1:]:
        who = f"rank {first.rank}", f"rank {other.rank}"
        for decides in _DECIDE[: 2 - apart]:
            if (decided := _decided_otherwise(first, other, *decides)) is not None:
                return decided
        for left, right in pairs(first, other):
            for before, after in zip(left.hyper, right.hyper, strict=False):
                key = next((key for key in before if not alike(before[key], after.get(key))), None)
                if key is not None:
                    what = f"{key} is {shown(before[key])} on {who[0]} and {shown(after.get(key))} on {who[1]}"
                    found = Difference(f"{what} at step {left.number + 1}", right.place, step=left.number + 1)
                    return _set_where(found, key, (first, left), (other, right), root)
        if (stepped := _stepped_otherwise(first, other)) is not None:
            return stepped
    return f"the same numbers of the optimizers at each of {many(steps, 'step')}" if steps else ""


def _decided_otherwise(
    first: Training, other: Training, kind: str, field: str, does: str, cause: str
) -> Difference | None:
    told = [[e for e in each.of(kind) if e.fields.get(field) is not None] for each in (first, other)]
    counts = [len(events) for events in told]
    if kind == "scheduler" and abs(counts[0] - counts[1]) > 1:  # one may be cut before it
        made = told[counts[1] > counts[0]][0]
        what = f"rank {first.rank} steps {made.fields.get('kind')} {many(counts[0], 'time')}"
        what = f"{what}, rank {other.rank} {many(counts[1], 'time')}"
        return Difference(what, made.place, figure=(kind,))
    for mine, theirs in zip(*told, strict=False):
        if not alike(mine.fields[field], theirs.fields[field]):
            figures = [shown(event.fields[field]) for event in (mine, theirs)]
            what = f"rank {first.rank} {does.format(**mine.fields)} {figures[0]}, rank {other.rank} with {figures[1]}"
            step = 1 + sum(step.index < theirs.index for step in other.steps)
            ahead = min((each.index for each in other.steps if each.index > theirs.index), default=0)
            later = any(theirs.index < event.index < ahead for event in other.of("coll"))
            return Difference(what, theirs.place, None, step, cause if later else "", (kind,))
    return None


def _stepped_otherwise(first: Training, other: Training) -> Difference | None:
    """A schedule that one rank has stepped more often than another up to the last step of both."""
    told = [[e for e in each.of("scheduler") if "metric" not in e.fields] for each in in_common(first, other)]
    counts = [Counter(event.fields.get("s") for event in events) for events in told]
    more = next((e for e in (*told[0], *told[1]) if len({count[e.fields.get("s")] for count in counts}) > 1), None)
    if more is None:
        return None
    times = [many(count[more.fields.get("s")], "time") for count in counts]
    what = f"rank {first.rank} steps {more.fields.get('kind')} {times[0]}, rank {other.rank} {times[1]}"
    return Difference(what, more.place, figure=("scheduler",))


def _set_where(
    found: Difference, key: str, one: tuple[Training, TrainingStep], other: tuple[Training, TrainingStep], root: Path
) -> Difference:
    """With the line that set a number of the optimizers otherwise on two ranks: the state that only one of them loads,
    a schedule, or an assignment."""
    sides = (one, other)
    if (alone := ranks.loaded_alone(*((each, step.index) for each, step in sides))) is not None:
        return replace(found, place=alone.place, cause=alone.what)
    turned = [[e for e in each.of("scheduler") if e.index < step.index][-1:] for each, step in sides]
    place = next((event.place for events in turned for event in events), None) or assignment(one[0], root, key)
    return replace(found, place=place) if place is not None else found


def other_mode(trainings: Sequence[Training]) -> Difference | None:
    """The first switch between training and evaluation that not all ranks make, for which their networks exchange other
    things."""
    for pair in zip_longest(*(each.of("mode") for each in trainings)):
        made = [(each.place, each.fields.get("train")) if each is not None else None for each in pair]
        event = next((each for each in pair if each is not None), None)
        if event is not None and len({*made}) > 1:
            rank = trainings[pair.index(event)].rank
            word = "training" if event.fields.get("train") else "evaluation"
            return Difference(f"not every rank switches to {word} there, as rank {rank} does", event.place)
    return None


def _files(trainings: Sequence[Training]) -> Difference | str:
    """Whether each file that is saved is saved by one rank."""
    writers: dict[str, int] = {}
    for training in trainings:
        for event in training.of("save", "write"):
            path = event.fields.get("path")
            if path and writers.setdefault(path, training.rank) != training.rank:
                what = f"ranks {writers[path]} and {training.rank} both write {event.fields['file'] or path}"
                return Difference(what, event.place)
    return f"{many(len(writers), 'file')}, each written by one rank" if writers else ""


def _never_sent(trainings: Sequence[Training], buffers: Difference | str) -> list[str]:
    """That batch norms have other statistics on each rank, which only those of one evaluate with."""
    first = trainings[0]
    if buffers or first.of("wrap") or not first.steps:
        return []
    held = first.steps[-1].buffers
    for other in trainings[1:]:
        theirs = other.steps[-1].buffers if other.steps else {}
        for name in sorted(held.keys() & theirs.keys()):
            if name.endswith(("running_mean", "running_var")) and held[name][3] != theirs[name][3]:
                return [f"{name} is each rank's own, and is not sent from rank {first.rank} to the others"]
    return []
