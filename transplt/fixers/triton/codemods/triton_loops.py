"""`tl.static_range`, whose loop is written out while compiling, as `tl.range` where the loop needs no constexpr.

A loop that is written out takes the unified buffer of all its tiles (triton-ascend, docs/en/debug_guide; issue 2246).
It is changed only where each turn stands alone: nothing that it sets is read in another turn or behind the loop, and
its index is only added to, compared in masks, or multiplied by what is known when the kernel runs.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.names import attribute_named
from transplt.edits.work import Work
from transplt.fixers.triton.reader.kernels import Kernel, kernels_in, operation
from transplt.syntax.nodes import attribute_of, inner_nodes, nodes_in, of_kind, plain_name
from transplt.syntax.scan import chain, parent

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
            match node:
                case ast.For(iter=ast.Call(func=ast.Attribute() as func), orelse=[]):
                    counted = operation(work.file, func) == "static_range"
                    if counted and _stands_alone(kernel, node) and work.take(func):
                        api = "triton.language.static_range"
                        yield Edit(func, fixer.code, _MESSAGE, attribute_named("range"), api=api)


def _stands_alone(kernel: Kernel, loop: ast.For) -> bool:
    if not isinstance(loop.target, ast.Name) or not _only_statements(loop.body):
        return False
    index = loop.target.id
    inside = [*nodes_in(loop.body)]
    set_here = {each.id for each in of_kind(ast.Name, inside) if isinstance(each.ctx, ast.Store)}
    if index in set_here or not _read_behind(loop.body, set_here):
        return False
    ids = {id(each) for each in inside}
    elsewhere = [each for each in inner_nodes(kernel.node, ast.Name)
                 if id(each) not in ids and each is not loop.target]  # fmt: skip
    if any(each.id in set_here or (each.id == index and not _of_another(each, loop)) for each in elsewhere):
        return False
    reads = [each for each in of_kind(ast.Name, inside) if each.id == index]
    derived = {*set_here, index}
    return all(_is_number(kernel, each) for each in reads) and not _shapes(kernel, inside, derived)


def _of_another(name: ast.Name, loop: ast.For) -> bool:
    """True for the index of a loop beside this one, and where that reads it."""
    return any(
        above is not loop
        and plain_name(above.target) == name.id
        and loop not in chain(above)
        and above not in chain(loop)
        for above in of_kind(ast.For, chain(name))
    )


def _only_statements(body: list[ast.stmt]) -> bool:
    """True for assignments to names and calls, one below the other."""
    for each in body:
        match each:
            case ast.Assign(targets=[ast.Name()]) | ast.Expr(value=ast.Call()):
                continue
        return False
    return True


def _read_behind(body: list[ast.stmt], names: set[str]) -> bool:
    """True where each name that the body sets is set before it is read."""
    ready: set[str] = set()
    for each in body:
        value = each.value if isinstance(each, (ast.Assign, ast.Expr)) else each
        read = {inner.id for inner in inner_nodes(value, ast.Name)}
        if read & names - ready:
            return False
        if isinstance(each, ast.Assign):
            ready |= {target.id for target in of_kind(ast.Name, each.targets)}
    return True


def _is_number(kernel: Kernel, name: ast.Name) -> bool:
    """True where a read of the index may be a number that is known when the kernel runs."""
    node: ast.AST = name
    while True:
        above = parent(node)
        match above:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                other = right if left is node else left
                running = {each.name for each in kernel.parameters}.difference(kernel.constexprs)
                if isinstance(other, ast.Name) and other.id not in running:
                    return False
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.BitAnd() | ast.BitOr()) | ast.Compare() | ast.keyword():
                pass
            case ast.Call(func=func):
                return operation(kernel.file, func) in _TAKE_NUMBERS
            case _:
                return isinstance(above, ast.Assign)
        node = above


def _shapes(kernel: Kernel, nodes: list[ast.AST], derived: set[str]) -> bool:
    """True where something that hangs on the index may be wanted as a constexpr: in shapes, other calls, conditions."""
    for node in nodes:
        match node:
            case ast.IfExp() | ast.NamedExpr() if _reads(node, derived):
                return True
            case ast.Subscript(slice=index) if _reads(index, derived):
                return True
            case ast.Call(func=func) if _reads(node, derived):
                name = operation(kernel.file, func)
                if not name and attribute_of(func) == "to":
                    continue
                if not name or name in ("arange", "zeros", "full", "reshape", "view", "static_range", "static_assert"):
                    return True
    return False


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(plain_name(each) in names for each in ast.walk(node))
