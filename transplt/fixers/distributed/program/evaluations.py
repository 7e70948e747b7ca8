"""Where models are evaluated, and what they do in training alone."""

from __future__ import annotations

import ast

from transplt.program.gradients import without_gradients
from transplt.program.program import Program, enclosing_function
from transplt.syntax.nodes import arguments_of, begins, inner_nodes, is_false, last_name, place_in_block
from transplt.syntax.scan import FUNCTIONS, Scan, chain, parent


def turns_to_evaluation(call: ast.Call) -> bool:
    """True for `model.eval()` and `model.train(False)`."""
    match arguments_of(call):
        case []:
            return last_name(call.func) == "eval"
        case [ast.Constant(value=False)]:
            return last_name(call.func) != "eval"
    return False


def in_evaluation(scan: Scan, node: ast.AST) -> bool:
    """True for what runs without gradients behind `eval()`, with no `train()` between them in its function."""
    if not without_gradients(node):
        return False
    function = enclosing_function(node)
    modes = [
        call
        for call in scan.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("eval", "train")
        if enclosing_function(call) is function and begins(call) < begins(node)
    ]
    return bool(modes) and turns_to_evaluation(max(modes, key=begins))


def never_holds(program: Program, draw: ast.Call) -> bool:
    """True for the draw of `random.random() < ratio` in a function that each evaluation gives a ratio of 0."""
    match parent(draw):
        case ast.Compare(left=left, ops=[ast.Lt()], comparators=[ast.Name(id=name)]) if left is draw:
            if (function := enclosing_function(draw)) is None:
                return False
            stores = (each.id for each in inner_nodes(function, ast.Name) if isinstance(each.ctx, ast.Store))
            sites = [call for at, call in program.call_sites.get(function, ()) if in_evaluation(at.scan, call)]
            given = [value for call in sites for to, value in program.arguments(call, function) if to == name]
            return name not in stores and len(given) == len(sites) > 0 and all(map(is_false, given))
    return False


def if_training(node: ast.AST) -> bool:
    """True for what a module does `if self.training`, or behind `if not self.training: return`."""
    below = node
    for above in chain(node):
        if isinstance(above, (ast.If, ast.IfExp)) and (wanted := _asks_training(above.test)) is not None:
            body = above.body if isinstance(above.body, list) else [above.body]
            if below is not above.test and (below in body) is wanted:
                return True
        if isinstance(below, ast.stmt):
            block, place = place_in_block(below)
            if any(
                isinstance(each, ast.If)
                and _asks_training(each.test) is False
                and isinstance(each.body[-1], (ast.Return, ast.Raise))
                for each in block[:place]
            ):
                return True
        if isinstance(above, FUNCTIONS):
            return False
        below = above
    return False


def _asks_training(test: ast.expr) -> bool | None:
    """Whether `self.training` (True) or `not self.training` (False) is asked for; None for another condition."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _asks_training(operand)
            return None if inner is None else not inner
        case ast.Attribute(attr="training"):
            return True
    return None
