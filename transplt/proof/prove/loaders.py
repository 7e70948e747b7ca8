"""What the loaders of a program gave: the batches of each rank, of all ranks together, and where they are wrong."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from transplt.proof.prove.found import Difference
from transplt.proof.prove.training import Event, Place, Training


def batches(training: Training) -> dict[tuple[int, int], list[list[int]]]:
    """(loader, epoch) -> the indices of its batches."""
    found: dict[tuple[int, int], list[list[int]]] = {}
    for event in training.of("batch"):
        found.setdefault((event.fields["loader"], event.fields["epoch"]), []).append(event.fields["indices"])
    return found


def _made(training: Training, key: tuple[int, int]) -> Event:
    """The loader that begins an epoch."""
    return next(each for each in training.of("loader") if (each.fields["loader"], each.fields["epoch"]) == key)


def _where(loader: Event) -> Place | None:
    """The line that makes a loader, else the one that goes through it."""
    made: Place | None = loader.fields["made"]
    return made or loader.place


def trained_on(training: Training) -> set[int]:
    """The loaders that a backward pass follows a batch of."""
    return {loader for loader, _ in _trained_passes(training)}


def global_batches(ranks: Sequence[Training]) -> dict[str, list[list[int]]]:
    """ "loader.epoch" -> for each batch the indices of all ranks, one rank after the other; those of one rank where all
    ranks have the same, for evaluation in whatever order."""
    every = [batches(rank) for rank in ranks]
    if not every:
        return {}
    wanted = trained_on(ranks[0])
    merged: dict[str, list[list[int]]] = {}
    for key in every[0]:
        if not all(key in each for each in every):
            merged[f"{key[0]}.{key[1]}"] = every[0][key]
            continue
        shares = [sorted(itertools.chain(*each[key])) for each in every]
        whole = key[0] not in wanted and all(share == shares[0] for share in shares)
        if whole or all(each[key] == every[0][key] for each in every):
            merged[f"{key[0]}.{key[1]}"] = every[0][key]
            continue
        together = zip(*(each[key] for each in every), strict=False)
        merged[f"{key[0]}.{key[1]}"] = [[index for part in parts for index in part] for parts in together]
    return merged


def lengths(rank: Training) -> dict[int, int]:
    """The number of a loader, in the order of their making -> how many batches of a pass it gives to a rank."""
    made = ((event.fields.get("nth"), event.fields.get("length")) for event in rank.of("loader"))
    return {nth: length for nth, length in made if nth is not None and length is not None}


def uneven_from(ranks: Sequence[Training]) -> int | None:
    """The number of the first batch (from 0, over all epochs of training) whose share is not equal on all ranks."""
    wanted = trained_on(ranks[0])
    sizes = [
        [len(event.fields["indices"]) for event in rank.of("batch") if event.fields["loader"] in wanted]
        for rank in ranks
    ]
    return next((number for number, row in enumerate(zip(*sizes, strict=False)) if len({*row}) > 1), None)


def same_data(ranks: Sequence[Training]) -> Difference | None:
    """A loader of training whose samples are the same on every rank: W cards do the work of one."""
    wanted = trained_on(ranks[0])
    every = [batches(rank) for rank in ranks]
    for key, mine in every[0].items():
        if key[0] not in wanted or not all(key in each for each in every):
            continue
        shares = [{index for batch in each[key] for index in batch} for each in every]
        event = _made(ranks[0], key)
        if all(each[key] == mine for each in every):
            return Difference(
                "every rank trains on the same samples in the same order, so that W cards do the work of one",
                _where(event), cause=f"the sampler is a {event.fields['sampler']}",
            )  # fmt: skip
        largest = max(len(share) for share in shares)
        if event.fields["sampler"] != "DistributedSampler" and len(set.union(*shares)) < 1.5 * largest and largest > 4:
            return Difference(
                "every rank goes through all samples, in an order of its own: an epoch is W times as long",
                _where(event), cause=f"the sampler is a {event.fields['sampler']}",
            )  # fmt: skip
    return None


def unshuffled(one: Training, other: Training) -> Difference | None:
    """A loader of training that the original shuffles and a DistributedSampler gives in order."""
    wanted = trained_on(other)
    shuffled = {e.fields["loader"] for e in one.of("loader") if e.fields["sampler"] == "RandomSampler"}
    for event in other.of("loader"):
        fields = event.fields
        plain = fields["sampler"] in ("DistributedSampler", "SequentialSampler") and not fields["shuffle"]
        if plain and fields["loader"] in wanted & shuffled:
            what = "the original shuffles here, the migrated program does not"
            return Difference(what, _where(event), cause=f"the sampler is a {fields['sampler']}")
    return None


def other_batches(one: Training, other: Training) -> Difference | None:
    """A loader of training that gives more or fewer batches than in the original, or larger or smaller ones."""
    wanted = trained_on(one) & trained_on(other)
    mine, theirs = batches(one), batches(other)
    last = max((key for key in mine if key[0] in wanted), default=None)
    for event in other.of("loader"):
        key = (event.fields["loader"], event.fields["epoch"])
        if key[0] not in wanted or key not in mine or key not in theirs:
            continue
        before, after = [len(batch) for batch in mine[key]], [len(batch) for batch in theirs[key]]
        if key == last and (one.cut or other.cut):
            shorter = min(len(before), len(after))
            before, after = before[:shorter], after[:shorter]
        if before != after:
            what = f"the loader gives {_counted(after)} in epoch {key[1] + 1}, in the original {_counted(before)}"
            return Difference(what, _where(event), _made(one, key).fields["made"])
    return None


def _counted(sizes: list[int]) -> str:
    ends = f", the last of {sizes[-1]}" if len({*sizes}) > 1 else ""
    return f"{len(sizes)} batches of {sizes[0]}{ends}" if sizes else "no batch"


def same_order(training: Training) -> Difference | None:
    """A loader of training that shuffles by DistributedSampler and gives each epoch in the order of the first. A pass
    that no backward follows, such as an evaluation on the data of the training, is no epoch."""
    known = batches(training)
    trains = _trained_passes(training)
    passes: dict[int, list[list[list[int]]]] = {}
    for event in training.of("loader"):
        key = (event.fields["loader"], event.fields["epoch"])
        if key not in trains or event.fields["sampler"] != "DistributedSampler" or not event.fields["shuffle"]:
            continue
        earlier = passes.setdefault(key[0], [])
        again = known[key]
        if earlier and len(again) > 1 and again == earlier[0][: len(again)]:
            return Difference(
                f"epoch {len(earlier) + 1} comes in the order of the first",
                event.place, cause="set_epoch is not called",
            )  # fmt: skip
        earlier.append(again)
    return None


def _trained_passes(training: Training) -> set[tuple[int, int]]:
    """The passes (loader, epoch) that a backward follows a batch of."""
    passes: set[tuple[int, int]] = set()
    last: tuple[int, int] | None = None
    for event in training.events:
        if event.kind == "batch":
            last = (event.fields["loader"], event.fields["epoch"])
        elif event.kind == "backward" and last is not None:
            passes.add(last)
    return passes
