"""Where gradients are read before a step: clipped, unscaled, looked at."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.program.optimizers import OptimizerStep
from transplt.program.program import enclosing_function
from transplt.program.training import Training
from transplt.syntax.nodes import block_of, by_place, inner_nodes, is_none, last_name
from transplt.syntax.scan import chain, parent, statement

_READS = ("clip_grad", "unscale_", "get_grad_norm", "grad_norm")


def first_reader(training: Training, step: OptimizerStep) -> ast.stmt:
    """The statement in front of a step from which on gradients are read: clipped, unscaled, looked at."""
    node = statement(step.call)
    block = block_of(node)
    index = block.index(node)
    backwards = {id(call) for _, call in training.backwards}
    first = index
    for at in range(index - 1, -1, -1):
        inner = list(ast.walk(block[at]))
        if any(id(each) in backwards for each in inner) or next(set_anew(block[at]), None) is not None:
            break
        if any(_reads_gradients(each) for each in inner):
            first = at
    return block[first]


def readers_apart(step: OptimizerStep) -> list[ast.stmt]:
    """Statements of the function of a step, outside of its block, that read gradients before it."""
    found = []
    block = block_of(statement(step.call))
    for call in by_place(step.file.scan.calls):
        if enclosing_function(call) is enclosing_function(step.call) and _reads_gradients(call):
            node = statement(call)
            apart = node not in block and not any(above in block for above in chain(node))
            if apart and call.lineno < step.call.lineno:
                found.append(node)
    return found


def set_anew(node: ast.stmt | ast.Module) -> Iterator[ast.Attribute]:
    """The gradients in code that writes them from something else: `p.grad = merged[at]`, as gradient surgery does."""
    for each in by_place(inner_nodes(node, ast.Attribute)):
        place = statement(each)
        read = (at for at in inner_nodes(place, ast.Attribute) if at.attr == "grad" and not writes_gradient(at))
        if writes_gradient(each) and next(read, None) is None and not is_none(getattr(place, "value", None)):
            yield each


def writes_gradient(node: ast.Attribute) -> bool:
    """True for the gradient in `p.grad.data.copy_(v)` and `p.grad = v`."""
    above = parent(node)
    above = parent(above) if last_name(above) == "data" else above
    return node.attr == "grad" and (isinstance(node.ctx, ast.Store) or last_name(above) == "copy_")


def _reads_gradients(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node.func).startswith(_READS)
    return isinstance(node, ast.Attribute) and node.attr == "grad"
