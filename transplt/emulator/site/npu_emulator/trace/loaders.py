"""Which samples a loader gave, batch by batch; and loaders that give those of another run, all ranks' in one batch."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import operator
import weakref
import zlib
from collections.abc import Iterator
from typing import Any

import torch

from ..config import config
from ..user_code import nearest
from . import repeat
from .log import emit, place_of, quiet, write

#: The loaders in the order of their first iteration, and how often each began. One that is made in the place of another
#: that is gone, at the same line and over the same data, or a list of as many, goes on with its passes.
_numbers: Any = weakref.WeakKeyDictionary()
_epochs: dict[int, int] = {}
_gone: dict[tuple[Any, int], tuple[Any, int, Any]] = {}
#: What the order of each loader's last pass is drawn from.
_turns: dict[int, tuple[int, int]] = {}
#: The lines that made the loaders.
_made: Any = weakref.WeakKeyDictionary()
#: Their numbers, in the order in which they were made.
_order: Any = weakref.WeakKeyDictionary()
_makes = itertools.count()
_replay: dict[str, list[list[int]]] = {}
#: What samplers that give each rank a share of the samples count by.
_OF_SHARES = ("num_replicas", "world_size", "world", "rank")
#: The lines that made the subsets; the place of the last order that was drawn.
_subsets: Any = weakref.WeakKeyDictionary()
ordered: list[list[Any]] = []


_NONE: Any = object()


@contextlib.contextmanager
def _apart(loader: int, turn: tuple[int, int] | None) -> Iterator[None]:
    """Let a loader draw its order and the seeds of its workers beside the program's random numbers: a sampler that
    draws otherwise, as DistributedSampler does, then changes nothing of the program's. `turn` is the checksum of the
    generator's state, and how many passes began with it since it was seeded; None: as in a user's run."""
    if turn is None:
        yield
        return
    generator = torch.default_generator
    state = generator.get_state()
    generator.manual_seed(turn[0] + 7919 * loader + turn[1])
    try:
        yield
    finally:
        generator.set_state(state)


class _Indices:
    """Gives the batches of a sampler on, or those to replay, and records them. A loader whose workers persist asks for
    it once, and goes through it in each pass."""

    def __init__(self, batches: Any, loader: Any) -> None:
        self.batches, self.loader, self.which = batches, loader, _numbers[loader]
        self.samples = _chosen(loader.dataset)[1]

    def _given(self) -> Any:
        """The batches of the pass that begins."""
        assert config.trace
        replayed = _replay.get(f"{self.which}.{_epochs[self.which]}")
        every = config.trace["replay_all"]
        if replayed is None or not (every or _ordered_by_port(self.loader, self.samples, replayed)):
            return self.batches
        if self.samples is None:
            return replayed
        places = {whole: place for place, whole in reversed([*enumerate(self.samples)])}
        known = all(index in places for batch in replayed for index in batch)
        return [[places[index] for index in batch] for batch in replayed] if known else self.batches

    def __len__(self) -> int:
        # Another order of the same samples ends where its run was stopped: as many batches are those of the loader.
        return len(self._given() if config.trace and config.trace["replay_all"] else self.batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.batches, name)

    def __iter__(self) -> Iterator[Any]:
        return self._recorded(self._given(), _epochs[self.which])

    def _recorded(self, given: Any, epoch: int) -> Iterator[Any]:
        with _apart(self.which, _turns.get(self.which)):
            batches = iter(given)
            first = next(batches, _NONE)
        for indices in () if first is _NONE else itertools.chain([first], batches):
            batch = list(indices) if self.loader._auto_collation else [indices]
            with contextlib.suppress(TypeError), quiet():  # keys that are no numbers
                places = [operator.index(each) for each in batch]
                whole = places if self.samples is None else [self.samples[each] for each in places]
                write("batch", nearest(1), loader=self.which, epoch=epoch, indices=whole)
            yield indices


def _ordered_by_port(loader: Any, samples: Any, replayed: list[list[int]]) -> bool:
    """Whether a loader gives its samples in another order than one process needs: that of a share, or as they lie,
    where just these are replayed."""
    sampler, data = getattr(loader, "sampler", None), torch.utils.data
    shares = isinstance(sampler, data.distributed.DistributedSampler) or any(
        hasattr(each, name) for each in (sampler, getattr(loader, "batch_sampler", None)) for name in _OF_SHARES
    )
    if shares or not isinstance(sampler, data.SequentialSampler):
        return shares
    whole = samples if samples is not None else range(_length(len, loader.dataset) or 0)
    return sorted(itertools.chain(*replayed)) == sorted(whole)


def _chosen(dataset: Any) -> tuple[Any, Any]:
    """The data set that a Subset, maybe of a Subset, chooses from, and the indices there (None: it is no Subset)."""
    if type(dataset) is not torch.utils.data.Subset:
        return dataset, None
    whole, indices = _chosen(dataset.dataset)
    return whole, [int(each) if indices is None else indices[each] for each in dataset.indices]


def _length(length: Any, loader: Any) -> int | None:
    """How many batches it gives, or samples it has; None for what does not know."""
    try:
        return int(length(loader))
    except (TypeError, NotImplementedError):
        return None


def _number(loader: Any) -> int:
    """The number of a loader that begins a pass."""
    if loader not in _numbers:
        data = loader.dataset
        key = repr(_made.get(loader)), len(data) if isinstance(data, list | range) else id(data)
        before, number, _ = _gone.get(key, (None, -1, None))
        if before is None or before() is not None:
            number = len({*_epochs})
        _numbers[loader] = number
        _gone[key] = weakref.ref(loader), number, loader.dataset  # so that no other data get its id
    return int(_numbers[loader])


def _placed(kind: Any) -> None:
    """Note the lines that make loaders, or samplers."""
    make = kind.__init__

    @functools.wraps(make)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if (frame := nearest(1)) is not None:
            _made[self] = place_of(frame)
        if kind is torch.utils.data.DataLoader:
            _order[self] = next(_makes)
        make(self, *args, **kwargs)

    kind.__init__ = __init__


def begun() -> bool:
    """Whether a loader was asked for its batches."""
    return bool(_epochs)


def install() -> None:
    """Record the indices of every loader with a sampler; `replay` names a file of what to give in their place."""
    assert config.trace
    if config.trace["replay"]:
        with open(config.trace["replay"], encoding="utf-8") as file:
            _replay.update(json.load(file))
    data: Any = torch.utils.data
    kind = data.DataLoader
    begin = kind.__iter__
    length = kind.__len__
    shares = data.distributed.DistributedSampler
    given_lengths = dict(config.trace["lengths"])

    @functools.wraps(length)
    def __len__(self: Any) -> int:
        given = given_lengths.get(_order.get(self))
        turn = _epochs.get(_numbers.get(self, -1), 0)
        return length(self) if given is None else given[min(turn, len(given) - 1)]

    kind.__len__ = __len__

    @functools.wraps(begin)
    def __iter__(self: Any) -> Any:
        which = _number(self)
        _epochs[which] = _epochs.get(which, -1) + 1
        sampler = getattr(self, "sampler", None)
        whole, samples = _chosen(self.dataset)
        emit(
            "loader", loader=which, epoch=_epochs[which], batch=self.batch_size, sampler=type(sampler).__name__,
            shuffle=bool(getattr(sampler, "shuffle", False)), made=_made.get(self),
            sampled=_made.get(sampler) if isinstance(sampler, shares) else None,
            nth=_order.get(self), length=_length(length, self),
            size=_length(len, self.dataset), whole=_length(len, whole),
            subset=_subsets.get(self.dataset) if isinstance(self.dataset, data.Subset) else None,
            chosen=zlib.crc32(repr(samples).encode()) if samples is not None else None,
            drop_last=bool(self.drop_last or getattr(sampler, "drop_last", False)),
        )  # fmt: skip
        if config.trace and config.trace["seed"] is not None:
            _turns[which] = repeat.turn(("loader", which))
        with _apart(which, _turns.get(which)):
            return begin(self)

    kind.__iter__ = __iter__
    _placed(kind)
    _placed(shares)
    choose = data.Subset.__init__

    @functools.wraps(choose)
    def chosen(self: Any, *args: Any, **kwargs: Any) -> None:
        if (frame := nearest(1)) is not None:
            place = place_of(frame)
            _subsets[self] = ordered[-1] if ordered and ordered[-1][0] == place[0] else place
        choose(self, *args, **kwargs)

    data.Subset.__init__ = chosen
    original = kind._index_sampler.fget

    def _index_sampler(self: Any) -> Any:
        batches = original(self)
        known = self in _numbers and not isinstance(self.dataset, data.IterableDataset)
        return _Indices(batches, self) if known else batches

    kind._index_sampler = property(_index_sampler)
    sampler: Any = data.distributed.DistributedSampler
    original_set_epoch = sampler.set_epoch

    @functools.wraps(original_set_epoch)
    def set_epoch(self: Any, epoch: int) -> None:
        emit("set_epoch", epoch=int(epoch))
        original_set_epoch(self, epoch)

    sampler.set_epoch = set_epoch
