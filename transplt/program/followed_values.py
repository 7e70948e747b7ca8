"""Values that certainly come from somewhere, followed through the variables, parameters and functions of a program.

Of a local name the assignment above counts that is nearest in the text, of a parameter any call in sight, of an
attribute of an object any assignment, of a function all that it returns.
"""

from __future__ import annotations

import ast

from transplt.flow.last_value import nearest_binding
from transplt.program.program import File, Program, ProgramValue, key_of
from transplt.syntax.nodes import call_of, is_none
from transplt.syntax.scan import FUNCTIONS, chain, parent

_DEEPEST = 25


class Traced:
    """The values of one origin in a program; a subclass says what makes them (`made`), and what hands them on."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._open: set[tuple[int, tuple[int | str, ...]]] = set()

    def made(self, file: File, node: ast.expr) -> bool:
        """True where an expression makes such a value, or hands one on; what only the program shows is left out."""
        raise NotImplementedError

    def item(self, file: File, node: ast.Subscript) -> bool:
        """True where a part of what is such a value is one too."""
        return False

    def is_one(self, file: File, node: ast.expr, *path: int | str) -> bool:
        """True where an expression, or what is in it under indices and keys, certainly is such a value."""
        key = id(node), path
        if key in self._open or len(self._open) > _DEEPEST:
            return False
        self._open.add(key)
        found = self._part(file, node, *path) if path else self._is(file, node)
        self._open.discard(key)
        return found

    def _is(self, file: File, node: ast.expr) -> bool:
        match node:
            case ast.Name():
                return self._name(file, node)
            case ast.IfExp():
                return self.is_one(file, node.body) or self.is_one(file, node.orelse)
            case ast.Subscript():
                key, slot = key_of(node.slice), self.program.slot(file, node.value)
                stored = [each for at, each in self.program.entries.get(slot, ()) if at == key] if slot and key else []
                if stored:
                    return all(self.is_one(each.file, each.node) for each in stored)
                return self.item(file, node) or (key is not None and self.is_one(file, node.value, key))
            case _ if self.made(file, node):
                return True
            case ast.Call():
                return self._returned(file, node)
            case ast.Attribute():
                return self._any(self._held(file, node))
        return False

    def _held(self, file: File, node: ast.expr) -> list[ProgramValue]:
        slot = self.program.slot(file, node)
        return self.program.values.get(slot, []) if slot is not None else []

    def _any(self, values: list[ProgramValue], *path: int | str) -> bool:
        whole = ((each, () if each.index is None else (each.index,)) for each in values)
        return any(self.is_one(each.file, each.node, *first, *path) for each, first in whole)

    def _name(self, file: File, node: ast.Name, *path: int | str) -> bool:
        nearest = nearest_binding(file.scan, node)
        if isinstance(nearest, ast.arg):
            return self._any(self._held(file, node), *path)
        if not isinstance(nearest, ast.Name):
            return False
        match above := parent(nearest):
            case ast.Assign(value=value):
                return self.is_one(file, value, *path)
            case ast.Tuple(elts=targets) | ast.List(elts=targets) if isinstance(holder := parent(above), ast.Assign):
                return self.is_one(file, holder.value, targets.index(nearest), *path)
        return False

    def _part(self, file: File, node: ast.expr, index: int | str, *rest: int | str) -> bool:
        """One of the things that an expression gives together."""
        match node:
            case ast.Name():
                return self._name(file, node, index, *rest)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if isinstance(index, int):
                return index < len(parts) and self.is_one(file, parts[index], *rest)
            case ast.Dict(keys=keys, values=values):
                under = [value for at, value in zip(keys, values, strict=True) if key_of(at) == index]
                return bool(under) and self.is_one(file, under[-1], *rest)
            case ast.Call():
                return self._returned(file, node, index, *rest)
            case ast.Attribute(attr="saved_tensors") if isinstance(index, int):
                # what the forward pass has kept for the backward one
                saves = file.scan.attributes.get("save_for_backward", ())
                kept = [call_of(each) for each in saves if _owner(each) is _owner(node)]
                given = [call.args[int(index) :] for call in kept if call is not None]
                return bool(given) and all(args and self.is_one(file, args[0]) for args in given)
        return False

    def _returned(self, file: File, call: ast.Call, *path: int | str) -> bool:
        callee = self.program.callee(file, call)
        if not isinstance(callee, FUNCTIONS):
            return False
        returned = [each for each in self.program.returns(callee) if not is_none(each)]
        return bool(returned) and all(self.is_one(self.program.owner[callee], each, *path) for each in returned)


def _owner(node: ast.AST) -> ast.AST | None:
    """The class around a node of a method."""
    return next((each for each in chain(node) if isinstance(each, ast.ClassDef)), None)
