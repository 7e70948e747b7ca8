"""Runs the programs of a launch in a chosen order, all or a sample of them, and notes what they write.

Triton's interpreter runs programs one behind the other, so it shows no race. Here they also run backwards, and
interleaved: each in a thread of its own, of which one runs at a time and hands on before every access to memory.
"""

from __future__ import annotations

import inspect
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy

FORWARD, REVERSE, INTERLEAVED = "forward", "reverse", "interleaved"
ORDERS = (FORWARD, REVERSE, INTERLEAVED)
#: So many programs run side by side when they are interleaved: a card has 40 vector cores.
SIDE_BY_SIDE = 40

Index = tuple[int, int, int]


@dataclass
class Plan:
    """How launches are run from here on: the order, and how many programs of one run at `most` (0: all)."""

    order: str = FORWARD
    most: int = 0
    seed: int = 0


@dataclass
class Launch:
    """One launch: `kernel` is the Python function, `arguments` are by name and lie on the device; `grid` has three
    dimensions. `ran` programs were run of all; `stores` are the addresses that they wrote and the bytes of an element,
    kept where not all ran; `bases` are the addresses of the tensors while it ran. `adds` where floats were added by
    atomics."""

    kernel: Any
    arguments: dict[str, Any]
    grid: Index = (1, 1, 1)
    ran: int = 0
    stores: list[tuple[Any, int]] = field(default_factory=list)
    bases: dict[str, int] = field(default_factory=dict)
    adds: bool = False

    @property
    def programs(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def sampled(self) -> bool:
        return self.ran < self.programs


plan = Plan()
#: Called with each launch before its first program runs, and behind its last one.
before: list[Callable[[Launch], None]] = []
behind: list[Callable[[Launch], None]] = []
_current: Launch | None = None
_side_by_side: _Interleaved | None = None


def install() -> None:
    """Triton is imported, in its interpreter."""
    from triton.runtime import autotuner, interpreter

    executor = interpreter.GridExecutor
    execute = executor.__call__

    def launch(self: Any, *arguments: Any, **options: Any) -> Any:
        global _current
        names = inspect.signature(self.fn).parameters
        told = {**dict(zip(names, arguments, strict=False)), **{k: v for k, v in options.items() if k in names}}
        defaults = {n: p.default for n, p in names.items() if p.default is not p.empty and n not in told}
        begun, outer = Launch(self.fn, {**told, **defaults}), _current
        for each in before:
            each(begun)
        whole, _current = self.fn, begun
        self.fn = _Programs(whole, begun, interpreter.interpreter_builder)
        try:
            result = execute(self, *arguments, **options)
        finally:
            self.fn, _current = whole, outer
        for each in behind:
            each(begun)
        return result

    executor.__call__ = launch
    _watch(interpreter.InterpreterBuilder)
    _pin(autotuner.Autotuner)


def _pin(autotuner: Any) -> None:
    """The first configuration that is left, in each run: measuring would choose another one each time."""
    run = autotuner.run

    def pinned(self: Any, *arguments: Any, **options: Any) -> Any:
        if len(self.configs) > 1:
            self.nargs = dict(zip(self.arg_names, arguments, strict=False))
            kept, self.configs = self.configs, list(self.prune_configs(options))[:1]
            try:
                return run(self, *arguments, **options)
            finally:
                self.configs = kept
        return run(self, *arguments, **options)

    autotuner.run = pinned


class _Programs:
    """Stands for the kernel while the interpreter goes through the grid: the first call runs all that are asked for."""

    def __init__(self, kernel: Any, launch: Launch, builder: Any) -> None:
        self._kernel, self._launch, self._builder = kernel, launch, builder
        self._done = False
        self.__globals__ = kernel.__globals__
        self.__name__ = kernel.__name__
        self.__signature__ = inspect.signature(kernel)

    def __call__(self, **arguments: Any) -> None:
        if self._done:
            return
        self._done = True
        launch, builder = self._launch, self._builder
        launch.grid = tuple(int(each) for each in builder.grid_dim)  # type: ignore[assignment]
        chosen = list(_chosen(launch.grid))
        launch.ran = len(chosen)
        for name, value in arguments.items():
            data = getattr(getattr(value, "handle", None), "data", None)
            if hasattr(launch.arguments.get(name), "data_ptr") and isinstance(data, numpy.ndarray):
                launch.bases[name] = int(data.flat[0])
        if plan.order == INTERLEAVED:
            for first in range(0, len(chosen), SIDE_BY_SIDE):
                _Interleaved(builder).run(chosen[first : first + SIDE_BY_SIDE], lambda: self._kernel(**arguments))
            return
        for index in chosen if plan.order == FORWARD else reversed(chosen):
            builder.set_grid_idx(*index)
            self._kernel(**arguments)


def _chosen(grid: Index) -> Iterator[Index]:
    """The programs to run, in the order of the interpreter: all, or the first, the last and a sample by seed."""
    total = grid[0] * grid[1] * grid[2]
    numbers: Any = range(total)
    if 0 < plan.most < total:
        within = random.Random(plan.seed).sample(range(1, total - 1), max(plan.most - 2, 0))
        numbers = sorted({0, total - 1, *within})
    for number in numbers:
        yield number // (grid[1] * grid[2]), number // grid[2] % grid[1], number % grid[2]


class _Interleaved:
    """Programs that take turns: the next one goes on whenever one is about to touch memory, or waits at a barrier."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._live: list[int] = []
        self._turns: list[threading.Semaphore] = []
        self._indices: list[Index] = []
        self._over = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._numbers = threading.local()

    def run(self, indices: list[Index], program: Callable[[], None]) -> None:
        """Run to the end of all. The first error of a program is raised."""
        global _side_by_side
        self._indices, self._live = indices, list(range(len(indices)))
        self._turns = [threading.Semaphore(0) for _ in indices]
        threads = [threading.Thread(target=self._one, args=(n, program), daemon=True) for n in self._live]
        outer, _side_by_side = _side_by_side, self
        try:
            for thread in threads:
                thread.start()
            self._go(0)
            self._over.acquire()
        finally:
            _side_by_side = outer
        if self._error is not None:
            raise self._error

    def _one(self, number: int, program: Callable[[], None]) -> None:
        self._numbers.own = number
        self._turns[number].acquire()
        if self._error is None:
            try:
                program()
            except BaseException as error:
                self._error = error
        place = self._live.index(number)
        self._live.remove(number)
        if self._live:
            self._go(self._live[place % len(self._live)])
        else:
            self._over.release()

    def _go(self, number: int) -> None:
        self._builder.set_grid_idx(*self._indices[number])
        self._turns[number].release()

    def hand_on(self) -> None:
        """Let the next program run, and wait for the turn to come back."""
        number = getattr(self._numbers, "own", None)
        if number is None or len(self._live) < 2:
            return
        self._go(self._live[(self._live.index(number) + 1) % len(self._live)])
        self._turns[number].acquire()
        if self._error is not None:
            raise self._error


def _watch(builder: Any) -> None:
    """Hand on before each access to memory, and note what a sample of programs writes."""

    def watched(name: str, writes: Callable[[Launch, tuple[Any, ...]], None] | None) -> None:
        method = getattr(builder, name, None)
        if method is None:
            return  # of another version of Triton

        def access(self: Any, *arguments: Any, **options: Any) -> Any:
            if _side_by_side is not None:
                _side_by_side.hand_on()
            if writes is not None and _current is not None:
                writes(_current, arguments)
            return method(self, *arguments, **options)

        setattr(builder, name, access)

    watched("create_masked_load", None)
    watched("create_barrier", None)
    watched("create_masked_store", lambda launch, given: _wrote(launch, given[0], given[1], given[2]))
    watched("create_atomic_cas", lambda launch, given: _wrote(launch, given[0], given[2], None))
    watched("create_atomic_rmw", lambda launch, given: _added(launch, given[1], given[2], given[3]))


def _added(launch: Launch, places: Any, value: Any, mask: Any) -> None:
    launch.adds = launch.adds or value.data.dtype.kind == "f"
    _wrote(launch, places, value, mask)


def _wrote(launch: Launch, places: Any, value: Any, mask: Any) -> None:
    if launch.sampled:
        chosen = places.data if mask is None else places.data[numpy.broadcast_to(mask.data, places.data.shape)]
        launch.stores.append((numpy.ravel(chosen), int(value.data.dtype.itemsize)))


def written(launch: Launch, name: str, tensor: Any) -> Any:
    """The elements of an argument that the programs wrote, as a mask of its shape; None where all programs ran."""
    import torch

    if not launch.sampled:
        return None
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    span = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) if tensor.numel() else 0
    held = torch.zeros(max(span, 1), dtype=torch.bool)
    base = launch.bases.get(name)
    for addresses, size in launch.stores if base is not None else ():
        if size == tensor.element_size() and addresses.size:
            elements = (addresses.astype(numpy.int64) - base) // size
            inside = elements[(elements >= 0) & (elements < span)]
            held[torch.from_numpy(inside)] = True
    return held.as_strided(shape, stride).clone() if span else held[:0].reshape(shape)


@contextmanager
def planned(order: str, most: int, seed: int) -> Iterator[None]:
    """Launches run so within it."""
    kept = (plan.order, plan.most, plan.seed)
    plan.order, plan.most, plan.seed = order, most, seed
    try:
        yield
    finally:
        plan.order, plan.most, plan.seed = kept
