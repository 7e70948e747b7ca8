"""Where models are evaluated, and what they do in training alone."""

from __future__ import annotations

import ast

from transplt.program.gradients import without_gradients
from transplt.program.program import enclosing_function
from transplt.syntax.asks import begins, last_name, place_in_block
from transplt.syntax.scan import FUNCTIONS, Scan, chain


def turns_to_evaluation(call: ast.Call) -> bool:
    """True for `model.eval()` and `model.train(False)`."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    off = len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False
    return not given if last_name(call.func) == "eval" else off


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
            if any(isinstance(each, ast.If) and _leaves_evaluation(each) for each in block[:place]):
                return True
        if isinstance(above, FUNCTIONS):
            return False
        below = above
    return False


def _asks_training(test: ast.expr) -> bool | None:
    """Whether `self.training` (True) or `not self.training` (False) is asked for; None for another condition."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _asks_training(test.operand)
        return None if inner is None else not inner
    return True if isinstance(test, ast.Attribute) and test.attr == "training" else None


def _leaves_evaluation(node: ast.If) -> bool:
    return _asks_training(node.test) is False and isinstance(node.body[-1], (ast.Return, ast.Raise))
