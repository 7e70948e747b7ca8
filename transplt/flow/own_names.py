"""The project's own functions and classes: their full names, what names stand for them, and what they take."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.flow.facts import ProjectFacts
from transplt.flow.libraries import LIBRARIES
from transplt.rules.since import classes_told_of
from transplt.syntax.names import SELF, Names, assigned_value
from transplt.syntax.scan import Scan
from transplt.syntax.scopes import Binding, Scope


@dataclass(slots=True, eq=False)
class OwnNames:
    """What one file says of functions and classes of the project; full names begin with the module's."""

    scan: Scan
    names: Names
    project: ProjectFacts
    module: str
    _parameters: dict[str, tuple[str, ...]] | None = None
    _classes: dict[str, ast.ClassDef] | None = None
    _full: dict[int, str] = field(default_factory=dict)
    _around: dict[int, str | None] = field(default_factory=dict)
    _own: dict[str, str | None] = field(default_factory=dict)
    _definitions: dict[tuple[int, str], str | None] = field(default_factory=dict)

    def join(self, names: Names, project: ProjectFacts) -> None:
        """Look at names with their project from now on; which definitions they stand for stays as it was found."""
        self.names, self.project = names, project
        self._own.clear()

    # --- what the file defines ---------------------------------------------------------------------------------------

    def full_name(self, scope: Scope) -> str:
        """Full name of the function or class that opens a scope; that of the module ends with a dot."""
        full = self._full.get(id(scope))
        if full is None:
            full = self._full[id(scope)] = f"{self.module}.{_path(scope)}"
        return full

    def class_around(self, node: ast.AST) -> str | None:
        """Full name of the class in whose body or method a node stands."""
        start = scope = self.scan.scope_of(node)
        if id(start) not in self._around:
            while scope.kind != "class" and scope.parent is not None:
                scope = scope.parent
            self._around[id(start)] = self.full_name(scope) if scope.kind == "class" else None
        return self._around[id(start)]

    def class_defined(self, full: str) -> ast.ClassDef | None:
        """The class of that full name when this file defines it."""
        if self._classes is None:
            self._classes = {self.full_name(self.scan.scopes[node]): node for node in self.scan.classes}
        return self._classes.get(full)

    def parameters(self) -> dict[str, tuple[str, ...]]:
        """Positional parameters of the functions of this file, and the fields of its data classes, by full name."""
        if self._parameters is None:
            self._parameters = {}
            for function in self.scan.functions:
                names = tuple(arg.arg for arg in [*function.args.posonlyargs, *function.args.args])
                scope = self.scan.scopes[function]
                if names and names[0] in SELF and not (scope.parent is not None and scope.parent.kind == "class"):
                    names = ("", *names[1:])  # a caller gives a plain function its `self` as well: it binds nothing
                if names:
                    self._parameters[self.full_name(scope)] = names
            for node in self.scan.classes:
                if (fields := class_fields(node)) is not None:
                    constructor = f"{self.full_name(self.scan.scopes[node])}.__init__"
                    self._parameters.setdefault(constructor, ("self", *fields))
        return self._parameters

    def bases(self) -> list[tuple[str, tuple[str, ...]]]:
        """The classes of this file with those bases that may be the project's own, or that tables tell of: `Base:` for
        one that takes keywords of its own alone.
        """
        found = []
        for node in self.scan.classes:
            inits = (each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
            own_way = ":" if any(each.args.kwarg is None for each in inits) else ""
            named = [(self.definition(base), self.names.qualified(base)) for base in node.bases]
            if bases := tuple(own or f"{full}{own_way}" for own, full in named if own or full in classes_told_of()):
                found.append((self.full_name(self.scan.scopes[node]), bases))
        return found

    # --- what names stand for ----------------------------------------------------------------------------------------

    def project_name(self, full: str) -> str | None:
        """A full name as the project knows it, where it is defined; None when it leads out of the project."""
        known = self.project.canonical(full)
        if not self._is_below_a_module(known):
            return None
        settled = self.project.reach.graph.settled(known) if self.project.known else known
        return settled if self._is_below_a_module(settled) else known

    def _is_below_a_module(self, full: str) -> bool:
        while full:
            if full in self.project.modules or full == self.module:
                return True
            full = full.rpartition(".")[0]
        return False

    def own_name(self, full: str) -> str | None:
        """As `project_name`; as long as the project is not known, also what may turn out to be its own."""
        if not self.project.known and full.partition(".")[0] in LIBRARIES:
            return None
        if full not in self._own:
            known = self.project_name(full)
            self._own[full] = full if known is None and not self.project.known else known
        return self._own[full]

    def definition(self, node: ast.expr, of_instances: bool = True) -> str | None:
        """Full name of the function or class that an expression names, when it is the project's own.

        With `of_instances` also the methods of names that are bound to an instance.
        """
        if isinstance(node, ast.Name):
            scope = self.scan.scope_of(node)
            key = (id(scope), node.id)
            if key not in self._definitions:
                self._definitions[key] = self._definition_of_name(node.id, scope)
            return self._definitions[key]
        if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
            if isinstance(node.value, ast.Name) and node.value.id in SELF:
                owner = self.class_around(node)
                return f"{owner}.{node.attr}" if owner else None
            full = self.names.qualified(node)
            if full:
                return self.own_name(full)
            if of_instances and isinstance(node.value, ast.Name):
                owner = self.class_named(node.value)
                return f"{owner}.{node.attr}" if owner is not None else None
        return None

    def _definition_of_name(self, name: str, scope: Scope) -> str | None:
        found = self.names.lookup(name, scope)
        if found is None:
            return None
        owner, bindings = found
        for binding in bindings:
            if binding.kind in ("def", "class"):
                return ".".join(part for part in (self.module, _path(owner), name) if part)
            if binding.kind == "import":
                return self.own_name(binding.target)
        return None

    def class_named(self, node: ast.Name) -> str | None:
        """Full name of the class that a name is bound to, or of whose call its only value is; None when unknown."""
        match self.names.bindings_of(node):
            case [Binding(kind="class")]:
                return self.definition(node)
            case [Binding(kind="assign", node=store)] if isinstance(value := assigned_value(store), ast.Call):
                # Not by way of other instances: `x = x.y()` would lead back here.
                full = self.definition(value.func, of_instances=False)
                if full is not None and full.rpartition(".")[2].lstrip("_")[:1].isupper():
                    return full
        return None


def _path(scope: Scope) -> str:
    """Dotted path of a scope inside its module; empty for the module's own."""
    parts: list[str] = []
    here: Scope | None = scope
    while here is not None and here.kind != "module":
        parts.append(getattr(here.node, "name", f"<{here.kind}>"))
        here = here.parent
    return ".".join(reversed(parts))




def class_fields(node: ast.ClassDef) -> tuple[str, ...] | None:
    """The fields that a constructor made from annotations takes; None for a class with an `__init__` or without any."""
    if any(isinstance(item, ast.FunctionDef) and item.name == "__init__" for item in node.body):
        return None
    fields = tuple(
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    )
    return fields or None
