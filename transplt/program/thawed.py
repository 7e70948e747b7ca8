"""Parameters that get gradients again after a program has begun to train."""

from __future__ import annotations

import ast

from transplt.program.loops import LOOPS
from transplt.program.parameters import is_part, models_asked, over_parameters
from transplt.program.program import File, Program, enclosing_function
from transplt.program.training import Training, find_training
from transplt.syntax.asks import arguments_of, by_place, call_of
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement


def thawed_late(program: Program) -> tuple[File, ast.expr] | None:
    """Where parameters are freed under a condition of the training, or behind a first training.

    Those that are freed and frozen in each iteration, as in a GAN, are free at the first step that takes them.
    """
    training, models = find_training(program), models_asked(program)
    for file in program.files:
        for node in by_place([*file.scan.stores, *file.scan.attributes.get("requires_grad_", ())]):
            of_models = over_parameters(node) or is_part(node.value, models)
            value = _value(node)
            name = value.id if isinstance(value, ast.Name) else ""
            if of_models and _frees(node) and _late(program, training, file, node, 3, name):
                return file, node
    return None


def _frees(node: ast.Attribute) -> bool:
    """True for `p.requires_grad = True` and `p.requires_grad_()`, and for what may be true."""
    if any(isinstance(above, FUNCTIONS) and above.name == "__init__" for above in chain(node)):
        return False
    return _asked(node) is not None and not _is_false(_value(node))


def _asked(node: ast.Attribute) -> ast.AST | None:
    """The call or the assignment by which parameters are freed or frozen."""
    if node.attr == "requires_grad_":
        return call_of(node)
    return parent(node) if isinstance(node.ctx, ast.Store) else None


def _value(node: ast.Attribute) -> ast.expr | None:
    asked = _asked(node)
    if isinstance(asked, ast.Call):
        return next(iter(arguments_of(asked)), None)
    return getattr(asked, "value", None)


def _is_false(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and not value.value


def _late(program: Program, training: Training, file: File, node: ast.expr, depth: int, value: str = "") -> bool:
    """True for a place that is come by when training has begun; `value` is the parameter that says free or frozen."""
    conditions = False
    for above in chain(node):
        conditions = conditions or isinstance(above, (ast.If, ast.IfExp))
        if isinstance(above, LOOPS) and _trains(training, file, above):
            return conditions
        if isinstance(above, FUNCTIONS):
            break
    function = enclosing_function(node)
    if not _in_training_loop(program, training, function, depth):
        body, own = function.body if function is not None else file.scan.tree.body, statement(node)
        above_it = [item for item in body if item.lineno < own.lineno]
        if any(_trains(training, file, item) for item in above_it if not isinstance(item, (*FUNCTIONS, ast.ClassDef))):
            return True
    for at, site in program.call_sites.get(function, []) if function is not None and depth else []:
        given = dict(program.arguments(site, function)).get(value) if function is not None else None
        if not _is_false(given):
            name = given.id if isinstance(given, ast.Name) else ""
            if _late(program, training, at, site, depth - 1, name):
                return True
    return False


def _in_training_loop(program: Program, training: Training, function: ast.AST | None, depth: int) -> bool:
    """True for a function that runs in each iteration of a loop that trains."""
    for at, site in program.call_sites.get(function, []) if function is not None and depth else []:
        if any(isinstance(above, LOOPS) and _trains(training, at, above) for above in chain(site)):
            return True
        if _in_training_loop(program, training, enclosing_function(site), depth - 1):
            return True
    return False


def _trains(training: Training, file: File, node: ast.AST) -> bool:
    """True for code with a backward pass, or that calls what has one."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    backwards = {id(call) for _, call in training.backwards}
    return any(id(call) in backwards or training.trains(file, call) for call in calls)
