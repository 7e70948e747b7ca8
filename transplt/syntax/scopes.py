"""Scopes of Python, and what binds names in them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Binding:
    """One thing that gives a name its value in a scope.

    `kind`: import (then `target` is the full name), param, def, class, assign, other (an except clause, a pattern, a
    type parameter). `node` is the statement, the parameter, the clause or pattern, or the Name node that is stored into
    or deleted.
    """

    kind: str
    node: ast.AST
    target: str = ""


@dataclass(slots=True, eq=False)
class Scope:
    """A scope of Python: kind module, class, function, lambda or comprehension.

    `stars`: the modules that `from x import *` in it names.
    """

    kind: str
    node: ast.AST
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outward: dict[str, str] = field(default_factory=dict)  # name -> "global" | "nonlocal"
    stars: list[str] = field(default_factory=list)

    def bind(self, name: str, binding: Binding) -> None:
        """Bind a name here, or where a `global` or `nonlocal` of this scope says."""
        scope = self
        if (how := self.outward.get(name)) is not None:
            scope = self.module() if how == "global" else self.enclosing_function(name)
        scope.bindings.setdefault(name, []).append(binding)

    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def enclosing_function(self, name: str) -> Scope:
        """The nearest function scope outside this one that binds a name; this one when none does."""
        scope = self.parent
        while scope is not None and scope.parent is not None:
            if scope.kind == "function" and name in scope.bindings:
                return scope
            scope = scope.parent
        return self

    def binder(self) -> Scope:
        """Where `:=` binds: the nearest scope that is no comprehension."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope
