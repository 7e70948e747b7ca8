"""How many bytes the tiles of a kernel take that live at the same time.

Of the unified buffer of a vector core: the operations of a kernel in the order in which they run, as the compiler
(bishengir-compile) writes them down, each tile from the operation that makes it to the last one that reads it. An
operation writes over an operand that nobody reads later; bfloat16 is computed with in float32, and what is not known
is taken for bfloat16, which needs about as much as float32; a quotient of a number needs a tile of that number. What a
loop reads counts once: where it does not fit twice, the compiler does without. Masks and positions count where a tile
is made of them. What tl.dot alone reads and adds up has memory of its own; what it gives lies in the unified buffer
from the first operation on that a vector core does with it. Of conditions, those are left out that few launches make
true. The compiler's order, its alignment and its temporary buffers differ a little: this is an estimate.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from transplt.base.grouped import grouped
from transplt.fixers.triton.reader.kernels import nodes_in, operation
from transplt.fixers.triton.reader.operations import ATOMICS, OPERATORS, nodes_of
from transplt.fixers.triton.reader.tiles import Model
from transplt.fixers.triton.reader.values import FLOATS, UNKNOWN, WIDTHS, KernelValue, Kind, Size
from transplt.syntax.nodes import last_name


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes that live together, and the statement at which they do."""

    bytes: int
    node: ast.stmt | None = None


#: The kind of what takes no room.
_NONE = 0
_DOTS = frozenset({"dot", "dot_scaled"})
#: Another look at the same elements.
_VIEWS = frozenset(
    "reshape view expand_dims ravel multiple_of max_contiguous max_constancy broadcast_to broadcast".split()
)
#: Operations that move bits and compute nothing, in whatever type.
_MOVES = frozenset("where cast trans permute flip join cat split interleave gather zeros full zeros_like load".split())
_LOADS = frozenset({"load", "load_tensor_descriptor"})
_STORES = frozenset({"store", "store_tensor_descriptor"})
_MADE = frozenset({"zeros", "full", "zeros_like", "arange"})
#: Types in which the vector unit computes nothing.
_NARROW = frozenset({"", "bfloat16"})
#: Tiles of float32 that an operation needs beside its operands and what it gives.
_BESIDE = {
    "sigmoid": 1, "tanh": 1, "rsqrt": 1, "erf": 2, "sin": 4, "cos": 4, "argmax": 1, "argmin": 1, "rand": 8, "randn": 9,
    "maximum": 1, "minimum": 1,
}  # fmt: skip
#: Operations that do not write over what they are given.
_APART = frozenset(
    "where maximum minimum cumsum cumprod associative_scan flip sort trans permute join cat interleave gather".split()
)
_WITH_A_NUMBER = ("maximum", "minimum", "compare")
_SUMS = frozenset({"sum", "max", "min", "reduce", "argmax", "argmin", "xor_sum"})
#: Conditions that the constants of launches decide.
_COMPARED: dict[type[ast.cmpop], Callable[[object, object], bool]] = {
    ast.Eq: lambda one, other: one == other, ast.NotEq: lambda one, other: one != other,
    ast.Is: lambda one, other: one is other, ast.IsNot: lambda one, other: one is not other,
}  # fmt: skip
#: Flags of a kernel of which a launch may well set all.
_FEW_FLAGS = 2
#: The bytes that one number takes, as a reduction gives it and tl.where needs them: the smallest tile.
_SMALLEST = Size.of(32)
#: The bytes that each element takes which is moved by itself; two vector cores do not share that.
_BLOCK = 32


@dataclass(slots=True)
class _Tile:
    """A tile: the number of its size, the operation that reads it last, and whether a vector core holds it."""

    kind: int
    dtype: str
    made: int
    last: int
    held: bool
    by_dot: bool = False
    #: The same elements where the vector unit computes with them: in float32, or read from the cube core.
    computed: int | None = None
    #: When the tile itself was asked for last, though its elements may come from `computed`.
    asked: int = 0


_Found = int | tuple["_Found", ...] | None


@dataclass(frozen=True, slots=True)
class _Step:
    """An operation: the statement it stands in, the tile it makes, what it reads, and what it needs on the way."""

    node: ast.stmt
    made: int | None = None
    used: tuple[int, ...] = ()
    beside: tuple[int, ...] = ()
    #: What it may write over.
    over: tuple[int, ...] = ()


def lives_of(model: Model) -> Lives:
    """The lives of a kernel's tiles, worked out once."""
    if model.lives is None:
        model.lives = Lives(model)
    assert isinstance(model.lives, Lives)
    return model.lives


@dataclass(slots=True)
class _Loop:
    """A loop that is being read: the variables before it, and those of them that it reads so."""

    before: dict[str, _Found]
    reads: set[str] = field(default_factory=set)


class Lives:
    """The operations of a kernel in order, with the tiles that live through them."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._tiles: list[_Tile] = []
        self._steps: list[_Step] = []
        self._kinds: dict[tuple[Size, Fraction], int] = {}
        self._loops: list[_Loop] = []
        self._variables: dict[str, _Found] = {}
        self._returned: _Found = None
        self._node: ast.stmt = model.kernel.node
        self._dots: list[tuple[ast.stmt, str, int, int]] = []  # the left operands that are variables, and when
        self._first: dict[tuple[int, bool], int] = {}  # positions and constants by kind: made before all else
        self._empty: set[int] = set()  # tiles of zeros
        self._alone = False  # two vector cores do not share the work
        self._over: dict[int, int] = {}  # steps in one branch that write over what the other one reads
        tests = [each.test for each in nodes_in(model.kernel) if isinstance(each, ast.If) and not each.orelse]
        self._flags = {_flag_of(each, model) for each in tests} - {""}
        self._block(model.kernel.node.body)
        # Two vector cores share the work of one cube core.
        self._cores = 2 if any(tile.by_dot for tile in self._tiles) and not self._alone else 1
        self._dying = grouped((tile.last, number) for number, tile in enumerate(self._tiles))
        self._peaks: dict[tuple[object, ...], Peak] = {}
        counts = self._counts()
        #: The constexprs that the tiles are as large as, and those that are a row of each tile they are in.
        self.names = frozenset(name for each in counts for name in each.names)
        beside = (each for each in counts if len(each.names) > 1 or each.number > 2)
        self.rows = self.names - {name for each in beside for name in each.names}
        self._names_in_order = sorted(self.names)

    def _counts(self) -> list[Size]:
        held = {tile.kind for tile in self._tiles if tile.held or tile.by_dot}
        return [count for (count, width), kind in self._kinds.items() if kind in held or width == _BLOCK]

    def peak(self, sizes: Mapping[str, int]) -> Peak:
        """The most bytes that live at the same time, for the values of constexprs; what is not known counts nothing."""
        key = tuple((name, sizes[name]) for name in self._names_in_order if name in sizes)
        if key not in self._peaks:
            self._peaks[key] = self._peak(sizes)
        return self._peaks[key]

    def _bytes(self, sizes: Mapping[str, int]) -> list[int]:
        found = [0]
        for count, width in self._kinds:
            number = count.value(sizes)
            found.append(0 if number is None else int(number * width) * (self._cores if width == _BLOCK else 1))
        return found

    def _peak(self, sizes: Mapping[str, int]) -> Peak:
        by_kind = self._bytes(sizes)
        bytes = [by_kind[each.kind] if each.held else 0 for each in self._tiles]
        now = sum(bytes[each] for each in self._first.values())
        most, place = 0, None
        for time, step in enumerate(self._steps):
            dying = self._dying.get(time, ())
            size = bytes[step.made] if step.made is not None else 0
            if time in self._over and step.made is not None and bytes[self._over[time]] >= size:
                size = bytes[step.made] = 0
            # What is written over an operand lies in all of its memory.
            over = max((bytes[each] for each in step.over if self._tiles[each].last == time), default=0)
            fresh = 0 if over >= size else size
            here = now + fresh + sum(by_kind[each] for each in step.beside)
            if here > most:
                most, place = here, step.node
            now -= sum(bytes[each] for each in dying if each != step.made)
            if step.made is not None and step.made not in dying:
                bytes[step.made] = fresh if fresh or not size else over
                now += bytes[step.made]
        return Peak(most // self._cores, place)

    def sums(self, sizes: Mapping[str, int]) -> Peak:
        """The most bytes that one product adds up: they lie in the cube core's L0C."""
        by_kind = self._bytes(sizes)
        every = [(by_kind[self._tiles[each.made].kind], each.node) for each in self._steps if each.made is not None
                 and self._tiles[each.made].by_dot]  # fmt: skip
        most, node = max(every, key=lambda each: each[0], default=(0, None))
        return Peak(most, node)

    def read_again(self) -> list[tuple[ast.stmt, str]]:
        """Products whose left operand is a variable that is read after them, with its name, by place."""
        last = [max(tile.last, tile.asked) for tile in self._tiles]
        return [(node, name) for node, name, tile, time in self._dots if last[tile] > time]

    # --- tiles -------------------------------------------------------------------------------------------------------

    def _kind(self, count: Size | None, width: Fraction | int) -> int:
        if count is None:
            return _NONE
        return self._kinds.setdefault((count, Fraction(width)), len(self._kinds) + 1)

    def _make(
        self, value: KernelValue, dtype: str, used: Iterable[int] = (), beside: tuple[int, ...] = (), *,
        held: bool = True, by_dot: bool = False, width: Fraction | None = None, apart: bool = False,
    ) -> int:  # fmt: skip
        kind = self._kind(value.count, WIDTHS.get(dtype, 2) if width is None else width)
        operands = tuple(dict.fromkeys(used))
        for each in operands:
            self._tiles[each].last = len(self._steps)
        self._tiles.append(_Tile(kind, dtype, len(self._steps), len(self._steps), held, by_dot))
        self._steps.append(_Step(self._node, len(self._tiles) - 1, operands, beside, () if apart else operands))
        return len(self._tiles) - 1

    def _use(self, found: _Found, beside: tuple[int, ...] = ()) -> None:
        every = _flat(found)
        for each in every:
            self._tiles[each].last = len(self._steps)
        if every:
            self._steps.append(_Step(self._node, None, tuple(every), beside))

    def _from_the_start(self, value: KernelValue, *, constant: bool = False) -> int:
        """Positions that are computed with, or a number that a tile is compared with: a tile from the start on."""
        kind = self._kind(value.count, 4)
        if (kind, constant) not in self._first:
            self._first[kind, constant] = len(self._tiles)
            self._tiles.append(_Tile(kind, "int32", 0, 0, True))
        return self._first[kind, constant]

    def _positions(self, node: ast.expr, value: KernelValue) -> int:
        """Positions, or a mask of them, as a tile."""
        mask = value.dtype == "bool"
        if mask and value.shape is not None and len(value.shape) > 1:  # each axis is compared by itself
            made = self._make(value, "bool", width=Fraction(2))
        else:
            made = self._make(value, value.dtype, (self._from_the_start(value),), width=Fraction(4), apart=mask)
        if isinstance(node, ast.Name):
            self._variables[node.id] = made
        return made

    def _vector(self, number: int, value: KernelValue, *, computes: bool) -> int:
        """A tile as the vector unit reads it."""
        tile = self._tiles[number]
        tile.asked = len(self._steps)
        if not tile.by_dot and not (computes and tile.dtype in _NARROW):
            tile.held = True
            return number
        if tile.computed is None:
            tile.held = tile.held or not tile.by_dot
            tile.computed = self._make(value, "float32", (number,))
        return tile.computed

    # --- statements --------------------------------------------------------------------------------------------------

    def _block(self, body: Iterable[ast.stmt]) -> None:
        for each in body:
            outer, self._node = self._node, each
            self._statement(each)
            self._node = outer

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                found = self._found(node.value)
                for target in node.targets:
                    self._store(target, found)
            case ast.AnnAssign(value=ast.expr() as given):
                self._store(node.target, self._found(given))
            case ast.AugAssign(target=ast.Name() as target):
                value = self.model.of(target)
                name = OPERATORS.get(type(node.op), "")
                left = self._read(target.id)
                self._store(
                    target, self._computed(name, value, [(target, left), (node.value, self._found(node.value))])
                )
            case ast.Expr():
                self._found(node.value)
            case ast.Return(value=ast.expr() as given):
                self._returned = self._found(given)
            case ast.If():
                self._either(node)
            case ast.For() | ast.While():
                self._loop(node)
            case ast.With():
                self._block(node.body)

    def _either(self, node: ast.If) -> None:
        """Both branches, one after the other; one may write over what the other one reads."""
        self._found(node.test)
        decided = self._decided(node.test)
        if decided is not None:
            self._block(node.body if decided else node.orelse)
            return
        if not node.orelse and self._is_extra(node.test):
            return
        before, made = dict(self._variables), len(self._tiles)
        self._block(node.body)
        after, self._variables = self._variables, dict(before)
        last = [tile.last for tile in self._tiles[:made]]
        start = len(self._steps)
        self._block(node.orelse)
        for number, time in enumerate(last):
            if self._tiles[number].last >= start and time >= 0 and number in self._steps[time].used:
                self._over[time] = number
        for name, found in after.items():
            if name not in self._variables or self._variables[name] in (None, before.get(name)):
                self._variables[name] = found

    def _decided(self, test: ast.expr) -> bool | None:
        """What a condition is for the constants that launches give; None where that is not known."""
        known = self.model.known
        match test:
            case ast.Name(id=name) if name in known:
                return bool(known[name])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._decided(operand)
                return None if inner is None else not inner
            case ast.BoolOp(values=values):
                end = isinstance(test.op, ast.Or)  # the value that decides it alone
                every = [self._decided(each) for each in values]
                return end if end in every else None if None in every else not end
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=value)]) if (
                name in known
            ):
                compare = _COMPARED.get(type(op))
                return compare(known[name], value) if compare is not None else None
        return None

    def _is_extra(self, test: ast.expr) -> bool:
        """True for a condition that few launches make true: one flag or another one, a constexpr that is not 0, one of
        many flags."""
        match test:
            case ast.BoolOp(op=ast.Or()):
                return True
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=0)]):
                return name in self.model.kernel.constexprs
        return len(self._flags) > _FEW_FLAGS and _flag_of(test, self.model) in self._flags

    def _loop(self, node: ast.For | ast.While) -> None:
        if isinstance(node, ast.While):
            self._found(node.test)
        start, made, loop = len(self._steps), len(self._tiles), _Loop(dict(self._variables))
        self._loops.append(loop)
        self._block(node.body)
        self._loops.pop()
        end = len(self._steps)
        self._steps.append(_Step(node))
        changed = {name for name, found in self._variables.items() if found != loop.before.get(name)}
        carried = {each for name in changed & loop.reads for each in _flat(loop.before.get(name))}
        for name in changed & loop.reads:
            for each in _flat(self._variables[name]):
                self._tiles[each].last = end
        for number, tile in enumerate(self._tiles[:made]):
            if tile.last >= start and number not in carried:
                tile.last = end
        self._block(node.orelse)

    def _store(self, target: ast.expr, found: _Found) -> None:
        if isinstance(target, ast.Name):
            self._variables[target.id] = found
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, each in enumerate(target.elts):
                part = isinstance(found, tuple) and index < len(found)
                self._store(each, found[index] if part and isinstance(found, tuple) else None)

    def _read(self, name: str) -> _Found:
        for loop in self._loops:
            if self._variables.get(name) == loop.before.get(name):
                loop.reads.add(name)
        return self._variables.get(name)

    # --- expressions -------------------------------------------------------------------------------------------------

    def _found(self, node: ast.expr) -> _Found:
        """The tile that an expression is; None for one that takes no room."""
        value = self.model.of(node)
        match node:
            case ast.Name():
                return self._read(node.id)
            case ast.Tuple() | ast.List():
                return tuple(self._found(each) for each in node.elts)
            case ast.Subscript():
                held = self._found(node.value)
                if isinstance(held, tuple):
                    at = node.slice.value if isinstance(node.slice, ast.Constant) else None
                    return held[at] if isinstance(at, int) and -len(held) <= at < len(held) else None
                return held
            case ast.Attribute(attr="T"):
                return self._computed("trans", value, [(node.value, self._found(node.value))])
            case ast.BinOp():
                return self._computed(OPERATORS.get(type(node.op), ""), value, self._each(node.left, node.right))
            case ast.Compare():
                if self._spreads(node, value):
                    kind = self._kind(value.count, 4)
                    return self._make(value, "bool", beside=(kind, kind), width=Fraction(4))
                return self._computed("compare", value, self._each(node.left, *node.comparators))
            case ast.UnaryOp():
                return self._computed("neg", value, self._each(node.operand))
            case ast.BoolOp():
                return self._computed("and", value, self._each(*node.values))
            case ast.IfExp():
                found = self._each(node.body, node.orelse)
                return next((each for _, each in found if each is not None), None)
            case ast.Call():
                return self._called(node, value)
        return None

    def _spreads(self, node: ast.Compare, value: KernelValue) -> bool:
        """True for a comparison of the positions of one axis with those of another one."""
        each = [self.model.of(part).shape for part in (node.left, *node.comparators)]
        return bool(value.is_tile and not value.data and value.shape is not None and len(value.shape) > 1
                    and value.count is not None and all(shape not in ((), value.shape) for shape in each))  # fmt: skip

    def _each(self, *nodes: ast.expr) -> list[tuple[ast.expr, _Found]]:
        return [(each, self._found(each)) for each in nodes]

    def _called(self, node: ast.Call, value: KernelValue) -> _Found:
        inner = self.model.called.get(id(node))
        if inner is not None:
            return self._inlined(node, inner)
        name = operation(self.model.kernel.file, node.func)
        first = None
        if not name and isinstance(node.func, ast.Attribute):
            receiver = self.model.of(node.func.value)
            if receiver.kind not in (Kind.UNKNOWN, Kind.TYPE, Kind.NONE, Kind.TUPLE):
                name, first = {"to": "cast"}.get(node.func.attr, node.func.attr), node.func.value
        name = (name or last_name(node.func)).rpartition(".")[2]
        nodes = nodes_of(name, node, first)
        given = {each: self._found(argument) for each, argument in nodes.items()}
        if name in _DOTS:
            return self._product(node, value, nodes, given)
        if name in _VIEWS:
            return next(iter(given.values()), None)
        if name in _STORES or name in ATOMICS:
            self._moved(nodes, given)
            read = name in ATOMICS and not (isinstance(self._node, ast.Expr) and self._node.value is node)
            return self._make(value, value.dtype) if read and value.is_tile else None
        return self._computed(name, value, [(nodes[each], found) for each, found in given.items()])

    def _moved(self, nodes: dict[str, ast.expr], given: dict[str, _Found]) -> None:
        """What is written to memory: straight from the cube core, where nothing else is done with it."""
        value = self.model.of(nodes["value"]) if "value" in nodes else UNKNOWN
        for name, found in given.items():
            for each in _flat(found):
                if not self._tiles[each].by_dot:
                    self._vector(each, self.model.of(nodes[name]), computes=False)
        if "value" in nodes and given.get("value") is None and value.is_tile and not value.data:
            given["value"] = self._positions(nodes["value"], value)
        masked = _flat(given.get("mask"))
        # Where a mask was computed, what is there is read first.
        again = [self._kind(value.count, WIDTHS.get(value.dtype, 2))] * 2 if masked and value.is_tile else []
        if "pointer" in nodes and self.model.of(nodes["pointer"]).strided:
            again = [self._kind(value.count, _BLOCK)]
        self._use(tuple(given.values()), tuple(again))

    def _inlined(self, node: ast.Call, inner: Model) -> _Found:
        """What a function of the kernel's gives, its operations in the place of the call."""
        found = [self._found(each) for each in node.args if not isinstance(each, ast.Starred)]
        named = {each.arg: self._found(each.value) for each in node.keywords if each.arg is not None}
        kept = self.model, self._variables, self._returned, self._loops
        names = [each.name for each in inner.kernel.parameters]
        self._variables, self._returned = {**dict(zip(names, found, strict=False)), **named}, None
        self.model, self._loops = inner, []
        statement = self._node
        for each in inner.kernel.node.body:
            self._statement(each)
            self._node = statement
        result = self._returned
        self.model, self._variables, self._returned, self._loops = kept
        return result

    def _product(
        self, node: ast.Call, value: KernelValue, nodes: dict[str, ast.expr], given: dict[str, _Found]
    ) -> _Found:
        for each in ("input", "lhs"):
            name, left = nodes.get(each), given.get(each)
            if isinstance(name, ast.Name) and isinstance(left, int) and last_name(node.func) == "dot":
                self._dots.append((self._node, name.id, left, len(self._steps)))
        return self._make(value, "float32", _flat(tuple(given.values())), held=False, by_dot=True)

    def _computed(self, name: str, value: KernelValue, given: list[tuple[ast.expr, _Found]]) -> _Found:
        """What an elementwise operation or a reduction gives for what it is given."""
        every = [number for _, found in given for number in _flat(found)]
        if value.kind in (Kind.POINTER, Kind.BLOCK_POINTER):
            return self._addresses(value, every)
        if self._stays_on_the_cube_core(name, every):
            return self._make(value, "float32" if name == "add" else value.dtype, every, held=False, by_dot=True)
        if name in _LOADS:
            return self._loaded(value, given, every)
        if name in _MADE:
            if value.is_tile and value.data:
                self._empty.add(self._make(value, value.dtype, held=False))
                return len(self._tiles) - 1
            return None
        if not every and not (value.is_tile and value.data):
            return None
        used = self._as_the_vector_unit_reads(name, value, given)
        beside = self._beside(name, value, given, used)
        if value.kind is Kind.TUPLE:
            return tuple(self._make(each, each.dtype, used) for each in value.items)
        if not value.is_tile:
            self._use(tuple(used), tuple(beside))
            return None
        return self._elementwise(name, value, given, used, beside)

    def _addresses(self, value: KernelValue, every: list[int]) -> _Found:
        """Pointers by positions that were read: those live until the access."""
        for each in every:
            self._tiles[each].held = True
        count = value.count
        if every and count is not None and self._kind(count, 4) != self._tiles[every[0]].kind and count.names:
            return self._make(value, "int32", every)
        return every[0] if every else None

    def _stays_on_the_cube_core(self, name: str, every: list[int]) -> bool:
        """True for what it adds up itself, and for a cast on the way out of it."""
        by_dot = [self._tiles[each].by_dot for each in every]
        if name == "add" and len(every) == 2 and any(by_dot):
            return all(is_product or each in self._empty for is_product, each in zip(by_dot, every, strict=True))
        return name == "cast" and by_dot[:1] == [True]

    def _loaded(self, value: KernelValue, given: list[tuple[ast.expr, _Found]], every: list[int]) -> _Found:
        for node, found in given[1:]:
            for each in _flat(found):
                self._vector(each, self.model.of(node), computes=False)
        if value.is_tile:
            beside = (self._kind(value.count, _BLOCK),) if self.model.of(given[0][0]).strided else ()
            return self._make(value, value.dtype, every, beside, held=False, apart=True)
        self._use(tuple(every))
        return None

    def _as_the_vector_unit_reads(
        self, name: str, value: KernelValue, given: list[tuple[ast.expr, _Found]]
    ) -> list[int]:
        """The operands of an operation, each as a tile that the vector unit computes with."""
        used: list[int] = []
        for node, found in given:
            at = self.model.of(node)
            for each in _flat(found):
                used.append(self._vector(each, at if at.is_tile else value, computes=name not in _MOVES))
            if found is None and at.is_tile and not at.data:
                spread = replace(at, shape=value.shape) if name == "where" and at.dtype == "bool" else at
                used.append(self._positions(node, spread))
        return used

    def _beside(
        self, name: str, value: KernelValue, given: list[tuple[ast.expr, _Found]], used: list[int]
    ) -> list[int]:
        """What an operation needs beside its operands and its result, by kind; a number that it compares with becomes
        an operand."""
        beside: list[int] = []
        if name in _SUMS and used:
            beside += [self._kind(_SMALLEST, 1), *self._of_a_sum(name, self.model.of(given[0][0]), value, used[0])]
        if name in _WITH_A_NUMBER and len(used) == 1 and value.is_tile:
            used.append(self._from_the_start(value, constant=True))
            beside += [self._kind(value.count, 4)] * (name != "compare")
        size = value.count if name not in _SUMS or not given else self.model.of(given[0][0]).count
        beside += [self._kind(size, 4)] * _BESIDE.get(name, 0)
        if name == "where":
            beside.append(self._kind(_SMALLEST, 2))
        if name == "mul":  # x * sigmoid(x) is x / (1 + exp(-x))
            for node, found in given:
                if isinstance(node, ast.Call) and last_name(node.func) == "sigmoid" and isinstance(found, int):
                    step = self._steps[self._tiles[found].made]
                    self._steps[self._tiles[found].made] = replace(step, beside=())
        return beside

    def _of_a_sum(self, name: str, given: KernelValue, value: KernelValue, number: int) -> list[int]:
        """What a reduction needs beside: half of its operand, all of it where that is not along the last axis. Over
        rows, which two vector cores would share, one does all."""
        flat = given.shape is None or len(given.shape) < 2 or value.shape == ()
        rows = given.shape[:-1] if given.shape is not None else None
        last = flat or (value.shape is not None and rows in (value.shape, value.shape[:-1]))
        self._alone |= rows is not None and value.shape is not None and (not last or (value.shape == () != rows))
        if self._tiles[number].dtype not in FLOATS or (flat and name != "sum"):
            return []
        return [self._kind(given.count, 2 if last else 4)]

    def _elementwise(
        self, name: str, value: KernelValue, given: list[tuple[ast.expr, _Found]], used: list[int], beside: list[int]
    ) -> int:
        if name == "compare" or value.dtype == "bool":
            return self._make(value, "bool", used, tuple(beside), width=Fraction(1, 8))
        types = {self._tiles[each].dtype for each in used}  # numbers that masks choose from are float32
        dtype = value.dtype or ("float32" if "float32" in types or types <= {"bool"} else "")
        if name == "cast":
            same = [each for each in used if self._tiles[each].dtype == dtype]
            if same:
                return same[0]
            if dtype == "float32" and used and self._tiles[used[0]].dtype in _NARROW:
                return self._vector(used[0], value, computes=True)
        if name in ("div", "fdiv", "truediv") and given and not self.model.of(given[0][0]).is_tile:
            beside.append(self._kind(value.count, 4))
        if name in _MOVES or dtype not in _NARROW:
            return self._make(value, dtype, used, tuple(beside), apart=name in _APART)
        wide = self._make(value, "float32", used, tuple(beside), apart=name in _APART)
        return self._make(value, dtype, (wide,))


def _flag_of(test: ast.expr, model: Model) -> str:
    """The constexpr that a condition asks for, or the parameter that may be None; empty for another condition."""
    match test:
        case ast.Name(id=name) if name in model.kernel.constexprs:
            return name
        case ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return name
    return ""


def _flat(found: _Found) -> list[int]:
    """The tiles in what an expression is."""
    if isinstance(found, tuple):
        return [number for each in found for number in _flat(each)]
    return [] if found is None else [found]
