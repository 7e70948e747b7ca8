"""Arguments of calls: the users' ArgsModifyRule, and what has to change in a call whose name moves."""

from __future__ import annotations

import ast

from transplt.edits.rewrite import Change
from transplt.edits.work import Work, call_of
from transplt.finding import Effort, Level
from transplt.rules.rule import ArgSpec, Rule
from transplt.trees.lazy import cst
from transplt.trees.transform import CannotRewrite


def shape(call: ast.Call) -> tuple[int, set[str], bool]:
    """How many positional arguments stand before any star, which keywords, and whether there is a star."""
    positional = 0
    starred = any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords)
    for arg in call.args:
        if isinstance(arg, ast.Starred):
            break
        positional += 1
    return positional, {k.arg for k in call.keywords if k.arg is not None}, starred


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


def carry_over(work: Work, rule: Rule, func: ast.expr, full: str) -> bool:
    """Adapt the arguments of the call of `func`; False when that cannot be done (reported, nothing may change)."""
    call = call_of(func)
    spec = rule.args
    if call is None:
        return True
    if not accepts(rule, call) and rule.otherwise is not None:
        work.note_rule(func, rule.otherwise, full, spec.message if spec is not None else "")
        return False
    positional, keywords, starred = shape(call)
    if rule.skip_if is not None and rule.skip_if.holds(positional, keywords, starred):
        return False
    if spec is None:
        return True
    if _rejects(spec, call):
        work.note(
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
        work.changes.append(
            Change(
                call,
                rule.code,
                f"arguments of {full} renamed for {rule.new}",
                lambda node: _adapt(node, spec),
                level=rule.level,
                api=full,
                asked=rule.similar,
            )
        )
    return True


def _adapt(node: cst.CSTNode, spec: ArgSpec) -> cst.CSTNode:
    call = cst.ensure_type(node, cst.Call)
    names = dict(spec.rename)
    wanted = dict(spec.name_positional)
    args = []
    for index, arg in enumerate(call.args):
        if arg.keyword is not None and arg.keyword.value in names:
            arg = arg.with_changes(keyword=arg.keyword.with_changes(value=names[arg.keyword.value]))
        elif arg.keyword is None and not arg.star and index in wanted:
            arg = _named(arg, wanted[index])
        args.append(arg)
    return call.with_changes(args=args)


def _named(arg: cst.Arg, name: str) -> cst.Arg:
    tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return arg.with_changes(keyword=cst.Name(name), equal=tight)


def plan(work: Work) -> None:
    """Apply the argument rules, the user's first, to every call that they name."""
    tables = [table for table in (work.rules.user, work.rules.builtin) if table.args or table.last_args]
    if not tables:
        return
    for call in work.scan.calls:
        full = work.names.qualified(call.func)
        last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        done: set[object] = set()
        for table in tables:
            for rule in (*table.args.get(full or "", ()), *table.last_args.get(last, ())):
                if rule.arg_idx not in done and _applies(call, rule):
                    done.add(rule.arg_idx)
                    _change_argument(work, call, rule, full or last)


def _applies(call: ast.Call, rule: Rule) -> bool:
    positional, keywords, starred = shape(call)
    if rule.skip_if is not None and rule.skip_if.holds(positional, keywords, starred):
        return False
    return rule.arg_idx < positional or bool(rule.arg_keyword and rule.arg_keyword in keywords)


def _change_argument(work: Work, call: ast.Call, rule: Rule, full: str) -> None:
    positional = shape(call)[0]
    if 0 <= rule.arg_idx < positional:
        old: ast.expr = call.args[rule.arg_idx]
    else:
        old = next(k.value for k in call.keywords if k.arg == rule.arg_keyword)
    if rule.new and work.source.slice(*work.source.extent(old)) == rule.new:
        return
    if has_effects(old):
        work.note(
            old,
            rule.code,
            f"the replaced argument of {full} has effects (a call, await, yield or :=) that no longer happen",
            level=Level.MANUAL,
            api=full,
            help="check that the program does not need what the old argument did",
            effort=Effort.LOW,
        )
    becomes = f"-> {rule.new}" if rule.new else "deleted"
    what = f"argument {rule.arg_idx} of {full} {becomes}"
    work.changes.append(
        Change(
            call,
            rule.code,
            what,
            lambda node: _replace_argument(node, rule),
            level=rule.level,
            api=full,
            user=rule.user,
            asked=rule.similar,
            writes_npu="torch.npu" in rule.new or "torch_npu" in rule.new,
        )
    )


def has_effects(node: ast.AST) -> bool:
    """True when evaluating an expression may do more than give a value."""
    kinds = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
    return any(isinstance(inner, kinds) for inner in ast.walk(node))


def _replace_argument(node: cst.CSTNode, rule: Rule) -> cst.CSTNode:
    call = cst.ensure_type(node, cst.Call)
    index = _find_argument(call, rule)
    arg = call.args[index]
    if rule.new:
        new = cst.parse_expression(rule.new)
        args = [*call.args[:index], arg.with_changes(value=new), *call.args[index + 1 :]]
        return call.with_changes(args=args)
    return without_argument(call, index)


def without_argument(call: cst.Call, index: int) -> cst.Call:
    """The call without one argument. Comments stay: that behind it goes behind what stands before it now."""
    args = list(call.args)
    gone = args.pop(index)
    behind = _space_after(gone)
    if not args:
        space = _merged(call.whitespace_before_args, behind)
        return call.with_changes(args=[], whitespace_before_args=space)
    if index == 0:
        before = call.whitespace_before_args
        return call.with_changes(args=args, whitespace_before_args=_with_comment_of(before, behind))
    last = args[index - 1]
    if index < len(args):
        space = _with_comment_of(_space_after(last), behind)
    else:
        space = _merged(_space_after(last), behind)
        last = last.with_changes(comma=gone.comma, whitespace_after_arg=cst.SimpleWhitespace(""))
    if isinstance(last.comma, cst.Comma):
        args[index - 1] = last.with_changes(comma=last.comma.with_changes(whitespace_after=space))
    else:
        args[index - 1] = last.with_changes(whitespace_after_arg=space)
    return call.with_changes(args=args)


def _space_after(arg: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    return arg.comma.whitespace_after if isinstance(arg.comma, cst.Comma) else arg.whitespace_after_arg


def _comment(space: cst.BaseParenthesizableWhitespace) -> cst.Comment | None:
    return space.first_line.comment if isinstance(space, cst.ParenthesizedWhitespace) else None


def _with_comment_of(
    place: cst.BaseParenthesizableWhitespace, gone: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """`place` with the comment of `gone` in it: on the same line, or on one of its own when that is taken."""
    if _comment(gone) is None or not isinstance(gone, cst.ParenthesizedWhitespace):
        return place
    if not isinstance(place, cst.ParenthesizedWhitespace):
        return gone
    if place.first_line.comment is None:
        return place.with_changes(first_line=gone.first_line)
    line = cst.EmptyLine(indent=True, whitespace=place.last_line, comment=_comment(gone))
    return place.with_changes(empty_lines=[*place.empty_lines, line])


def _merged(
    before: cst.BaseParenthesizableWhitespace, behind: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    """What stands between the last argument (or the bracket) and the closing bracket; no comment of either is lost."""
    if _comment(before) is None or not isinstance(before, cst.ParenthesizedWhitespace):
        return behind
    if not isinstance(behind, cst.ParenthesizedWhitespace):
        return before.with_changes(last_line=cst.SimpleWhitespace(""))
    lines = list(behind.empty_lines)
    if _comment(behind) is not None:
        lines.insert(0, cst.EmptyLine(indent=True, whitespace=before.last_line, comment=_comment(behind)))
    return behind.with_changes(first_line=before.first_line, empty_lines=lines)


def _find_argument(call: cst.Call, rule: Rule) -> int:
    for index, arg in enumerate(call.args):
        if arg.star:
            break
        if arg.keyword is None and index == rule.arg_idx:
            return index
    for index, arg in enumerate(call.args):
        if arg.keyword is not None and arg.keyword.value == rule.arg_keyword:
            return index
    raise CannotRewrite("the argument is not where the rule expects it")
