"""The users' rules with `"definitions": true`: a function of the project, with its definition and all its uses.

Whether every use can be followed is decided over the whole project (flow/definition_facts.py); where one cannot,
nothing is renamed, and a finding at the definition gives the reason.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.trees.names import attribute_named
from transplt.edits.trees.transform import New
from transplt.edits.work import Work
from transplt.flow.definition_facts import RENAMED, NameUse, Renaming
from transplt.flow.definition_uses import definition_uses
from transplt.rules.rule import Rule

fixer = Fixer(__name__, code="NPU017", rank=100)


@fixer.on(ast.Module)
def with_their_definitions(work: Work, tree: ast.Module) -> Finds:
    """Rename what the rules mean in this file, or report at the definition why it stays."""
    rules = work.rules.user.definitions
    if not rules or not work.settings.whole:
        return
    for use, place in definition_uses(work.scan, ((rule.old, rule.new) for rule in rules.values()), ignored=False):
        if place is None or use.kind not in RENAMED:
            continue
        for rule in rules.values():
            if rule.old.rpartition(".")[2] != use.name:
                continue
            renaming = work.project.renamings.get(rule.old) or Renaming(rule.new)
            full = work.project.canonical(use.full)
            if not work.project.known and rule.old in (use.name, full):
                yield from _note_left(work, rule, "the other files of the project were not read", use, place)
            elif full not in renaming.full:
                continue
            elif renaming.why:
                yield from _note_left(work, rule, renaming.why, use, place)
            elif rule.level is Level.UNSAFE and not (work.settings.unsafe_fixes or rule.similar):
                yield from _note_left(work, rule, "it needs --unsafe-fixes", use, place)
            else:
                yield from _renamed(work, rule, use, place)


def _note_left(work: Work, rule: Rule, why: str, use: NameUse, place: ast.expr | tuple[int, int]) -> Finds:
    if use.kind not in ("function", "method") or not isinstance(place, tuple):
        return
    yield Note(
        place,
        fixer.code,
        Level.MANUAL,
        f"a rule of yours that renames {rule.old} and its definition was not applied: {why}",
        api=rule.old,
        help=f"change that place, or rename {use.name} and its uses by hand",
        effort=Effort.LOW,
    )


def _renamed(work: Work, rule: Rule, use: NameUse, place: ast.expr | tuple[int, int]) -> Finds:
    new: New = rule.new
    if isinstance(place, ast.expr) and not work.take_for(rule, place):
        return
    elif isinstance(place, ast.Attribute):
        new = attribute_named(rule.new)
    elif isinstance(place, ast.Constant):
        new = work.text(place).replace(use.name, rule.new)
    yield Edit(
        place,
        rule.code,
        f"{rule.old} -> {rule.new}, with its definition",
        new,
        level=rule.level,
        api=rule.old,
        group=f"{fixer.code} {rule.old}",
        user=True,
        asked=rule.similar,
    )
