"""Operations of a kernel that are given a type which a card refuses, or is not said to take, where the types are
certain."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from transplt.fixers.triton.reader.operations import ATOMICS, Operation
from transplt.fixers.triton.reader.tiles import Model
from transplt.fixers.triton.reader.values import Kind
from transplt.rules.triton import is_undocumented, refuses, refuses_cast
from transplt.syntax.nodes import inner_nodes
from transplt.syntax.scan import chain

#: Reads and writes, and what makes the pointers that they go through.
ACCESSES = frozenset(
    "load store make_block_ptr advance make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor".split()
)
#: What has its own findings, is a hint alone, or whose page speaks of something else than the tile it is given.
_NOT_HERE = frozenset(
    "dot dot_scaled inline_asm_elementwise rand randn randint randint4x range static_range parallel arange "
    "multiple_of max_contiguous max_constancy device_print static_print assume lshift rshift".split()
)
#: What is given beside the tile that an operation computes with.
_BESIDE = frozenset({"condition", "index", "mask", "boundary_check", "shape", "axis", "dim", "keep_dims"})


@dataclass(frozen=True, slots=True)
class Refused:
    """An operation, the type that it refuses, and the parameter of the kernel that its pointer starts at; `compiles`
    where only the documentation refuses it, `to` for a cast that is not there."""

    operation: Operation
    dtype: str
    base: str = ""
    compiles: bool = False
    to: str = ""

    @property
    def name(self) -> str:
        return self.operation.name


def _found(operation: Operation, dtype: str, card: str, base: str = "") -> Iterator[Refused]:
    if refuses(operation.name, dtype, card):
        yield Refused(operation, dtype, base)
    elif is_undocumented(operation.name, dtype, card):
        yield Refused(operation, dtype, base, compiles=True)


def refused_accesses(model: Model, card: str) -> Iterator[Refused]:
    """Reads and writes of types that the card does not move."""
    for each in model.operations:
        if each.name in ACCESSES:
            pointer = next(iter(each.given.values()), None)
            # A single number is moved by the scalar unit, of which the pages do not speak: addresses are read so.
            tile = pointer is not None and (each.name not in ("load", "store") or pointer.shape != ())
            if pointer is not None and tile:
                yield from _found(each, pointer.dtype, card, pointer.base)


def refused_atomics(model: Model, card: str) -> Iterator[Refused]:
    """Atomic operations of types that the card does not have them for."""
    for each in model.operations:
        if each.name in ATOMICS:
            pointer = each.given.get("pointer")
            dtype = pointer.dtype if pointer is not None else ""
            value = each.given.get("val")
            if not dtype and value is not None and not value.weak:
                dtype = value.dtype
            yield from _found(each, dtype, card, pointer.base if pointer is not None else "")


def refused_operations(model: Model, card: str) -> Iterator[Refused]:
    """All other operations on tiles of types that the card does not compute with."""
    for each in model.operations:
        if each.name in ACCESSES or each.name in ATOMICS or each.name in _NOT_HERE:
            continue
        computed = [value for name, value in each.given.items() if name not in _BESIDE and value.kind is Kind.TILE]
        tiles = [value for value in computed if not value.weak]
        if each.name in ("cast", "zeros", "zeros_like", "full"):
            tiles.append(each.result)
        found = [refused for value in tiles if value.is_tile for refused in _found(each, value.dtype, card)]
        if each.name == "cast" and not found and len(tiles) == 2 and refuses_cast(tiles[0].dtype, tiles[1].dtype, card):
            found = [Refused(each, tiles[0].dtype, to=tiles[1].dtype)]
        yield from found[:1]


def condition_of(model: Model, nodes: list[ast.expr | ast.stmt]) -> str:
    """The name of a constexpr without which none of some places is compiled; empty where there is none."""
    return next(iter(sorted(frozenset.intersection(*(_conditions(model, node) for node in nodes)))), "")


def _conditions(model: Model, node: ast.AST) -> frozenset[str]:
    names, found = model.kernel.constexprs, set()
    for below, above in pairwise((node, *chain(node))):
        if above is model.kernel.node:
            break
        if isinstance(above, (ast.If, ast.IfExp)) and below is not above.test:
            read = {each.id for each in inner_nodes(above.test, ast.Name)}
            found |= read & names if read <= names else set()
    return frozenset(found)


def lines(nodes: list[ast.expr | ast.stmt]) -> str:
    """The lines of nodes as a message gives them: `line 12`, `lines 12 and 14`, `lines 12, 14, 18 and 3 more`."""
    every = sorted({node.lineno for node in nodes})
    if len(every) == 1:
        return f"line {every[0]}"
    shown, more = every[:4], len(every) - 4
    if more > 0:
        return f"lines {', '.join(map(str, shown))} and {more} more"
    return f"lines {', '.join(map(str, shown[:-1]))} and {shown[-1]}"
