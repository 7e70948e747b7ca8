"""How many bytes of tiles a program holds at once: what has to lie in the unified buffer of a vector core.

A tile is live from the operation that makes it until the last one that uses it, as a compiler sees it, and gives its
memory to what that last one makes. Not counted is what a compiler need not hold: pointers, masks and offsets (what no
load has a part in), views, what goes into a matrix product straight from memory, and what comes out of one and goes
straight back. So this is what a kernel needs at least.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import triton.runtime.interpreter as interpreter

from . import place

_Handle = interpreter.TensorHandle
#: Results that are data whatever they are made of.
_SOURCES = frozenset(
    "create_load create_masked_load create_descriptor_load create_descriptor_gather create_atomic_rmw "
    "create_atomic_cas create_atomic_load full".split()
)
#: Results that are another view of the same elements.
_VIEWS = frozenset(
    "create_reshape create_expand_dims create_broadcast create_splat create_trans create_bitcast create_unsplat".split()
)
_DOTS = frozenset(("create_dot", "create_dot_scaled"))
_STORES = frozenset("create_store create_masked_store create_descriptor_store create_descriptor_scatter".split())


@dataclass(slots=True)
class _Tile:
    born: int
    size: int
    where: place.Kept | None
    #: `load`, `dot` or `vector`: what made it; the first two need no unified buffer by themselves.
    made: str
    last: int = 0
    #: Whether a vector operation uses it.
    by_vector: bool = False

    @property
    def in_buffer(self) -> bool:
        return self.by_vector or self.made == "vector"


@dataclass
class Tiles:
    """The tiles of one program."""

    tiles: list[_Tile] = field(default_factory=list)
    time: int = 0
    cube: bool = False
    #: How many operations are going on: one is made of others, of which nobody knows here.
    depth: int = 0

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def operation(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Note an operation of the builder with its operands (handles among others)."""
        self.time += 1
        dot, store, view = name in _DOTS, name in _STORES, name in _VIEWS
        self.cube |= dot
        used = [arg for arg in args if isinstance(arg, _Handle) and getattr(arg, "tile", None) is not None]
        for handle in used:
            tile = self.tiles[handle.tile]
            tile.last = self.time
            if not (dot or view or (store and tile.made == "dot")):
                tile.by_vector = True
        if not used and name not in _SOURCES:
            return
        for handle in result if isinstance(result, tuple) else (result,):
            if not isinstance(handle, _Handle) or handle.data.size <= 1 or getattr(handle, "base", None) is not None:
                continue
            if view and used:
                handle.tile = used[0].tile
            else:
                made = "dot" if dot else "load" if name in _SOURCES and name != "full" else "vector"
                self._add(handle, made)

    def _add(self, handle: Any, made: str) -> None:
        where = place.kept()
        size = handle.data.size
        bits = 1 if handle.data.dtype == np.bool_ else 8 * handle.data.itemsize
        handle.tile = len(self.tiles)
        self.tiles.append(_Tile(self.time, (size * bits + 7) // 8, where, made, self.time))

    def most(self) -> tuple[int, place.Kept | None, list[int]]:
        """The most bytes live at once, the line of the tile that made it so many, and the sizes of the tiles then."""
        events: list[tuple[int, int, int]] = []
        for number, tile in enumerate(self.tiles):
            if tile.in_buffer:
                events += [(tile.born, 1, number), (max(tile.last, tile.born + 1), 0, number)]
        events.sort()
        live: dict[int, int] = {}
        total, best, where, sizes = 0, 0, None, list[int]()
        for _, begins, number in events:
            tile = self.tiles[number]
            if not begins:
                total -= live.pop(number)
                continue
            live[number] = tile.size
            total += tile.size
            if total > best:
                best, where, sizes = total, tile.where, sorted(live.values(), reverse=True)
        return best, where, sizes


#: What is measured now; None between the programs that are measured.
measured: Tiles | None = None


def forget(handles: tuple[Any, ...]) -> None:
    """Handles that outlive a program belong to no tile of the next one."""
    for handle in handles:
        if isinstance(handle, _Handle):
            handle.tile = None
