"""Where a file has the names that a rule with `definitions` renames, and what would keep it from being certain."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from transplt.flow.definition_facts import NameUse
from transplt.flow.facts import ProjectFacts
from transplt.flow.libraries import LIBRARIES
from transplt.flow.own_names import OwnNames
from transplt.syntax.modules import import_base, module_name
from transplt.syntax.names import IMPORT_CALLS, Names
from transplt.syntax.nodes import dotted, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, Scan, parent
from transplt.syntax.scopes import Binding

#: A use, and what of the file is renamed: a node, a byte range, or nothing.
Placed = tuple[NameUse, ast.expr | tuple[int, int] | None]
_DYNAMIC = ("globals", "vars", "locals", "eval", "exec")


@dataclass(slots=True)
class _File:
    scan: Scan
    names: Names = field(init=False)
    own: OwnNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = Names(self.scan)
        self.own = OwnNames(self.scan, self.names, ProjectFacts(), module_name(self.scan.path))

    def use(self, name: str, kind: str, full: str, node: ast.AST | None = None, gives: str = "") -> NameUse:
        return NameUse(name, kind, full, self.scan.path, getattr(node, "lineno", 1), gives)

    def inside(self, name: str) -> str:
        """The full name of something at the top of this file."""
        return f"{self.own.module}.{name}" if self.own.module else name


def definition_uses(scan: Scan, rules: Iterable[tuple[str, str]], ignored: bool) -> Iterator[Placed]:
    """All that a file says about the names of rules, given as (old, new), with the places that a rename changes.

    `ignored`: settings or comments may switch edits of the file off.
    """
    file, pairs = _File(scan), tuple(rules)
    yield from ((use, None) for use in _of_the_file(file))
    for name in sorted({old.rpartition(".")[2] for old, _ in pairs}):
        for finder in (_definitions, _imports, _loads, _attributes, _strings):
            yield from finder(file, name)
        if ignored:
            yield file.use(name, "ignored", ""), None
    for new in sorted({new for _, new in pairs}):
        if scan.binds(new) or new in scan.names:
            yield file.use("", "new", new), None
        if new in scan.attributes or any(new in scan.scopes[node].bindings for node in scan.classes):
            yield file.use("", "new attribute", new), None


def _of_the_file(file: _File) -> Iterator[NameUse]:
    """What holds for any name: classes with their bases, stars, modules that are handed on, names made at run time."""
    for cls in file.scan.classes:
        bases = [file.own.definition(base) or file.names.qualified(base) or ast.unparse(base) for base in cls.bases]
        bases += [f"({keyword.arg}=)" for keyword in cls.keywords]
        yield file.use("", "class", file.own.full_name(file.scan.scopes[cls]), cls, ",".join(bases))
    for node in file.scan.imports:
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            yield file.use("", "star", import_base(file.scan.path, node), node)
    seen = set()
    for named in file.scan.names.values():
        for name in named:
            if file.names.import_of(name) is None:
                continue
            full = file.names.qualified(dotted(name)[-1])
            if full and full not in seen and full.partition(".")[0] not in LIBRARIES:
                seen.add(full)
                yield file.use("", "escape", full, name)
    for call in file.scan.calls:
        last = last_name(call.func)
        if last in IMPORT_CALLS and not (call.args and string_of(call.args[0])):
            yield file.use("", "import_module", "", call)
        elif last == "getattr" and not (len(call.args) > 1 and string_of(call.args[1])):
            yield file.use("", "getattr", "", call)
        elif isinstance(call.func, ast.Name) and last in _DYNAMIC:
            yield file.use("", "dynamic", "", call)
    for attribute in file.scan.attributes.get("modules", ()):
        if file.names.qualified(attribute) == "sys.modules":
            yield file.use("", "import_module", "", attribute)


def _definitions(file: _File, name: str) -> Iterator[Placed]:
    bound = file.scan.root.bindings.get(name, ())
    yield from _bound(file, name, file.inside(name), bound, "function")
    for cls in file.scan.classes:
        scope = file.scan.scopes[cls]
        yield from _bound(file, name, f"{file.own.full_name(scope)}.{name}", scope.bindings.get(name, ()), "method")
    if file.scan.declares_outward:
        for node in ast.walk(file.scan.tree):
            if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
                yield file.use(name, "global", "", node), None


def _bound(file: _File, name: str, full: str, bound: Iterable[Binding], kind: str) -> Iterator[Placed]:
    every = list(bound)
    for binding in every:
        if binding.kind in ("def", "class"):
            yield file.use(name, kind, full, binding.node), _name_in(file, binding.node, name)
        elif binding.kind != "import":
            yield file.use(name, "other", full, binding.node), None
        if len(every) > 1:
            yield file.use(name, "twice", binding.target or full, binding.node), None


def _name_in(file: _File, node: ast.AST, name: str) -> tuple[int, int] | None:
    """Where the name of a `def` or `class` stands: behind the word, and above its parameters."""
    assert isinstance(node, (*FUNCTIONS, ast.ClassDef))
    start = file.scan.source.extent(node)[0]
    found = re.compile(rb"(?:async\s+)?(?:def|class)[\s\\]+").match(file.scan.source.utf8, start)
    if found is None:
        return None
    end = found.end() + len(name.encode())
    return (found.end(), end) if file.scan.source.utf8[found.end() : end] == name.encode() else None


def _imports(file: _File, name: str) -> Iterator[Placed]:
    for node in file.scan.imports:
        if not isinstance(node, ast.ImportFrom):
            continue
        scope = file.scan.scope_of(node)
        for alias in node.names:
            if alias.name != name:
                continue
            full = f"{import_base(file.scan.path, node)}.{name}".lstrip(".")
            passes = file.inside(name) if scope is file.scan.root and alias.asname in (None, name) else ""
            (start, end), length = file.scan.source.extent(alias), len(name.encode())
            use = file.use(name, "import", full, node, passes)
            yield use, (start, start + length)
            if alias.asname == name:  # `import f as f` says that it is passed on: the second name follows
                yield use, (end - length, end)


def _loads(file: _File, name: str) -> Iterator[Placed]:
    for node in file.scan.names.get(name, ()):
        found = file.names.lookup(name, file.scan.scope_of(node))
        if found is None:
            continue
        owner, bindings = found
        for binding in bindings:
            if binding.kind == "import" and binding.target.rpartition(".")[2] == name:
                yield file.use(name, "load", binding.target, node), node
                break
            if binding.kind in ("def", "class") and owner.kind in ("module", "class"):
                full = file.inside(name) if owner.kind == "module" else f"{file.own.full_name(owner)}.{name}"
                yield file.use(name, "load", full, node), node
                break


def _attributes(file: _File, name: str) -> Iterator[Placed]:
    for node in file.scan.attributes.get(name, ()):
        full = file.own.definition(node)
        if full is None and file.names.qualified(node) is not None:
            continue  # a library's
        match node.value:
            case ast.Call(func=func, args=[]) if full is None and last_name(func) == "super":
                around = file.own.class_around(node)
                full = f"{around}.{name}" if around else None
        if full is None:
            yield file.use(name, "unknown", "", node), None
        else:
            yield file.use(name, "attribute", full, node), node


def _strings(file: _File, name: str) -> Iterator[Placed]:
    if name.encode() not in file.scan.source.utf8:
        return
    word = re.compile(rf"(?<![\w/-]){re.escape(name)}(?![\w/-])(?!\.py\b)")
    for node in ast.walk(file.scan.tree):
        match node:
            case ast.Constant(value=str() as text) if word.search(text):
                if text == name and is_listed(node):
                    yield file.use(name, "all", file.inside(name), node), node
                elif not isinstance(parent(node), ast.Expr) and not re.search(r"\s", text.strip()):
                    yield file.use(name, "string", "", node), None


def is_listed(node: ast.expr) -> bool:
    """True for an element of `__all__`, of what is added to it, and of what it is given to append."""
    above = parent(node)
    if isinstance(above, (ast.List, ast.Tuple)):
        above = parent(above)
    if isinstance(above, ast.BinOp):
        above = parent(above)
    match above:
        case ast.Assign():
            return any(last_name(target) == "__all__" for target in above.targets)
        case ast.AnnAssign() | ast.AugAssign():
            return last_name(above.target) == "__all__"
        case ast.Call(func=ast.Attribute(value=listed)):
            return last_name(listed) == "__all__"
    return False
