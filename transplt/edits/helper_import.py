"""How a file imports the module with the functions of a port, and where that import stands."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from transplt.base.text.source import Source
from transplt.edits.edit import AtTop, Edit
from transplt.edits.imports import code_begins, import_head, is_own
from transplt.edits.lines import Placed, comments_above, lead_of, line_below, line_start, placed
from transplt.edits.work import Work
from transplt.flow.facts import ProjectFacts
from transplt.flow.helper_place import HelperPlace
from transplt.flow.import_layout import INIT, in_folder, is_below
from transplt.syntax.modules import modules_of
from transplt.syntax.nodes import has_main_guard
from transplt.syntax.scan import FUNCTIONS, parent

_Import = ast.Import | ast.ImportFrom
#: How an import of a module begins that lies in a package.
_OF_PACKAGE = re.compile(r"from (?:\w+\.|\.+)")


def import_line(work: Work, place: HelperPlace, local: str) -> str:
    """The import statement of a file for a module at a place, as `local`."""
    end = "" if local == place.module else f" as {local}"
    if not place.package:
        return f"import {place.module}{end}"
    return f"from {_package(work, place)} import {place.module}{end}"


def from_line(work: Work, place: HelperPlace, names: Sequence[tuple[str, str]]) -> str:
    """The statement of a file that imports some names from a module at a place: (name, name here) of each."""
    every = ", ".join(name if name == local else f"{name} as {local}" for name, local in names)
    if not place.package:
        return f"from {place.module} import {every}"
    package = _package(work, place)
    return f"from {package}{'' if package.endswith('.') else '.'}{place.module} import {every}"


def _package(work: Work, place: HelperPlace) -> str:
    """The package as a file names it: relative inside of it, unless the file names it in full or may be started; one
    that imports nothing of it does as most of the others do. A notebook is part of none.
    """
    top, folder = posixpath.dirname(place.paths[0]), posixpath.dirname(work.scan.path)
    above = posixpath.commonpath([top, folder]) if top and folder else ""
    dots, imported = 1 + folder[len(above) :].count("/"), work.project.placing[work.scan.path].imported
    furthest = max((len(name) - len(name.lstrip(".")) for name in imported), default=0)
    named = place.package.partition(".")[0] in {name.partition(".")[0] for name in imported}
    if not work.scan.path.endswith(".py") or (0 < furthest < dots and named):
        return place.package  # what lies further away than the file goes by dots
    if not is_below(f"{folder}/", top):
        inside = place.package.count(".") > top[len(above) :].count("/") - 1
        known = furthest and inside and in_folder(above, INIT, "") in work.project.placing
        return "." * dots + top[len(above) + 1 :].replace("/", ".") if known else place.package
    full = named or has_main_guard(work.scan.tree) or work.project.once(_mostly_in_full, top, place.package)
    return place.package if full and not furthest else "." * dots


def _mostly_in_full(project: ProjectFacts, folder: str, package: str) -> bool:
    """Whether the files of the outermost package around a folder name it more often than they import relatively."""
    first, *inner = package.split(".")
    above = "/".join(folder.split("/")[: -len(inner) or None])
    inside = (each for path, each in project.placing.items() if is_below(path, above))
    names = [name for each in inside for name in each.imported]
    full = sum(name.partition(".")[0] == first for name in names)
    return full > sum(name.startswith(".") for name in names)


def imported_as(work: Work, place: HelperPlace) -> str:
    """The name by which a file imports the module already; empty where it does not."""
    for local, bindings in sorted(work.scan.root.bindings.items()):
        if len(bindings) == 1 and bindings[0].kind == "import" and not local.startswith("_"):
            target = bindings[0].target
            if target.rpartition(".")[2] == place.module and work.project.path_of(target) in ("", *place.paths):
                return local
    return ""


def taken_as(work: Work, place: HelperPlace | None) -> dict[str, str]:
    """The names by which a file has what it takes from the module already. Without a place it is a module that has the
    type of the device, or the namespace.
    """
    found: dict[str, dict[str, str]] = {}
    for local, bindings in work.scan.root.bindings.items():
        if len(bindings) == 1 and bindings[0].kind == "import":
            module, _, name = bindings[0].target.rpartition(".")
            found.setdefault(module, {})[name] = local
    if place is None:
        return next((each for each in found.values() if {"DEVICE_TYPE", "device_module"} & each.keys()), {})
    ours = (module for module in found if module.rpartition(".")[2] == place.module)
    return {k: v for each in ours if work.project.path_of(each) in ("", *place.paths) for k, v in found[each].items()}


def helper_imports(work: Work, edits: Iterable[Edit], written: Sequence[tuple[ast.AST, str]]) -> list[Placed]:
    """The imports of such modules, below all others at the top of the file and above the first use there. `written`:
    the nodes that edits change or add to, and what stands there then. What is taken from one module is one statement.
    """
    wanted: dict[str, Edit] = {}
    for edit in edits:
        if isinstance(edit.where, AtTop) and edit.where.called:
            wanted.setdefault(str(edit.new), edit)
    found = []
    together: dict[str, tuple[list[str], list[ast.AST], Edit]] = {}
    for line, edit in sorted(wanted.items()):
        assert isinstance(edit.where, AtTop)
        called = edit.where.called
        word = re.compile(rf"\b{re.escape(called.rstrip('.'))}\b")  # a piece is cut down to what differs
        uses = [node for node, text in written if word.search(text)]
        if edit.where.always and not uses and "#" in line:
            found.append(_placed(work, edit, line, []))
        elif uses or edit.where.always:
            module, _, name = line.partition(" import " if not called.endswith(".") else "\n")
            names, nodes, _ = together.setdefault(module, ([], [], edit))
            names += [name] if name else []
            nodes += uses
    for module, (names, nodes, edit) in together.items():
        beside = _taken_beside(work, edit, module, names, written) if names else None
        line = taking(module, names, work.settings.line_length)
        said = replace(edit, message=edit.message.replace(str(edit.new), line))
        found.append(beside or _placed(work, said, line, nodes))
    return found


def taking(module: str, names: Sequence[str], limit: int) -> str:
    """One statement that takes some names from a module, in the order of isort."""
    ordered = sorted(names, key=_by_kind)
    line = f"{module} import {', '.join(ordered)}" if names else module
    if len(line) <= limit or not names:
        return line
    return f"{module} import (\n" + "".join(f"    {name},\n" for name in ordered) + ")"


def _by_kind(taken: str) -> tuple[bool, bool, str]:
    """The order of isort: constants, classes, all else."""
    name = taken.partition(" ")[0]
    return not (name.isupper() and len(name) > 1), not taken[:1].isupper(), taken


def _taken_beside(
    work: Work, edit: Edit, module: str, names: Sequence[str], written: Sequence[tuple[ast.AST, str]]
) -> Placed | None:
    """The names in the first statement by which the file takes others from the module, where it stays one line."""
    source = work.source
    taking = (node for node in work.scan.tree.body if isinstance(node, ast.ImportFrom) and node.names[0].name != "*")
    node = next((each for each in taking if f"from {'.' * each.level}{each.module or ''}" == module), None)
    if node is None or any(each is node or top_of(each).lineno < node.lineno for each, _ in written):
        return None
    start, end = source.extent(node.names[0])[0], source.extent(node.names[-1])[1]
    had, more = source.slice(start, end).split(", "), sorted(names, key=_by_kind)
    new = ", ".join([*had, *more] if had != sorted(had, key=_by_kind) else sorted([*had, *more], key=_by_kind))
    longer = len(source.line_text(node.lineno)) + len(new) - len(", ".join(had))
    if node.lineno != node.end_lineno or longer > work.settings.line_length:
        return None
    message = edit.message.replace(str(edit.new), f"{module} import {', '.join(more)}")
    return placed(replace(edit, message=message), start, new, end)


def _placed(work: Work, edit: Edit, line: str, uses: Sequence[ast.AST]) -> Placed:
    source, body = work.source, _begun_again(work, uses)
    heads, newline = _heads(body, uses), source.newline()
    line = line.replace("\n", newline)
    if not heads:
        offset = code_begins(source, body)
        if body and not work.scan.path.endswith(".py"):  # above the first cell's comments: they are no head of a file
            first = source.position(offset)[0]
            offset = line_start(source, first - comments_above(source, first))
        return placed(edit, offset, f"{lead_of(source, offset)}{line}{newline}{newline}")
    own = _own_together(work, heads, line)
    if (among := _in_order(source, own, line)) is not None:
        return placed(edit, among, f"{line}{newline}")
    offset = line_below(source, (own or heads)[-1])
    while (below := re.match(rb"[ \t]+#[^\n]*\n", source.utf8[offset:])) is not None:
        offset += below.end()
    apart = not own and work.settings.style == "portable"
    alone = apart and source.utf8[offset : offset + 1] not in (b"", b"\n", b"\r")
    block = f"{'' if own else newline}{line}{newline}{newline if alone else ''}"
    return placed(edit, offset, f"{lead_of(source, offset)}{block}")


def _in_order(source: Source, own: list[_Import], line: str) -> int | None:
    """Where an import goes among the project's own; None below them."""
    (new,) = ast.parse(line).body
    assert isinstance(new, (ast.Import, ast.ImportFrom))
    keys = [_key(node) for node in own]
    compared = None if keys == sorted(keys) else 1  # where they have no order, relative ones still come last
    ranked = [key[:compared] for key in keys]
    at = next((at for at, rank in enumerate(ranked) if rank > _key(new)[:compared]), None)
    if at is None or ranked != sorted(ranked):
        return None
    after, before = own[at], own[max(at - 1, 0)]
    if _key(after)[0] and not _key(before)[0] and not _key(new)[0]:  # parted by an empty line
        return line_below(source, before)
    # A comment stays with what it explains.
    explained = source.line_text(after.lineno - 1).lstrip().startswith("#")
    return None if explained else line_start(source, after.lineno)


def _begun_again(work: Work, uses: Iterable[ast.AST]) -> list[ast.stmt]:
    """What people run of a file up to its first use: a notebook from its last import of torch above."""
    body, first = work.scan.tree.body, min((top_of(node).lineno for node in uses), default=0)
    bound = {binding.node for binding in work.scan.root.bindings.get("torch", ())}
    at = [index for index, node in enumerate(body) if node in bound and node.lineno < first]
    return body if work.scan.path.endswith(".py") or not at else body[at[-1] :]


def _heads(body: list[ast.stmt], uses: Iterable[ast.AST]) -> list[ast.Import | ast.ImportFrom]:
    """The imports at the top and above the first use there, without the last where the next line is about it."""
    tops = [top_of(node) for node in uses]
    at_once = [node.lineno for node in tops if not isinstance(node, (*FUNCTIONS, ast.ClassDef))]
    limit = min(at_once, default=body[-1].lineno + 1 if body else 0)
    heads = [node for node in import_head(body, set()) if node.lineno < limit]
    while len(heads) > 1 and _is_used_below(body, heads[-1]):
        del heads[-1]
    return heads


def _is_used_below(body: list[ast.stmt], node: ast.Import | ast.ImportFrom) -> bool:
    """True where the next line uses what an import brings: `import warnings`, and below it a filter."""
    below = next(iter(body[body.index(node) + 1 :]), None)
    if below is None or isinstance(below, (ast.Import, ast.ImportFrom)) or below.lineno - 1 != node.end_lineno:
        return False
    brought = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return any(isinstance(each, ast.Name) and each.id in brought for each in ast.walk(below))


def _own_together(work: Work, heads: Sequence[ast.Import | ast.ImportFrom], line: str) -> list[_Import]:
    """The imports of the project's own modules that stand below all others, with nothing between them; else the last
    such that take more of the package of the new one, where only imports stand below.
    """
    body = work.scan.tree.body
    found: list[_Import] = []
    below = heads[-1]
    for node in reversed(heads):
        own = is_own(work, node) or any(map(work.project.path_of, modules_of(node)))
        if body.index(below) - body.index(node) > 1 or (found and not own):
            break
        found[:0] = [node] if own else []
        below = node
    package = _OF_PACKAGE.match(line)
    of_it = package is not None and any(package[0] in work.text(node) for node in found)
    return found if found and (found[-1] is heads[-1] or of_it) else []


def _key(node: ast.Import | ast.ImportFrom) -> tuple[bool, bool, int, str]:
    """The order of imports as isort has it: those by full names first, plain ones above the others; then relative ones,
    the furthest first.
    """
    if isinstance(node, ast.Import):
        return False, False, 0, node.names[0].name.lower()
    return node.level > 0, True, -node.level, (node.module or "").lower()


def top_of(node: ast.AST) -> ast.stmt:
    """The statement of the module that holds a node."""
    while not isinstance(parent(node), ast.Module):
        node = parent(node)
    assert isinstance(node, ast.stmt)
    return node
