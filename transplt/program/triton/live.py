"""How many bytes the tiles of a kernel take that live at the same time.

Of the unified buffer of a vector core: tiles that are read or computed, from the statement that sets them to the last
one that reads them; inside of a statement what its expression holds on to. A tile that is read in a loop counts twice:
the next one is read while this one is computed with (multibuffer, on by default; triton-ascend,
docs/en/programming_guide.md). Positions, masks and pointers are not counted, the compiler folds them into the access;
nor what tl.dot is given or adds up alone, which has memory of its own. A type that is not known counts as 2 bytes. So
this is a lower end: a kernel that needs more than a core has does not compile.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from transplt.program.triton.tiles import Model
from transplt.program.triton.values import WIDTHS, Size
from transplt.syntax.asks import last_name
from transplt.syntax.scan import statement

_Names = frozenset[str]
_NOTHING: _Names = frozenset()


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes that live together, and the statement at which they do."""

    bytes: int
    node: ast.stmt | None = None


@dataclass(frozen=True, slots=True)
class _Held:
    """A part of an expression: its elements and the bytes of each (0: not in the buffer), and the parts in it."""

    count: Size | None
    width: int
    parts: tuple[_Held, ...] = ()

    def bytes(self, sizes: Mapping[str, int]) -> int:
        number = None if self.count is None else self.count.value(sizes)
        return 0 if number is None else int(number * self.width)

    def needs(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """The bytes of what it leaves behind, and the most that it holds on to on the way."""
        mine = self.bytes(sizes)
        held = most = 0
        reused = False
        for each in self.parts:
            left, inside = each.needs(sizes)
            most = max(most, held + inside)
            held += left
            reused = reused or left >= mine > 0
        # An elementwise operation writes over a part that nobody else reads.
        return mine, max(most, held + (0 if reused else mine))


_EMPTY = _Held(None, 0)


@dataclass(frozen=True, slots=True)
class _Step:
    """A statement: what it holds while it is computed, what it stores (and whether twice), and the variables that live
    then."""

    node: ast.stmt
    inside: tuple[_Held, ...]
    stored: tuple[tuple[str, _Held, bool], ...]
    reads: _Names
    after: _Names


class Lives:
    """The statements of a kernel with the variables that live through them."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._after: dict[int, _Names] = {}
        self._outside = frozenset(_outside(model))  # variables that do not lie in the unified buffer
        body = model.kernel.node.body
        self._back(body, _NOTHING)
        self._steps = [self._step(node, depth) for node, depth in _in_order(body, 0)]
        self._peaks: dict[tuple[object, ...], Peak] = {}
        self.names = frozenset(self._names())

    def _step(self, node: ast.stmt, depth: int) -> _Step:
        stored = []
        for target in _targets(node):
            twice = depth > 0 and isinstance(node, ast.Assign) and _is_read(node.value)
            held = _EMPTY if target.id in self._outside else self._held(target)
            stored.append((target.id, held, twice))
        inside = tuple(found for each in _expressions(node) if (found := self._tree(each)) is not None)
        return _Step(node, inside, tuple(stored), _reads(node), self.after(node))

    def _held(self, node: ast.expr) -> _Held:
        value = self.model.of(node)
        if not value.is_tile or not value.data:
            return _EMPTY
        return _Held(value.count, WIDTHS.get(value.dtype, 2))

    def _tree(self, node: ast.expr) -> _Held | None:
        """What an expression holds on to; None for nothing."""
        if isinstance(node, ast.Name):
            return None  # lives in its variable
        mine = self._held(node)
        name = last_name(node.func) if isinstance(node, ast.Call) else ""
        if name in ("dot", "dot_scaled"):
            return None
        if name == "load":
            return mine if mine.width else None
        parts = tuple(found for each in _parts(node) if (found := self._tree(each)) is not None)
        return _Held(mine.count, mine.width, parts) if mine.width or parts else None

    def _names(self) -> Iterator[str]:
        """The constexprs that the tiles are as large as."""
        trees = [each for step in self._steps for each in (*step.inside, *(held for _, held, _ in step.stored))]
        while trees:
            each = trees.pop()
            trees += each.parts
            if each.width and each.count is not None:
                yield from each.count.names

    def peak(self, sizes: Mapping[str, int], *, single: bool = False) -> Peak:
        """The most bytes that live at the same time, for the values of constexprs; what is not known counts nothing.

        `single`: what a loop reads counts once.
        """
        key = (single, *((name, sizes[name]) for name in sorted(self.names) if name in sizes))
        if key not in self._peaks:
            self._peaks[key] = self._peak(sizes, single)
        return self._peaks[key]

    def _peak(self, sizes: Mapping[str, int], single: bool) -> Peak:
        held: dict[str, int] = {}
        most = Peak(0)
        for step in self._steps:
            inside = max((each.needs(sizes)[1] for each in step.inside), default=0)
            now = sum(size for name, size in held.items() if name in step.after or name in step.reads)
            stored = {
                name: each.bytes(sizes) * (2 if twice and not single else 1) for name, each, twice in step.stored
            }
            fresh = sum(max(0, size - held.get(name, 0)) for name, size in stored.items() if name in step.after)
            here = now + max(inside, fresh)
            if here > most.bytes:
                most = Peak(here, step.node)
            held |= stored
        return most

    # --- lives -------------------------------------------------------------------------------------------------------

    def after(self, node: ast.stmt) -> _Names:
        """The variables that are read after a statement, before they are set again."""
        return self._after.get(id(node), _NOTHING)

    def _back(self, body: list[ast.stmt], after: _Names) -> _Names:
        for node in reversed(body):
            after = self._before(node, after)
        return after

    def _before(self, node: ast.stmt, after: _Names) -> _Names:
        self._after[id(node)] = self._after.get(id(node), _NOTHING) | after
        if isinstance(node, ast.If):
            return self._back(node.body, after) | self._back(node.orelse, after) | _reads(node)
        if isinstance(node, (ast.For, ast.While)):
            around = after | _reads(node)
            for _turn in range(2):
                around |= self._back(node.body, around)
            self._after[id(node)] |= around
            return around
        if isinstance(node, ast.With):
            return self._back(node.body, after) | _reads(node)
        whole = frozenset(each.id for each in _targets(node)) if not isinstance(node, ast.AugAssign) else _NOTHING
        return (after - whole) | _reads(node)


def _is_read(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) == "load"


def _in_order(body: list[ast.stmt], depth: int) -> Iterator[tuple[ast.stmt, int]]:
    for node in body:
        yield node, depth
        inner = depth + isinstance(node, (ast.For, ast.While))
        for name in ("body", "orelse"):
            yield from _in_order(getattr(node, name, []), inner)


def _targets(node: ast.stmt) -> list[ast.Name]:
    if isinstance(node, ast.Assign):
        every: Iterable[ast.expr] = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        every = [node.target]
    else:
        return []
    found: list[ast.Name] = []
    for each in every:
        found += [part for part in ast.walk(each) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    return found


def _expressions(node: ast.stmt) -> list[ast.expr]:
    """What a statement itself evaluates."""
    if isinstance(node, (ast.If, ast.While)):
        return [node.test]
    if isinstance(node, ast.For):
        return [node.iter]
    value = getattr(node, "value", None)
    return [value] if isinstance(value, ast.expr) else []


def _reads(node: ast.stmt) -> _Names:
    found = {part.id for each in _expressions(node) for part in ast.walk(each) if isinstance(part, ast.Name)}
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        found.add(node.target.id)
    return frozenset(found)


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [*receiver, *node.args, *(each.value for each in node.keywords)]
    return [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]


def read_again(model: Model) -> list[tuple[ast.stmt, str]]:
    """Products whose left operand is a variable that is read after them, with its name, by place."""
    dots = [each for each in model.operations if each.name == "dot"]
    if not dots:
        return []
    lives = Lives(model)
    found = []
    for each in dots:
        left = each.nodes.get("input")
        if isinstance(left, ast.Name) and each.given["input"].is_tile:
            node = statement(each.node)
            inside = {id(part) for part in ast.walk(each.node)}
            names = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == left.id]
            again = any(id(part) not in inside and isinstance(part.ctx, ast.Load) for part in names)
            stored = any(isinstance(part.ctx, ast.Store) for part in names)
            if again or (left.id in lives.after(node) and not stored):
                found.append((node, left.id))
    return found


def _outside(model: Model) -> set[str]:
    """Variables that lie in the memory of the cube core: what tl.dot alone reads, and what it adds up."""
    dots = [each for each in model.operations if each.name in ("dot", "dot_scaled")]
    if not dots:
        return set()
    fed = {id(part) for each in dots for node in each.nodes.values() for part in ast.walk(node)}
    elsewhere: set[str] = set()
    every: set[str] = set()
    for node in ast.walk(model.kernel.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            every.add(node.id)
            if id(node) not in fed:
                elsewhere.add(node.id)
    found = every - elsewhere
    ids = {id(each.node) for each in dots}
    for node in ast.walk(model.kernel.node):
        if isinstance(node, (ast.Assign, ast.AugAssign)) and any(id(part) in ids for part in ast.walk(node.value)):
            found |= {each.id for each in _targets(node)}
    return found
