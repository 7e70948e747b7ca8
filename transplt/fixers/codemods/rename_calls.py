"""The user's renames without dots: they match the last name of a call."""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees import names
from transplt.edits.work import Work
from transplt.fixers.codemods.args import carry_over
from transplt.fixers.codemods.own_definitions import binding_that_stays, left, own_definition
from transplt.fixers.codemods.rename import needed_import
from transplt.rules.rule import Rule
from transplt.syntax.nodes import last_name, shape

fixer = Fixer(__name__, code="NPU002", rank=140)


@fixer.on(ast.Module)
def called_by_their_last_names(work: Work, tree: ast.Module) -> Finds:
    for call in work.scan.calls_by_last_name(work.rules.user.last_names):
        yield from _called(work, call)


def _called(work: Work, call: ast.Call) -> Finds:
    func, last = call.func, last_name(call.func)
    rule = work.rules.user.last_names[last]
    if rule.skip_if is not None and rule.skip_if.holds(*shape(call)):
        return
    if isinstance(func, ast.Name) and work.names.import_of(func) in work.renamed:
        return  # the import brings the new name
    if id(func) in work.taken:
        return  # a rule for the definition has it
    if own := own_definition(work, func) or ("" if "." in rule.new else binding_that_stays(work, func)):
        yield left(work, func, last, own, rule)
        return
    carried = yield from carry_over(work, rule, func, last)
    if carried and work.take_for(rule, func):
        yield _renamed(work, rule, func, last)


def _renamed(work: Work, rule: Rule, func: ast.expr, last: str) -> Edit:
    text = rule.new
    imports: tuple[str, ...] = ()
    if "." in rule.new:
        imports = needed_import(work, rule.new, func)
    elif isinstance(func, ast.Attribute):
        # The module in front of the user's name follows its own rule: torch.cuda.synchronize -> torch.npu.<new>.
        full = work.names.qualified(func.value)
        moved = work.rules.builtin.modules.get(full) if full is not None else None
        if moved is not None and isinstance(func.value, ast.Attribute):
            text = f"{moved.new}.{rule.new}"
        else:
            text = f"{work.source.slice(*work.source.extent(func.value))}.{rule.new}"
            if not text.replace(".", "").isidentifier():
                text = ""
    return Edit(
        func,
        rule.code,
        f"{last} -> {text or rule.new}",
        names.dotted(text) if text else names.attribute_named(rule.new),
        level=rule.level,
        api=last,
        user=True,
        asked=rule.similar,
        imports=imports,
        writes_npu=text.startswith(("torch.npu", "torch_npu")),
    )
