"""What the ranks evaluate: each on which samples, with which buffers, and whether the results are combined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transplt.base.render.cell import many
from transplt.proof.prove import loaders
from transplt.proof.prove.found import Difference
from transplt.proof.prove.ranks import asked_collectives, loaded_alone
from transplt.proof.prove.training import Event, Training

#: Collectives that bring nothing together.
_APART = frozenset({"barrier", "monitored_barrier", "broadcast", "broadcast_object_list", "init_process_group",
                    "new_group"})  # fmt: skip

#: The figure of results that are not brought together.
RESULTS = ("results",)
_SHARES = (
    "each rank evaluates its own share, and the results are not combined: what is printed or decided (early stopping, "
    "best checkpoint, ReduceLROnPlateau) is that of one rank's share"
)


@dataclass(frozen=True)
class _Pass:
    """A pass of evaluation: the event that begins it, its samples, and the indices of its events from the beginning up
    to the next batch of training."""

    event: Event
    batches: list[list[int]]
    window: tuple[int, int]

    @property
    def samples(self) -> list[int]:
        return [index for batch in self.batches for index in batch]

    @property
    def whole(self) -> bool:
        planned = self.event.fields.get("length")
        return planned is not None and len(self.batches) >= planned


def together(ranks: Sequence[Training], one: Training | None) -> tuple[Difference | str, list[str]]:
    """Whether evaluations whose samples are shared out bring their results together ("" where there are none), and
    remarks."""
    remarks: list[str] = []
    joined, everything = 0, ""
    every, alone = [*map(_passes, ranks)], _passes(one) if one else {}
    sizes = {event.fields["loader"]: loaders.whole(event) for event in one.of("loader")} if one else {}
    for key, first in every[0].items():
        passes = [each[key] for each in every if key in each]
        if len(passes) < len(ranks):
            continue
        if (lacks := _lack(passes, alone.get(key))) is not None:
            return lacks, remarks
        if not _shared_out(passes, sizes.get(key[0])):
            everything = "each rank evaluates all samples"
            continue
        if not any(_brings(rank, each.window) for rank, each in zip(ranks, passes, strict=True)):
            made, what = loaders.where(first.event), _SHARES
            what += f"; the loader is made at {made}" if made not in (None, first.event.place) else ""
            return Difference(what, first.event.place, figure=RESULTS), remarks
        joined += 1
        samples = [index for each in passes for index in each.samples]
        twice = len(samples) - len({*samples})
        if twice and first.event.fields["sampler"] == "DistributedSampler":
            what = f"{many(twice, 'sample')} counted twice in the evaluation at {first.event.place}: shares are padded"
            remarks += [what] if what not in remarks else []
    if (apart := _by_hand(ranks, one)) is not None:
        return apart, remarks
    if joined:
        return f"the results of {many(joined, 'evaluation')} are combined", remarks
    return everything, remarks


def _lack(passes: Sequence[_Pass], alone: _Pass | None) -> Difference | None:
    """Samples of an evaluation in one process that no rank evaluates, beyond those that a sampler or a batch drops."""
    if alone is None or not all(each.whole for each in (*passes, alone)):
        return None
    event, size = passes[0].event, loaders.whole(alone.event)
    dropped = len(passes) * int(event.fields.get("batch") or 1) if event.fields["drop_last"] else len(passes) - 1
    lacks = {*alone.samples} - {index for each in passes for index in each.samples}
    if size is None or len(lacks) <= dropped or any(loaders.whole(each.event) != size for each in passes):
        return None
    what = f"{len(lacks)} of {len({*alone.samples})} samples are evaluated by no rank"
    return Difference(what, event.fields.get("subset") or loaders.where(event), loaders.where(alone.event), event=True)


def _by_hand(ranks: Sequence[Training], one: Training | None) -> Difference | None:
    """An evaluation in which each rank gives its network less than one process does, without a loader that would tell
    so, and nothing brings together what comes of it."""
    rank, known = ranks[0], dict(_evaluated(one)) if one is not None and not ranks[0].of("loader") else {}
    backward = [event.index for event in rank.of("backward")]
    for key, event in _evaluated(rank):
        whole, end = known.get(key), next((each for each in backward if each > event.index), len(rank.events))
        size = whole.fields.get("given", 0) if whole is not None else 0
        if 0 < event.fields.get("given", 0) < size and not _brings(rank, (event.index, end)):
            return Difference(_SHARES, event.place, figure=RESULTS)
    return None


def _shared_out(passes: Sequence[_Pass], size: int | None) -> bool:
    """Whether the ranks have shares of the samples: by the sampler, or each of a data set that it has a part of."""
    shares = [{*each.samples} for each in passes]
    if all(share == shares[0] for share in shares):
        return size is not None and all((loaders.whole(each.event) or size) < size for each in passes)
    return passes[0].event.fields["sampler"] == "DistributedSampler" or all(each.whole for each in passes)


def _brings(rank: Training, window: tuple[int, int]) -> bool:
    """Whether a program asks for a collective that combines what ranks have, or keeps results of each rank in files."""
    asked = [event for event in asked_collectives(rank) if event.fields["kind"] not in _APART]
    saved = rank.of("save") if rank.rank else []
    roots = {event.fields.get("root") for event in rank.of("coll") if event.fields["kind"].startswith("broadcast")
             and window[0] < event.index < window[1]}  # fmt: skip
    return len(roots) > 1 or any(window[0] < event.index < window[1] for event in [*asked, *saved])


def _passes(training: Training) -> dict[tuple[int, int], _Pass]:
    """The passes in evaluation, which no backward pass follows."""
    found: dict[tuple[int, int], _Pass] = {}
    trained, known = loaders.trained_passes(training), loaders.batches(training)
    given = training.of("batch")
    backward = [event.index for event in training.of("backward")]
    ends = [*(event.index for event in given if loaders.key_of(event) in trained), len(training.events)]
    for event in training.of("loader"):
        key = loaders.key_of(event)
        own = [each.index for each in given if loaders.key_of(each) == key]
        if not own or key in trained or any(own[0] < each < own[-1] for each in backward):
            continue
        if _evaluates(training, own[0], own[-1], backward):
            found[key] = _Pass(event, known[key], (event.index, next(end for end in ends if end > own[-1])))
    return found


def _evaluates(training: Training, first: int, last: int, backward: Sequence[int]) -> bool:
    """Whether what is done with batches is an evaluation: in the mode of one, or without gradients where the program
    knows no modes. Batches that are fetched for training come before a backward pass with nothing between."""
    modes = [event for event in training.of("mode") if event.index < first]
    if modes and modes[-1].fields.get("train"):
        return False
    if not modes:
        begun = max((index for index in backward if index < first), default=-1)
        if not any(begun < event.index < last for event in training.of("no_grad")):
            return False
    following = next((index for index in backward if index > last), None)
    turns = training.of("mode", "loader") if modes else training.of("loader")
    return following is None or any(last < event.index < following for event in turns)


def same_buffers(ranks: Sequence[Training]) -> tuple[Difference | str, list[str]]:
    """Whether ranks that evaluate at the same step do so with the same statistics, and the same copies of a network
    that no optimizer has ("" where no two do), and remarks on other buffers."""
    known: dict[tuple[str, int, int], tuple[Training, Event]] = {}
    compared = apart = 0
    remarks: list[str] = []
    for rank in ranks:
        for key, event in _evaluated(rank):
            whose, first = known.setdefault(key, (rank, event))
            if first is event:
                continue
            compared += 1
            other, copies = (
                sorted(name for name in mine.keys() & theirs.keys() if mine[name][3] != theirs[name][3])
                for mine, theirs in ((first.fields[kind], event.fields[kind]) for kind in "bp")
            )
            statistics = [name for name in other if name.rpartition(".")[2] in ("running_mean", "running_var")]
            decisive = [*statistics, *(copies if key[1] else ())]
            if decisive and _counts(rank, event):
                what = f"rank {rank.rank} evaluates with a different {key[0]}.{decisive[0]} than rank {whose.rank}"
                why = loaded_alone((whose, first.index), (rank, event.index)) or _unsent(rank, event, bool(statistics))
                return Difference(what, why.place, cause=why.what), remarks
            apart += bool(statistics)
            for name in (statistics or other)[:1]:
                remark = f"the buffer {key[0]}.{name} of rank {rank.rank} is not that of rank {whose.rank}"
                remark += f" ({event.place})"
                remarks += [remark] if not remarks else []
    return f"the same in {many(compared, 'evaluation')} of two ranks" if compared and not apart else "", remarks


def _unsent(rank: Training, event: Event, statistics: bool) -> Difference:
    """Why a rank has statistics of its own, or copies."""
    cause = "no optimizer has it, and the ranks keep their own copies"
    if statistics:
        past = "the network is called without its wrapper, whose forward sends the buffers of rank 0 to the others"
        cause = past if rank.of("wrap") else "the buffers of rank 0 are not sent to the other ranks"
    return Difference(cause, event.place)


def _counts(rank: Training, event: Event) -> bool:
    """Whether what a rank evaluates decides there, or goes into what all ranks have, before it trains on. Where only
    one rank tells its result, the others may have what statistics they like."""
    after = next((each.index for each in rank.of("backward") if each.index > event.index), len(rank.events))
    turns = (each for each in rank.of("mode", "loader") if event.index < each.index < after)
    if after < len(rank.events) and next(turns, None) is None:
        return True  # it computes what another network is trained with
    asked = [each for each in asked_collectives(rank) if each.fields["kind"] not in _APART]
    decided = [each for each in rank.of("scheduler") if "metric" in each.fields]
    return any(event.index < each.index < after for each in (*asked, *decided))


def _evaluated(rank: Training) -> Iterator[tuple[tuple[str, int, int], Event]]:
    """The evaluations by network, steps before, and their number among those."""
    counts: dict[tuple[str, int], int] = {}
    steps = [step.index for step in rank.steps]
    for event in rank.of("evaluated"):
        key = (event.fields["of"], sum(index < event.index for index in steps))
        counts[key] = counts.get(key, -1) + 1
        yield (*key, counts[key]), event
