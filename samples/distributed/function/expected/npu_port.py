# SPDX-License-Identifier: 0BSD
# Functions that this project calls to run on Ascend NPUs. Written by transplt 0.1.0; it belongs to the project now:
# change it as you like, transplt does not edit it again. 0BSD: use, copy, change and distribute it for any purpose,
# with or without fee; it comes without any warranty.

from __future__ import annotations

import atexit
import copy
import hashlib
import multiprocessing
import os
import random
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DataParallel, DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, get_worker_info
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.data.distributed import DistributedSampler

try:  # noqa: SIM105
    import torch_npu  # noqa: F401
except ImportError:  # the same code runs on CUDA and on the CPU
    pass


#: True while each rank draws its own noise.
_draws_are_own = False
#: How often the ranks began to draw their own.
_own_times = 0
#: What orders of data are drawn from, alike on all ranks: a number of each of rank 0's streams, so that a program has
#: the same again if it seeds those that it draws from; and how many there were before.
_orders_begin = [0, 0, 0, 0]
_orders_drawn = 0
_started = False


def rank() -> int:
    """The number of this process, from 0; 0 without a process group."""
    return int(distributed.get_rank()) if distributed.is_initialized() else 0


def world_size() -> int:
    """How many processes train together; 1 without a process group."""
    return int(distributed.get_world_size()) if distributed.is_initialized() else 1


def is_first() -> bool:
    """True on rank 0, which prints and saves."""
    return rank() == 0


def wait() -> None:
    """Wait until all ranks have come here. Every rank has to."""
    if world_size() > 1:
        distributed.barrier()


def card_kind() -> str:
    """What this machine computes on: "npu", else "cuda", else "cpu"."""
    if hasattr(torch, "npu") and torch.npu.is_available():
        return "npu"
    return "cuda" if torch.cuda.is_available() else "cpu"


def card() -> torch.device:
    """This rank's card, or the CPU where there is none."""
    kind = card_kind()
    return torch.device(kind) if kind == "cpu" else torch.device(kind, getattr(torch, kind).current_device())


def exchange_device() -> torch.device:
    """Where tensors lie that go from rank to rank: HCCL and NCCL take those of the card, gloo those of the CPU."""
    return torch.device("cpu") if distributed.get_backend() == "gloo" else card()


def add_up(tensor: torch.Tensor) -> torch.Tensor:
    """The sum over the ranks of `tensor`, any shape, which may be overwritten; the same bits on every rank."""
    sent = tensor.to(exchange_device())
    if sent.dtype in (torch.float64, torch.complex128) and sent.device.type != "cpu":  # HCCL sends, but does not add it
        parts = [torch.empty_like(sent) for _ in range(world_size())]
        distributed.all_gather(parts, sent)
        sent = torch.stack([part.cpu() for part in parts]).sum(0)
    else:
        distributed.all_reduce(sent)
    return sent.to(tensor.device)


def own_draws() -> None:
    """From here on each rank draws its own noise; every rank has to come here. Nothing if they do so already."""
    global _draws_are_own, _own_times, _orders_begin
    if world_size() == 1 or _draws_are_own:
        return
    begin = [*map(_number, _plain(stream_states()))]
    distributed.broadcast_object_list(begin, 0, device=exchange_device())
    _draws_are_own, _own_times, _orders_begin = True, _own_times + 1, begin
    if rank() > 0:
        seed_streams([_number(each, _own_times, rank()) for each in begin])


def same_draws() -> None:
    """All ranks go on with rank 0's streams, so that weights, splits and evaluations are alike.

    Every rank has to come here.
    """
    global _draws_are_own, _orders_begin
    if world_size() == 1:
        return
    sent = [stream_states()]
    distributed.broadcast_object_list(sent, 0, device=exchange_device())
    _draws_are_own, _orders_begin = False, [*map(_number, _plain(sent[0]))]
    if rank() > 0:
        set_streams(sent[0])


def next_order() -> int:
    """A new number, of 63 bits, which is the same on all ranks if all have asked equally often."""
    return _next_seeds()[0]


def _next_seeds() -> list[int]:
    global _orders_drawn
    _orders_drawn += 1
    return [_number(each, _orders_drawn) for each in _orders_begin]


def drawn_alike(source: Iterable[Any], at_once: int) -> Iterator[Any]:
    """What `source` yields, which may draw from the streams: the same on all ranks, and new at each iteration.

    It draws from streams of its own, which take the place of the process's while `at_once` elements are fetched.
    """
    inside: list[Any] | None = None
    elements: Iterator[Any] | None = None
    seeds = _next_seeds()
    fetched = [None] * at_once
    while len(fetched) == at_once:
        outside = stream_states()
        try:
            if inside is None:
                seed_streams(seeds)
            else:
                set_streams(inside)
            elements = iter(source) if elements is None else elements
            fetched = list(islice(elements, at_once))
            inside = stream_states()
        finally:
            set_streams(outside)
        yield from fetched


def stream_states() -> list[Any]:
    """The states of torch's CPU stream, the card's, those of `random` and of NumPy; None for what there is not."""
    numpy: Any = sys.modules.get("numpy")
    cards = None if card_kind() == "cpu" else getattr(torch, card_kind())
    return [
        torch.get_rng_state(),
        cards.get_rng_state() if cards else None,
        random.getstate(),
        numpy.random.get_state() if numpy else None,
    ]


def set_streams(states: list[Any]) -> None:
    """Go on from what `stream_states` gave."""
    numpy: Any = sys.modules.get("numpy")
    torch.set_rng_state(states[0])
    if states[1] is not None and card_kind() != "cpu":
        getattr(torch, card_kind()).set_rng_state(states[1])
    random.setstate(states[2])
    if states[3] is not None and numpy:
        numpy.random.set_state(states[3])


def seed_streams(seeds: list[int]) -> None:
    """Begin all streams anew, in the order of `stream_states`, with a seed of 63 bits for each."""
    numpy: Any = sys.modules.get("numpy")
    torch.default_generator.manual_seed(seeds[0])
    if card_kind() != "cpu":
        getattr(torch, card_kind()).manual_seed(seeds[1])
    random.seed(seeds[2])
    if numpy:
        numpy.random.seed([seeds[3] & 0xFFFFFFFF, seeds[3] >> 32])


def _plain(states: list[Any]) -> list[Any]:
    """What identifies states in one run as in the next."""
    numpy_state = states[3] and [part if isinstance(part, (str, int, float)) else part.tolist() for part in states[3]]
    return [states[0].tolist(), states[1] if states[1] is None else states[1].tolist(), states[2], numpy_state]


def _number(*parts: Any) -> int:
    """A number of 63 bits for these parts."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big") >> 1


def wrap(model: torch.nn.Module, **options: Any) -> torch.nn.Module:
    """`model` in DistributedDataParallel, which averages gradients in the backward pass, where the model lies.

    On the CPU it is exchanged by gloo, whatever card there is; one that lies on this rank's card in part moves there.
    `options` are those of DistributedDataParallel. A model that is wrapped already is returned; without a process
    group, in a script that does not call start(), it is the model. All ranks have to come here.
    """
    if isinstance(model, DistributedDataParallel):
        return model
    model, device = bare(model), card()
    kinds = {tensor.device.type for tensor in _tensors(model)}
    if device.type in kinds - {"cpu"}:
        model = model.to(device) if len(kinds) > 1 else model
        options = {"device_ids": [device.index], **options}
    if not distributed.is_initialized():
        return model
    if device.type not in kinds:
        options = {"process_group": distributed.new_group(backend="gloo"), **options}
    return DistributedDataParallel(model, **options)


def bare(model: torch.nn.Module) -> torch.nn.Module:
    """The model inside a DistributedDataParallel or DataParallel; any other model itself."""
    return model.module if isinstance(model, (DistributedDataParallel, DataParallel)) else model


def _tensors(holder: Any) -> Iterator[torch.Tensor]:
    if isinstance(holder, torch.nn.Module):
        yield from holder.parameters()
        yield from holder.buffers()
    elif isinstance(holder, torch.Tensor):
        yield holder
    elif isinstance(holder, torch.optim.Optimizer):
        for group in holder.param_groups:
            yield from group["params"]
    else:
        raise TypeError(f"alike() takes models, optimizers and tensors, not a {type(holder).__name__}")


def mean_over_ranks(value: torch.Tensor | float, count: torch.Tensor | float | None = None) -> Any:
    """The mean over the ranks of a number, or of a tensor of any shape; every rank has to come here.

    `count`, if given, is how many samples this rank's value is the mean of, so that the result is the mean over all
    samples, and 0 where there are none. A tensor becomes a detached tensor of its type on its device, a number a float.
    With one process it is the value itself.
    """
    if world_size() == 1:
        return value.detach().clone() if isinstance(value, torch.Tensor) else value
    given = value.detach() if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=torch.float64)
    wide = given if given.dtype in (torch.float64, torch.complex64, torch.complex128) else given.float()
    weight = 1.0 if count is None else float(count)
    # A rank without samples may have a mean of nan.
    parts = wide.reshape(-1) * weight if weight else torch.zeros_like(wide).reshape(-1)
    sums = add_up(torch.cat([parts, parts.new_full((1,), weight)]))
    means = sums[:-1] / sums[-1] if sums[-1] != 0 else torch.zeros_like(sums[:-1])
    if not isinstance(value, torch.Tensor):
        return float(means)
    return means.reshape(given.shape).to(given.dtype if given.is_floating_point() else means.dtype)


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


def start() -> None:
    """Take this rank's card and join the other ranks, as torchrun's variables say; one process without torchrun.

    All ranks then draw what rank 0 would draw. A group that already exists is used. Calling it again does nothing,
    nor does a call in a child that `multiprocessing` started, such as a worker of a loader.
    """
    global _started
    if _started or (multiprocessing.parent_process() is not None and not distributed.is_initialized()):
        return
    kind = card_kind()
    if kind != "cpu" and "LOCAL_RANK" in os.environ:
        getattr(torch, kind).set_device(int(os.environ["LOCAL_RANK"]))
    if not distributed.is_initialized():
        backend = {"npu": "hccl", "cuda": "nccl", "cpu": "gloo"}[kind]
        if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
            distributed.init_process_group(backend)
        else:
            distributed.init_process_group(backend, store=distributed.HashStore(), rank=0, world_size=1)
        atexit.register(_end, os.getpid())
    _started = True
    same_draws()
    wait()  # a rank that came to its end now would break the connections that others still make


def _end(pid: int) -> None:
    """Leave the group; not after an exception, since the others may wait for this rank in vain, and it for them."""
    failed = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if os.getpid() == pid and distributed.is_initialized() and failed is None:
        distributed.destroy_process_group()
