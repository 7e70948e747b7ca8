"""Holds the ranks of one run against each other, and W of them against one process with the same global batches."""

from __future__ import annotations

import difflib
import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from transplt.base.render.cell import first_of
from transplt.proof.prove.found import Difference, Rounding, Width
from transplt.proof.prove.steps import SETTING, pairs
from transplt.proof.prove.tolerance import Compare, Figure, Gap, Held, hold, widest
from transplt.proof.prove.training import Event, Optimizer, Place, Training, TrainingStep

_NOT_SENT = "the values of rank 0 are not sent to the other ranks"


def unequal_ranks(ranks: Sequence[Training]) -> Difference | None:
    """The first step after which two ranks hold different parameters, with what was left out there."""
    inner = inner_optimizers(ranks[0])
    first, *others = (rank.without(inner) for rank in ranks)
    questions = (_other_start, _after_a_step, _moved_alone, _other_count)
    return next(filter(None, (asked(first, other) for other in others for asked in questions)), None)


def _other_start(first: Training, other: Training) -> Difference | None:
    """A parameter that starts with other values on another rank; else a network that computes with others, is stepped
    by no optimizer, and has other weights there."""
    both = [(made, other.optimizers[which]) for which, made in first.optimizers.items() if which in other.optimizers]
    found = [(made, made.name(place), _not_kept(first, made, place)) for made, remade in both
             for place, (mine, theirs) in enumerate(zip(made.start, remade.start, strict=False)) if mine != theirs]
    stepped = {name for made in first.optimizers.values() for name in made.names}
    found += [(made, name, _NOT_SENT) for made, remade in both for name, mine in made.others.items()
              if name in remade.others and name not in stepped and mine[3] != remade.others[name][3]]  # fmt: skip
    for made, name, cause in found[:1]:
        what = f"{name} starts with other values on rank {other.rank} than on rank {first.rank}"
        return Difference(what, made.place, step=0, cause=cause)
    return None


def _not_kept(first: Training, made: Optimizer, place: int) -> str:
    """Why a parameter starts with other values on another rank: they were changed behind the wrapper, or never sent."""
    for wrap in first.of("wrap"):
        if {*made.ids[place : place + 1]} & {*wrap.fields.get("ids", ())}:
            return f"it was changed after the wrapper of {wrap.place} had sent the values of rank 0"
    return _why(first, None)


def _after_a_step(first: Training, other: Training) -> Difference | None:
    """The first step that only one of two ranks takes, or after which their parameters differ."""
    for left, right in pairs(first, other):
        if left.skipped != right.skipped:
            who = first.rank if left.skipped else other.rank
            what = f"step {left.number + 1} is skipped by the scaler on rank {who} only"
            return Difference(what, left.place, step=left.number + 1)
        alone = _alone(left, right)
        for place, (before, after) in enumerate(zip(left.parameters, right.parameters, strict=False)):
            if alone in (None, place) and before is not None and after is not None and before[3] != after[3]:
                what = f"{first.optimizers[left.optimizer].name(place)} differs between rank {first.rank}"
                what += f" and rank {other.rank} after step {left.number + 1}"
                cause, at = _left_out(first, left, right, place, alone == place)
                return Difference(what, at, step=left.number + 1, cause=cause)
    return None


def _left_out(
    first: Training, left: TrainingStep, right: TrainingStep, place: int, alone: bool
) -> tuple[str, Place | None]:
    """Why a parameter differs between two ranks after a step, and the line to look at."""
    made = first.optimizers[left.optimizer]
    wrapped = {each for event in first.of("wrap") for each in event.fields.get("ids", ())}
    if wrapped and place < len(made.ids) and made.ids[place] not in wrapped:
        # Weights of a loss are in nothing that could be wrapped.
        at = _unexchanged(first, left) if made.is_of_no_network(place) else made.place
        return "no wrapper exchanges its gradients: it is in none, or was frozen then", at
    if alone:
        return "its gradients are not exchanged, those of most others are", exchanged(first, left)
    if (back := _not_written_back(left, right, first)) is not None:
        return "its result is not what is stepped with", back
    return _why(first, left), _unexchanged(first, left)


def _other_count(first: Training, other: Training) -> Difference | None:
    counts = len(first.steps), len(other.steps)
    if counts[0] == counts[1] or (first.cut and other.cut):
        return None
    what = f"rank {first.rank} takes {counts[0]} steps, rank {other.rank} {counts[1]}"
    return Difference(what, max(first, other, key=lambda each: len(each.steps)).steps[-1].place)


def inner_optimizers(training: Training) -> set[int]:
    """The optimizers that one line makes again and again between the steps of one that is made once: they train copies
    of what that one trains, each rank its own."""
    places = Counter(made.place for made in training.optimizers.values())
    once = [step.index for step in training.steps if places[training.optimizers[step.optimizer].place] == 1]
    last = {step.optimizer: step.index for step in training.steps}
    repeated = (which for which, made in training.optimizers.items() if places[made.place] > 1 and which in last)
    return {which for which in repeated if any(index > last[which] for index in once)}


def _moved_alone(first: Training, other: Training) -> Difference | None:
    """A network that computes with others, is stepped by no optimizer, and was changed on one rank only: a target."""
    stepped = {name for made in first.optimizers.values() for name in made.names}
    known = [name for made in first.optimizers.values() for name in made.others if name not in stepped]
    if first.cut is not other.cut or len(first.steps) != len(other.steps):
        return None
    ends = [(name, first.final.get(name), other.final.get(name)) for name in known]
    name = next((name for name, mine, theirs in ends if mine and theirs and mine[3] != theirs[3]), None)
    if name is None:
        return None
    loads = [Counter(event.place for event in each.of("load_state_dict")) for each in (first, other)]
    place = next((place for place in loads[0] | loads[1] if loads[0][place] != loads[1][place]), None)
    what = f"{name} differs between rank {first.rank} and rank {other.rank} at the end"
    made = next(iter(first.optimizers.values()))
    return Difference(what, place or made.place, cause="no optimizer has it, and only one rank has changed it")


def _alone(left: TrainingStep, right: TrainingStep) -> int | None:
    """The first parameter whose gradients are each rank's own, where those of most are the same on both, but for a
    factor that clipping makes of it."""
    ratios = {
        place: mine[0] / theirs[0]
        for place, (mine, theirs) in enumerate(zip(left.gradients, right.gradients, strict=False))
        if mine is not None and theirs is not None and theirs[0] > 0
    }
    common = statistics.median_low(ratios.values() or [1.0])
    alone = [place for place, ratio in ratios.items() if not math.isclose(ratio, common, rel_tol=1e-4)]
    return alone[0] if 0 < 2 * len(alone) < len(ratios) else None


def _before(training: Training, step: TrainingStep) -> list[Event]:
    earlier = [each.index for each in training.steps if each.index < step.index and each.optimizer == step.optimizer]
    begin = max(earlier, default=-1)
    return [event for event in training.events if begin < event.index < step.index]


def exchanged(training: Training, step: TrainingStep) -> Place | None:
    """The line that exchanged the gradients of a step: by hand, or the backward pass that a wrapper does it in."""
    events = [event for event in _before(training, step) if event.kind in ("coll", "backward")]
    return events[-1].place if events else None


def _unexchanged(training: Training, step: TrainingStep) -> Place | None:
    """The line to look at: a forward past the wrapper, else the backward pass, else the step."""
    events = _before(training, step)
    past = [event for event in events if event.kind == "past" and event.fields.get("grad")]
    last = past or [event for event in events if event.kind == "backward"]
    return last[-1].place if last else step.place


def _not_written_back(left: TrainingStep, right: TrainingStep, first: Training) -> Place | None:
    """The line that the program exchanges gradients in, last before a step of two ranks whose gradients differ."""
    events = [event for event in _before(first, left) if event.kind in ("coll", "backward", "clip")]
    if left.gradients == right.gradients or not events or events[-1] not in asked_collectives(first):
        return None
    return events[-1].place if _carries(events[-1]) else None


def _why(training: Training, step: TrainingStep | None) -> str:
    wraps = training.of("wrap")
    if not wraps and not training.of("coll"):
        return "the ranks exchange no gradients or parameters"
    if step is None:
        return _NOT_SENT
    events = _before(training, step)
    if any(event.kind == "past" and event.fields.get("grad") for event in events):
        return "the network is called without its wrapper, whose forward makes the ranks exchange gradients"
    if wraps and not any(event.kind == "through" and event.fields.get("grad") for event in events):
        return "the wrapper's forward was not called before this step, so no gradients were exchanged"
    if not any(event.kind == "coll" for event in events):
        return "no gradients were exchanged before this step"
    last = max((event.index for event in events if event.kind == "backward"), default=-1)
    if wraps and not any(event.kind == "coll" and event.index > last and _carries(event) for event in events):
        return "no gradients were exchanged in the last backward pass before this step"
    return ""


def _carries(event: Event) -> bool:
    """Whether a collective may carry gradients: more than one number."""
    return event.fields.get("shape") not in (None, [], [1])


def loaded_alone(*sides: tuple[Training, int]) -> Difference | None:
    """The state that only one of two ranks loads before these events."""
    loads = [[event for event in each.of("load_state_dict") if event.index < end] for each, end in sides]
    if len(loads[0]) == len(loads[1]):
        return None
    side = int(len(loads[1]) > len(loads[0]))
    last = loads[side][-1]
    what = f"load_state_dict of {last.fields.get('of', 'it')} is called on rank {sides[side][0].rank} only"
    return Difference(what, last.place)


def not_loaded(one: Training, other: Training) -> Difference | None:
    """A state that is loaded, and lacks what the original finds in it."""
    event = next(iter(other.of("missing")), None)
    if event is None or one.of("missing"):
        return None
    return Difference(f"the state that is loaded has no {first_of(event.fields['names'], 1)}", event.place)


def same_card(ranks: Sequence[Training]) -> Difference | None:
    """Two ranks that choose one card, which HCCL refuses; None where nobody chooses."""
    chosen: dict[int, int] = {}
    for training in ranks:
        event = next(iter(training.of("card")[::-1]), None)
        if event is None:
            return None
        card = event.fields["card"]
        if card in chosen:
            what = f"ranks {chosen[card]} and {training.rank} both choose card {card}, but each needs its own"
            return Difference(what, event.place)
        chosen[card] = training.rank
    return None


def other_than_the_original(
    originals: Sequence[Training],
    ranks: Sequence[Training],
    rounding: Rounding,
    compare: Compare,
    shaken: Callable[[int], Sequence[Training]],
) -> Held:
    """The ranks held against those of a distributed original: the first difference, with the collective that one of
    the two lacks, and of all ranks what roundings decide and the bounds. `shaken` gives trainings of a rank of the
    original whose parameters were off by roundings."""
    decided: dict[Figure, Gap] = {}
    widths: list[Width] = []
    for place, (one, other) in enumerate(zip(originals, ranks, strict=False)):
        held = hold(one, other, rounding, compare, partial(shaken, place))
        decided |= {gap.figure: gap for gap in held.decided if gap.figure not in decided}
        widths = widest([*widths, *held.widths])
        if held.first is not None:
            return Held(by_collective(held.first, one, other), tuple(decided.values()), tuple(widths))
    return Held(None, tuple(decided.values()), tuple(widths))


def by_collective(first: Difference, one: Training, other: Training) -> Difference:
    """A difference of a rank, with the first collective that only one of the two asks for, or with tensors of another
    shape. A number of an optimizer is set, whatever is exchanged."""
    if first.figure[:1] == (SETTING,):
        return first
    left, right = asked_collectives(one), asked_collectives(other)
    names, other_names = (
        [(each.fields["kind"], str(each.fields.get("shape"))) for each in events] for events in (left, right)
    )
    ends = _felt(first, one), _felt(first, other)
    matcher = difflib.SequenceMatcher(None, names, other_names, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            continue
        lost, gained = left[a] if a < b else None, right[c] if c < d else None
        around = right[c] if c < len(right) else None
        made = gained or lost
        assert made is not None
        if made.index >= ends[made is gained]:
            break  # it comes later than what it would have to cause
        what = f"{made.fields['kind']} is not in the original"
        what = f"{made.fields['kind']} of the original's {made.place} is missing" if gained is None else what
        if gained and lost and names[a][0] == other_names[c][0]:
            what = f"{names[a][0]} exchanges a shape of {other_names[c][1]}, in the original {names[a][1]}"
        here = gained or around
        places = here.place if here else None, lost.place if lost else None
        return replace(first, place=places[0], original=places[1], cause=what, event=True)
    return first if first.step is None else replace(first, what=f"rank {other.rank}: {first.what}")


def _felt(first: Difference, training: Training) -> float:
    """The event in which a difference shows: a loss in a backward pass, what has a figure in the step behind it."""
    step = next((each for each in training.steps if each.number + 1 == first.step), None)
    passes = [each.index for each in training.of("backward") if step is not None and each.index < step.index]
    return math.inf if step is None else step.index if first.figure or not passes else passes[-1]


def asked_collectives(training: Training) -> list[Event]:
    """Those that the program asks for; what a wrapper exchanges by itself is left out."""
    inside = {event.place for event in training.of("backward", "wrap", "through")}
    return [event for event in training.of("coll") if event.place not in inside]


def with_mean_losses(ranks: Sequence[Training]) -> Training:
    """Rank 0 as one process may be held against it: the loss of a rank is that of its share, so the mean over the ranks
    takes its place."""
    return replace(ranks[0], steps=tuple(_with_mean_loss(step, ranks) for step in ranks[0].steps))


def _with_mean_loss(step: TrainingStep, ranks: Sequence[Training]) -> TrainingStep:
    twins = [rank.step(step.optimizer, step.number) for rank in ranks]
    shares = [[loss.value for loss in twin.losses] for twin in twins if twin is not None]
    if len({len(share) for share in shares}) != 1:
        return step
    losses = tuple(
        replace(loss, value=sum(values) / len(values)) if all(isinstance(x, (int, float)) for x in values) else loss
        for loss, values in zip(step.losses, zip(*shares, strict=True), strict=True)
    )
    return replace(step, losses=losses)


def with_cause(first: Difference, one: Training, ranks: Sequence[Training], world: int) -> Difference:
    """The difference with what the sizes of the gradients show: a sum in place of a mean, or a mean taken twice."""
    if first.step is None or not first.step:
        return first
    if first.step == 1 and (told := _other_buffer(ranks)):
        return replace(first, cause=told, event=True)
    for mine, theirs in pairs(one, ranks[0]):
        if mine.number + 1 < first.step:
            continue
        found = [
            after[0] / before[0]
            for before, after in zip(mine.gradients, theirs.gradients, strict=False)
            if before is not None and after is not None and before[0] > 0
        ]
        if why := factor_of(found, world):
            if first.place in {loss.place for loss in theirs.losses}:  # it is scaled before its gradients are
                return replace(first, cause=why)
            place = exchanged(ranks[0], theirs) or first.place
            return replace(first, place=place, cause=why, event=place is not None)
        break
    return first


def _other_buffer(ranks: Sequence[Training]) -> str:
    """That a rank has a buffer of its own behind the first step, but for the statistics of a norm; "" for none."""
    (whose, mine), *others = ((rank.rank, rank.steps[0].buffers if rank.steps else {}) for rank in ranks)
    for rank, held in others:
        for name in sorted(held.keys() & mine.keys()):
            if not name.rpartition(".")[2].startswith("running_") and held[name][3] != mine[name][3]:
                return f"the buffer {name} of rank {rank} is not that of rank {whose} after step 1"
    return ""


def factor_of(ratios: Sequence[float], world: int) -> str:
    """What gradients show that are all so many times those of one process; "" for nothing."""
    for ratio, why in ((world, "summed over the ranks and not divided"), (1 / world, "divided by the ranks twice")):
        if ratios and all(math.isclose(each, ratio, rel_tol=0.02) for each in ratios):
            return f"each gradient is {ratio:g} times that of one process: {why}"
    return ""
