"""What the loaders of a program gave: the batches of each rank, of all ranks together, and where they are wrong."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from transplt.base.grouped import grouped
from transplt.base.render.cell import many
from transplt.proof.prove.found import Difference
from transplt.proof.prove.ranks import asked_collectives
from transplt.proof.prove.training import Event, Place, Training, TrainingStep

#: So many samples hardly ever come in the same order twice by chance.
_TELLS = 6
#: In so many steps ranks with other samples do not come to the same losses.
_ALIKE = 3


def key_of(event: Event) -> tuple[int, int]:
    """Of a pass, or of a batch of it: the loader, and which of its passes it is."""
    return event.fields["loader"], event.fields["epoch"]


def batches(training: Training) -> dict[tuple[int, int], list[list[int]]]:
    """(loader, epoch) -> the indices of its batches."""
    return grouped((key_of(event), event.fields["indices"]) for event in training.of("batch"))


def _made(training: Training, key: tuple[int, int]) -> Event:
    return next(each for each in training.of("loader") if key_of(each) == key)


def where(loader: Event) -> Place | None:
    """The line that makes the sampler of a loader, or the loader, else the one that goes through it."""
    made: Place | None = loader.fields.get("sampled") or loader.fields["made"]
    return made or loader.place


def trained_on(training: Training) -> set[int]:
    """The loaders that a backward pass follows a batch of."""
    return {loader for loader, _ in trained_passes(training)}


def global_batches(ranks: Sequence[Training], *, in_turn: bool = False) -> dict[str, list[list[int]]]:
    """ "loader.epoch" -> for each batch the indices of all ranks, one rank after the other or, as a DistributedSampler
    deals them, `in_turn`; those of one rank where all ranks have the same, for evaluation in whatever order."""
    every = [batches(rank) for rank in ranks]
    if not every:
        return {}
    wanted = trained_on(ranks[0])
    merged: dict[str, list[list[int]]] = {}
    for key, own in every[0].items():
        passes = [each[key] for each in every if key in each]
        shares = [sorted(itertools.chain(*each)) for each in passes]
        whole = key[0] not in wanted and all(share == shares[0] for share in shares)
        if len(passes) < len(every) or whole or all(each == own for each in passes):
            merged[f"{key[0]}.{key[1]}"] = own
            continue
        shared = zip(*passes, strict=False)
        together = (itertools.zip_longest(*parts) if in_turn else parts for parts in shared)
        given = ((index for part in parts for index in part if index is not None) for parts in together)
        merged[f"{key[0]}.{key[1]}"] = [[*batch] for batch in given]
    return merged


def lengths(rank: Training, alone: Training) -> dict[int, list[int]]:
    """The number of a loader of the program of `alone`, in the order of their making -> how many batches each pass of
    it gives to a rank. Both begin to go through their loaders in one order; a library may make some of them twice."""
    made = {event.fields["loader"]: event.fields.get("nth") for event in alone.of("loader")}
    told = ((made.get(event.fields["loader"]), event.fields.get("length")) for event in rank.of("loader"))
    return grouped((nth, length) for nth, length in told if nth is not None and length is not None)


def width(ranks: Sequence[Training]) -> int:
    """The samples of the first batch that is trained on, of all ranks together; 0 where no loader tells."""
    wanted = [trained_on(rank) for rank in ranks]
    first = (
        next((event.fields["indices"] for event in rank.of("batch") if event.fields["loader"] in loader), ())
        for rank, loader in zip(ranks, wanted, strict=True)
    )
    return sum(len(indices) for indices in first)


def uneven_from(ranks: Sequence[Training]) -> int | None:
    """The number of the first batch (from 0, over all epochs of training) whose share is not equal on all ranks."""
    wanted = trained_on(ranks[0])
    sizes = [
        [len(event.fields["indices"]) for event in rank.of("batch") if event.fields["loader"] in wanted]
        for rank in ranks
    ]
    return next((number for number, row in enumerate(zip(*sizes, strict=False)) if len({*row}) > 1), None)


def shared_out(ranks: Sequence[Training], one: Training | None) -> Difference | str:
    """Whether the samples of each pass of training are divided among the ranks: how they are not, how they are, or ""
    where no pass tells. `one` is the original in one process, which may draw again or leave out itself."""
    passes, apart = 0, _chosen_apart(ranks)
    if apart is not None:
        return apart
    every = [batches(rank) for rank in ranks]
    passed = one.of("loader") if one is not None else []
    before, twins = {event.fields["loader"]: event for event in passed}, {key_of(event): event for event in passed}
    for event, _ in _epochs(ranks[0]):
        key = key_of(event)
        if not all(key in each for each in every) or len({whole(event), whole(before.get(key[0], event))} - {None}) > 1:
            continue  # each rank has a data set of its own, whose indices say nothing of those of others
        shares = [{*itertools.chain(*each[key])} for each in every]
        again = _drawn_again(event, ranks, one)
        first = _same(event, [each[key] for each in every], shares, again)
        if first is None and not again:
            first = _overlap(event, shares) or _lack(event, [len(each[key]) for each in every], shares, twins.get(key))
        if first is not None:
            return first
        passes += 1
    if not passes:
        return _same_losses(ranks) or ""
    return f"each rank has its own samples in {many(passes, 'epoch')}{_seen(every, one)}"


def _seen(every: Sequence[dict[tuple[int, int], list[list[int]]]], one: Training | None) -> str:
    """How many samples the ranks, and one process, saw in the first pass of training that all came to the end of."""
    sides = [*every, batches(one)] if one is not None else []
    passes = sorted(trained_passes(one)) if one is not None else []
    ended = (key for key in passes if all(key in each and (key[0], key[1] + 1) in each for each in sides))
    if (key := next(ended, None)) is None:
        return ""
    seen = [{*itertools.chain(*each[key])} for each in sides]
    return f"; {len(set.union(*seen[:-1]))} different samples in a pass, {len(seen[-1])} in one process"


def _same_losses(ranks: Sequence[Training]) -> Difference | None:
    """Ranks whose losses are the same to the bit, step by step, where no loader tells what they train on and no
    collective has made the losses alike: they train on the same."""
    first = ranks[0]
    together = [*itertools.islice(zip(*(rank.steps for rank in ranks), strict=False), _ALIKE)]
    losses = [[[loss.value for loss in step.losses] for step in steps] for steps in together]
    alike = all(each[0] and each.count(each[0]) == len(each) for each in losses)
    moves = len(losses) == _ALIKE and all(each[0] != losses[0][0] for each in losses[1:])
    if not (alike and moves) or any(_exchanged_before(first, steps[0]) for steps in together[1:]):
        return None
    made = next((where(event) for event in first.of("loader")), None)
    seeded = next((event.place for event in first.of("seed")[::-1] if event.index < first.steps[0].index), None)
    what = f"the losses of all ranks are the same in the first {_ALIKE} steps: every rank trains on the same samples"
    return Difference(f"{what}, so W cards do the work of one", made or seeded or first.steps[0].losses[0].place)


def _exchanged_before(rank: Training, step: TrainingStep) -> bool:
    """Whether a program asks for a collective between the step before and the last backward pass of this one."""
    begun = max((each.index for each in rank.steps if each.index < step.index), default=-1)
    ended = max((each.index for each in rank.of("backward") if each.index < step.index), default=-1)
    asked = (each for each in asked_collectives(rank) if each.fields["kind"] != "barrier")
    return any(begun < event.index < ended for event in asked)


def whole(loader: Event) -> int | None:
    """How many samples the data set has that the indices of a loader count in: it may give a subset of them."""
    size: int | None = loader.fields.get("whole", loader.fields.get("size"))
    return size


def _chosen_apart(ranks: Sequence[Training]) -> Difference | None:
    """A data set that each rank chooses from another by itself, and that is not a share of its own: some samples are in
    both choices, and in no order that all ranks have. Those of training may be in the evaluation of another rank."""
    every = [batches(rank) for rank in ranks]
    first = {key_of(event): event for event in ranks[0].of("loader")}
    for rank, given in zip(ranks[1:], every[1:], strict=True):
        for event in rank.of("loader"):
            key, one = key_of(event), first.get(key_of(event), event)
            alike = event.fields.get("chosen") in (None, one.fields.get("chosen")) or whole(one) != whole(event)
            mine, theirs = ({*itertools.chain(*each.get(key, ()))} for each in (every[0], given))
            if alike or (event.fields["sampler"] != "DistributedSampler" and not mine & theirs):
                continue
            what = f"rank {rank.rank} chooses other samples than rank {ranks[0].rank} for its data set"
            cause = "each rank draws by itself what it trains on, and what it evaluates"
            return Difference(what, event.fields.get("subset") or where(event), cause=cause)
    return None


def _drawn_again(event: Event, ranks: Sequence[Training], one: Training | None) -> int:
    """How many samples a pass draws, where it draws some more than once in the original or on a rank; else 0."""
    which, size = event.fields["loader"], int(event.fields.get("size") or 0)
    return _repeats(one, which) or size * any(_repeats(rank, which) for rank in ranks)


def _repeats(one: Training | None, loader: int) -> int:
    """How many samples a loader gives in a pass, where it gives one more than once; else 0."""
    known = batches(one) if one is not None else {}
    passes = (itertools.chain(*given) for (which, _), given in known.items() if which == loader)
    return max((len(indices) for indices in map(list, passes) if len(indices) > len({*indices})), default=0)


def _same(event: Event, given: Sequence[list[list[int]]], shares: Sequence[set[int]], whole: int) -> Difference | None:
    """All of them on every rank: W cards do the work of one.

    Where the original draws `whole` samples with replacement, shares of that have samples in common.
    """
    cause = f"the sampler is a {event.fields['sampler']}"
    if all(each == given[0] for each in given):
        what = "every rank trains on the same samples in the same order, so W cards do the work of one"
        return Difference(what, where(event), cause=cause)
    largest = max(len(share) for share in shares)
    if sum(len(indices) for every in given for indices in every) < 1.5 * whole:
        return None
    if event.fields["sampler"] != "DistributedSampler" and len(set.union(*shares)) < 1.5 * largest and largest > 4:
        what = "every rank goes through all samples in its own order: an epoch is W times as long"
        return Difference(what, where(event), cause=cause)
    return None


def _overlap(event: Event, shares: Sequence[set[int]]) -> Difference | None:
    """More samples on two ranks than a sampler pads shares with: one a rank, or a batch where batches are padded."""
    padded = len(shares) - 1 if event.fields["sampler"] == "DistributedSampler" else len(shares) * _batch(event)
    twice = sum(len(share) for share in shares) - len(set.union(*shares))
    if twice <= padded:
        return None
    what = f"{twice} samples of epoch {event.fields['epoch'] + 1} are given to more than one rank"
    return Difference(what, where(event), cause=f"the sampler is a {event.fields['sampler']}")


def _lack(event: Event, counts: Sequence[int], shares: Sequence[set[int]], twin: Event | None) -> Difference | None:
    """Samples that no rank has, in a pass that all ranks ended and whose `twin`, of the original, is whole."""
    fields = event.fields
    size, planned = fields.get("size"), fields.get("length")
    if twin is None or size is None or planned is None or any(count < planned for count in counts):
        return None
    if (twin.fields.get("length") or 0) * _batch(twin) + (_batch(twin) if twin.fields["drop_last"] else 0) < size:
        return None
    lacks = size - len(set.union(*shares))
    if lacks <= (len(shares) * _batch(event) if fields["drop_last"] else 0):
        return None
    what = f"{lacks} of {size} samples are given to no rank in epoch {fields['epoch'] + 1}"
    return Difference(what, where(event), cause=f"the sampler is a {fields['sampler']}", event=True)


def _batch(event: Event) -> int:
    return int(event.fields.get("batch") or 1)


def unshuffled(one: Training, other: Training) -> Difference | None:
    """A loader of training that the original shuffles and a DistributedSampler gives in order."""
    wanted = trained_on(other)
    shuffled = {e.fields["loader"] for e in one.of("loader") if e.fields["sampler"] == "RandomSampler"}
    for event in other.of("loader"):
        fields = event.fields
        plain = fields["sampler"] in ("DistributedSampler", "SequentialSampler") and not fields["shuffle"]
        if plain and fields["loader"] in wanted & shuffled:
            what = "the original shuffles here, but the migrated program does not"
            return Difference(what, where(event), cause=f"the sampler is a {fields['sampler']}", event=True)
    return None


def other_batches(one: Training, other: Training, *, evaluated: bool = False) -> Difference | None:
    """A loader of training, or of all where what is `evaluated` differs, that gives more or fewer batches than in the
    original, or larger or smaller ones."""
    wanted = trained_on(one) & trained_on(other)
    wanted |= {event.fields["loader"] for event in one.of("loader")} if evaluated else set()
    mine, theirs = batches(one), batches(other)
    last = max((key for key in mine if key[0] in wanted), default=None)
    for event in other.of("loader"):
        key = key_of(event)
        if key[0] not in wanted or key not in mine or key not in theirs:
            continue
        before, after = [len(batch) for batch in mine[key]], [len(batch) for batch in theirs[key]]
        if key == last and (one.cut or other.cut):
            shorter = min(len(before), len(after))
            before, after = before[:shorter], after[:shorter]
        if before != after:
            what = f"the loader gives {_counted(after)} in epoch {key[1] + 1}, in the original {_counted(before)}"
            made = event.fields.get("subset") or event.fields["made"] or event.place
            return Difference(what, made, _made(one, key).fields["made"])
    return None


def _counted(sizes: list[int]) -> str:
    ends = f", the last of {sizes[-1]}" if len({*sizes}) > 1 else ""
    return f"{len(sizes)} batches of {sizes[0]}{ends}" if sizes else "no batch"


def same_order(training: Training, one: Training | None = None) -> Difference | None:
    """A loader of training that shuffles and gives each epoch in the order of the first: by DistributedSampler, or by
    any sampler where the order of the original (`one`) is new in each epoch. A pass that no backward follows, such as
    an evaluation on the data of the training, is no epoch."""
    fresh = _fresh(one) if one is not None else set()
    passes: dict[tuple[int, int], list[list[list[int]]]] = {}
    for event, given in _epochs(training):
        shared = event.fields["sampler"] == "DistributedSampler" and event.fields["shuffle"]
        # A network that is trained behind another one may begin with the first order again.
        trains = next((step.optimizer for step in training.steps if step.index > event.index), -1)
        earlier = passes.setdefault((event.fields["loader"], trains), [])
        told = shared or (event.fields["loader"] in fresh and _tells(given))
        if told and earlier and _begins(earlier[0], given):
            sampler = f"the sampler of {where(event)}"
            cause = f"set_epoch is not called on {sampler}" if shared else f"the sampler is a {event.fields['sampler']}"
            return Difference(f"epoch {len(earlier) + 1} has the order of the first", event.place, cause=cause)
        earlier.append(given)
    return None


def _fresh(one: Training) -> set[int]:
    """The loaders that give later epochs in other orders than the first."""
    first: dict[int, list[list[int]]] = {}
    found: dict[int, bool] = {}
    for event, given in _epochs(one):
        which = event.fields["loader"]
        if which in first and len(given) > 1:
            found[which] = found.get(which, True) and not _begins(first[which], given)
        first.setdefault(which, given)
    return {which for which, new in found.items() if new}


def _epochs(training: Training) -> Iterator[tuple[Event, list[list[int]]]]:
    known, trains = batches(training), trained_passes(training)
    for event in training.of("loader"):
        key = key_of(event)
        if key in trains:
            yield event, known[key]


def _tells(given: list[list[int]]) -> bool:
    return sum(map(len, given)) >= _TELLS


def _begins(whole: list[list[int]], part: list[list[int]]) -> bool:
    return len(part) > 1 and part == whole[: len(part)]


def counted_epochs(training: Training) -> int:
    """How often the loader with the most passes of training gave more than one batch."""
    counts = Counter(event.fields["loader"] for event, given in _epochs(training) if len(given) > 1)
    return max(counts.values(), default=0)


def in_step(training: Training, one: Training) -> Difference | None:
    """Two loaders that go side by side and give the same indices, which those of the original do not: sample i of the
    one is always met by sample i of the other. Where several optimizers step each may have a loader of its own."""
    mine, theirs = batches(training), batches(one)
    for first, second in itertools.combinations(sorted({which for which, _ in mine}), 2):
        epochs = [epoch for which, epoch in mine if which == first and (second, epoch) in mine]
        pairs = [((first, epoch), (second, epoch)) for epoch in epochs]
        if (
            pairs
            and len({step.optimizer for step in training.steps}) < 2
            and all(mine[left] == mine[right] and _tells(mine[left]) for left, right in pairs)
            and all(left in theirs and right in theirs and theirs[left] != theirs[right] for left, right in pairs[:1])
            and _side_by_side(training, *pairs[0])
        ):
            event = _made(training, pairs[0][1])
            what = "two loaders give the same indices, so that sample i of one always comes with sample i of the other"
            return Difference(f"{what}; in the original they do not", where(event), where(_made(one, pairs[0][1])))
    return None


def _side_by_side(training: Training, *keys: tuple[int, int]) -> bool:
    """Whether each of two passes begins before the other ends."""
    given: list[list[int]] = [[], []]
    for event in training.of("batch"):
        if key_of(event) in keys:
            given[keys.index(key_of(event))].append(event.index)
    return given[0][0] < given[1][-1] and given[1][0] < given[0][-1]


def trained_passes(training: Training) -> set[tuple[int, int]]:
    """The passes (loader, epoch) that a backward follows a batch of, and those that go on beside them."""
    passes: set[tuple[int, int]] = set()
    last: tuple[int, int] | None = None
    begun: dict[tuple[int, int], int] = {}
    backward, evaluates = 0, False
    for event in training.events:
        if event.kind == "batch":
            last = key_of(event)
            if backward > begun.setdefault(last, backward) and not evaluates:
                passes.add(last)
        elif event.kind == "mode":
            evaluates = not event.fields.get("train")
        elif event.kind == "backward":
            backward += 1
            passes |= {last} if last is not None else set()
    return passes
