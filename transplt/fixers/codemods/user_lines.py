"""The users' strings, attributes and lines: StringModifyRule, AttributeModifyRule, InsertRule.

A string matches by its whole value, an attribute by its name, whoever it belongs to, and lines go beside the statement
that calls a function. What cannot be written that way is reported.
"""

from __future__ import annotations

import ast

from transplt.base.text.lexer import literals
from transplt.edits.edit import Beside, Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import in_literals
from transplt.edits.trees.names import attribute_named
from transplt.edits.work import Work
from transplt.fixers.codemods.own_definitions import own_definition
from transplt.rules.rule import Rule
from transplt.syntax.nodes import block_of, is_dotted, last_name, shape
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU007", rank=145)

_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Delete, ast.Assert, ast.Raise)


@fixer.on(ast.Module)
def strings(work: Work, tree: ast.Module) -> Finds:
    """Strings that are, as a whole, what a rule names; not docstrings, and not pieces of f-strings."""
    table = work.rules.user.strings
    if not table:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in table:
            above = parent(node)
            if not isinstance(above, (ast.JoinedStr, ast.Expr)) and work.take_for(table[node.value], node):
                yield from _string(work, node, table[node.value])


def _string(work: Work, node: ast.Constant, rule: Rule) -> Finds:
    found, value = literals(work.text(node)), str(node.value)
    plain = len(found) == 1 and value in work.text(node)
    if not plain or any(each in rule.new for each in "'\"\\\n\r{}"):
        yield work.note(node, "NPU007", f"{value!r} is not a single plain literal: not changed", api=value)
        return
    new = in_literals(lambda text: text.replace(value, rule.new), several=False, holding=(value,))
    yield Edit(
        node, rule.code, f"{value!r} -> {rule.new!r}", new, level=rule.level, api=value, user=True, asked=rule.similar
    )


@fixer.on(ast.Module)
def attributes(work: Work, tree: ast.Module) -> Finds:
    """Attributes by their name; a call of it is a function's name, which FuncNameModifyRule is for."""
    for name, rule in work.rules.user.attributes.items():
        for node in work.scan.attributes.get(name, ()):
            above = parent(node)
            if not (isinstance(above, ast.Call) and above.func is node) and work.take_for(rule, node):
                yield Edit(
                    node, rule.code, f".{name} -> .{rule.new}", attribute_named(rule.new), level=rule.level, api=name,
                    user=True, asked=rule.similar,
                )  # fmt: skip


@fixer.on(ast.Module)
def lines(work: Work, tree: ast.Module) -> Finds:
    """Lines above or below the statements that call a function, once a statement."""
    table = work.rules.user.inserts
    done: set[tuple[int, str]] = set()
    for call in work.scan.calls if table else ():
        full = work.names.qualified(call.func) if is_dotted(call.func) else None
        for name in dict.fromkeys((full, last_name(call.func))):
            rule = table.get(name) if name else None
            if not name or rule is None or (rule.skip_if is not None and rule.skip_if.holds(*shape(call))):
                continue
            if "." not in name and own_definition(work, call.func):
                continue
            statement = _statement(call)
            if not isinstance(statement, _SIMPLE) or (rule.below and isinstance(statement, (ast.Return, ast.Raise))):
                where = "behind" if rule.below else "above"
                yield work.note(call, "NPU009", f"lines cannot be inserted {where} this call of {name}", api=name)
            elif (id(statement), name) not in done and not _stand_there(work, statement, rule):
                done.add((id(statement), name))
                yield Edit(
                    Beside(statement, below=rule.below), rule.code, rule.message, rule.new, level=rule.level, api=name,
                    user=True, asked=rule.similar, writes_npu="torch.npu" in rule.new or "torch_npu" in rule.new,
                )  # fmt: skip


def _stand_there(work: Work, statement: ast.stmt, rule: Rule) -> bool:
    """True where the rule's lines are beside the statement already, from an earlier run or by hand."""
    wanted = [ast.unparse(each) for each in ast.parse(rule.new).body]
    block = block_of(statement)
    at = block.index(statement)
    beside = block[at + 1 : at + 1 + len(wanted)] if rule.below else block[max(0, at - len(wanted)) : at]
    return [ast.unparse(each) for each in beside] == wanted


def _statement(node: ast.AST) -> ast.AST | None:
    """The statement that a node is in; None where it is in a lambda or a comprehension, which run at other times."""
    here: ast.AST | None = node
    while here is not None and not isinstance(here, ast.stmt):
        if isinstance(here, (ast.Lambda, ast.comprehension, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            return None
        here = parent(here)
    return here
