"""Imports that nothing needs any more after what used them was replaced.

Two questions with one answer. `drop_unused` is for names of modules and classes (optimizers, clipping, flags): an
import at module level goes when the file reads its name nowhere else, and no other file does. `drop_functions` is for
functions whose calls were rewritten (attention, rotary embeddings, gates), which are imported in functions too: what
others read counts only where the file lists it for them, and all names of a statement are one edit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from transplt.edits.lines import owns_its_lines, whole_lines
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.syntax.asks import root_name
from transplt.syntax.modules import module_name
from transplt.syntax.scan import FUNCTIONS, parent, statement
from transplt.trees.names import without_names

Import = ast.Import | ast.ImportFrom


def drop_unused(writer: Writer, replaced: Iterable[ast.expr], code: str) -> None:
    """Take out the imports whose last uses are the expressions that were replaced."""
    work = writer.work
    by_statement: dict[Import, list[str]] = {}
    for name, roots in sorted(_roots(replaced).items()):
        node = _only_import(work, name)
        if node is None or any(use not in roots for use in work.scan.names.get(name, ())) or _is_exported(work, name):
            continue
        by_statement.setdefault(node, []).append(name)
    for node, names in by_statement.items():
        message = f"nothing uses {', '.join(names)} any more"
        if len(names) == len(node.names):
            if work.take(node):
                _remove(writer, node, code, message)
            continue
        aliases = {alias.asname or alias.name: alias for alias in node.names}
        if free := [name for name in names if work.take(aliases[name])]:
            writer.rewrite(node, code, message, without_names(*free))


def drop_functions(writer: Writer, called: Iterable[ast.expr], code: str) -> list[ast.stmt]:
    """Take out what only the functions of rewritten calls were imported for; the statements that go as a whole."""
    work = writer.work
    by_statement: dict[Import, list[str]] = {}
    for name, roots in _roots(called).items():
        node = certain_import(work, roots[0])
        if node is None or work.settings.style == "portable" or _is_listed(work, name):
            continue
        scope = work.names.lookup(name, work.scan.scope_of(roots[0]))
        loads = [
            load for load in work.scan.names.get(name, ()) if work.names.lookup(name, work.scan.scope_of(load)) == scope
        ]
        if len(loads) == len(roots) and id(node) not in work.taken:
            by_statement.setdefault(node, []).append(name)
    removed: list[ast.stmt] = []
    for node, names in by_statement.items():
        message = f"import of {', '.join(names)}, which nothing needs any more"
        work.take(node)
        if len(names) == len(node.names):
            _remove(writer, node, code, message)
            removed.append(node)
        else:
            writer.rewrite(node, code, message, without_names(*names))
    return removed


def certain_import(work: Work, name: ast.Name) -> Import | None:
    """The import that brings a name, when it is the only one and runs whenever its block does."""
    found = work.names.lookup(name.id, work.scan.scope_of(name))
    if found is None or len(found[1]) != 1 or found[1][0].kind != "import":
        return None
    node = found[1][0].node
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return None
    return node if isinstance(parent(node), (ast.Module, *FUNCTIONS)) else None


def _roots(nodes: Iterable[ast.expr]) -> dict[str, list[ast.Name]]:
    """The names that dotted names begin with, but torch."""
    found: dict[str, list[ast.Name]] = {}
    for node in nodes:
        root = root_name(node)
        if root is not None and root.id != "torch":
            found.setdefault(root.id, []).append(root)
    return found


def _remove(writer: Writer, node: Import, code: str, message: str) -> None:
    """Take an import out; at the head of a function with the empty lines behind it."""
    above, source = parent(node), writer.work.source
    assert isinstance(above, (ast.Module, *FUNCTIONS))
    only = len(above.body) == 1
    if only or above.body[0] is not node or isinstance(above, ast.Module):
        writer.remove(node, code, message, only=only)
        return
    start, end = whole_lines(source, node)
    rest = source.utf8[end:].lstrip(b"\r\n")
    writer.take_out((start, len(source.utf8) - len(rest)), code, message)


def _only_import(work: Work, name: str) -> Import | None:
    """The import statement that binds a name of the module, when nothing else does."""
    bindings = work.scan.root.bindings.get(name, [])
    elsewhere = any(name in scope.bindings for scope in work.scan.scopes.values() if scope is not work.scan.root)
    if len(bindings) != 1 or bindings[0].kind != "import" or elsewhere:
        return None
    node = statement(bindings[0].node)
    if not isinstance(node, (ast.Import, ast.ImportFrom)) or not isinstance(parent(node), ast.Module):
        return None
    dotted = isinstance(node, ast.Import) and any("." in alias.name and not alias.asname for alias in node.names)
    return node if not dotted and owns_its_lines(work.source, node) else None


def _is_exported(work: Work, name: str) -> bool:
    """True for a name that the file lists for others, or that one of them reads."""
    full = f"{module_name(work.scan.path)}.{name}"
    found = (parent(binding.node) for binding in work.scan.root.bindings.get("__all__", ()))
    return _is_in(name, found) or full in work.project.used_names or work.scan.path.endswith("__init__.py")


def _is_listed(work: Work, name: str) -> bool:
    """True for a name that the file lists for others."""
    found = (
        node.value
        for node in work.scan.tree.body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    )
    return _is_in(name, found) or work.scan.path.endswith("__init__.py")


def _is_in(name: str, nodes: Iterable[ast.AST]) -> bool:
    return any(isinstance(each, ast.Constant) and each.value == name for node in nodes for each in ast.walk(node))
