"""Imports that nothing needs any more after what used them was replaced."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from transplt.edits.indenting import owns_its_lines
from transplt.edits.rewrite import Change
from transplt.edits.work import Work
from transplt.edits.writing import Writer
from transplt.syntax.modules import module_name
from transplt.syntax.scan import parent
from transplt.trees.lazy import cst
from transplt.trees.transform import CannotRewrite, Transform


def drop_unused(writer: Writer, replaced: Sequence[ast.expr], code: str) -> None:
    """Take out the imports whose last uses are the expressions that were replaced."""
    work = writer.work
    gone: dict[str, set[int]] = {}
    for node in replaced:
        first = node
        while isinstance(first, ast.Attribute):
            first = first.value
        if isinstance(first, ast.Name):
            gone.setdefault(first.id, set()).add(id(first))
    for name, ids in sorted(gone.items()):
        statement = _only_import(work, name)
        if statement is None or name == "torch" or any(id(use) not in ids for use in work.scan.names.get(name, ())):
            continue
        if _is_exported(work, name):
            continue
        if len(statement.names) > 1:
            alias = next(alias for alias in statement.names if (alias.asname or alias.name) == name)
            if work.take(alias):
                message = f"nothing uses {name} any more"
                work.changes.append(Change(statement, code, message, _without(name), writer.level, asked=writer.asked))
        elif work.take(statement):
            block = parent(statement)
            only = not isinstance(block, ast.Module) and len(getattr(block, "body", [1])) == 1
            writer.remove(statement, code, f"nothing uses {name} any more", only=only)


def _only_import(work: Work, name: str) -> ast.Import | ast.ImportFrom | None:
    """The import statement that binds a name of the module, when nothing else does."""
    bindings = work.scan.root.bindings.get(name, [])
    elsewhere = any(name in scope.bindings for scope in work.scan.scopes.values() if scope is not work.scan.root)
    if len(bindings) != 1 or bindings[0].kind != "import" or elsewhere:
        return None
    node = bindings[0].node
    while not isinstance(node, ast.stmt):
        node = parent(node)
    if not isinstance(node, (ast.Import, ast.ImportFrom)) or not isinstance(parent(node), ast.Module):
        return None
    dotted = isinstance(node, ast.Import) and any("." in alias.name and not alias.asname for alias in node.names)
    return node if not dotted and owns_its_lines(work.source, node) else None


def _is_exported(work: Work, name: str) -> bool:
    full = f"{module_name(work.scan.path)}.{name}"
    listed = any(node.value == name for node in _texts_of_all(work))
    return listed or full in work.project.used_names or work.scan.path.endswith("__init__.py")


def _texts_of_all(work: Work) -> list[ast.Constant]:
    found = []
    for binding in work.scan.root.bindings.get("__all__", ()):
        found += [node for node in ast.walk(parent(binding.node)) if isinstance(node, ast.Constant)]
    return found


def _without(name: str) -> Transform:
    def transform(node: cst.CSTNode) -> cst.CSTNode:
        line = cst.ensure_type(node, cst.SimpleStatementLine)
        statement = line.body[0]
        if not isinstance(statement, (cst.Import, cst.ImportFrom)) or isinstance(statement.names, cst.ImportStar):
            raise CannotRewrite("the import is not where it is expected")
        aliases = list(statement.names)
        at = next(
            (i for i, alias in enumerate(aliases) if (alias.evaluated_alias or alias.evaluated_name) == name), None
        )
        if at is None or len(aliases) == 1:
            raise CannotRewrite(f"the import has no {name}")
        last = aliases.pop(at)
        if at == len(aliases):
            aliases[-1] = aliases[-1].with_changes(comma=last.comma)
        return line.with_changes(body=[statement.with_changes(names=aliases), *line.body[1:]])

    return transform
