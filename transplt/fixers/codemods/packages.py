"""Packages bound to CUDA: one finding a package and file, at the import that matters most.

An import that the program can do without (in a `try` that catches ImportError, or behind a question such as
`if is_xformers_available():`) is a remark: nothing has to be done for the program to run.
"""

from __future__ import annotations

import ast
import re
from itertools import takewhile

from transplt.base.finding import Level
from transplt.edits.edit import Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.code_facts import KERNEL_DECORATORS
from transplt.flow.gates import CAUGHT, goes_on_without
from transplt.program.program import enclosing_function
from transplt.rules.rule import Rule
from transplt.syntax.asks import following, last_name
from transplt.syntax.scan import FUNCTIONS, chain, parent

fixer = Fixer(__name__, code="NPU501", rank=120)

#: The message of an import for which `can_fail` holds.
GOES_ON = "the program goes on where it cannot be imported"

#: The message of an import whose name another package for Ascend gives below.
REPLACED = "the program takes another from a package for Ascend in its place"

_ASCEND = re.compile(r"(?:^|[._])(?:ascend|npu|hccl|pyhccl)(?:[._]|$)", re.I)
_ASKS = re.compile(r"available|installed|(?:^|_)has_|(?:^|_)have_|find_spec", re.I)


@fixer.on(ast.Module)
def packages_of_the_file(work: Work, tree: ast.Module) -> Finds:
    """Turn the imports that rules report into findings, one for each rule."""
    groups: dict[str, list[tuple[ast.alias | ast.stmt, Rule, str]]] = {}
    for node, rule, api in sorted(work.packages, key=lambda item: (item[0].lineno, item[0].col_offset)):
        if _is_own(work, node, api):
            yield work.keep(node, "own-module")
        else:
            groups.setdefault(rule.old, []).append((node, rule, api))
    for members in groups.values():
        needed = [
            member
            for member in members
            if (not can_fail(member[0]) or _makes_kernels(work, member[1])) and not _is_replaced(member[0])
        ]
        needed.sort(key=lambda member: enclosing_function(member[0]) is not None)
        node, rule, api = (needed or members)[0]
        if needed:
            level = rule.level if rule.level is not Level.SAFE else Level.MANUAL
            late, blocks = _late(needed)
            yield _note(work, node, rule, api, level, f"{rule.message}{late}", blocks)
        else:
            goes_on = REPLACED if _is_replaced(node) else GOES_ON
            yield _note(work, node, rule, api, Level.INFO, f"{rule.message}; {goes_on}")
        for other, _, _ in members:
            if other is not node:
                yield work.keep(other, "reported-package")


def _late(needed: list[tuple[ast.alias | ast.stmt, Rule, str]]) -> tuple[str, str]:
    """Where a package is imported that no module imports as it is loaded, and what that blocks; else empty."""
    functions = [enclosing_function(node) for node, _, _ in needed]
    first = functions[0]
    if first is None or any(each is None for each in functions):
        return "", ""
    if all(is_in_a_branch(node) for node, _, _ in needed):
        return f"; imported where {first.name}() comes to it", "later"
    return f"; imported when {first.name}() runs", "first step"


def is_in_a_branch(node: ast.AST) -> bool:
    """True for what a branch of its function holds."""
    inside = takewhile(lambda each: not isinstance(each, FUNCTIONS), chain(node))
    return any(isinstance(each, ast.If) for each in inside)


def _is_own(work: Work, node: ast.alias | ast.stmt, api: str) -> bool:
    """True when the project builds the package, holds a module below it (`bert/nvidia/model.py` is nvidia.model), or
    has it beside a script."""
    above = parent(node)
    path = (above.module or "") if isinstance(above, ast.ImportFrom) else api
    project = work.project
    if project.reach.builds(api) or ("." in path and project.holds_below(path)):
        return True
    return project.has_beside(path, work.scan.path, work.source.utf8)


def _makes_kernels(work: Work, rule: Rule) -> bool:
    """True for a file that defines kernels of its own with a package: whether they run there is somebody's decision."""
    package = rule.old.partition(".")[0]
    if not any(name.startswith(f"{package}.") for name in KERNEL_DECORATORS):
        return False
    made = (each for node in work.scan.functions for each in node.decorator_list)
    names = (work.names.qualified(each.func if isinstance(each, ast.Call) else each) or "" for each in made)
    return any(name in KERNEL_DECORATORS and name.startswith(f"{package}.") for name in names)


def _note(
    work: Work, node: ast.alias | ast.stmt, rule: Rule, api: str, level: Level, message: str, blocks: str = ""
) -> Note:
    effort = rule.effort if level is Level.MANUAL else None
    blocks = blocks or rule.blocks
    return Note(work.source.extent(node), rule.code, level, message, api, rule.help, effort, blocks=blocks)


def can_fail(node: ast.AST, caught: frozenset[str] = CAUGHT) -> bool:
    """True for an import without which the program goes on, or for what else may raise one of some errors."""
    while not isinstance(node, ast.Module):
        above = parent(node)
        if isinstance(above, ast.Try) and node in above.body and goes_on_without(above, caught):
            return True
        if isinstance(above, ast.If) and node in above.body and _asks(above.test):
            return True
        node = above
    return False


def _is_replaced(node: ast.AST) -> bool:
    """True for an import of a name that an `if` below, in the same block, imports again from a package for Ascend."""
    while not isinstance(node, ast.stmt):
        node = parent(node)
    if not isinstance(node, ast.ImportFrom):
        return False
    names = {alias.asname or alias.name for alias in node.names}
    for below in following(node):
        for each in below.body if isinstance(below, ast.If) else ():
            again = isinstance(each, ast.ImportFrom) and _ASCEND.search(each.module or "")
            if isinstance(each, ast.ImportFrom) and again and names <= {a.asname or a.name for a in each.names}:
                return True
    return False


def _asks(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return False
    names = (last_name(node) for node in ast.walk(test))
    return any(_ASKS.search(name) for name in names)
