"""Where values may go in a file, by variables and by the last names of attributes and functions: quick, and too much.

What is not among it has nothing to do with the values, as far as its file shows; so that nobody has to look closer.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from transplt.syntax.asks import last_name, string_of
from transplt.syntax.names import Names
from transplt.syntax.scan import FUNCTIONS, parent
from transplt.syntax.scopes import Scope


def spread(names: Names, starts: Iterable[ast.expr], through: Collection[str]) -> list[ast.expr]:
    """The names and attributes of a file that may hold what the expressions `starts` give, with these.

    A function or method that is none of the file's own hands something of it on if its last name is in `through`.
    """
    return _Spread(names, through).reached(starts)


class _Spread:
    def __init__(self, names: Names, through: Collection[str]) -> None:
        self.names, self.scan, self.through = names, names.scan, through
        self.functions: dict[str, list[ast.AST]] = {}
        for function in self.scan.functions:
            above = parent(function)
            of_class = function.name == "__init__" and isinstance(above, ast.ClassDef)
            name = above.name if of_class and isinstance(above, ast.ClassDef) else function.name
            self.functions.setdefault(name, []).append(function)
        self.known: set[tuple[int, str]] = set()  # variables by their scope; attributes and functions by 0

    def reached(self, starts: Iterable[ast.expr]) -> list[ast.expr]:
        found: list[ast.expr] = []
        pending = list(starts)
        while pending:
            node = pending.pop()
            found.append(node)
            for nodes in self._above(node):
                pending += nodes
        return found

    def _above(self, node: ast.expr) -> Iterator[list[ast.expr]]:
        """Where the value of a node is read, or what is made of it in its statement."""
        current: ast.AST = node
        inner: ast.AST = node
        while not isinstance(current, ast.stmt):
            inner, current = current, parent(current)
            if isinstance(current, ast.NamedExpr) or (isinstance(current, ast.comprehension) and inner is current.iter):
                yield self._stored(current.target)
            elif isinstance(current, ast.Call):
                last = last_name(current.func)
                for function in self.functions.get(last, ()) if inner is not current.func else ():
                    yield from self._parameters(function)
                if last == "register_buffer" and current.args:
                    yield self._attribute(string_of(current.args[0]) or "")
                if last == "append" and isinstance(current.func, ast.Attribute) and inner is not current.func:
                    yield self._stored(current.func.value)
                if last not in self.through and (inner is not current.func or isinstance(inner, ast.Attribute)):
                    if inner is current.func and last in self.functions and inner is node:
                        continue  # a function of the file that gives it
                    return
            elif isinstance(current, ast.Compare) or (isinstance(current, ast.Subscript) and inner is current.slice):
                return
        if isinstance(current, FUNCTIONS):
            yield from self._parameters(current)  # a default
        elif isinstance(current, ast.Return):
            while not isinstance(current, (*FUNCTIONS, ast.Module)):
                current = parent(current)
            name = getattr(current, "name", "")
            yield self._attribute(name)
            yield self._variable(self.scan.scope_of(current), name)
        elif isinstance(current, (ast.For, ast.AsyncFor)) and inner is current.iter:
            yield self._stored(current.target)
        elif isinstance(current, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            for target in current.targets if isinstance(current, ast.Assign) else [current.target]:
                yield from (self._stored(each) for each in ast.walk(target) if isinstance(each, ast.expr))

    def _stored(self, target: ast.expr) -> list[ast.expr]:
        if isinstance(target, ast.Attribute):
            return self._attribute(target.attr)
        return self._variable(self.scan.scope_of(target), target.id) if isinstance(target, ast.Name) else []

    def _attribute(self, name: str) -> list[ast.expr]:
        if (0, name) in self.known:
            return []
        self.known.add((0, name))
        return list(self.scan.attributes.get(name, ()))

    def _variable(self, scope: Scope, name: str) -> list[ast.expr]:
        found = self.names.lookup(name, scope)
        owner = found[0] if found is not None else None
        if owner is None or (id(owner), name) in self.known:
            return []
        self.known.add((id(owner), name))
        if owner.kind == "class":
            return [*self._attribute(name), *self._read(owner, name)]
        return self._read(owner, name)

    def _read(self, owner: Scope, name: str) -> list[ast.expr]:
        every = ((each, self.names.lookup(name, self.scan.scope_of(each))) for each in self.scan.names.get(name, ()))
        return [each for each, bound in every if bound is not None and bound[0] is owner]

    def _parameters(self, function: ast.AST) -> Iterator[list[ast.expr]]:
        arguments, scope = getattr(function, "args", None), self.scan.scopes.get(function)
        if isinstance(arguments, ast.arguments) and scope is not None:
            for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if each.arg not in ("self", "cls"):
                    yield self._variable(scope, each.arg)
