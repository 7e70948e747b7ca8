"""Loaders of which each rank reads its share."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, get_worker_info
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.data.distributed import DistributedSampler

from transplt.helper.draws import drawn_alike, next_order
from transplt.helper.ranks import rank, world_size

__all__ = ["in_one_order", "shard"]


def shard(loader: Any) -> Any:
    """`loader`, a torch DataLoader, as a loader of the same class that gives each rank its share of the batches.

    All ranks make the same number of steps: the first samples are repeated to fill up, or the last left out if the
    loader has drop_last. Of a batch sampler, and where the program's own class draws the order, whole batches are.
    Each iteration has a new order, if the loader has one; all ranks have to begin each iteration. With one process it
    is `loader` itself. TypeError for anything else, and for a loader with an iterator of its own; ValueError where
    drop_last would leave no rank a batch.
    """
    if not isinstance(loader, DataLoader):
        raise TypeError(f"shard() takes a torch DataLoader, not a {type(loader).__name__}")
    if world_size() == 1 or isinstance(loader.dataset, SplitIterable):
        return loader
    if isinstance(loader.sampler, DistributedSampler) or isinstance(loader.batch_sampler, DistributedSampler):
        return loader
    if any(isinstance(value, _BaseDataLoaderIter) for name, value in vars(loader).items() if name != "_iterator"):
        raise TypeError(f"shard() cannot share out a {type(loader).__name__}, which keeps its own iterator")
    changes: dict[str, Any] = {}
    if isinstance(loader.dataset, IterableDataset):
        changes["dataset"] = SplitIterable(loader.dataset, rank(), world_size())
        if loader.generator is None:  # seeds of workers, of which each rank's have to yield the same stream
            changes["generator"] = torch.Generator()
            changes["generator"].manual_seed(next_order())
    else:
        changes = _samplers(loader, rank(), world_size())
    _check_size(loader)
    return _with(loader, changes)


def in_one_order(loader: Any) -> Any:
    """`loader`, a torch DataLoader of which each rank reads all, as one whose orders are drawn alike on all ranks.

    All ranks have to begin each iteration. What draws no order, and anything else, is given back as it is.
    """
    if world_size() == 1 or not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        return loader
    return _with(loader, _samplers(loader, 0, 1))


def _samplers(loader: Any, rank: int, ranks: int) -> dict[str, Any]:
    """What draws the order of a loader, with a share of it for each of so many ranks."""
    if loader.batch_sampler is not None and (loader.batch_size is None or _is_own(loader.sampler)):
        # A sampler of the program's own may mean what stands together in a batch (classes, lengths).
        drop_last = bool(loader.drop_last) if loader.batch_size else False
        return {"batch_sampler": ShareSampler(loader.batch_sampler, loader.dataset, drop_last, rank, ranks)}
    sampler = ShareSampler(loader.sampler, loader.dataset, bool(loader.drop_last) and ranks > 1, rank, ranks)
    if loader.batch_sampler is None:
        return {"sampler": sampler}
    return {"sampler": sampler, "batch_sampler": BatchSampler(sampler, loader.batch_size, loader.drop_last)}


def _with(loader: Any, changes: dict[str, Any]) -> Any:
    """A copy of a loader with other attributes."""
    shared = copy.copy(loader)
    for name, value in {**changes, "_iterator": None}.items():
        object.__setattr__(shared, name, value)  # a DataLoader refuses to be changed, but this one has not begun
    return shared


def _check_size(loader: Any) -> None:
    """ValueError where one process gets a batch, and not every rank."""
    if loader.drop_last and loader.batch_size and not isinstance(loader.dataset, IterableDataset):
        found, ranks = len(loader.sampler), world_size()
        if loader.batch_size <= found < loader.batch_size * ranks:
            raise ValueError(
                f"shard(): {found} samples leave {ranks} ranks without a batch of {loader.batch_size} each, and "
                f"drop_last drops smaller ones: take a batch_size of at most {found // ranks}, or fewer ranks"
            )


def _is_own(sampler: Any) -> bool:
    """Whether a class of the program draws the order, and not one of torch, a list or a range."""
    return type(sampler).__module__.partition(".")[0] not in ("torch", "builtins")


class ShareSampler(DistributedSampler):  # type: ignore[misc]
    """This rank's share of what a sampler (or batch sampler) yields, drawn in the same order on all ranks."""

    def __init__(self, source: Any, dataset: Any, drop_last: bool, rank: int, ranks: int) -> None:
        self.source, self.dataset, self.drop_last = source, dataset, drop_last
        self.num_replicas, self.rank = ranks, rank
        self.epoch = self.seed = 0
        self.shuffle = not isinstance(source, SequentialSampler)

    def __iter__(self) -> Iterator[Any]:
        first: list[Any] = []
        order = drawn_alike(self.source, 4096)
        while group := list(islice(order, self.num_replicas)):
            first = first or group
            if len(group) < self.num_replicas:
                if self.drop_last:
                    return
                group += (first * self.num_replicas)[: self.num_replicas - len(group)]
            yield group[self.rank]

    def __len__(self) -> int:
        more = 0 if self.drop_last else self.num_replicas - 1
        return (len(self.source) + more) // self.num_replicas

    @property
    def num_samples(self) -> int:
        return len(self)

    @property
    def total_size(self) -> int:
        return len(self) * self.num_replicas

    def set_epoch(self, epoch: int) -> None:
        """Each iteration has a new order without it; the sampler inside may want to know."""
        self.epoch = epoch
        if hasattr(self.source, "set_epoch"):
            self.source.set_epoch(epoch)

    def __getattr__(self, name: str) -> Any:
        if name == "source":
            raise AttributeError(name)
        return getattr(self.source, name)


class SplitIterable(IterableDataset):  # type: ignore[misc]
    """This rank's samples of an iterable dataset, every one of whose samples each rank reads: rank, rank + ranks, ...

    It ends with the last group that has a sample for each rank. Otherwise it is what it splits, `isinstance` included.
    """

    def __init__(self, source: Any, rank: int, ranks: int) -> None:
        self.__dict__.update(source=source, rank=rank, ranks=ranks)

    def __iter__(self) -> Iterator[Any]:
        # Workers are seeded alike on all ranks.
        stream = iter(self.source) if get_worker_info() else drawn_alike(self.source, self.ranks)
        while len(group := list(islice(stream, self.ranks))) == self.ranks:
            yield group[self.rank]

    def __len__(self) -> int:
        return len(self.source) // int(self.ranks)

    def __getattr__(self, name: str) -> Any:
        if name == "source":
            raise AttributeError(name)
        return getattr(self.source, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.source, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.source)

    def __reduce__(self) -> Any:
        return SplitIterable, (self.source, self.rank, self.ranks)
