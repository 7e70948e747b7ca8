"""Imports that nothing needs any more after a tuning has rewritten calls."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from transplt.edits.rewrite import Change
from transplt.edits.work import Work
from transplt.edits.writing import Writer
from transplt.finding import Level
from transplt.syntax.scan import FUNCTIONS, parent
from transplt.trees.lazy import cst
from transplt.trees.transform import Transform


def is_certain(work: Work, name: ast.Name) -> ast.Import | ast.ImportFrom | None:
    """The import that brings a name, when it is the only one and runs whenever its block does."""
    found = work.names.lookup(name.id, work.scan.scope_of(name))
    if found is None or len(found[1]) != 1 or found[1][0].kind != "import":
        return None
    node = found[1][0].node
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return None
    return node if isinstance(parent(node), (ast.Module, *FUNCTIONS)) else None


def is_attempt(work: Work, name: ast.Name) -> ast.Try | None:
    """The `try` at module level that does nothing but import a name, or another of the same package in its place."""
    found = work.names.lookup(name.id, work.scan.scope_of(name))
    if found is None or found[0] is not work.scan.root:
        return None
    nodes = {id(above): above for binding in found[1] if isinstance(above := _attempt_around(binding.node), ast.Try)}
    if len(nodes) != 1 or any(_attempt_around(binding.node) is None for binding in found[1]):
        return None
    node = next(iter(nodes.values()))
    return node if not node.orelse and not node.finalbody else None


def _attempt_around(node: ast.AST) -> ast.Try | None:
    while not isinstance(node, ast.Module):
        node = parent(node)
        if isinstance(node, ast.Try):
            return node if isinstance(parent(node), ast.Module) else None
    return None


def names_of(node: ast.Try) -> set[str] | None:
    """The names that a `try` imports or sets to None; None when it does anything else."""
    names: set[str] = set()
    for line in [*node.body, *(each for handler in node.handlers for each in handler.body)]:
        if isinstance(line, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in line.names)
        elif isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
            names.update(target.id for target in line.targets if isinstance(target, ast.Name))
        elif not isinstance(line, (ast.Pass, ast.Raise)):
            return None
    return names


def root_of(node: ast.expr) -> ast.Name | None:
    """The name that a dotted name begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def drop(writer: Writer, gone: Iterable[ast.expr], code: str) -> list[ast.stmt]:
    """Take out what only the functions of rewritten calls were imported for; the statements that go as a whole."""
    work = writer.work
    roots = [name for node in gone if (name := root_of(node)) is not None and name.id != "torch"]
    by_statement: dict[ast.Import | ast.ImportFrom, list[str]] = {}
    for local in dict.fromkeys(root.id for root in roots):
        same = [root for root in roots if root.id == local]
        found = is_certain(work, same[0])
        if found is None or work.settings.style == "portable" or _is_public(work, local):
            continue
        scope = work.names.lookup(local, work.scan.scope_of(same[0]))
        loads = [
            load
            for load in work.scan.names.get(local, ())
            if work.names.lookup(local, work.scan.scope_of(load)) == scope
        ]
        if len(loads) == len(same) and id(found) not in work.taken:
            by_statement.setdefault(found, []).append(local)
    removed: list[ast.stmt] = []
    for node, names in by_statement.items():
        message = f"import of {', '.join(names)}, which nothing needs any more"
        work.take(node)
        if len(names) == len(node.names):
            _remove(writer, node, code, message)
            removed.append(node)
        else:
            places = [
                index for index, alias in enumerate(node.names) if (alias.asname or alias.name.split(".")[0]) in names
            ]
            work.changes.append(Change(node, code, message, _without(places), Level.UNSAFE, asked=True))
    return removed


def _remove(writer: Writer, node: ast.stmt, code: str, message: str) -> None:
    """Take an import out; at the head of a function with the empty lines behind it."""
    body: list[ast.stmt] = parent(node).body  # type: ignore[attr-defined]
    writer.remove(node, code, message, only=len(body) == 1)
    gone, source = writer.work.deletions[-1], writer.work.source
    if body[0] is node and len(body) > 1 and isinstance(parent(node), FUNCTIONS):
        rest = source.utf8[gone.end :]
        while rest[:1] in (b"\n", b"\r"):
            rest = rest[1:]
        writer.work.deletions[-1] = replace(gone, end=len(source.utf8) - len(rest))


def _is_public(work: Work, name: str) -> bool:
    """True for a name that the file lists for others."""
    return work.scan.path.endswith("__init__.py") or any(
        isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
        and any(isinstance(each, ast.Constant) and each.value == name for each in ast.walk(node.value))
        for node in work.scan.tree.body
    )


def _without(places: list[int]) -> Transform:
    """Take names out of an import statement."""

    def transform(root: cst.CSTNode) -> cst.CSTNode:
        line = cst.ensure_type(root, cst.SimpleStatementLine)
        node = line.body[0]
        assert isinstance(node, (cst.Import, cst.ImportFrom)) and not isinstance(node.names, cst.ImportStar)
        last = node.names[-1]
        kept = [alias for index, alias in enumerate(node.names) if index not in places]
        kept[-1] = kept[-1].with_changes(comma=last.comma)
        return line.with_changes(body=[node.with_changes(names=kept), *line.body[1:]])

    return transform
