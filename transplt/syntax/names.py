"""What a name means where it stands: import aliases, shadowing, doubles, aliases by assignment.

A name resolves only when every binding that can reach it agrees. Bindings that merely replace a failed import
(`except ImportError: amp = None`) do not count against it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from transplt.syntax.nodes import last_name, root_name, string_of
from transplt.syntax.scan import Scan, chain, parent
from transplt.syntax.scopes import Binding, Scope

#: What methods call the object, or the class, that they belong to.
SELF = ("self", "cls")
_BUILTIN_TORCH = "torch"
#: Functions that import the module whose name they are given.
IMPORT_CALLS = ("import_module", "importorskip", "__import__")


@dataclass(slots=True)
class Names:
    """Resolver of one file. `reexports`: full name in the project -> what of torch it stands for; also what torch's own
    modules give to `from x import *`.
    """

    scan: Scan
    reexports: dict[str, str] = field(default_factory=dict)
    _cache: dict[tuple[int, str], str | None] = field(default_factory=dict)
    _meanings: dict[int, str | None] = field(default_factory=dict)
    _full: dict[int, str | None] = field(default_factory=dict)  # by the id of an Attribute
    _references: list[tuple[ast.Name, str]] | None = None
    _uses: dict[str, dict[Scope, list[ast.Name]]] = field(default_factory=dict)

    def qualified(self, node: ast.AST) -> str | None:
        """Full dotted name of a Name or an Attribute chain on a Name, None when it cannot be decided."""
        if type(node) is ast.Name:
            return self.resolve(node.id, self.scan.scope_of(node))
        key = id(node)
        if key not in self._full:
            self._full[key] = self._dotted(node)
        return self._full[key]

    def _dotted(self, node: ast.AST) -> str | None:
        attrs: list[str] = []
        while type(node) is ast.Attribute:
            attrs.append(node.attr)
            node = node.value
        if type(node) is not ast.Name:
            return None
        base = self.resolve(node.id, self.scan.scope_of(node))
        return None if base is None else ".".join([base, *attrs[::-1]])

    def resolve(self, name: str, scope: Scope) -> str | None:
        """Full name that `name` stands for in a scope."""
        key = (id(scope), name)
        if key in self._cache:
            return self._cache[key]
        self._cache[key] = None  # an alias that leads back to itself resolves to nothing
        self._cache[key] = result = self._resolve(name, scope)
        return result

    def references(self) -> list[tuple[ast.Name, str]]:
        """Where a name is read that stands for something, with its full name: by name, then in the scan's order."""
        if self._references is None:
            self._references = []
            names = self.scan.names
            for name in sorted(names if self.scan.root.stars else names.keys() & self._may_resolve()):
                seen: dict[int, str | None] = {}
                for node in names[name]:
                    scope = self.scan.scope_of(node)
                    key = id(scope)
                    if key not in seen:
                        seen[key] = self.resolve(name, scope)
                    if (full := seen[key]) is not None:
                        self._references.append((node, full))
        return self._references

    def _may_resolve(self) -> set[str]:
        """The names of which some binding may lead to a full name (see `_meaning`): most are bound to data."""
        found: set[str] = set()
        aliases: dict[str, list[str]] = {}  # names by the name that what they are given begins with
        for scope in self.scan.scopes.values():
            for name, bindings in scope.bindings.items():
                kind = bindings[0].kind
                if kind == "import" or (len(bindings) > 1 and any(binding.kind == "import" for binding in bindings)):
                    found.add(name)
                elif kind == "assign" and len(bindings) == 1:
                    value = getattr(parent(bindings[0].node), "value", None)
                    if isinstance(value, ast.Call):
                        if last_name(value.func) in IMPORT_CALLS:
                            found.add(name)
                    elif isinstance(value, (ast.Name, ast.Attribute)) and (root := root_name(value)) is not None:
                        aliases.setdefault(root.id, []).append(name)
        stack = list(found)
        while stack:
            for name in aliases.pop(stack.pop(), ()):
                found.add(name)
                stack.append(name)
        return found

    def lookup(self, name: str, scope: Scope) -> tuple[Scope, list[Binding]] | None:
        """The scope that binds a name seen from `scope`, with its bindings there."""
        here: Scope | None = scope
        first = True
        while here is not None:
            if here.kind != "class" or first:
                how = here.outward.get(name)
                if how == "global":
                    root = here.module()
                    return (root, root.bindings[name]) if name in root.bindings else None
                if how is None and name in here.bindings:
                    return here, here.bindings[name]
            # The names of a class are seen by its own statements, not by its methods and comprehensions.
            first = False
            here = here.parent
        return None

    def bindings_of(self, node: ast.AST | None) -> list[Binding]:
        """What binds a name where it stands; nothing where the file does not, and for all that is no name."""
        found = self.lookup(node.id, self.scan.scope_of(node)) if isinstance(node, ast.Name) else None
        return found[1] if found is not None else []

    def uses(self, target: ast.Name) -> list[ast.Name]:
        """Where the variable of a name stands in the file: the names that its own scope binds, `target` among them."""
        return self.uses_in(self.scan.scope_of(target), target.id)

    def uses_in(self, owner: Scope, name: str) -> list[ast.Name]:
        """Where the variable stands that a scope binds by a name; all of that name are looked up once."""
        if name not in self._uses:
            by_scope: dict[Scope, list[ast.Name]] = {}
            for use in self.scan.names.get(name, ()):
                if (bound := self.lookup(name, self.scan.scope_of(use))) is not None:
                    by_scope.setdefault(bound[0], []).append(use)
            self._uses[name] = by_scope
        return self._uses[name].get(owner, [])

    def ends_only(self, node: ast.expr, end: Callable[[ast.expr], bool | ast.Name | None]) -> bool:
        """True when a value, through the variables that are given it, ends in places of one kind, and in no others.

        `end` says of a place whether it is of that kind, or which variable is given the value there; None for one that
        says nothing. What is given to a variable as it is counts as another place. A variable may be made of itself
        (`cmd = "nohup " + cmd`) or of one that is made of it: each place is asked about once.
        """
        pending, seen, found = [node], set[ast.expr](), False
        while pending:
            place = end(pending.pop())
            if place is False:
                return False
            found = found or place is True
            if isinstance(place, ast.Name):
                reads = self.uses(place)
                if not reads or any(isinstance(parent(read), ast.Assign) for read in reads):
                    return False
                pending += (read for read in reads if read not in seen)
                seen.update(reads)
        return found

    def import_of(self, name: ast.Name) -> Binding | None:
        """The import that gives a name its value; the main one when an except clause holds a double."""
        return next((binding for binding in self.bindings_of(name) if binding.kind == "import"), None)

    def _resolve(self, name: str, scope: Scope) -> str | None:
        found = self.lookup(name, scope)
        if found is None:
            # Only `from x import *` can have brought it; torch is torch whatever module passed it on.
            if name == _BUILTIN_TORCH and self.scan.root.stars:
                return name
            return self._from_a_star(name)
        owner, bindings = found
        key = id(bindings)
        if key not in self._meanings:
            self._meanings[key] = None
            self._meanings[key] = self._meaning(name, owner, bindings)
        return self._meanings[key]

    def _from_a_star(self, name: str) -> str | None:
        """What `from x import *` brings under a name: the last one wins, and a module unknown here may be that."""
        doubtful = False
        for star in reversed(self.scan.root.stars):
            full = self.reexports.get(f"{star}.{name}")
            if full is not None:
                return None if doubtful and full == f"{star}.{name}" else full
            doubtful = doubtful or star.partition(".")[0] != _BUILTIN_TORCH
        return None

    def _meaning(self, name: str, owner: Scope, bindings: list[Binding]) -> str | None:
        """What a name stands for by its bindings, whatever scope sees them."""
        targets = {b.target for b in bindings if b.kind == "import"}
        if targets:
            rest = [b for b in bindings if b.kind != "import" and not replaces_failed_import(b)]
            if rest:
                return None
            if len(targets) == 1:
                target = targets.pop()
                return self.reexports.get(target, target)
            return self._double(bindings)
        if len(bindings) == 1 and bindings[0].kind == "assign" and owner.kind in ("module", "function"):
            value = assigned_value(bindings[0].node)
            if isinstance(value, ast.Call):
                return imported_by_call(value)
            if isinstance(value, (ast.Name, ast.Attribute)):
                for alias in reversed(self._aliases(value)):
                    self.resolve(alias.id, self.scan.scope_of(alias))
                full = self.qualified(value)
                # Data (self.cuda, args.x) stays data: only modules, classes and functions of libraries are aliased.
                return full if full is not None and full.split(".")[0] != name else None
        return None

    def _aliases(self, value: ast.expr) -> list[ast.Name]:
        """The aliases that an alias leads to, one after the other: from the last one on, no call waits for many."""
        found: list[ast.Name] = []
        seen: set[int] = set()
        while isinstance(value, (ast.Name, ast.Attribute)) and (root := root_name(value)) is not None:
            scope = self.scan.scope_of(root)
            bound = None if (id(scope), root.id) in self._cache else self.lookup(root.id, scope)
            if bound is None or id(bound[1]) in self._meanings or id(bound[1]) in seen:
                break
            found.append(root)
            seen.add(id(bound[1]))
            next_value = assigned_value(bound[1][0].node) if len(bound[1]) == 1 else None
            if next_value is None:
                break
            value = next_value
        return found

    def _double(self, bindings: list[Binding]) -> str | None:
        """Imports under one name from several places: undecided unless all but one stand in an except clause."""
        main = {b.target for b in bindings if b.kind == "import" and not replaces_failed_import(b)}
        return main.pop() if len(main) == 1 else None


def assigned_value(store: ast.AST) -> ast.expr | None:
    """The expression assigned to a Name in store position by a plain `name = value`, else None."""
    match parent(store):
        case ast.Assign(targets=targets, value=value) if store in targets:
            return value
        case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value) if target is store:
            return value
    return None


def imported_by_call(call: ast.Call) -> str | None:
    """The module that `import_module("a.b")`, `pytest.importorskip("a")` or `__import__("a")` gives, else None."""
    last = last_name(call.func)
    name = string_of(call.args[0]) if last in IMPORT_CALLS and call.args else None
    if not name or name.startswith("."):
        return None
    return name.split(".")[0] if last == "__import__" else name


def replaces_failed_import(binding: Binding) -> bool:
    """True for a binding that stands in for an import that may fail: in an except clause, or `name = None`."""
    node = binding.node
    if binding.kind == "other":
        return False  # `except E as name`, a pattern
    if binding.kind == "assign":
        value = assigned_value(node)
        if isinstance(value, ast.Constant) and value.value in (None, False):
            return True
    while not isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        if isinstance(node, ast.ExceptHandler):
            return True
        above = parent(node)
        if isinstance(above, ast.If) and node in above.orelse and binding.kind in ("assign", "def", "class", "import"):
            return binding.kind != "import" and isinstance(above.test, (ast.Name, ast.Attribute, ast.Call, ast.Compare))
        node = above
    return binding.kind in ("def", "class") and any(isinstance(each, ast.ExceptHandler) for each in chain(binding.node))
