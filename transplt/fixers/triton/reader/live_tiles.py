"""How many bytes the tiles of a kernel take that live at the same time.

Of the unified buffer of a vector core: tiles that are read or computed, from the statement that sets them to the last
one that reads them; inside of a statement what its expression holds on to. A tile that is read in a loop counts twice:
the next one is read while this one is computed with (multibuffer, on by default; triton-ascend,
docs/en/programming_guide.md). Positions, masks and pointers are not counted, the compiler folds them into the access;
nor what tl.dot is given or adds up alone, which has memory of its own; of a kernel with tl.dot half counts, two vector
cores share the work of one cube core. A type that is not known counts as 2 bytes. So this is a lower end: a kernel that
needs more than a core has does not compile.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from transplt.fixers.triton.reader.kernels import below, nodes_in
from transplt.fixers.triton.reader.tiles import Model
from transplt.fixers.triton.reader.values import WIDTHS, Size
from transplt.syntax.nodes import arguments_of, inner_nodes, last_name
from transplt.syntax.scan import statement


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes that live together, and the statement at which they do."""

    bytes: int
    node: ast.stmt | None = None


@dataclass(frozen=True, slots=True)
class _LiveTile:
    """A part of an expression: the number of its kind, which says how many bytes it has, and the parts in it."""

    kind: int
    parts: tuple[_LiveTile, ...] = ()

    def needs(self, bytes: Sequence[int]) -> tuple[int, int]:
        """The bytes of what it leaves behind, and the most that it holds on to on the way."""
        mine = bytes[self.kind]
        held = most = 0
        reused = False
        for each in self.parts:
            left, inside = each.needs(bytes) if each.parts else (bytes[each.kind],) * 2
            most = max(most, held + inside)
            held += left
            reused = reused or left >= mine > 0
        # An elementwise operation writes over a part that nobody else reads.
        return mine, max(most, held + (0 if reused else mine))


#: The kind of what takes no room.
_NONE = 0


@dataclass(frozen=True, slots=True)
class _Stored:
    """A variable that a statement sets, the kind of what it is, and whether that counts twice; `lives` where it is read
    later, `alive` where it is read later or by the statement itself."""

    variable: int
    kind: int
    twice: bool
    lives: bool
    alive: bool


@dataclass(frozen=True, slots=True)
class _LiveStep:
    """A statement: what it holds while it is computed, what it stores, and the variables that live from it on, or end
    before it."""

    node: ast.stmt
    inside: tuple[_LiveTile, ...]
    stored: tuple[_Stored, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]


def lives_of(model: Model) -> Lives:
    """The lives of a kernel's tiles, worked out once."""
    if model.lives is None:
        model.lives = Lives(model)
    assert isinstance(model.lives, Lives)
    return model.lives


class Lives:
    """The statements of a kernel with the variables that live through them.

    Sets of variables are bits of a number, one for each variable: there may be thousands of both.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._variables: dict[str, int] = {}
        self._read: dict[int, int] = {}
        self._after: dict[int, int] = {}
        self._kinds: dict[tuple[Size, int], int] = {}
        self._outside = frozenset(_outside(model))  # variables that do not lie in the unified buffer
        self._cores = 2 if any(each.name in ("dot", "dot_scaled") for each in model.operations) else 1
        body = model.kernel.node.body
        self._back(body, 0)
        self._stores = 0  # the variables that take room
        self._steps = self._in_steps(body)
        self._peaks: dict[tuple[object, ...], Peak] = {}
        counts = [count for count, _ in self._kinds]
        #: The constexprs that the tiles are as large as, and those that are a row of each tile they are in.
        self.names = frozenset(name for each in counts for name in each.names)
        beside = (each for each in counts if len(each.names) > 1 or each.number > 2)
        self.rows = self.names - {name for each in beside for name in each.names}
        self._names_in_order = sorted(self.names)

    def _in_steps(self, body: list[ast.stmt]) -> list[_LiveStep]:
        every = [(node, self._stored(node, depth)) for node, depth in _in_order(body, 0)]
        steps, before = [], 0
        for node, stored in every:
            alive = (self._after.get(id(node), 0) | self._reads(node)) & self._stores
            inside = tuple(found for each in _expressions(node) if (found := self._tree(each)) is not None)
            steps.append(_LiveStep(node, inside, stored, _bits(alive & ~before), _bits(before & ~alive)))
            before = alive
        return steps

    def _stored(self, node: ast.stmt, depth: int) -> tuple[_Stored, ...]:
        found = {}
        after = self._after.get(id(node), 0)
        alive = after | self._reads(node)
        match node:
            case ast.Assign(value=ast.Call(func=func)):
                twice = depth > 0 and last_name(func) == "load"
            case _:
                twice = False
        for target in _targets(node):
            kind = _NONE if target.id in self._outside else self._kind(target)
            variable = self._variable(target.id)
            self._stores |= 1 << variable if kind else 0
            lives, reads = bool(after >> variable & 1), bool(alive >> variable & 1)
            found[variable] = _Stored(variable, kind, twice, lives, reads)
        return tuple(found.values())

    def _variable(self, name: str) -> int:
        return self._variables.setdefault(name, len(self._variables))

    def _kind(self, node: ast.expr) -> int:
        """The number of the size and type of a tile that is read or computed; _NONE for anything else."""
        value = self.model.of(node)
        if not value.is_tile or not value.data:
            return _NONE
        count = value.count
        return _NONE if count is None else self._kinds.setdefault(
            (count, WIDTHS.get(value.dtype, 2)), len(self._kinds) + 1
        )  # fmt: skip

    def _tree(self, node: ast.expr) -> _LiveTile | None:
        """What an expression holds on to; None for nothing."""
        if isinstance(node, ast.Name):
            return None  # lives in its variable
        name = last_name(node.func) if isinstance(node, ast.Call) else ""
        if name in ("dot", "dot_scaled"):
            return None
        mine = self._kind(node)
        if name == "load":
            return _LiveTile(mine) if mine else None
        inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
        if isinstance(node, ast.Call):
            receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            inner = [*receiver, *arguments_of(node)]
        parts = tuple(found for each in inner if (found := self._tree(each)) is not None)
        return _LiveTile(mine, parts) if mine or parts else None

    def peak(self, sizes: Mapping[str, int], *, single: bool = False) -> Peak:
        """The most bytes that live at the same time, for the values of constexprs; what is not known counts nothing.

        `single`: what a loop reads counts once.
        """
        key = (single, *((name, sizes[name]) for name in self._names_in_order if name in sizes))
        if key not in self._peaks:
            self._peaks[key] = self._peak(sizes, single)
        return self._peaks[key]

    def _peak(self, sizes: Mapping[str, int], single: bool) -> Peak:
        bytes = [0]
        for count, width in self._kinds:
            number = count.value(sizes)
            bytes.append(0 if number is None else int(number * width))
        held = [0] * len(self._variables)
        most, place, now = 0, None, 0
        for step in self._steps:
            for variable in step.begins:
                now += held[variable]
            for variable in step.ends:
                now -= held[variable]
            inside = fresh = grown = 0
            for tree in step.inside:
                inside = max(inside, tree.needs(bytes)[1])
            for each in step.stored:
                size = bytes[each.kind] * (2 if each.twice and not single else 1)
                more = size - held[each.variable]
                held[each.variable] = size
                if each.lives:
                    fresh += max(0, more)
                if each.alive:
                    grown += more
            here = now + max(inside, fresh)
            if here > most:
                most, place = here, step.node
            now += grown
        return Peak(most // self._cores, place)

    # --- lives -------------------------------------------------------------------------------------------------------

    def is_read_after(self, node: ast.stmt, name: str) -> bool:
        """True for a variable that is read after a statement, before it is set again."""
        return bool(self._after.get(id(node), 0) >> self._variable(name) & 1)

    def _back(self, body: list[ast.stmt], after: int) -> int:
        for node in reversed(body):
            after = self._before(node, after)
        return after

    def _before(self, node: ast.stmt, after: int) -> int:
        self._after[id(node)] = self._after.get(id(node), 0) | after
        match node:
            case ast.If():
                return self._back(node.body, after) | self._back(node.orelse, after) | self._reads(node)
            case ast.For() | ast.While():
                around = after | self._reads(node)
                for _turn in range(2):
                    before, around = around, around | self._back(node.body, around)
                    if around == before:
                        break
                self._after[id(node)] |= around
                return around
            case ast.With():
                return self._back(node.body, after) | self._reads(node)
            case ast.AugAssign():
                return after | self._reads(node)
        return after & ~self._set_of(each.id for each in _targets(node)) | self._reads(node)

    def _set_of(self, names: Iterable[str]) -> int:
        found = 0
        for name in names:
            found |= 1 << self._variable(name)
        return found

    def _reads(self, node: ast.stmt) -> int:
        """The variables that a statement itself reads."""
        found = self._read.get(id(node))
        if found is None:
            names = {part.id for each in _expressions(node) for part in below(each) if isinstance(part, ast.Name)}
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
            found = self._read[id(node)] = self._set_of(names)
        return found


def _bits(number: int) -> tuple[int, ...]:
    """The places of the ones of a number."""
    found = []
    while number:
        found.append((number & -number).bit_length() - 1)
        number &= number - 1
    return tuple(found)


def _in_order(body: list[ast.stmt], depth: int) -> Iterator[tuple[ast.stmt, int]]:
    for node in body:
        yield node, depth
        inner = depth + isinstance(node, (ast.For, ast.While))
        for name in ("body", "orelse"):
            yield from _in_order(getattr(node, name, []), inner)


def _targets(node: ast.stmt) -> list[ast.Name]:
    every: list[ast.expr] = []
    match node:
        case ast.Assign():
            every = node.targets
        case ast.AugAssign() | ast.AnnAssign():
            every = [node.target]
    names = (part for each in every for part in below(each) if isinstance(part, ast.Name))
    return [name for name in names if isinstance(name.ctx, ast.Store)]


def _expressions(node: ast.stmt) -> list[ast.expr]:
    """What a statement itself evaluates."""
    match node:
        case ast.If(test=head) | ast.While(test=head) | ast.For(iter=head):
            return [head]
    value = getattr(node, "value", None)
    return [value] if isinstance(value, ast.expr) else []


def read_again(model: Model) -> list[tuple[ast.stmt, str]]:
    """Products whose left operand is a variable that is read after them, with its name, by place."""
    dots = [each for each in model.operations if each.name == "dot"]
    if not dots:
        return []
    lives = lives_of(model)
    found = []
    for each in dots:
        left = each.nodes.get("input")
        if isinstance(left, ast.Name) and each.given["input"].is_tile:
            node = statement(each.node)
            inside = {id(part) for part in ast.walk(each.node)}
            names = [part for part in inner_nodes(node, ast.Name) if part.id == left.id]
            again = any(id(part) not in inside and isinstance(part.ctx, ast.Load) for part in names)
            stored = any(isinstance(part.ctx, ast.Store) for part in names)
            if again or (lives.is_read_after(node, left.id) and not stored):
                found.append((node, left.id))
    return found


def _outside(model: Model) -> set[str]:
    """Variables that lie in the memory of the cube core: what tl.dot alone reads, and what it adds up."""
    dots = [each for each in model.operations if each.name in ("dot", "dot_scaled")]
    if not dots:
        return set()
    fed = {id(part) for each in dots for node in each.nodes.values() for part in ast.walk(node)}
    names = (node for node in nodes_in(model.kernel) if isinstance(node, ast.Name))
    loads = [name for name in names if isinstance(name.ctx, ast.Load)]
    found = {node.id for node in loads} - {node.id for node in loads if id(node) not in fed}
    for each in dots:
        found |= {target.id for target in _targets(statement(each.node))}
    return found
