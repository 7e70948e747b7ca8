"""The body of a kernel as a loop over its blocks: which statements go into it, and what each round begins anew with."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.program.triton.kernels import Kernel, operation
from transplt.syntax.asks import own_nodes, string_of


@dataclass(slots=True, frozen=True)
class Exit:
    """A `return` at the end of an `if` at the top of a body, `inner` of ifs in it, and the statements that follow."""

    test: ast.If
    line: ast.Return
    rest: list[ast.stmt]
    inner: bool


@dataclass(slots=True)
class Body:
    """The statements of a kernel that a loop goes around; the parameters that they change, which each round needs as
    they were given; the ways out of it.
    """

    looped: list[ast.stmt]
    changed: list[str]
    exits: list[Exit] = field(default_factory=list)


def body_of(kernel: Kernel) -> Body | str:
    """What a loop goes around in a kernel, or why it cannot."""
    statements = kernel.node.body
    first = 1 if isinstance(statements[0], ast.Expr) and string_of(statements[0].value) is not None else 0
    while first < len(statements) and _stays_above(kernel, statements, first):
        first += 1
    looped = statements[first:]
    if not looped:
        return "nothing in it depends on its program"
    names = {name for each in looped for name in stored_in(each)}
    changed = [each.name for each in kernel.parameters if each.name in names]
    if any(name in kernel.constexprs for name in changed):
        return "it changes a constexpr"
    if any(isinstance(node, (ast.FunctionDef, ast.Lambda, ast.Global, ast.Nonlocal))
           for line in statements for node in ast.walk(line)):  # fmt: skip
        return "it defines functions"
    found = Body(looped, changed)
    for index, each in enumerate(looped):
        returns = [node for node in own_nodes(each) if isinstance(node, ast.Return)]
        if not returns:
            continue
        if len(returns) > 1 or returns[0].value is not None or not (chain := _ending_in(each, returns[0])):
            return "it returns from the middle of a statement"
        rest = looped[index + 1 :]
        if not rest:
            return "it returns at its end"
        if why := _two_types(statements[: first + index], each, chain[-1], rest):
            return why
        found.exits.append(Exit(chain[0], returns[0], rest, len(chain) > 1))
    return found


def _ending_in(node: ast.stmt, line: ast.Return) -> list[ast.If]:
    """The ifs without an `else` that end in each other and the last of them in a return; empty for other forms."""
    found = []
    while isinstance(node, ast.If) and not node.orelse:
        found.append(node)
        if node.body[-1] is line:
            return found
        node = node.body[-1]
    return []


def _two_types(above: list[ast.stmt], test: ast.stmt, last: ast.If, rest: list[ast.stmt]) -> str:
    """Why Triton may not take both ways below an `if` together: a name that is set in one may be of another type."""
    gone, goes_on = _kept(last.body), _kept(rest)
    before = {name for each in above for name in stored_in(each)}
    twice = (gone & (goes_on | before)) or (goes_on & (before | _kept([test])))
    return f"{min(twice)} is set around a return, and may be of two types" if twice else ""


def stored_in(node: ast.AST) -> set[str]:
    """The names that a statement gives a value."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _kept(statements: list[ast.stmt]) -> set[str]:
    """The names that statements set; what loops alone set does not outlive them in Triton."""
    found: set[str] = set()
    for each in statements:
        if isinstance(each, (ast.For, ast.While)):
            continue
        if isinstance(each, (ast.If, ast.With)):
            found |= _kept(each.body) | (_kept(each.orelse) if isinstance(each, ast.If) else set())
        else:
            found |= stored_in(each)
    return found


def _stays_above(kernel: Kernel, statements: list[ast.stmt], index: int) -> bool:
    """True for a statement that gives every block the same, and that no block changes."""
    node = statements[index]
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return False
    operations = {operation(kernel.file, each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
    if "program_id" in operations or any(each.startswith("atomic_") for each in operations):
        return False
    mine = stored_in(node)
    if mine & {each.name for each in kernel.parameters}:
        return False
    return all(not mine & stored_in(other) for other in statements[index + 1 :])
