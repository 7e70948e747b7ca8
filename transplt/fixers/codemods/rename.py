"""References by full name: `torch.cuda.is_available`, whatever the file calls it.

The rule of the longest prefix decides; what follows the prefix moves along. A user's rule comes first and owns the
names it replaced, built-in rules still act on the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.edits.edit import Edit, Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.imports import STANDARD
from transplt.edits.trees.names import dotted as dotted_name
from transplt.edits.work import Work
from transplt.fixers.codemods.args import carry_over
from transplt.fixers.codemods.imported_names import mixed_imports
from transplt.fixers.codemods.module import is_unlisted, local_target, new_name, unlisted
from transplt.fixers.codemods.packages import is_in_a_branch
from transplt.program.program import enclosing_function
from transplt.rules.rule import Kind, Rule, needs_torch_npu
from transplt.syntax.nodes import call_of, dotted, of_kind
from transplt.syntax.scopes import Binding

fixer = Fixer(__name__, code="NPU002", rank=410)
#: What rules of the user's name is theirs before a fixer of ours changes it.
first = Fixer(__name__, code="NPU002", rank=155)


@first.on(ast.Module)
def references_of_the_user(work: Work, tree: ast.Module) -> Finds:
    """Rename every reference that resolves to a name that a rule of the user's renames."""
    user = work.rules.user
    for node, base in work.names.references() if user.names or user.modules else ():
        if _is_the_users(work, node, base):
            yield from _reference(work, node, base)


@fixer.on(ast.Module)
def references(work: Work, tree: ast.Module) -> Finds:
    """Rename every reference that resolves to a name the rules know."""
    for node, base in work.names.references():
        if (work.renamed or base.split(".", 1)[0] in work.rules.roots) and not _is_the_users(work, node, base):
            yield from _reference(work, node, base)


def _is_the_users(work: Work, name: ast.Name, base: str) -> bool:
    found = work.rules.user.resolve(full_name(name, base))
    return found is not None and found[0].renames


def _reference(work: Work, name: ast.Name, base: str) -> Finds:
    links = dotted(name)
    full = full_name(name, base)
    binding = work.names.import_of(name)
    held = local_target(work, binding, base) if binding is not None else _alias_target(work, base)
    local = work.renamed.get(binding, name.id) if binding is not None else name.id
    if binding is None and base != held and len(links) == 1:
        # A name for a module (`c = torch.cuda`): the assignment moves, the uses follow by themselves.
        return
    user = work.rules.user.resolve(full)
    matched = user or work.rules.builtin.resolve(full)
    if matched is None:
        yield from _rename_root(work, name, local, base)
        return
    rule, prefix = matched
    depth = prefix.count(".") - base.count(".")
    target = new_name(work, rule, prefix)
    if target is None or rule.kind is Kind.UNSUPPORTED:
        # What stands behind a name given by assignment is reported where it is assigned.
        reported = depth == 0 and binding is None and base != name.id
        news = not rule.imports_only or _brings_more(work, rule, binding)
        if news and depth >= 0 and not reported and id(links[depth]) not in work.taken:
            yield from _noted(work, links[depth], rule, full)
        yield from _rename_root(work, name, local, base)
        return
    if depth == 0 and binding is not None and isinstance(binding.node, ast.Import) and name.id == base:
        # `import apex`: the import binds the module's own name, which the uses have to follow.
        if (yield from carry_over(work, rule, name, full)) and work.take_for(rule, name):
            yield from _follow(work, rule, name, target, full)
        return
    if depth < 0 or (depth == 0 and binding is not None):
        # The import itself carries the new name; arguments may still have to change.
        fits = depth == 0 and (yield from carry_over(work, rule, links[0], full))
        if fits and binding in work.once(mixed_imports) and call_of(name) and work.take_for(rule, name):
            yield from _rename(work, rule, name, name, local, base, base, prefix, target, full)
        yield from _rename_root(work, name, local, base)
        return
    if is_unlisted(rule, prefix, full):
        yield unlisted(
            work, links[min(depth + 1, len(links) - 1)], full, "; if it is the project's own, no change is needed"
        )
        return
    node = links[depth]
    if (yield from carry_over(work, rule, node, full)) and work.take_for(rule, node):
        yield from _rename(work, rule, node, name, local, held, base, prefix, target, full)


def _brings_more(work: Work, rule: Rule, binding: Binding | None) -> bool:
    """True, once a file, for a part that is bound to CUDA of a package that is reported as a whole, and imported so:
    `apex.parallel` after `import apex`.
    """
    if binding is None or not isinstance(binding.node, (ast.Import, ast.alias)):
        return False
    if rule.old in work.once(_reported_parts):
        return False
    names = binding.node.names if isinstance(binding.node, ast.Import) else [binding.node]
    imported = {alias.name for node in of_kind(ast.Import, work.scan.imports) for alias in node.names}
    imported |= {node.module or "" for node in of_kind(ast.ImportFrom, work.scan.imports)}
    told = any("." in name and f"{rule.old}.".startswith(f"{name}.") for name in imported)
    if told or not any(rule.old.startswith(f"{alias.name}.") for alias in names):
        return False
    wholes = [found[0].code for alias in names if (found := work.rules.resolve(alias.name)) is not None]
    if not wholes or rule.code in wholes:
        return False
    work.once(_reported_parts).add(rule.old)
    return True


def _noted(work: Work, node: ast.expr, rule: Rule, full: str) -> Iterator[Note]:
    """What a rule says; of a package that is used in a function nothing fails before that."""
    for note in work.note_rule(node, rule, full):
        if rule.imports_only and enclosing_function(node) is not None:
            note.blocks = "later" if is_in_a_branch(node) else "first step"
        yield note


def _reported_parts(work: Work) -> set[str]:
    """The modules of packages that were reported where an attribute of the package leads to them."""
    return set()


def full_name(name: ast.Name, base: str) -> str:
    """What the longest chain of attributes on a name stands for, which itself stands for `base`."""
    return ".".join([base, *(node.attr for node in of_kind(ast.Attribute, dotted(name)))])


def _rename(
    work: Work,
    rule: Rule,
    node: ast.expr,
    name: ast.Name,
    local: str,
    held: str,
    base: str,
    prefix: str,
    target: str,
    full: str,
) -> Finds:
    suffix = prefix[len(base) :]
    writes_npu = needs_torch_npu(target)
    imports: tuple[str, ...] = ()
    if target == held + suffix and local == name.id:
        return
    if target.startswith(held + "."):
        text = local + target[len(held) :]
        imports = _submodule(work, target, local)
    else:
        text = target
        imports = needed_import(work, target, name)
    if text == work.source.slice(*work.source.extent(node)):
        return
    yield Edit(
        node,
        rule.code,
        _message(rule, full, target + full[len(prefix) :]),
        dotted_name(text),
        level=rule.level,
        api=full,
        help=rule.help,
        writes_npu=writes_npu,
        user=rule.user,
        asked=rule.similar,
        imports=imports,
        becomes=target + full[len(prefix) :],
    )


def _follow(work: Work, rule: Rule, name: ast.Name, target: str, full: str) -> Finds:
    yield Edit(
        name,
        rule.code,
        _message(rule, full, target + full[len(name.id) :]),
        dotted_name(target),
        level=rule.level,
        api=full,
        writes_npu=needs_torch_npu(target),
        user=rule.user,
        asked=rule.similar,
    )


def _message(rule: Rule, old: str, new: str) -> str:
    note = f" ({rule.differs})" if rule.differs else ""
    return f"{old} -> {new}{note}"


def _rename_root(work: Work, name: ast.Name, local: str, base: str) -> Finds:
    """The name of an import that has another one now."""
    user = work.rules.user
    if local != name.id and work.take(name):
        yield Edit(
            name,
            "NPU401",
            f"{name.id} is now imported as {local}",
            local,
            api=name.id,
            # It belongs to the rule that the import follows.
            user=user.resolve(base) is not None or base.rpartition(".")[2] in user.last_names,
        )


def _alias_target(work: Work, base: str) -> str:
    """What an alias by assignment (`c = torch.cuda`) stands for after its own right-hand side has moved."""
    matched = work.rules.resolve(base)
    if matched is None or not matched[0].renames:
        return base
    rule, prefix = matched
    return rule.new + base[len(prefix) :]


def _submodule(work: Work, target: str, local: str) -> tuple[str, ...]:
    """The module of the standard library to import beside its package: `import collections` does not load its abc."""
    module, root = target.rpartition(".")[0], target.partition(".")[0]
    if root not in STANDARD or module == root or (local != root and work.scan.binds(root)):
        return ()
    return (module,)


def needed_import(work: Work, target: str, where: ast.expr) -> tuple[str, ...]:
    """The module to import so that a dotted name works where it is written; none when its root is bound."""
    root = target.split(".")[0]
    if root == "torch_npu" or "." not in target:
        return ()
    found = work.names.lookup(root, work.scan.scope_of(where))
    if found is not None:
        return ()
    return ("torch",) if root == "torch" else (target.rpartition(".")[0],)
