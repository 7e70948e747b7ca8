"""Tests of torch's version, answered for the torch of a migration: a branch for another torch never runs.

Worked out is what such tests are made of: the text of `torch.__version__`, its parts, and versions that are made of it.
What holds anything else is unknown.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from packaging.version import Version

from transplt.syntax.names import Names, assigned_value
from transplt.syntax.nodes import last_name
from transplt.syntax.scopes import Scope

#: What a version is named that another file works out: `TORCH_VERSION >= (1, 8)`.
_NAMED = re.compile(r"_?(?:py)?torch_?version(?:_?info)?", re.I)
_MAKES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("LooseVersion", "StrictVersion", "Version", "TorchVersion", "parse", "parse_version"), Version),
    "int": int, "float": float, "tuple": tuple, "list": tuple, "str": str,
}  # fmt: skip
_HOW: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip


class _Unknown(Exception):
    """Something else than torch's version has a say."""


class _Text(str):
    """The text of `torch.__version__`, which torch compares as a version."""


@dataclass(slots=True)
class TorchTests:
    """The tests of one file, or of one line of it (no `names`), answered for one torch (`2.8`)."""

    names: Names | None
    torch: str
    _met: bool = field(default=False, init=False)  # whether torch's version is a part of the test
    _each: dict[str, Any] = field(default_factory=dict, init=False)  # what a comprehension gives its name

    def fails(self, test: ast.expr) -> bool:
        """True for a test that fails with this torch; False where it holds, or is about something else."""
        self._met = False
        try:
            return not self._value(test) and self._met
        except (_Unknown, ValueError, TypeError, IndexError, AttributeError, RecursionError):
            return False

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(map(self._value, parts))
            case ast.Name() | ast.Attribute():
                return self._named(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._value(operand)
            case ast.BoolOp(op=op, values=values):
                return (all if isinstance(op, ast.And) else any)([self._value(each) for each in values])
            case ast.Compare(left=left, ops=[how], comparators=[right]) if type(how) in _HOW:
                return _HOW[type(how)](*_alike(self._value(left), self._value(right)))
            case ast.Subscript(value=of, slice=ast.Slice(lower=first, upper=last, step=None)):
                return self._value(of)[slice(first and self._value(first), last and self._value(last))]
            case ast.Subscript(value=of, slice=index):
                return self._value(of)[self._value(index)]
        return self._made(node)

    def _made(self, node: ast.expr) -> Any:
        """What is made of a version by calls: its parts, their numbers, a version to compare with."""
        match node:
            case ast.ListComp(elt=made, generators=[of]) | ast.GeneratorExp(elt=made, generators=[of]):
                if isinstance(made, ast.Call) and last_name(made.func) == "int" and not of.ifs:
                    return tuple(map(int, self._value(of.iter)))
            case ast.Call(func=ast.Name(id="any" | "all" as how), args=[ast.ListComp() | ast.GeneratorExp() as every]):
                return (any if how == "any" else all)([*self._of_each(every)])
            case ast.Call(func=ast.Attribute(value=text, attr="split"), args=[sign]):
                return tuple(self._value(text).split(self._value(sign)))
            case ast.Call(func=ast.Attribute(value=text, attr="startswith"), args=[start]):
                return self._value(text).startswith(self._value(start))
            case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id="int"), each]):
                return tuple(map(int, self._value(each)))
            case ast.Call(func=func, args=[argument], keywords=[]) if last_name(func) in _MAKES:
                return _MAKES[last_name(func)](self._value(argument))
        raise _Unknown

    def _of_each(self, every: ast.ListComp | ast.GeneratorExp) -> Iterator[Any]:
        """What a comprehension makes of each of the things that it goes through."""
        match every.generators:
            case [ast.comprehension(target=ast.Name(id=name), iter=things, ifs=[])]:
                for each in self._value(things):
                    self._each[name] = each
                    yield self._value(every.elt)
                del self._each[name]
            case _:
                raise _Unknown

    def _named(self, node: ast.Name | ast.Attribute) -> Any:
        """What a name stands for: torch's version, or what a variable was given once."""
        if isinstance(node, ast.Name) and node.id in self._each:
            return self._each[node.id]
        full = ast.unparse(node) if self.names is None else self.names.qualified(node)
        if full in ("torch.__version__", "torch.version.__version__"):
            return self._text()
        scope: Scope | None = self.names.scan.scope_of(node) if self.names and isinstance(node, ast.Name) else None
        name = last_name(node)
        while scope is not None and name not in scope.bindings:
            scope = scope.parent
        bindings = scope.bindings[name] if scope is not None else []
        value = assigned_value(bindings[0].node) if len(bindings) == 1 else None
        if value is not None:
            return self._value(value)
        if _NAMED.fullmatch(name) and bindings and all(each.kind == "import" for each in bindings):
            return self._text()
        raise _Unknown

    def _text(self) -> _Text:
        self._met = True
        return _Text(f"{self.torch}.0")


def line_fails(header: bytes, torch: str, *, holds: bool = False) -> bool:
    """True for the line of an `if` or `elif` that fails with this torch, or `holds`, whatever stands around it."""
    if not torch or b"version" not in header:
        return False
    try:
        (tested,) = ast.parse(header.strip().removeprefix(b"el") + b"\n pass").body
    except (SyntaxError, ValueError):
        return False
    test = tested.test if isinstance(tested, ast.If) else ast.Constant(True)
    return TorchTests(None, torch).fails(ast.UnaryOp(ast.Not(), test) if holds else test)


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values as they are compared: a version with a version, its numbers with numbers."""
    pair = left, right
    if not any(isinstance(each, (_Text, Version)) for each in pair):
        return pair
    one, other = (each if isinstance(each, tuple) else Version(str(each)) for each in pair)
    numbers = isinstance(one, tuple) or isinstance(other, tuple)
    return (getattr(one, "release", one), getattr(other, "release", other)) if numbers else (one, other)
