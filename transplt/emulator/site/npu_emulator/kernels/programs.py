"""Runs the programs of a launch in a chosen order, all or a sample of them, and notes what they write.

One behind the other, programs show no race. Here they also run backwards, and interleaved: each in a thread of its own,
of which one runs at a time and hands on before every access to memory.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy

from npu_emulator.triton import launch
from npu_emulator.triton.launch import Launch, Program

FORWARD, REVERSE, INTERLEAVED = "forward", "reverse", "interleaved"
#: So many programs run side by side when they are interleaved: a card has 40 vector cores.
SIDE_BY_SIDE = 40



@dataclass
class Plan:
    """How launches are run from here on: the order, and how many programs of one run at `most` (0: all)."""

    order: str = FORWARD
    most: int = 0
    seed: int = 0


@dataclass
class Ran:
    """A launch that goes on: `ran` of its programs are run; `stores` are the addresses that they wrote and the bytes of
    an element, kept where not all run. `adds` where floats are added by atomics."""

    started: Launch
    ran: int = 0
    stores: list[tuple[Any, int]] = field(default_factory=list)
    adds: bool = False

    @property
    def sampled(self) -> bool:
        return self.ran < self.started.programs


plan = Plan()
#: Called with each launch before its first program runs, and behind its last one.
before: list[Callable[[Ran], None]] = []
behind: list[Callable[[Ran], None]] = []
_current: Ran | None = None
_turns: _Turns | None = None


def install() -> None:
    """Triton is imported: launches are seen from here on."""
    from triton.runtime import interpreter

    launch.observers.append(_observe)
    launch.run_in(_chosen)
    _watch(interpreter.InterpreterBuilder)


def _observe(started: Launch) -> Callable[[], None]:
    global _current
    begun, _current = Ran(started), None
    for each in before:
        each(begun)
    _current = begun

    def done() -> None:
        global _current
        _current = None
        for each in behind:
            each(begun)

    return done


def _chosen(grid: Program) -> Iterable[Program]:
    """The programs to run, in their order: all, or the first, the last and a sample by seed."""
    total = grid[0] * grid[1] * grid[2]
    numbers: Any = range(total)
    if 0 < plan.most < total:
        within = random.Random(plan.seed).sample(range(1, total - 1), max(plan.most - 2, 0))
        numbers = sorted({0, total - 1, *within})
    if _current is not None:
        _current.ran = len(numbers)
    ordered = reversed(numbers) if plan.order == REVERSE else numbers
    return ((each // (grid[1] * grid[2]), each // grid[2] % grid[1], each % grid[2]) for each in ordered)


class _Turns:
    """Programs that take turns: the next one goes on whenever one is about to touch memory, or waits at a barrier."""

    def __init__(self, choose: Callable[[Program], None]) -> None:
        self._choose = choose
        self._live: list[int] = []
        self._semaphores: list[threading.Semaphore] = []
        self._indices: list[Program] = []
        self._over = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._numbers = threading.local()

    def run(self, indices: list[Program], program: Callable[[], None]) -> None:
        """Run to the end of all. The first error of a program is raised."""
        global _turns
        self._indices, self._live = indices, list(range(len(indices)))
        self._semaphores = [threading.Semaphore(0) for _ in indices]
        threads = [threading.Thread(target=self._one, args=(n, program), daemon=True) for n in self._live]
        outer, _turns = _turns, self
        try:
            for thread in threads:
                thread.start()
            self._go(0)
            self._over.acquire()
        finally:
            _turns = outer
        if self._error is not None:
            raise self._error

    def _one(self, number: int, program: Callable[[], None]) -> None:
        self._numbers.own = number
        self._semaphores[number].acquire()
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
        self._choose(self._indices[number])
        self._semaphores[number].release()

    def hand_on(self) -> None:
        """Let the next program run, and wait for the turn to come back."""
        number = getattr(self._numbers, "own", None)
        if number is None or len(self._live) < 2:
            return
        self._go(self._live[(self._live.index(number) + 1) % len(self._live)])
        self._semaphores[number].acquire()
        if self._error is not None:
            raise self._error


def _watch(builder: Any) -> None:
    """Hand on before each access to memory, and note what a sample of programs writes."""

    def watched(name: str, writes: Callable[[Ran, tuple[Any, ...]], None] | None) -> None:
        method = getattr(builder, name, None)
        if method is None:
            return  # of another version of Triton

        def access(self: Any, *arguments: Any, **options: Any) -> Any:
            if _turns is not None:
                _turns.hand_on()
            if writes is not None and _current is not None:
                writes(_current, arguments)
            return method(self, *arguments, **options)

        setattr(builder, name, access)

    watched("create_masked_load", None)
    watched("create_barrier", None)
    watched("create_masked_store", lambda ran, given: _wrote(ran, given[0], given[1], given[2]))
    watched("create_atomic_cas", lambda ran, given: _wrote(ran, given[0], given[2], None))
    watched("create_atomic_rmw", lambda ran, given: _added(ran, given[1], given[2], given[3]))


def _added(ran: Ran, places: Any, value: Any, mask: Any) -> None:
    ran.adds = ran.adds or value.data.dtype.kind == "f" or value.dtype.name == "bf16"
    _wrote(ran, places, value, mask)


def _wrote(ran: Ran, places: Any, value: Any, mask: Any) -> None:
    if ran.sampled:
        chosen = places.data if mask is None else places.data[numpy.broadcast_to(mask.data, places.data.shape)]
        ran.stores.append((numpy.ravel(chosen), int(value.data.dtype.itemsize)))


def written(ran: Ran, tensor: Any) -> Any:
    """The elements of an argument that the programs wrote, as a mask of its shape; None where all programs ran."""
    import torch

    if not ran.sampled:
        return None
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    span = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) if tensor.numel() else 0
    held = torch.zeros(max(span, 1), dtype=torch.bool)
    base = tensor.data_ptr()
    for addresses, size in ran.stores:
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
    launch.side_by_side = _take_turns if order == INTERLEAVED else None
    try:
        yield
    finally:
        plan.order, plan.most, plan.seed = kept
        launch.side_by_side = None


def _take_turns(programs: Sequence[Program], choose: Callable[[Program], None], run: Callable[[], None]) -> None:
    for first in range(0, len(programs), SIDE_BY_SIDE):
        _Turns(choose).run([*programs[first : first + SIDE_BY_SIDE]], run)
