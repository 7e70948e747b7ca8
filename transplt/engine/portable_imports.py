"""What a file takes from torch.cuda, or torch.profiler, by an import, and where it uses it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from transplt.edits.edit import Edit
from transplt.edits.trees.names import modules_imported
from transplt.edits.trees.removals import without_names
from transplt.edits.unused_imports import Import, is_exported, remove_import
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.syntax.modules import import_base
from transplt.syntax.nodes import dotted, of_kind
from transplt.syntax.scan import FUNCTIONS, parent


@dataclass(frozen=True, slots=True)
class Taken:
    """A name that an import brings, what it stands for, and the longest dotted names on it, with theirs."""

    alias: ast.alias
    full: str
    uses: tuple[tuple[ast.expr, str], ...]


def taken_by(work: Work, node: Import) -> list[Taken]:
    """What an import brings of them; without what others may take from here, or what may be something else too."""
    base = "" if isinstance(node, ast.Import) else f"{import_base(work.scan.path, node)}."
    return [
        Taken(alias, full, uses)
        for alias in node.names
        if f"{(full := base + alias.name)}.".startswith(("torch.cuda.", "torch.profiler."))
        and isinstance(parent(node), (ast.Module, *FUNCTIONS))
        and (uses := _uses(work, node, alias, full)) is not None
    ]


def _uses(work: Work, node: Import, alias: ast.alias, full: str) -> tuple[tuple[ast.expr, str], ...] | None:
    """The uses of a name; None where they cannot all be told. `import torch.cuda` brings torch, whose uses stand for
    themselves.
    """
    if _is_plain(node, alias):
        return () if len(node.names) == 1 else None
    local, scope = alias.asname or alias.name, work.scan.scope_of(node)
    if [each.node for each in scope.bindings.get(local, ())] != [node]:
        return None
    if scope is work.scan.root and is_exported(work, local):
        return None
    found = []
    for name in work.scan.names.get(local, ()):
        bound = work.names.lookup(local, work.scan.scope_of(name))
        if bound is not None and bound[0] is scope:
            links = dotted(name)
            found.append((links[-1], ".".join([full, *(each.attr for each in of_kind(ast.Attribute, links))])))
    return tuple(found)


def _is_plain(node: Import, alias: ast.alias) -> bool:
    return isinstance(node, ast.Import) and not alias.asname


def without(work: Work, node: Import, gone: Sequence[ast.alias], code: str, group: str) -> list[Edit]:
    """The edits by which an import brings some names no more; `import torch.cuda` becomes `import torch`, unless that
    stands there too. None where the statement cannot go: a cell of a notebook keeps its lines.
    """
    if _is_plain(node, gone[0]):
        bound = work.scan.root.bindings.get("torch", ())
        if not any(each.node is not node and parent(each.node) is work.scan.tree for each in bound):
            said = f"import {gone[0].name} -> torch"
            return [Edit(node, code, said, modules_imported({0: "torch"}), api=gone[0].name, group=group)]
    writer = Writer(work, group, code, "")
    names = [alias.asname or alias.name for alias in gone]
    message = f"nothing uses {' and '.join(names)} any more"
    if len(gone) < len(node.names):
        writer.rewrite(node, code, message, without_names(*names))
    elif work.scan.path.endswith(".py") and writer.fits(node):
        remove_import(writer, node, code, message)
    return [each for each in writer.found if isinstance(each, Edit)]
