"""Where values may go in a file, by variables and by the last names of attributes and functions: quick, and too much.

What is not among it has nothing to do with the values, as far as its file shows; so that nobody has to look closer.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from transplt.syntax.names import Names
from transplt.syntax.nodes import inner_nodes, last_name, string_of
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
            match current:
                case ast.NamedExpr():
                    yield self._stored(current.target)
                case ast.comprehension() if inner is current.iter:
                    yield self._stored(current.target)
                case ast.Call():
                    yield from self._into_call(current, inner)
                    last = last_name(current.func)
                    if last not in self.through and (inner is not current.func or isinstance(inner, ast.Attribute)):
                        if inner is current.func and last in self.functions and inner is node:
                            continue  # a function of the file that gives it
                        return
                case ast.Compare():
                    return
                case ast.Subscript() if inner is current.slice:
                    return
        yield from self._in_statement(current, inner)

    def _into_call(self, call: ast.Call, part: ast.AST) -> Iterator[list[ast.expr]]:
        """Where a call puts what a part of it gives: in parameters, a buffer or a list."""
        last = last_name(call.func)
        for function in self.functions.get(last, ()) if part is not call.func else ():
            yield from self._parameters(function)
        if last == "register_buffer" and call.args:
            yield self._attribute(string_of(call.args[0]) or "")
        if last == "append" and isinstance(call.func, ast.Attribute) and part is not call.func:
            yield self._stored(call.func.value)

    def _in_statement(self, statement: ast.AST, part: ast.AST) -> Iterator[list[ast.expr]]:
        """Where a statement puts what a part of it gives."""
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self._parameters(statement)  # a default
            case ast.Return():
                above: ast.AST = statement
                while not isinstance(above, (*FUNCTIONS, ast.Module)):
                    above = parent(above)
                name = getattr(above, "name", "")
                yield self._attribute(name)
                yield self._variable(self.scan.scope_of(above), name)
            case ast.For() | ast.AsyncFor() if part is statement.iter:
                yield self._stored(statement.target)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                    yield from (self._stored(each) for each in inner_nodes(target, ast.expr))

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
