"""What makes a run repeat itself: seeds before the first line of the script, dropout off."""

from __future__ import annotations

import functools
import linecache
import multiprocessing.process
import os
import random
import sys
import zlib
from collections.abc import Callable, Hashable
from types import ModuleType
from typing import Any

import torch

from ..start import when_imported
from ..user_code import nearest

_DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
#: Checksum of a state of the generator -> what was kept from drawing from it -> how often.
_kept_from: dict[int, dict[Hashable, int]] = {}
_HALF = (torch.float16, torch.bfloat16)
#: Has the number of a process among those that its parent spawned for the same work, from 0.
_SPAWNED = "TRANSPLT_SPAWNED"
#: What is told of each dropout that keeps everything.
_watchers: list[Callable[[], None]] = []


def install(seed: int, inserted: dict[str, list[int]] | None = None, *, any_seed: bool = False) -> None:
    """Seed what draws, and let dropout keep everything. Seeds of the user's own come later, and win.

    Each process has a seed of its own, as where nobody seeds: what has to be equal on all ranks is made equal by the
    program, or is not. `inserted` are the lines, by real path, that a port added (None: nobody knows, any may be one);
    with `any_seed` they set none, and give no generators: the program is held against one that lacks these lines.
    """
    seed_draws(seed)
    _keep_the_stream(inserted, any_seed=any_seed)
    if any_seed and inserted is not None and _makes_generators(inserted):
        _give_no_generator(inserted)
    _draw_in_single_precision()
    _drop_nothing()


def seed_draws(number: int) -> None:
    """Seed what draws, with the number of this process added."""
    number += _own_number()
    _number_spawned()
    random.seed(number)
    torch.manual_seed(number)
    when_imported("numpy", functools.partial(_seed_numpy, seed=number))


def _own_number() -> int:
    """What tells this process from the others of a training: its rank, as its launcher sets it, and its number among
    those that a rank spawned, which all have the rank of their parent, or none."""
    ranks = (os.environ.get(name, "") for name in ("RANK", "LOCAL_RANK"))
    rank = next((int(each) for each in ranks if each.isdecimal()), 0)
    return rank + int(os.environ.pop(_SPAWNED, "0"))


def _number_spawned() -> None:
    """Tell each process that is spawned its number. (One that is forked has the generators of its parent.)"""
    spawning = sys.modules["torch.multiprocessing.spawn"]
    process: Any = multiprocessing.process.BaseProcess
    start = process.start
    begun: dict[str, int] = {}

    @functools.wraps(start)
    def numbered(self: Any) -> None:
        work = self._target or type(self)
        if work is vars(spawning)["_wrap"]:
            number = int(self._args[1])
        else:
            name = getattr(work, "__qualname__", type(work).__name__)
            number = begun[name] = begun.get(name, -1) + 1
        os.environ[_SPAWNED] = str(number)
        try:
            start(self)
        finally:
            os.environ.pop(_SPAWNED, None)

    process.start = numbered


def draw_anew() -> None:
    """Seed what draws as in a process that nobody seeds: one that was forked has the seeds of its parent."""
    random.seed()
    torch.default_generator.seed()
    when_imported("numpy", functools.partial(_seed_numpy, seed=None))


def turn(of: Hashable) -> tuple[int, int]:
    """The checksum of the generator's state, and how often `of` was kept from drawing from it before: in a user's run
    it goes on with each of these draws, and begins again where it is seeded anew."""
    state = _state()
    counts = _kept_from.setdefault(state, {})
    counts[of] = counts.get(of, -1) + 1
    return state, counts[of]


def when_dropped(watcher: Callable[[], None]) -> None:
    """Call `watcher` for each dropout in training."""
    _watchers.append(watcher)


def _state() -> int:
    return zlib.crc32(torch.default_generator.get_state().numpy().tobytes())


def _keep_the_stream(inserted: dict[str, list[int]] | None, *, any_seed: bool) -> None:
    """At a line that a port added, a seed that the stream began with already does not begin it anew, the first time;
    with `any_seed` no seed does there.

    Ports for several cards set the seed again, with the rank added: on rank 0 the numbers then go on as they do where
    nothing is set. A line that seeds more than once repeats its numbers in a user's run, and here too.
    """
    seen: set[tuple[str, int, str]] = set()

    def kept(owner: Any, name: str, goes_on: Callable[[Any], bool]) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def seeded(*args: Any, **kwargs: Any) -> Any:
            frame = nearest(1)
            place = (os.path.realpath(frame.f_code.co_filename), frame.f_lineno) if frame is not None else ("", 0)
            first = (*place, name) not in seen
            seen.add((*place, name))
            added = inserted is None or place[1] in inserted.get(place[0], ())
            if first and added and goes_on([*args, *kwargs.values(), None][0]):
                return torch.default_generator if owner is torch else None
            result = original(*args, **kwargs)
            _kept_from.pop(_state(), None)
            return result

        setattr(owner, name, seeded)

    known = any_seed and inserted is not None
    kept(torch, "manual_seed", lambda seed: known or int(seed) == torch.initial_seed())
    torch.random.manual_seed = torch.manual_seed
    if known:
        kept(random, "seed", lambda seed: True)
        when_imported("numpy", lambda numpy: kept(numpy.random, "seed", lambda seed: True))


def _makes_generators(inserted: dict[str, list[int]]) -> bool:
    """Whether a line that a port added makes a generator; else those that it gives are the original's."""
    lines = (linecache.getline(path, line) for path, every in inserted.items() for line in every)
    return any("Generator(" in line for line in lines)


def _give_no_generator(inserted: dict[str, list[int]]) -> None:
    """A generator that only the port gives, such as to split data alike on all ranks, is not given."""

    def ungiven(original: Any) -> Any:
        @functools.wraps(original)
        def drawn(*args: Any, **kwargs: Any) -> Any:
            frame = nearest(1)
            path = os.path.realpath(frame.f_code.co_filename) if frame is not None else ""
            if frame is not None and frame.f_lineno in inserted.get(path, ()):
                kwargs.pop("generator", None)
            return original(*args, **kwargs)

        return drawn

    for name in ("randperm", "rand", "randn", "randint", "multinomial", "bernoulli", "normal"):
        setattr(torch, name, ungiven(getattr(torch, name)))
    data: Any = torch.utils.data
    data.random_split = data.dataset.random_split = ungiven(data.random_split)


def _draw_in_single_precision() -> None:
    """What is drawn in half precision is rounded from what float32 draws: a port with mixed precision would get other
    numbers from the same seed."""
    for name in ("rand_like", "randn_like", "rand", "randn"):
        setattr(torch, name, _rounded(getattr(torch, name), like=name.endswith("_like")))
    tensor: Any = torch.Tensor
    for name in ("normal_", "uniform_", "exponential_"):
        setattr(tensor, name, _rounded_into(getattr(tensor, name)))


def _rounded(original: Any, *, like: bool) -> Any:
    @functools.wraps(original)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        dtype = kwargs.get("dtype") or (args[0].dtype if like and args else None)
        if dtype not in _HALF or kwargs.get("out") is not None:
            return original(*args, **kwargs)
        trains = kwargs.pop("requires_grad", False)
        return original(*args, **{**kwargs, "dtype": torch.float32}).to(dtype).requires_grad_(trains)

    return drawn


def _rounded_into(original: Any) -> Any:
    @functools.wraps(original)
    def drawn(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.dtype not in _HALF:
            return original(self, *args, **kwargs)
        wide = original(torch.empty(self.shape, dtype=torch.float32, device=self.device), *args, **kwargs)
        return self.copy_(wide)

    return drawn


def _seed_numpy(numpy: ModuleType, seed: int | None) -> None:
    numpy.random.seed(seed)


def _tell(p: Any) -> None:
    """A dropout would have drawn, where `p` is not 0."""
    if p:
        for watcher in _watchers:
            watcher()


def _drop_nothing() -> None:
    """Also where attention by several heads drops weights: it calls these functions."""
    functional: Any = torch.nn.functional

    def kept(input: Any, p: Any = 0.5, training: bool = True, *args: Any, **kwargs: Any) -> Any:
        _tell(p if kwargs.get("train", training) else 0.0)
        return input

    for name in _DROPOUTS:
        setattr(functional, name, functools.wraps(getattr(functional, name))(kept))
        for owner in (torch, torch._VF):
            if hasattr(owner, name):
                setattr(owner, name, functools.wraps(getattr(functional, name))(kept))
    attention = functional.scaled_dot_product_attention

    @functools.wraps(attention)
    def attend(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *rest: Any, **more: Any
    ) -> Any:
        _tell(dropout_p)
        return attention(query, key, value, attn_mask, 0.0, *rest, **more)

    functional.scaled_dot_product_attention = attend
    made = torch.nn.RNNBase.__init__

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        self.dropout = 0.0

    torch.nn.RNNBase.__init__ = __init__  # type: ignore[method-assign]
