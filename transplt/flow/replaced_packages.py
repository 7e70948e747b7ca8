"""Whether an adaptor takes over all that a project has of a package."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.base.text.source import UnreadableSource
from transplt.flow.facts import ProjectFacts
from transplt.flow.gates.optional_imports import can_fail
from transplt.rules.taken_over import Package
from transplt.syntax.files import File
from transplt.syntax.modules import import_base
from transplt.syntax.names import Names
from transplt.syntax.scan import parent

#: torch's own attention.
SDPA = "torch.nn.functional.scaled_dot_product_attention"


def reads(package: Package, names: Names) -> dict[int, tuple[ast.expr, str]]:
    """The dotted names of a file that something takes the place of, with their full names, by the names (`id`) that
    they begin with.
    """
    found: dict[int, tuple[ast.expr, str]] = {}
    for name, full in names.references():
        if not package.holds(full):
            continue
        node: ast.expr = name
        while not package.knows(full):
            above = parent(node)
            if not isinstance(above, ast.Attribute) or above.value is not node:
                break
            node, full = above, f"{full}.{above.attr}"
        if package.knows(full) and isinstance(getattr(node, "ctx", None), ast.Load):
            found[id(name)] = node, full
    return found


def is_question(name: ast.Name) -> bool:
    """True for a name that is compared with None: `xops is not None`."""
    match parent(name):
        case ast.Compare(left=asked, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return asked is name
    return False


def is_taken_over(package: Package, project: ProjectFacts, *, but: str = "", needed: bool = False) -> bool:
    """True where files of a project, `but` one, import a package, and nothing of it but what is taken over; `needed`:
    and what the program can do without.
    """
    word, found = package.root.encode(), False
    for path, text in project.sources.items():
        if path == but or word not in text or not path.endswith(".py"):
            continue
        try:
            file = File.of(path, text)
        except UnreadableSource:
            return False
        for node, known in _wanted(file, package):
            if not known and not (needed and can_fail(node)):
                return False
            found = found or known
    return found


def _wanted(file: File, package: Package) -> Iterator[tuple[ast.stmt, bool]]:
    """The import of each name that a file takes from a package, and whether something takes its place."""
    known = reads(package, file.names)
    for node in file.scan.imports:
        base = (import_base(file.path, node) or "") if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            full = f"{base}.{alias.name}" if base else alias.name
            if not package.holds(base or full):
                continue
            local = alias.asname or (alias.name if base else alias.name.partition(".")[0])
            loads = [use for use in file.scan.names.get(local, ()) if isinstance(use.ctx, ast.Load)]
            read = package.has_module(full) and all(id(use) in known or is_question(use) for use in loads)
            yield node, read or package.knows(full)
