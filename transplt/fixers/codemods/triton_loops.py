"""`tl.static_range`, whose loop is written out while compiling, as `tl.range` where the loop needs no constexpr.

A loop that is written out takes the unified buffer of all its tiles (triton-ascend, docs/en/debug_guide; issue 2246).
It is changed only where each turn stands alone: nothing that it sets is read in another turn or behind the loop, and
its index is only added to, compared in masks, or multiplied by what is known when the kernel runs.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.program.triton.kernels import Kernel, kernels_in, operation
from transplt.syntax.scan import chain, parent
from transplt.trees.names import attribute_named

fixer = Fixer(__name__, code="NPU566", needs=(b"static_range",), words=("triton",))

_MESSAGE = "tl.static_range -> tl.range: an unrolled loop needs the unified buffer of all its iterations"
#: Operations that take an index of a loop in any of their arguments.
_TAKE_NUMBERS = frozenset({"load", "store", "where", "cast"})


@fixer.on(ast.Module)
def loops(work: Work, tree: ast.Module) -> Finds:
    """Change the loops whose turns stand alone."""
    if work.settings.style == "portable":
        return
    for kernel in kernels_in(work.file):
        for node in ast.walk(kernel.node):
            if not isinstance(node, ast.For) or node.orelse or not isinstance(node.iter, ast.Call):
                continue
            func = node.iter.func
            if operation(work.file, func) != "static_range" or not isinstance(func, ast.Attribute):
                continue
            if _stands_alone(kernel, node) and work.take(func):
                yield Edit(func, fixer.code, _MESSAGE, attribute_named("range"), api="triton.language.static_range")


def _stands_alone(kernel: Kernel, loop: ast.For) -> bool:
    if not isinstance(loop.target, ast.Name) or not _only_statements(loop.body):
        return False
    index = loop.target.id
    inside = [each for part in loop.body for each in ast.walk(part)]
    set_here = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    if index in set_here or not _read_behind(loop.body, set_here):
        return False
    ids = {id(each) for each in inside}
    elsewhere = [each for each in ast.walk(kernel.node)
                 if isinstance(each, ast.Name) and id(each) not in ids and each is not loop.target]  # fmt: skip
    if any(each.id in set_here or (each.id == index and not _of_another(each, loop)) for each in elsewhere):
        return False
    reads = [each for each in inside if isinstance(each, ast.Name) and each.id == index]
    derived = {*set_here, index}
    return all(_is_number(kernel, each) for each in reads) and not _shapes(kernel, inside, derived)


def _of_another(name: ast.Name, loop: ast.For) -> bool:
    """True for the index of a loop beside this one, and where that reads it."""
    return any(
        isinstance(above, ast.For) and above is not loop and isinstance(above.target, ast.Name)
        and above.target.id == name.id and loop not in chain(above) and above not in chain(loop)
        for above in chain(name)
    )  # fmt: skip


def _only_statements(body: list[ast.stmt]) -> bool:
    """True for assignments to names and calls, one below the other."""
    return all(
        (isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name))
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Call))
        for each in body
    )


def _read_behind(body: list[ast.stmt], names: set[str]) -> bool:
    """True where each name that the body sets is set before it is read."""
    ready: set[str] = set()
    for each in body:
        value = each.value if isinstance(each, (ast.Assign, ast.Expr)) else each
        read = {inner.id for inner in ast.walk(value) if isinstance(inner, ast.Name)}
        if read & names - ready:
            return False
        if isinstance(each, ast.Assign):
            ready |= {target.id for target in each.targets if isinstance(target, ast.Name)}
    return True


def _is_number(kernel: Kernel, name: ast.Name) -> bool:
    """True where a read of the index may be a number that is known when the kernel runs."""
    node: ast.AST = name
    while True:
        above = parent(node)
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult):
            other = above.right if above.left is node else above.left
            running = {each.name for each in kernel.parameters}.difference(kernel.constexprs)
            if isinstance(other, ast.Name) and other.id not in running:
                return False
        elif isinstance(above, (ast.Compare, ast.BinOp)):
            if isinstance(above, ast.BinOp) and not isinstance(above.op, (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr)):
                return False
        elif isinstance(above, ast.keyword):
            pass
        elif isinstance(above, ast.Call):
            return operation(kernel.file, above.func) in _TAKE_NUMBERS
        else:
            return isinstance(above, ast.Assign)
        node = above


def _shapes(kernel: Kernel, nodes: list[ast.AST], derived: set[str]) -> bool:
    """True where something that hangs on the index may be wanted as a constexpr: in shapes, other calls, conditions."""
    for node in nodes:
        if isinstance(node, (ast.IfExp, ast.NamedExpr)) and _reads(node, derived):
            return True
        if isinstance(node, ast.Subscript) and _reads(node.slice, derived):
            return True
        if isinstance(node, ast.Call) and _reads(node, derived):
            name = operation(kernel.file, node.func)
            method = isinstance(node.func, ast.Attribute) and not name
            if method and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
                continue
            if not name or name in ("arange", "zeros", "full", "reshape", "view", "static_range", "static_assert"):
                return True
    return False


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))
