"""Imports: `import torch.cuda as tc`, `from torch.cuda.amp import autocast as ac`, `from torch import cuda`.

The local name follows the new one where nothing outside depends on it; else it stays through `as`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Finds, Found, Note
from transplt.edits.fixer import Fixer
from transplt.edits.shared_lines import statement_separator
from transplt.edits.trees.names import modules_imported, names_imported
from transplt.edits.trees.transform import New
from transplt.edits.unused_imports import is_listed
from transplt.edits.work import Work
from transplt.fixers.codemods.imported_names import calls_of, is_called, may_rename, mixed_imports, similar_fits
from transplt.rules.rule import Kind, Rule, needs_torch_npu
from transplt.syntax.modules import import_base
from transplt.syntax.scopes import Binding, Scope

fixer = Fixer(__name__, code="NPU003", rank=110)


def local_target(work: Work, binding: Binding, base: str) -> str:
    """Full name that an imported local name stands for after the import has been rewritten.

    `base` is the full name it stands for now.
    """
    matched = work.rules.resolve(base)
    if matched is None:
        return base
    rule, prefix = matched
    new = new_name(work, rule, prefix)
    if new is None or is_unlisted(rule, prefix, base):
        return base
    if isinstance(binding.node, ast.Import) and "." not in base:
        return base
    return new + base[len(prefix) :]


def new_name(work: Work, rule: Rule, prefix: str) -> str | None:
    """The full new name for a matched prefix; None when the name has none."""
    if not rule.renames:
        return None
    if rule.user and rule.kind is Kind.FUNC and "." not in rule.new:
        # The user replaced the last name only; the module in front of it is still ours to move.
        parent_name = prefix.rpartition(".")[0]
        moved = work.rules.builtin.modules.get(parent_name)
        return f"{moved.new if moved else parent_name}.{rule.new}"
    return rule.new


def is_unlisted(rule: Rule, prefix: str, full: str) -> bool:
    """True for a member of a module whose members are all in our tables, but not this one."""
    return rule.kind is Kind.MODULE and rule.listed and prefix != full


def unlisted(work: Work, node: ast.expr | ast.alias, full: str, more: str = "") -> Note:
    """The note on such a member."""
    return work.note(
        node,
        "NPU601",
        f"{full} is not a known name of torch.cuda",
        level=Level.UNKNOWN,
        api=full,
        help=f"look up the name in the documentation of torch_npu{more}",
        effort=Effort.MEDIUM,
    )


@fixer.on(ast.Import)
def import_statement(work: Work, node: ast.Import | ast.ImportFrom) -> Finds:
    """Rewrite an import statement; before references, which follow the names chosen here."""
    if isinstance(node, ast.Import):
        yield from _plain(work, node)
    else:
        yield from _from(work, node)


# --- import a.b as c ---------------------------------------------------------------------------------------------


def _plain(work: Work, node: ast.Import) -> Finds:
    new_names: dict[int, str] = {}
    first: Rule | None = None
    level = Level.SAFE
    moves: list[str] = []
    for index, alias in enumerate(node.names):
        if alias.name.split(".")[0] not in work.rules.roots:
            continue
        matched = work.rules.resolve(alias.name)
        if matched is None or ("." not in matched[1] and not matched[0].user and matched[0].renames):
            continue
        rule, prefix = matched
        new = new_name(work, rule, prefix)
        if new is None:
            yield from _of_a_name(work, alias, rule, alias.name)
            continue
        target = new + alias.name[len(prefix) :]
        text = _plain_text(work, alias, target)
        if text is None and len(node.names) == 1:
            yield _from_instead(node, alias, rule, target)
            return
        if text is None:
            yield work.note(
                alias,
                rule.code,
                f"{alias.name} is not a module of torch_npu that can be imported",
                api=alias.name,
                help=f"write `from {target.rpartition('.')[0]} import {target.rpartition('.')[2]}`",
            )
            continue
        new_names[index] = text
        first = first or rule
        level = rule.level
        moves.append(f"{alias.name} -> {text.split(' as ')[0]}")
    if first is not None:
        writes = any(needs_torch_npu(text.split(" as ")[0]) for text in new_names.values())
        yield Edit(
            node,
            first.code,
            f"import {', '.join(moves)}",
            modules_imported({index: text.split(" as ")[0] for index, text in new_names.items()}),
            level=level,
            api=node.names[min(new_names)].name,
            writes_npu=writes,
            user=first.user,
            asked=first.similar,
        )


def _from_instead(node: ast.Import, alias: ast.alias, rule: Rule, target: str) -> Edit:
    """`import torch.cuda.nvtx as n` -> `from torch.npu import mstx as n`: the target is an object, no module."""
    module, _, name = target.rpartition(".")
    text = f"from {module} import {name}" + (f" as {alias.asname}" if alias.asname != name else "")
    return Edit(
        node,
        rule.code,
        f"import {alias.name} -> {target}",
        text,
        level=rule.level,
        api=alias.name,
        help=rule.help,
        writes_npu=needs_torch_npu(target),
        user=rule.user,
        asked=rule.similar,
    )


def _plain_text(work: Work, alias: ast.alias, target: str) -> str | None:
    if alias.asname:
        module = work.rules.importable(target)
        return f"{module} as {alias.asname}" if module else None
    root = target.split(".")[0]
    if root != alias.name.split(".")[0]:
        return target
    # Without `as` the statement binds the root only; torch.npu is registered, what lies below is an attribute of it.
    return "torch.npu" if target.startswith("torch.npu.") else target


# --- from a.b import c as d --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Moved:
    """One imported name: where it comes from now, and how it is called here.

    `member`: `module` is a class in the place of a module, from which nothing can be imported.
    """

    module: str
    name: str
    asname: str | None
    rule: Rule | None
    member: bool = False
    taken: bool = False  # of a member: the name of its class means something else here


def _from(work: Work, node: ast.ImportFrom) -> Finds:
    if node.level or id(node) in work.taken:
        return
    base = import_base(work.scan.path, node)
    if base.split(".")[0] not in work.rules.roots and not work.rules.user.last_names:
        return
    scope = work.scan.scope_of(node)
    found: list[Found] = []
    moved = [_move(work, node, alias, base, scope, found) for alias in node.names]
    first_note = next((each for each in found if isinstance(each, Note)), None)
    if first_note is not None:
        # The note of a name that cannot move covers the module in front of it too.
        first_note.extent = (work.source.extent(node)[0], first_note.extent[1])
    yield from found
    changed = [item for item in moved if item.rule is not None]
    if not changed:
        return
    rule = changed[0].rule
    assert rule is not None
    moves = [
        f"{base}.{alias.name} -> {item.module}.{item.name}"
        for alias, item in zip(node.names, moved, strict=True)
        if item.rule is not None
    ]
    writes = any(needs_torch_npu(f"{item.module}.{item.name}") for item in changed)
    differs = dict.fromkeys(item.rule.differs for item in changed if item.rule is not None and item.rule.differs)
    modules = list(dict.fromkeys(item.module for item in moved))
    if first_note is not None:
        # What needs a person goes first: a marker above the statement then stands above its line.
        modules.sort(key=lambda module: any(item.module == module and item.rule is not None for item in moved))
    indent = statement_separator(work.source, node)
    if len(modules) == 1 and not moved[0].member:
        names = [None if item.rule is None else (item.name, item.asname) for item in moved]
        new: New = names_imported(moved[0].module, names)
    else:
        new = _split(moved, modules, indent)
    yield Edit(
        node,
        rule.code,
        f"from {base} import: {', '.join(moves)}" + "".join(f" ({text})" for text in differs),
        new,
        level=rule.level,
        api=f"{base}.{node.names[moved.index(changed[0])].name}",
        help=rule.help,
        writes_npu=writes,
        user=rule.user,
        asked=rule.similar,
    )


def _move(work: Work, node: ast.ImportFrom, alias: ast.alias, base: str, scope: Scope, found: list[Found]) -> _Moved:
    """Where one name comes from; its notes go to `found`."""
    stays = _Moved(base, alias.name, alias.asname, None)
    if alias.name == "*":
        found += _star(work, node, base)
        return stays
    full = f"{base}.{alias.name}"
    local = alias.asname or alias.name
    by_user = work.rules.user.last_names.get(alias.name) if alias.asname is None else None
    if by_user is not None and work.slots.own.project_name(full) is not None:
        by_user = None  # the project's own: its definition would not follow
    matched = work.rules.resolve(full)
    if matched is None and by_user is None:
        return stays
    if matched is None:
        target, rule = full, by_user
    else:
        rule, prefix = matched
        new = new_name(work, rule, prefix)
        if new is None:
            found += _of_a_name(work, alias, rule, full)
            if by_user is None:
                return stays
            target, rule = full, by_user
        elif is_unlisted(rule, prefix, full):
            found.append(unlisted(work, alias, full))
            return stays
        elif (
            rule.otherwise is not None
            and prefix == full
            and not similar_fits(rule, calls := calls_of(work, local, scope))
        ):
            if not all(calls):
                found += work.note_rule(alias, rule.otherwise, full)
            else:  # each call is written, or reported, by itself
                work.once(mixed_imports).update(each for each in scope.bindings.get(local, ()) if each.node is node)
            return stays
        else:
            target = new + full[len(prefix) :]
    if by_user is not None and "." not in by_user.new:
        if not is_called(work, local, scope):
            by_user = None
            if matched is None:
                return stays
        else:
            target, rule = f"{target.rpartition('.')[0]}.{by_user.new}", by_user
    assert rule is not None
    return stays if target == full else _moved_to(work, node, alias, target, rule, scope, found)


def _star(work: Work, node: ast.ImportFrom, base: str) -> Iterator[Note]:
    star = work.rules.resolve(base)
    if star is not None and star[0].renames:
        yield work.note(
            node,
            "NPU402",
            f"`from {base} import *`: the imported names are unknown",
            api=base,
            help="import the used names one by one, then run transplt again",
            effort=Effort.LOW,
        )
    elif star is not None:
        yield from work.note_rule(node, star[0], base)


def _moved_to(
    work: Work, node: ast.ImportFrom, alias: ast.alias, target: str, rule: Rule, scope: Scope, found: list[Found]
) -> _Moved:
    """How an import brings what has the full name `target` now."""
    local = alias.asname or alias.name
    module, _, name = target.rpartition(".")
    importable = work.rules.importable(module)
    package, _, last = module.rpartition(".")
    is_class = bool(package) and last[:1].isupper()  # torch.nn.SyncBatchNorm: what it has is imported as of a module
    if importable is None or is_class:
        taken = module.rpartition(".")[2] in scope.bindings
        return _Moved(module, name, local, rule, member=True, taken=taken)
    module = importable
    if alias.asname is not None or name == local:
        return _Moved(module, name, alias.asname, rule)
    binding = next((binding for binding in scope.bindings.get(local, ()) if binding.node is node), None)
    if binding is not None and may_rename(work, scope, local, name, rule.user):
        work.renamed[binding] = name
        return _Moved(module, name, None, rule)
    if binding is not None:
        work.renamed[binding] = local  # the import brings the new name under the old one: its uses stay
    found.append(work.keep(alias, "import-alias"))
    return _Moved(module, name, local, rule)


def _of_a_name(work: Work, alias: ast.alias, rule: Rule, full: str) -> list[Note]:
    """What a rule says of a name that is imported: a remark where its import runs, and the file never reads it."""
    notes = work.note_rule(alias, rule, full)
    local = alias.asname or alias.name
    runs = full.startswith(("torch.cuda.", "torchvision.")) and rule.code in ("NPU501", "NPU512")
    if rule.user or not runs or "." in local or local in work.scan.names or is_listed(work, local):
        return notes  # a file that takes it from here without a list is reported itself
    return [replace(each, message=f"{each.message}; it is not used", level=Level.INFO, effort=None) for each in notes]


def _split(moved: list[_Moved], modules: list[str], separator: str) -> str:
    """One statement for each module, and an assignment for each name of a class that stands in for a module."""
    lines = []
    for module in modules:
        items = [item for item in moved if item.module == module]
        if items[0].member:
            package, _, holder = module.rpartition(".")
            # Where its name is taken, the class goes by the first of the names, which is the last to be set.
            by = items[0].asname if items[0].taken else holder
            lines.append(f"from {package} import {holder}" + (f" as {by}" if by != holder else ""))
            lines += [f"{item.asname} = {by}.{item.name}" for item in sorted(items, key=lambda item: item.asname == by)]
            continue
        names = [item.name if item.asname in (None, item.name) else f"{item.name} as {item.asname}" for item in items]
        lines.append(f"from {module} import {', '.join(names)}")
    return separator.join(lines)
