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
from dataclasses import dataclass, field

from transplt.program.triton.tiles import Model
from transplt.program.triton.values import WIDTHS, Kind, Value
from transplt.syntax.asks import last_name
from transplt.syntax.scan import statement

_Names = frozenset[str]
_NOTHING: _Names = frozenset()


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes that live together, and the statement at which they do."""

    bytes: int
    node: ast.stmt | None = None


@dataclass(slots=True, eq=False)
class Lives:
    """The statements of a kernel with the variables that live through them."""

    model: Model
    _after: dict[int, _Names] = field(default_factory=dict)
    _outside: _Names = _NOTHING  # variables that do not lie in the unified buffer
    _steps: list[tuple[ast.stmt, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._outside = frozenset(_outside(self.model))
        body = self.model.kernel.node.body
        self._back(body, _NOTHING)
        self._steps = list(_in_order(body, 0))

    @property
    def names(self) -> frozenset[str]:
        """The constexprs that the tiles are as large as."""
        found: set[str] = set()
        for node, _ in self._steps:
            for each in _expressions(node):
                for part in ast.walk(each):
                    value = self.model.of(part) if isinstance(part, ast.expr) else None
                    size = value.count if value is not None and value.is_tile and value.data else None
                    found.update(size.names if size is not None else ())
        return frozenset(found)

    def peak(self, sizes: Mapping[str, int]) -> Peak:
        """The most bytes that live at the same time, for the values of constexprs; what is not known counts nothing."""
        held: dict[str, int] = {}
        most = Peak(0)
        for node, depth in self._steps:
            after = self._after.get(id(node), _NOTHING)
            inside = 0
            for each in _expressions(node):
                inside = max(inside, self._inside(each, sizes)[1])
            now = sum(size for name, size in held.items() if name in after or name in _reads(node))
            stored = dict(self._stored(node, sizes, depth))
            fresh = sum(max(0, size - held.get(name, 0)) for name, size in stored.items() if name in after)
            here = now + max(inside, fresh)
            if here > most.bytes:
                most = Peak(here, node)
            held |= stored
        return most

    def _stored(self, node: ast.stmt, sizes: Mapping[str, int], depth: int) -> Iterator[tuple[str, int]]:
        for target in _targets(node):
            value = self.model.of(target)
            twice = depth > 0 and isinstance(node, ast.Assign) and self._is_read(node.value)
            yield target.id, 0 if target.id in self._outside else self._bytes(value, sizes) * (2 if twice else 1)

    def _is_read(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and last_name(node.func) == "load"

    def _bytes(self, value: Value, sizes: Mapping[str, int]) -> int:
        count = value.count if value.kind is Kind.TILE and value.data else None
        number = None if count is None else count.value(sizes)
        return 0 if number is None else int(number * WIDTHS.get(value.dtype, 2))

    def _inside(self, node: ast.expr, sizes: Mapping[str, int]) -> tuple[int, int]:
        """The bytes of what an expression leaves behind, and the most that it holds on to on the way."""
        if isinstance(node, ast.Name):
            return 0, 0  # lives in its variable
        held, most = 0, 0
        reused = False
        mine = self._bytes(self.model.of(node), sizes)
        if isinstance(node, ast.Call) and last_name(node.func) in ("load", "dot", "dot_scaled"):
            return (0, 0) if last_name(node.func) != "load" else (mine, mine)
        for each in _parts(node):
            left, inside = self._inside(each, sizes)
            most = max(most, held + inside)
            held += left
            reused = reused or left >= mine > 0
        # An elementwise operation writes over a part that nobody else reads.
        return mine, max(most, held + (0 if reused else mine))

    def after(self, node: ast.stmt) -> _Names:
        """The variables that are read after a statement, before they are set again."""
        return self._after.get(id(node), _NOTHING)

    # --- lives -------------------------------------------------------------------------------------------------------

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
            again = sum(isinstance(part, ast.Name) and part.id == left.id for part in ast.walk(node))
            stored = left.id in {target.id for target in _targets(node)}
            if (left.id in lives.after(node) and not stored) or again > 1 + stored:
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
