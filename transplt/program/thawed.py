"""Parameters that get gradients again after a program has begun to train."""

from __future__ import annotations

import ast

from transplt.program.loops import LOOPS
from transplt.program.parameters import is_part, models_asked, over_parameters
from transplt.program.program import File, Program, enclosing_function
from transplt.program.training import Training, find_training
from transplt.syntax.asks import by_place, call_of
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement


def thawed_late(program: Program) -> tuple[File, ast.expr] | None:
    """Where parameters are freed under a condition of the training, or behind a first training.

    Those that are freed and frozen in each iteration, as in a GAN, are free at the first step that takes them.
    """
    training, models = find_training(program), models_asked(program)
    for file in program.files:
        for node in by_place([*file.scan.stores, *file.scan.attributes.get("requires_grad_", ())]):
            of_models = over_parameters(node) or is_part(node.value, models)
            if of_models and _frees(node) and _late(program, training, file, node, 3):
                return file, node
    return None


def _frees(node: ast.Attribute) -> bool:
    """True for `p.requires_grad = True` and `p.requires_grad_()`, and for what may be true."""
    call = call_of(node)
    if node.attr == "requires_grad_" and call is not None:
        value = next(iter([*call.args, *(keyword.value for keyword in call.keywords)]), None)
    elif node.attr == "requires_grad" and isinstance(node.ctx, ast.Store):
        value = getattr(parent(node), "value", None)
    else:
        return False
    if any(isinstance(above, FUNCTIONS) and above.name == "__init__" for above in chain(node)):
        return False
    return not (isinstance(value, ast.Constant) and not value.value)


def _late(program: Program, training: Training, file: File, node: ast.expr, depth: int) -> bool:
    conditions = False
    for above in chain(node):
        if isinstance(above, (ast.If, ast.IfExp)):
            conditions = True
        if isinstance(above, LOOPS) and _trains(training, file, above):
            return conditions
        if isinstance(above, FUNCTIONS):
            break
    function = enclosing_function(node)
    own = statement(node)
    body = function.body if function is not None else file.scan.tree.body
    before = [item for item in body if item.lineno < own.lineno and not isinstance(item, (*FUNCTIONS, ast.ClassDef))]
    if any(_trains(training, file, item) for item in before):
        return True
    sites = program.call_sites.get(function, []) if function is not None and depth else []
    return any(_late(program, training, at, site, depth - 1) for at, site in sites)


def _trains(training: Training, file: File, node: ast.AST) -> bool:
    """True for code with a backward pass, or that calls what has one."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    backwards = {id(call) for _, call in training.backwards}
    return any(id(call) in backwards or training.trains(file, call) for call in calls)
