"""The reaching definitions of a variable at a place of its function: the stores that may have given it its value.

Branches and loops are looked at, exceptions and `del` are not. Where `last_value` gives the nearest store in the text,
this gives all of which one may be the last.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from transplt.syntax.nodes import begins, ends
from transplt.syntax.scan import FUNCTIONS, chain

_Node = TypeVar("_Node", bound=ast.AST)
_BLOCKS = ("body", "orelse", "finalbody", "handlers")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class _Way:
    """The statements around a node, the outermost first, each with the block of its parent that it stands in."""

    steps: tuple[tuple[ast.AST, str, ast.AST], ...]  # parent, block, statement

    @classmethod
    def of(cls, node: ast.AST) -> _Way:
        above = [node, *chain(node)]
        steps = []
        for inner, outer in itertools.pairwise(above):
            if isinstance(inner, (ast.stmt, ast.ExceptHandler)):
                name = next((each for each in _BLOCKS if inner in getattr(outer, each, ())), "")
                steps.append((outer, name, inner))
            if isinstance(outer, (*FUNCTIONS, ast.Lambda, ast.Module)):
                break
        return cls(tuple(reversed(steps)))


def reaching(stores: Iterable[_Node], use: ast.AST) -> tuple[list[_Node], bool]:
    """The stores (nodes of the function that reads the variable) that reach `use`, by place; and whether one of them
    dominates it: where none does, the variable may hold what it held at the start.
    """
    read = _Way.of(use)
    ways = {store: _Way.of(store) for store in sorted(stores, key=begins)}
    # Where a store is done: behind its statement; of a loop or a with behind the target itself.
    inner = {store: way.steps[-1][2] if way.steps else store for store, way in ways.items()}
    before = [store for store, at in inner.items() if ends(store if hasattr(at, "body") else at) <= begins(use)]
    certain = [store for store in before if _dominates(ways[store], read)]
    last = certain[-1] if certain else None
    found = [last] if last is not None else []
    found += [
        store
        for store in before
        if store not in certain
        and (last is None or begins(store) > begins(last))
        and not _excludes(ways[store], read)
        and not _left(ways[store], read)
    ]
    found += [store for store in ways if store not in before and _comes_again(ways[store], read, last, ways)]
    return sorted(found, key=begins), last is not None


def _dominates(store: _Way, read: _Way) -> bool:
    """True for a store in a block that holds the use too, or in a `with` of such a block."""
    for (parent, name, inner), (other, other_name, _) in zip(store.steps, read.steps, strict=False):
        if (parent, name) != (other, other_name):
            return False
        rest = store.steps[store.steps.index((parent, name, inner)) :]
        if all(isinstance(each, (ast.With, ast.AsyncWith)) for _, _, each in rest[:-1]):
            return not isinstance(rest[-1][2], _LOOPS)
    return False


def _excludes(store: _Way, read: _Way) -> bool:
    """True where one stands in a branch and the other in the branch for the other case."""
    for (parent, name, inner), (other, other_name, other_inner) in zip(store.steps, read.steps, strict=False):
        if parent is other and name != other_name and isinstance(parent, ast.If):
            return True
        if inner is not other_inner:
            return False
    return False


def _left(store: _Way, read: _Way) -> bool:
    """True where the branch of the store leaves the function or the loop before the use."""
    around = {id(inner) for _, _, inner in read.steps}
    for parent, name, _ in store.steps:
        if id(parent) in around or not name or isinstance(parent, (*FUNCTIONS, ast.Module)):
            continue
        block = getattr(parent, name)
        if block and isinstance(block[-1], _LEAVES):
            return True
    return False


def _comes_again(store: _Way, read: _Way, last: ast.AST | None, ways: dict[_Node, _Way]) -> bool:
    """True for a store behind the use in a loop around both, unless the loop makes the value anew each time."""
    shared = {id(inner) for _, _, inner in read.steps if isinstance(inner, _LOOPS)}
    loops = [inner for _, _, inner in store.steps if id(inner) in shared]
    if not loops:
        return False
    held = {id(inner) for _, _, inner in ways[last].steps} if last is not None else set()  # type: ignore[index]
    return not any(id(loop) in held for loop in loops)
