"""Imports that nothing needs any more after what used them was replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from transplt.base.grouped import grouped
from transplt.edits.lines import own_lines
from transplt.edits.trees.removals import without_names
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.syntax.modules import module_name
from transplt.syntax.nodes import inner_nodes, root_name
from transplt.syntax.scan import FUNCTIONS, parent

Import = ast.Import | ast.ImportFrom


def drop_unused(writer: Writer, replaced: Iterable[ast.expr], code: str) -> list[ast.stmt]:
    """Take out what only the expressions that were replaced needed; the statements that go as a whole.

    An import stays where the file reads its name elsewhere, lists it for others, or another file takes it from here;
    and in code that runs on CUDA too, where both forms stand.
    """
    work = writer.work
    by_statement: dict[Import, list[str]] = {}
    for name, roots in sorted(_roots(replaced).items()) if work.settings.style != "portable" else ():
        node = certain_import(work, roots[0])
        if node is None or id(node) in work.taken or (node in work.scan.tree.body and is_exported(work, name)):
            continue
        alias = next((each for each in node.names if (each.asname or each.name) == name), node.names[0])
        if "." in alias.name and not alias.asname and len(node.names) > 1:
            continue
        scope_of, lookup = work.scan.scope_of, work.names.lookup
        held = lookup(name, scope_of(roots[0]))
        others = {*work.scan.names.get(name, ())}.difference(roots)
        if not any(lookup(name, scope_of(use)) == held for use in others) and work.take(alias):
            by_statement.setdefault(node, []).append(name)
    removed: list[ast.stmt] = []
    for node, names in by_statement.items():
        message = f"nothing uses {' and '.join(names)} any more"
        if len(names) < len(node.names):
            writer.rewrite(node, code, message, without_names(*names))
        elif writer.fits(node):
            work.take(node)
            remove_import(writer, node, code, message)
            removed.append(node)
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
    return grouped((root.id, root) for root in map(root_name, nodes) if root is not None and root.id != "torch")


def remove_import(writer: Writer, node: Import, code: str, message: str) -> None:
    """Take an import out; at the head of a function or in the first line with the empty lines behind it."""
    above, source = parent(node), writer.work.source
    assert isinstance(above, (ast.Module, *FUNCTIONS))
    only = len(above.body) == 1
    if only or above.body[0] is not node or (isinstance(above, ast.Module) and node.lineno > 1):
        writer.remove(node, code, message, only=only)
        return
    (start, end), parted = own_lines(source, node)
    rest = source.utf8[end:].lstrip(b"\r\n")
    writer.take_out((start, len(source.utf8) - len(rest)), code, message, parted=parted)


def is_exported(work: Work, name: str) -> bool:
    """True for a name of the module that the file lists for others, or that one of them reads."""
    module = module_name(work.scan.path)
    return not work.project.used_names.isdisjoint((f"{module}.{name}", f"{module}.*")) or is_listed(work, name)


def is_listed(work: Work, name: str) -> bool:
    """True for a name that the file lists for others in `__all__`, and for any name of a package's own file."""
    if work.scan.path.endswith("__init__.py"):
        return True
    lists = (parent(binding.node) for binding in work.scan.root.bindings.get("__all__", ()))
    return any(each.value == name for node in lists for each in inner_nodes(node, ast.Constant))
