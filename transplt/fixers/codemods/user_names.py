"""Names in strings that rules of the user's rename: asked for with getattr, patched by tests, imported by name.

A function whose calls get a new name is looked up under the old one where a string names it. The string follows where
its owner is certain, a module that resolves or a full name that Python itself looks up; else it is reported.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort, Level
from transplt.base.text.lexer import one_plain_literal
from transplt.edits.edit import Edit, Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import words_in_literal
from transplt.edits.work import Work
from transplt.fixers.codemods.module import new_name
from transplt.fixers.codemods.probes import MEMBERS, probes_of
from transplt.flow.only_shown import only_shown
from transplt.rules.rule import Kind, Rule, needs_torch_npu
from transplt.syntax.names import IMPORT_CALLS
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU020", rank=147)

#: Calls that look a full name up: of unittest.mock, pytest's monkeypatch, importlib and pkgutil.
_LOOKS_UP = frozenset({"patch", "setattr", "delattr", "resolve_name", "locate", *IMPORT_CALLS})


@fixer.on(ast.Module)
def named_in_strings(work: Work, tree: ast.Module) -> Finds:
    """Let the names that strings hold follow the user's renames, or report them."""
    user = work.rules.user
    if not (user.names or user.last_names or user.modules):
        return
    for _, owner, name in probes_of(work):
        base = work.names.qualified(owner)
        if id(name) not in work.taken and not _is_built_in(f"{base}.{name.value!s}"):
            yield from _name_asked_for(work, base, name)
    for call in work.scan.calls_by_last_name(_LOOKS_UP):
        given = call.args[0] if call.args else None
        if not (isinstance(given, ast.Constant) and isinstance(given.value, str) and _is_dotted(given.value)):
            continue
        if id(given) not in work.taken and not _is_built_in(given.value):
            yield from _looked_up(work, given, given.value)
    if user.names:
        yield from _elsewhere(work, tree)


def _is_built_in(full: str) -> bool:
    """True for what other fixers look at, with the user's rules first: names of torch's own that speak of CUDA
    (probes.py, strings.py), and the methods that tensors have for it (methods.py).
    """
    return full.rpartition(".")[2] in MEMBERS or (full.startswith("torch.") and "cuda" in full.lower())


def _is_dotted(value: str) -> bool:
    return "." in value and all(part.isidentifier() for part in value.split("."))


def _name_asked_for(work: Work, base: str | None, name: ast.Constant) -> Finds:
    """`getattr(lib, "old")`, `patch.object(lib, "old")`; `base` is the full name of what is asked."""
    old = str(name.value)
    full = f"{base}.{old}" if base is not None else old
    found = work.rules.user.resolve(full) if base is not None else None
    if found is not None and found[0].renames and found[1] == full:  # the user's rule renames the full name itself
        exact = found[0]
        above, _, last = (new_name(work, exact, full) or "").rpartition(".")
        if _changes_arguments(exact) or above != _renamed_module(work, str(base)):
            yield _note_left(work, name, full, exact, f"{full} becomes {above}.{last}")
        else:
            yield from _written(work, name, old, last, full, exact)
        return
    rule = work.rules.user.last_names.get(old)
    if rule is None:
        return
    if base is None:
        yield _note_left(work, name, old, rule, "the class of its object is unknown")
    elif work.slots.own.project_name(base) is not None:
        yield _note_left(work, name, old, rule, f"{base} is the project's own")
    elif "." in rule.new or _changes_arguments(rule):
        yield _note_left(work, name, old, rule, f"calls of {old} become {rule.new}")
    else:
        yield from _written(work, name, old, rule.new, full, rule)


def _looked_up(work: Work, name: ast.Constant, value: str) -> Finds:
    """`mock.patch("lib.old")`, `monkeypatch.setattr("lib.old", ...)`, `import_module("lib.old")`."""
    matched = work.rules.user.resolve(value)
    above, _, old = value.rpartition(".")
    if matched is not None and matched[0].renames:
        rule, prefix = matched
        new = f"{new_name(work, rule, prefix)}{value[len(prefix):]}"
        if rule.kind is Kind.FUNC and _changes_arguments(rule):
            yield _note_left(work, name, value, rule, f"{value} becomes {new}")
        elif new != value:
            yield from _written(work, name, value, new, value, rule)
        return
    own = work.slots.own.project_name(above) is not None
    last = work.rules.user.last_names.get(old)
    if last is None and own and work.project.canonical(value) not in work.project.defined:
        renamed = (each for full, each in work.rules.user.names.items() if full.endswith(f".{old}") and each.renames)
        last = next(renamed, None)
    if last is None:
        return
    if own:
        yield _note_left(work, name, value, last, f"{above} is the project's own")
    elif "." in last.new or _changes_arguments(last):
        yield _note_left(work, name, value, last, f"calls of {old} become {last.new}")
    else:
        yield from _written(work, name, value, f"{above}.{last.new}", value, last)


def _elsewhere(work: Work, tree: ast.Module) -> Finds:
    """The full name in any other string that a program can look it up by: a registry, a table, a setting."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_dotted(node.value)):
            continue
        rule = work.rules.user.names.get(node.value)
        if rule is None or not rule.renames or _is_built_in(node.value) or id(node) in work.taken:
            continue
        if not isinstance(parent(node), (ast.Expr, ast.JoinedStr)) and not only_shown(node):
            yield _note_left(work, node, node.value, rule, "the code that looks it up was not found")


def _changes_arguments(rule: Rule) -> bool:
    return rule.args is not None or rule.skip_if is not None


def _renamed_module(work: Work, module: str) -> str:
    """The full name of a module after the user's rules."""
    matched = work.rules.user.resolve(module)
    if matched is None or not matched[0].renames:
        return module
    return f"{new_name(work, *matched)}{module[len(matched[1]):]}"


def _note_left(work: Work, name: ast.Constant, full: str, rule: Rule, why: str) -> Note:
    work.take(name)
    return work.note(
        name,
        fixer.code,
        f"a rule of yours renames {rule.old}, and {full!r} appears here in a string: {why}",
        level=Level.MANUAL,
        api=rule.old,
        help=f"if the rule is meant for it, write {rule.new.rpartition('.')[2]} in the string",
        effort=Effort.LOW,
    )


def _written(work: Work, name: ast.Constant, old: str, new: str, full: str, rule: Rule) -> Finds:
    if not one_plain_literal(work.text(name), [old]):
        yield _note_left(work, name, full, rule, "it is not a single plain literal")
    elif work.take_for(rule, name):
        yield Edit(
            name,
            rule.code,
            f"{full} in a string -> {new}",
            words_in_literal({old: new}),
            level=rule.level,
            api=full,
            user=True,
            asked=rule.similar,
            writes_npu=needs_torch_npu(new),
        )
