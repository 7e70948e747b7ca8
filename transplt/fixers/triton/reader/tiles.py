"""The values in a kernel: which expressions are tiles, of which shape and type, and what operations are given.

A kernel is read statement by statement, as Triton compiles it: both branches of a condition, a loop twice (what the
first turn leaves meets what was before it), functions that it calls with the values they are given. What is not certain
is not known (`values.KernelValue`). Nothing is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from transplt.fixers.triton.reader.elements import element_types
from transplt.fixers.triton.reader.kernels import LANGUAGE, Kernel, behind, operation
from transplt.fixers.triton.reader.launches import Asked, kernel_behind
from transplt.fixers.triton.reader.operations import OPERATORS, Operation, nodes_of
from transplt.fixers.triton.reader.pointers import pointer_parameters, whole_constexprs
from transplt.fixers.triton.reader.results import axis_of, binary, named_like, result_of, together
from transplt.fixers.triton.reader.sizes import constants_given
from transplt.fixers.triton.reader.values import (
    INTEGERS,
    NONE,
    ONE,
    TYPES,
    UNKNOWN,
    KernelValue,
    Kind,
    Size,
    compares_integers,
    constant,
    default_of,
    merged,
    number,
    scalar,
    with_shape,
)
from transplt.flow.facts import ProjectFacts
from transplt.syntax.nodes import begins, is_none, last_name

#: Calls of functions in functions up to which they are read.
_DEEPEST = 4


@dataclass(slots=True, eq=False)
class Model:
    """What is known of the values of a kernel. `operations` are those of its own body, by place; `values` what its
    expressions give, by the ids of their nodes; `called` the models of functions, by the ids of their calls; `known`
    the constants that all launches give.
    """

    kernel: Kernel
    values: dict[int, KernelValue] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    called: dict[int, Model] = field(default_factory=dict)
    known: dict[str, object] = field(default_factory=dict)
    returned: KernelValue | None = None
    lives: object = None  # see live.py

    def of(self, node: ast.expr) -> KernelValue:
        """What an expression gives; UNKNOWN where nothing is known of it."""
        return self.values.get(id(node), UNKNOWN)


def model_of(kernel: Kernel, project: ProjectFacts) -> Model:
    """The values of a kernel by what its launches give it; worked out once."""
    return kernel.file.once(_model, kernel, Asked(project))


def _model(_file: object, kernel: Kernel, asked: Asked) -> Model:
    types = element_types(kernel, asked.project)
    pointers = pointer_parameters(kernel) | set(types)
    whole = whole_constexprs(kernel)
    given = {}
    for each in kernel.parameters:
        if each.constexpr:
            dtype = "int32" if each.name in whole else ""
            given[each.name] = KernelValue(Kind.CONSTEXPR, dtype, (), Size(ONE.number, (each.name,)), weak=True)
        elif each.name in pointers:
            given[each.name] = KernelValue(Kind.POINTER, types.get(each.name, ""), (), base=each.name)
        else:
            given[each.name] = KernelValue(Kind.ARGUMENT, "", ())
    model = _Reading(kernel, asked.project).read(given)
    model.known = constants_given(kernel, asked.project)
    return model


class _Reading:
    """One reading of a kernel, or of a function that it calls."""

    def __init__(self, kernel: Kernel, project: ProjectFacts, depth: int = 0) -> None:
        self.kernel, self.file, self.project = kernel, kernel.file, project
        self.model = Model(kernel)
        self.variables: dict[str, KernelValue] = {}
        self._operations: dict[int, Operation] = {}
        self._called, self._loops = depth, 0

    def read(self, given: dict[str, KernelValue]) -> Model:
        self.variables = dict(given)
        self._block(self.kernel.node.body)
        self.model.operations = sorted(self._operations.values(), key=lambda each: begins(each.node))
        return self.model

    # --- statements --------------------------------------------------------------------------------------------------

    def _block(self, body: Iterable[ast.stmt]) -> None:
        for each in body:
            self._statement(each)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self._store(target, value)
            case ast.AnnAssign(value=ast.expr() as given):
                self._store(node.target, self.value(given))
            case ast.AugAssign(target=ast.Name(id=name) as target):
                left = self.variables.get(name, UNKNOWN)
                self._store(target, self._operated(node, OPERATORS.get(type(node.op), ""), left, target, node.value))
            case ast.Expr():
                self.value(node.value)
            case ast.Return():
                value = NONE if node.value is None else self.value(node.value)
                before = self.model.returned
                self.model.returned = value if before is None else merged(before, value)
            case ast.If():
                self.value(node.test)
                self._either(node.body, node.orelse)
            case ast.For() | ast.While():
                self._loop(node)
            case ast.With():
                for item in node.items:
                    self.value(item.context_expr)
                self._block(node.body)
            case ast.Assert():
                self.value(node.test)

    def _either(self, body: list[ast.stmt], other: list[ast.stmt]) -> None:
        before = dict(self.variables)
        self._block(body)
        after = self.variables
        self.variables = before
        self._block(other)
        self._meet(after)

    def _meet(self, other: dict[str, KernelValue]) -> None:
        """What variables are where two ways come together; those that one way alone sets are as it sets them."""
        for name, value in other.items():
            mine = self.variables.get(name)
            self.variables[name] = value if mine is None else merged(mine, value)

    def _loop(self, node: ast.For | ast.While) -> None:
        self._loops += 1
        for _turn in range(2):
            before = dict(self.variables)
            if isinstance(node, ast.For):
                self._store(node.target, self._counter(node.iter))
            else:
                self.value(node.test)
            self._block(node.body)
            self._meet(before)
        self._loops -= 1
        self._block(node.orelse)

    def _counter(self, node: ast.expr) -> KernelValue:
        """What the variable of a loop is."""
        if not isinstance(node, ast.Call):
            self.value(node)
            return UNKNOWN
        given = [self.value(each) for each in node.args]
        if operation(self.file, node.func) == "static_range":
            return KernelValue(Kind.CONSTEXPR, "int32", ())
        found = together(given)
        typed = found.kind in (Kind.SCALAR, Kind.CONSTEXPR) and found.dtype in INTEGERS
        return scalar(found.dtype if typed else "")

    def _store(self, target: ast.expr, value: KernelValue) -> None:
        if isinstance(target, ast.Name):
            self.variables[target.id] = value
            self.model.values[id(target)] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            known = value.kind is Kind.TUPLE and len(value.items) == len(target.elts)
            for index, each in enumerate(target.elts):
                self._store(each, value.items[index] if known else UNKNOWN)

    # --- expressions -------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> KernelValue:
        """What an expression gives at this place of the reading."""
        found = self.model.values[id(node)] = self._value(node)
        return found

    def _value(self, node: ast.expr) -> KernelValue:
        match node:
            case ast.Constant(value=None):
                return NONE
            case ast.Constant(value=bool() | int() | float() as value):
                return number(value)
            case ast.Constant():
                return KernelValue(Kind.CONSTEXPR, "", ())
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.BinOp():
                name = OPERATORS.get(type(node.op), "")
                return self._operated(node, name, self.value(node.left), node.left, node.right)
            case ast.Compare():
                return self._compare(node)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.BoolOp():
                found = self.value(node.values[0])
                for each in node.values[1:]:
                    found = replace(binary(found, self.value(each)), dtype="bool")
                return found
            case ast.Call():
                return self._call(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Tuple() | ast.List():
                return KernelValue(Kind.TUPLE, items=tuple(self.value(each) for each in node.elts))
            case ast.IfExp():
                self.value(node.test)
                return merged(self.value(node.body), self.value(node.orelse))
        return UNKNOWN

    def _name(self, node: ast.Name) -> KernelValue:
        if node.id in self.variables:
            return self.variables[node.id]
        full = self.file.names.qualified(node) or ""
        if full.startswith(LANGUAGE) and full.removeprefix(LANGUAGE) in TYPES:
            return KernelValue(Kind.TYPE, TYPES[full.removeprefix(LANGUAGE)])
        outside = behind(self.file, node)
        if isinstance(outside, ast.Call) and outside.args and operation(self.file, outside.func) == "constexpr":
            outside = outside.args[0]  # NAME = tl.constexpr(8)
        if isinstance(outside, ast.Constant) and isinstance(outside.value, (bool, int, float)):
            return number(outside.value)
        return UNKNOWN

    def _attribute(self, node: ast.Attribute) -> KernelValue:
        name = operation(self.file, node)
        if name:
            return KernelValue(Kind.TYPE, TYPES[name]) if name in TYPES else UNKNOWN
        held = self.value(node.value)
        if node.attr in ("dtype", "type"):
            return KernelValue(Kind.TYPE, held.dtype)
        if node.attr in ("element_ty", "scalar") and held.kind is Kind.TYPE:
            return held
        if node.attr == "shape" and held.shape is not None:
            sizes = (KernelValue(Kind.CONSTEXPR, "int32", (), each) for each in held.shape)
            return KernelValue(Kind.TUPLE, items=tuple(sizes))
        if node.attr == "value" and held.kind is Kind.CONSTEXPR:
            return held
        if node.attr == "T" and held.kind is Kind.TILE:
            return with_shape(held, held.shape[::-1] if held.shape is not None else None)
        return UNKNOWN

    def _operated(
        self, node: ast.expr | ast.stmt, name: str, left: KernelValue, at: ast.expr, right: ast.expr
    ) -> KernelValue:
        """`left` at `at` together with what `right` gives, under an operator of two operands."""
        other = self.value(right)
        if Kind.CONSTEXPR is left.kind is other.kind:
            return constant(name, left, other)
        found = binary(left, other, divides=name in ("div", "mod"))
        if name == "div" and found.dtype in INTEGERS:
            found = replace(found, dtype="float32")
        if name == "mul" and ONE not in (left.size, other.size):
            found = replace(found, adjacent=frozenset())
        if name in ("lshift", "rshift") and found.kind in (Kind.TILE, Kind.SCALAR):
            found = replace(found, dtype=left.dtype if not left.weak else found.dtype)
        self._note(name, node, {"input": left, "other": other}, {"input": at, "other": right}, found)
        return found

    def _compare(self, node: ast.Compare) -> KernelValue:
        found = left = self.value(node.left)
        for op, right in zip(node.ops, node.comparators, strict=True):
            other = self.value(right)
            if isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
                return KernelValue(Kind.CONSTEXPR, "bool", ())
            found = binary(left, other)
            if found.kind is Kind.UNKNOWN:
                return found
            lines = found.compared | (frozenset({node.lineno}) if compares_integers(left, other) else frozenset())
            data = any(each.is_tile and each.data for each in (left, other))
            found = replace(found, dtype="bool", compared=lines, scattered=frozenset(), data=data)
            name = OPERATORS.get(type(op), "")
            self._note(name, node, {"input": left, "other": other}, {"input": node.left, "other": right}, found)
            left = other
        return found

    def _unary(self, node: ast.UnaryOp) -> KernelValue:
        held = self.value(node.operand)
        if held.kind is Kind.CONSTEXPR:
            minus = isinstance(node.op, ast.USub) and held.size is not None
            size = Size(-held.size.number, held.size.names) if minus and held.size is not None else None
            return replace(held, size=size if not isinstance(node.op, ast.UAdd) else held.size)
        if held.kind not in (Kind.TILE, Kind.SCALAR, Kind.ARGUMENT):
            return UNKNOWN
        found = replace(held, dtype="bool") if isinstance(node.op, ast.Not) else held
        name = OPERATORS.get(type(node.op), "")
        self._note(name, node, {"input": held}, {"input": node.operand}, found)
        return found

    def _subscript(self, node: ast.Subscript) -> KernelValue:
        held = self.value(node.value)
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if held.kind is Kind.TUPLE:
            at = axis_of(self.value(given[0]))
            known = at is not None and -len(held.items) <= at < len(held.items)
            return held.items[at] if known and at is not None else UNKNOWN
        if held.kind not in (Kind.TILE, Kind.POINTER, Kind.SCALAR, Kind.ARGUMENT):
            return UNKNOWN
        if held.shape is None:
            return with_shape(held, None)
        rest = list(enumerate(held.shape))
        shape: list[tuple[int | None, Size | None]] = []
        for each in given:
            if is_none(each):
                shape.append((None, ONE))
            elif isinstance(each, ast.Slice) and rest:
                shape.append(rest.pop(0))
            else:
                return UNKNOWN
        shape += rest
        # The axes that were scattered or adjacent are so where they stand now.
        places = {at: index - len(shape) for index, (at, _) in enumerate(shape)}
        scattered, adjacent = (
            frozenset(places[axis + len(held.shape)] for axis in of) for of in (held.scattered, held.adjacent)
        )
        made = with_shape(held, tuple(size for _, size in shape))
        return replace(made, scattered=scattered, adjacent=adjacent)

    # --- calls -------------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> KernelValue:
        name = operation(self.file, node.func)
        first: ast.expr | None = None
        if not name and isinstance(node.func, ast.Attribute):
            receiver = self.value(node.func.value)
            if receiver.kind not in (Kind.UNKNOWN, Kind.TYPE, Kind.NONE, Kind.TUPLE):
                name, first = node.func.attr, node.func.value
                if receiver.kind is Kind.BLOCK_POINTER and name in ("load", "store"):
                    name += "_tensor_descriptor"
                elif name == "to":
                    name = "cast"
        if not name:
            return self._called_function(node)
        nodes = nodes_of(name, node, first)
        given = {each: self.value(argument) for each, argument in nodes.items()}
        found = result_of(name, given, node)
        self._note(name, node, given, nodes, found, method=first is not None)
        return found

    def _called_function(self, node: ast.Call) -> KernelValue:
        """What a function of Python gives, or another one under `triton.jit`."""
        given = [self.value(each.value if isinstance(each, ast.Starred) else each) for each in node.args]
        named = {each.arg: self.value(each.value) for each in node.keywords}
        short = node.func.id if isinstance(node.func, ast.Name) else ""
        if short in ("min", "max") and len(given) > 1:
            return together(given)
        if short in ("float", "int"):
            return number(0.0 if short == "float" else 0) if not given or given[0].kind is Kind.CONSTEXPR else UNKNOWN
        if short == "abs" and given:
            return replace(given[0], size=None)
        called = kernel_behind(self.file, node.func, self.project)
        if called is None or called is self.kernel or self._called >= _DEEPEST:
            return named_like(last_name(node.func), given)
        starred = any(isinstance(each, ast.Starred) for each in node.args) or None in named
        values = {each.name: default_of(each.default) for each in called.parameters}
        if not starred:
            values |= dict(zip(values, given, strict=False))
            values |= {name: value for name, value in named.items() if name in values}
        key = (id(called), tuple(values.items()))
        inner = self.file.once(_inner, _Key(key, called, self.project, self._called + 1))
        self.model.called[id(node)] = inner
        return inner.returned or NONE

    def _note(
        self,
        name: str,
        node: ast.expr | ast.stmt,
        given: dict[str, KernelValue],
        nodes: dict[str, ast.expr],
        result: KernelValue,
        *,
        method: bool = False,
    ) -> None:
        if name:
            self._operations[id(node)] = Operation(name, node, given, nodes, result, self._loops, method)


@dataclass(frozen=True, slots=True)
class _Key:
    """A function with the values that it is given; two are the same where those are."""

    key: tuple[object, ...]
    called: Kernel = field(compare=False)
    project: ProjectFacts = field(compare=False)
    depth: int = field(compare=False)


def _inner(_file: object, key: _Key) -> Model:
    values = dict(key.key[1])  # type: ignore[call-overload]
    return _Reading(key.called, key.project, key.depth).read(values)
