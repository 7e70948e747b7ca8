"""Launches of kernels: what one is, who is told of it, and in which order its programs run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: One program: its place in the grid.
Program = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel. `path` and `line` are those of its `def`, `grid` has three numbers; `arguments` are what
    was given by the names of the parameters (tensors of the device, numbers), `constexprs` those that the kernel
    declares `tl.constexpr`; `options` are the arguments that are no parameters (num_warps, ...)."""

    kernel: Callable[..., Any]
    name: str
    path: str
    line: int
    grid: Program
    arguments: Mapping[str, Any]
    constexprs: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def programs(self) -> int:
        x, y, z = self.grid
        return x * y * z


#: Called as (launch) before its programs run; what they return, if anything, is called after the last one, and not
#: where the launch is refused. An autotuned kernel launches each configuration that it tries.
observers: list[Callable[[Launch], Callable[[], None] | None]] = []


def forward(grid: Program) -> Iterable[Program]:
    """As the interpreter of Triton runs them: the last dimension the fastest."""
    return ((x, y, z) for x in range(grid[0]) for y in range(grid[1]) for z in range(grid[2]))


def reverse(grid: Program) -> Iterable[Program]:
    """From the last to the first."""
    return (
        (x, y, z) for x in reversed(range(grid[0])) for y in reversed(range(grid[1])) for z in reversed(range(grid[2]))
    )


#: The order in which the programs of the launches from here on run, and which of them; change it with `run_in`.
order: Callable[[Program], Iterable[Program]] = forward
#: What runs the programs of the launches from here on, given them, what makes one the program that runs, and what runs
#: it: for programs that take turns. None: one behind the other.
side_by_side: Callable[[Sequence[Program], Callable[[Program], None], Callable[[], None]], None] | None = None
#: The launch whose programs run now.
current: Launch | None = None
#: What an autotuner adds to the launch by constexpr, the names of what it is given, and how many configurations it has.
#: Its launches are only kept for a compiler (True), or only run (False).
configuration: tuple[Mapping[str, Any], frozenset[str], int] | None = None
keeps: bool | None = None


def run_in(chosen: Callable[[Program], Iterable[Program]]) -> Callable[[Program], Iterable[Program]]:
    """Let the programs of later launches run in the order that `chosen` gives for a grid; returns the former one.

    It may leave out programs (a sample): results are then not those of the kernel.
    """
    global order
    former, order = order, chosen
    return former
