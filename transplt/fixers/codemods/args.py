"""Arguments of calls: the users' ArgsModifyRule, and what has to change in a call whose name moves."""

from __future__ import annotations

import ast

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Decides, Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import renamed_arguments
from transplt.edits.trees.removals import argument_replaced
from transplt.edits.work import Work
from transplt.fixers.codemods.own_definitions import left, own_definition
from transplt.rules.rule import ArgSpec, Rule
from transplt.syntax.nodes import call_of, has_effects, last_name, shape

fixer = Fixer(__name__, code="NPU001", rank=150)
#: Takes back what others said of arguments that are gone.
last = Fixer(__name__, code="NPU001", rank=690)


def accepts(rule: Rule, call: ast.Call) -> bool:
    """True when the rule's new name can take the arguments of a call."""
    given = shape(call)
    if rule.skip_if is not None and rule.skip_if.holds(*given):
        return False
    return rule.args is None or not _rejects(rule.args, call)


def _rejects(spec: ArgSpec, call: ast.Call) -> bool:
    """True when a call cannot be carried over; `**options` brings no positional argument that would need a name."""
    positional, keywords, starred = shape(call)
    by_place = not (spec.rename or spec.reject or spec.positional_max is not None)
    if by_place and not any(isinstance(arg, ast.Starred) for arg in call.args):
        starred = False
    return spec.rejects(positional, keywords, starred)


def carry_over(work: Work, rule: Rule, func: ast.expr, full: str) -> Decides[bool]:
    """Adapt the arguments of the call of `func`; False when that cannot be done (reported, nothing may change)."""
    call = call_of(func)
    spec = rule.args
    if call is None:
        return True
    if not accepts(rule, call) and rule.otherwise is not None:
        yield from work.note_rule(func, rule.otherwise, full, spec.message if spec is not None else "")
        return False
    positional, keywords, starred = shape(call)
    if rule.skip_if is not None and rule.skip_if.holds(positional, keywords, starred):
        return False
    if spec is None:
        return True
    if _rejects(spec, call):
        yield work.note(
            func,
            "NPU505",
            spec.message or f"the arguments of this {full} call have no counterpart in {rule.new}",
            api=full,
            help=rule.help or f"write the call of {rule.new} by hand",
            effort=Effort.LOW,
        )
        return False
    names = dict(spec.rename)
    wanted = {index: name for index, name in spec.name_positional if index < positional}
    if keywords & names.keys() or wanted:
        yield Edit(
            call,
            rule.code,
            f"arguments of {full} renamed for {rule.new}",
            renamed_arguments(names, dict(spec.name_positional)),
            level=rule.level,
            api=full,
            asked=rule.similar,
        )
    return True


@fixer.on(ast.Module)
def named_by_rules(work: Work, tree: ast.Module) -> Finds:
    """Apply the argument rules to the calls that they name, in each the user's first."""
    tables = (work.rules.user, work.rules.builtin)
    named = {id(call) for table in tables for call in work.calls_by_name(table.args)}
    named |= {id(call) for table in tables for call in work.scan.calls_by_last_name(table.last_args)}
    for call in work.scan.calls if named else ():
        if id(call) in named:
            yield from _by_rules(work, call)


def _by_rules(work: Work, call: ast.Call) -> Finds:
    full = work.names.qualified(call.func) or ""
    last = last_name(call.func)
    done: set[int | str] = set()
    by_last = work.rules.user.last_args.get(last, ())
    if any(_applies(call, rule) for rule in by_last) and (own := own_definition(work, call.func)):
        by_last = ()
        if last not in work.rules.user.last_names:  # else its rename has reported it
            yield left(work, call.func, last, own)
    for table in (work.rules.user, work.rules.builtin):
        of_last = by_last if table is work.rules.user else table.last_args.get(last, ())
        for rule in (*table.args.get(full, ()), *of_last):
            place = rule.arg_idx if rule.arg_idx >= 0 else rule.arg_keyword
            if place not in done and _applies(call, rule):
                done.add(place)
                yield from _change_argument(work, call, rule, full or last)
            elif rule.user and (why := _why_left(call, rule)):
                message = f"a rule of yours could not change this call of {full or last}: {why}"
                yield work.note(call, "NPU016", message, level=Level.INFO, api=rule.old)


def _applies(call: ast.Call, rule: Rule) -> bool:
    positional, keywords, starred = shape(call)
    if rule.skip_if is not None and rule.skip_if.holds(positional, keywords, starred):
        return False
    return 0 <= rule.arg_idx < positional or bool(rule.arg_keyword and rule.arg_keyword in keywords)


def _why_left(call: ast.Call, rule: Rule) -> str:
    """Why an argument that a call may well have is left; empty where the call plainly does not have it."""
    positional, keywords, starred = shape(call)
    if rule.skip_if is not None and rule.skip_if.holds(positional, keywords, starred):
        return ""
    if starred:
        what = f"argument {rule.arg_idx}" if rule.arg_idx >= 0 else rule.arg_keyword
        return f"{what} may be among the arguments after * or **"
    if rule.arg_idx < 0 or rule.arg_keyword or not keywords:
        return ""
    return f"argument {rule.arg_idx} may be passed by name, and the rule has no 'arg_keyword'"


def _change_argument(work: Work, call: ast.Call, rule: Rule, full: str) -> Finds:
    positional = shape(call)[0]
    if 0 <= rule.arg_idx < positional:
        old: ast.expr = call.args[rule.arg_idx]
    else:
        old = next(k.value for k in call.keywords if k.arg == rule.arg_keyword)
    if rule.new and work.source.slice(*work.source.extent(old)) == rule.new:
        return
    if rule.user and (rule.level is not Level.UNSAFE or rule.similar or work.settings.unsafe_fixes):
        # What the rule decides is decided: nobody else has anything to say of the expression that goes.
        work.once(_replaced).append((*work.source.extent(old), rule.code))
        work.taken.update(id(node) for node in ast.walk(old))
    if has_effects(old) and not (
        bool(rule.new)
        and ast.unparse(old).replace("cuda", "npu") == ast.unparse(ast.parse(rule.new.strip(), mode="eval"))
    ):
        yield work.note(
            old,
            rule.code,
            f"the replaced argument of {full} has effects (a call, await, yield or :=) that no longer happen",
            level=Level.MANUAL,
            api=full,
            help="check that the program does not need what the old argument did",
            effort=Effort.LOW,
        )
    becomes = f"-> {rule.new}" if rule.new else "deleted"
    what = f"argument {rule.arg_idx if rule.arg_idx >= 0 else rule.arg_keyword} of {full} {becomes}"
    yield Edit(
        call,
        rule.code,
        what,
        argument_replaced(rule.arg_idx, rule.arg_keyword, rule.new),
        level=rule.level,
        api=full,
        user=rule.user,
        asked=rule.similar,
        writes_npu="torch.npu" in rule.new or "torch_npu" in rule.new,
    )


@last.on(ast.Module)
def nothing_said_of_what_is_gone(work: Work, tree: ast.Module) -> Finds:
    """Take back what was said of the arguments that the user's rules replace, but for what the rule itself says."""
    gone = work.once(_replaced)
    if gone:
        work.withdraw_notes(
            lambda note: any(
                start <= note.extent[0] and note.extent[1] <= end and note.code != code for start, end, code in gone
            )
        )
    yield from ()


def _replaced(work: Work) -> list[tuple[int, int, str]]:
    """The byte ranges of the arguments that the user's rules replace or delete, and the codes of these rules."""
    return []
