"""The users' rules for a bare name leave what the project itself calls by it.

A rule for `func` means the calls of `func`, whoever it belongs to. Where the project defines a `func` of its own, the
definition would not follow a new name, and its parameters are not those that the rule speaks of; so its calls stay, and
a finding gives the reason. A rule for the module `utils` is not for a `utils.py` of the project either. Methods and
dotted names are what the rule takes them for.
"""

from __future__ import annotations

import ast
from pathlib import PurePath

from transplt.edits.edit import Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.rules.rule import Rule
from transplt.syntax.scopes import Binding

fixer = Fixer(__name__, code="NPU005", rank=105)


def own_definition(work: Work, func: ast.expr) -> str:
    """Where the project gives a bare callee its meaning; empty for libraries' names, unknown ones and dotted names."""
    if not isinstance(func, ast.Name):
        return ""
    scope = work.scan.scope_of(func)
    found = work.names.lookup(func.id, scope)
    if found is None:
        stars = (star for star in work.scan.root.stars if _defines(work, f"{star}.{func.id}"))
        return next((f"it comes from {star}" for star in stars), "")
    imported = work.names.import_of(func)
    if imported is not None:
        relative = isinstance(imported.node, ast.ImportFrom) and imported.node.level > 0
        own = relative or work.slots.own.project_name(imported.target) is not None
        return f"it comes from {imported.target.rpartition('.')[0]}" if own else ""
    return "" if work.names.resolve(func.id, scope) is not None else _bound(found[1][0])


def binding_that_stays(work: Work, func: ast.expr) -> str:
    """What binds a bare callee in this file and would not follow a new name; empty where nothing does."""
    if not isinstance(func, ast.Name) or work.names.import_of(func) in work.renamed:
        return ""
    return next(map(_bound, work.names.bindings_of(func)), "")


def left(work: Work, func: ast.expr, name: str, why: str, rule: Rule | None = None) -> Note:
    """The note of a call that a rule leaves; for a rename it says what in the rule file would mean the definition."""
    full = _renamable(work, func) if rule is not None and "." not in rule.new else ""
    help_ = f"if the rule is meant for this one too, change the definition of {name} and its calls by hand"
    if rule is not None and full:
        entry = f'{{"old_name": "{full}", "new_name": "{rule.new}", "definitions": true}}'
        help_ = (f"if the rule is meant for this one too, add to {rule.kind.value} of {PurePath(rule.origin).name}: "
                 f"{entry}")
    return work.note(
        func,
        fixer.code,
        f"a rule of yours changes calls of {name}; this {name} is the project's own ({why}) and is not changed",
        api=name,
        help=help_,
    )


def _renamable(work: Work, func: ast.expr) -> str:
    """The full name of the function or class of a module that a bare callee names; empty for all else."""
    full = work.slots.own.definition(func, of_instances=False) or ""
    if not full and isinstance(func, ast.Name):
        stars = (f"{star}.{func.id}" for star in work.scan.root.stars)
        full = next((star for star in stars if _defines(work, star)), "")
    known = work.project.canonical(full)
    of_module = known.rpartition(".")[0] in work.project.modules
    means_it = isinstance(func, ast.Name) and known.rpartition(".")[2] == func.id
    return known if means_it and of_module and known in work.project.defined else ""


@fixer.on(ast.Import)
def imports_of_own_modules(work: Work, node: ast.Import | ast.ImportFrom) -> Finds:
    """Say of the imports of the project's own modules that the rules for modules of that name leave them."""
    if isinstance(node, ast.Import):
        imported = [(alias, alias.name) for alias in node.names]
    else:
        imported = [] if node.level else [(node.names[0], node.module or "")]
    for where, full in imported:
        name = full.partition(".")[0]
        if name in work.rules.left:
            yield work.note(
                where if isinstance(node, ast.Import) else node,
                fixer.code,
                f"a rule of yours changes the module {name}; this {name} is the project's own and is not changed",
                api=name,
                help=f"if the rule is meant for this one too, rename {name} and its imports by hand",
            )


def _bound(binding: Binding) -> str:
    line = getattr(binding.node, "lineno", 0)
    return f"{'defined' if binding.kind in ('def', 'class') else 'bound'} on line {line}"


def _defines(work: Work, full: str) -> bool:
    return work.project.canonical(full) in work.project.defined
