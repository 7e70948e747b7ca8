"""Which samples a loader gave, batch by batch; and loaders that give those of another run, all ranks' in one batch."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import torch

from ..config import config
from .log import emit

#: The loaders in the order of their first iteration, and how often each began.
_numbers: dict[int, int] = {}
_kept: list[Any] = []
_epochs: dict[int, int] = {}
_replay: dict[str, list[list[int]]] = {}


class _Indices:
    """Gives the batches of a sampler on, and tells them."""

    def __init__(self, batches: Any, loader: int, epoch: int, single: bool) -> None:
        self.batches, self.loader, self.epoch, self.single = batches, loader, epoch, single

    def __iter__(self) -> Iterator[Any]:
        known: Any = _replay.get(f"{self.loader}.{self.epoch}")
        for indices in known if known is not None else self.batches:
            told: list[Any] = [indices] if self.single else list(indices)
            if all(isinstance(each, (int, bool)) for each in told):
                emit("batch", loader=self.loader, epoch=self.epoch, indices=[int(each) for each in told])
            yield indices


def install() -> None:
    """Tell the indices of every loader with a sampler; `replay` names a file of what to give in their place."""
    assert config.trace
    if config.trace["replay"]:
        with open(config.trace["replay"], encoding="utf-8") as file:
            _replay.update(json.load(file))
    data: Any = torch.utils.data
    kind = data.DataLoader
    begin = kind.__iter__

    @functools.wraps(begin)
    def __iter__(self: Any) -> Any:
        if id(self) not in _numbers:
            _numbers[id(self)] = len(_kept)
            _kept.append(self)
        which = _numbers[id(self)]
        _epochs[which] = _epochs.get(which, -1) + 1
        sampler = getattr(self, "sampler", None)
        emit(
            "loader", loader=which, epoch=_epochs[which], batch=self.batch_size, sampler=type(sampler).__name__,
            shuffle=bool(getattr(sampler, "shuffle", False)),
        )  # fmt: skip
        return begin(self)

    kind.__iter__ = __iter__
    original = kind._index_sampler.fget

    def _index_sampler(self: Any) -> Any:
        which = _numbers.get(id(self))
        batches = original(self)
        if which is None or isinstance(self.dataset, data.IterableDataset):
            return batches
        return _Indices(batches, which, _epochs[which], not self._auto_collation)

    kind._index_sampler = property(_index_sampler)
    sampler: Any = data.distributed.DistributedSampler
    told = sampler.set_epoch

    @functools.wraps(told)
    def set_epoch(self: Any, epoch: int) -> None:
        emit("set_epoch", epoch=int(epoch))
        told(self, epoch)

    sampler.set_epoch = set_epoch
