"""What stands in a training loop, a loop that calls backward, and makes the host wait for the device.

A loss is a tensor for certain where it has `backward`, so printing it, too, waits; what happens every so many steps, or
only before the program ends, is left in peace.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.engine.analysis.scanned_file import ScannedFile
from transplt.program.loops import lifted, loops_around
from transplt.program.steps import backward_passes
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.nodes import arguments_of, call_of, last_name, string_of
from transplt.syntax.scan import chain, parent

_TO_HOST = names_of(TENSOR, "to_host", "reads")

Place = tuple[ast.AST, ast.expr, str, str]


def in_loops(file: ScannedFile) -> Iterator[Place]:
    """(loop, place, key of the advice, API) of what slows the training loops of a file."""
    losses: dict[ast.AST, set[str]] = {}
    first: ast.Call | None = None
    for call in backward_passes(file.scan):
        loss = getattr(call.func, "value", None)
        if (loop := _loop_of(call)) is not None:
            first = first or call
            losses.setdefault(loop, set()).update({loss.id} if isinstance(loss, ast.Name) else ())
    if first is None:
        return
    yield file.scan.tree, first, "environment", ""
    for place, api in [*_copies(file), *_readings(file, losses)]:
        loop = _loop_of(place)
        if loop in losses and not _now_and_then(place, loop):
            yield loop, place, "host_sync", api


def _copies(file: ScannedFile) -> Iterator[tuple[ast.expr, str]]:
    for name in sorted(_TO_HOST & file.scan.attributes.keys()):
        for node in file.scan.attributes[name]:
            call = call_of(node)
            if call is None or call.args:
                continue
            match parent(call):
                case ast.Attribute(attr=attr) as above if attr in _TO_HOST and isinstance(parent(above), ast.Call):
                    continue  # x.cpu().numpy() is one copy, and one finding: at the call outside
            match node.value:
                case ast.Call(func=ast.Attribute(attr="cpu")):
                    copies = True
                case value:
                    copies = name in ("item", "cpu") or file.receivers.is_tensor(value)
            if copies:
                yield call, f"torch.Tensor.{name}"


def _readings(file: ScannedFile, losses: dict[ast.AST, set[str]]) -> Iterator[tuple[ast.expr, str]]:
    """`print(loss)`, `f"{loss}"`, `"...".format(loss)` and `float(loss)` of what has a backward pass in that loop."""
    names = {name for each in losses.values() for name in each}
    for name in sorted(names & file.scan.names.keys()):
        for node in file.scan.names[name]:
            loop = _loop_of(node) if isinstance(node.ctx, ast.Load) else None
            if loop is not None and name in losses.get(loop, ()) and _is_read(file, node):
                yield node, "torch.Tensor.__format__"


def _is_read(file: ScannedFile, node: ast.Name) -> bool:
    above = parent(node)
    if isinstance(above, ast.FormattedValue):
        return True
    if isinstance(above, ast.Tuple):
        node, above = above, parent(above)  # type: ignore[assignment]
    match above:
        case ast.BinOp(left=left, op=ast.Mod()) if above.right is node:
            return string_of(left) is not None
    if not isinstance(above, ast.Call) or node not in arguments_of(above):
        return False
    func = above.func
    if isinstance(func, ast.Name):
        reads = func.id in names_of("builtins", "makes_number", "shows")
        return reads and file.names.lookup(func.id, file.scan.scope_of(func)) is None
    return last_name(func) == "format" and isinstance(getattr(func, "value", None), ast.Constant)


def _now_and_then(node: ast.AST, loop: ast.AST) -> bool:
    """True in a branch that is taken every so many steps (`if step % 100 == 0`), or that ends the loop."""
    inner = node
    for above in chain(node):
        if above is loop:
            break
        if isinstance(above, ast.If) and inner is not above.test:
            if any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod) for each in ast.walk(above.test)):
                return True
            if inner in above.body:
                match above.body[-1]:
                    case ast.Return() | ast.Break() | ast.Raise():
                        return True
                    case ast.Expr(value=ast.Call(func=called)) if last_name(called) in ("exit", "_exit"):
                        return True
        inner = above
    return False


def _loop_of(node: ast.AST) -> ast.AST | None:
    """The innermost loop of the function in whose body a node stands."""
    return next((loop for loop in loops_around(node) if lifted(node, loop.body) is not None), None)
