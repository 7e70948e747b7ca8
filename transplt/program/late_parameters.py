"""Parameters that get gradients again, or are made, after a program has begun to train."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.program.layers import is_layer
from transplt.program.loops import LOOPS, excludes
from transplt.program.parameters import gradients_asked, is_part, models_asked, over_parameters
from transplt.program.program import File, Program, enclosing_function
from transplt.program.training import Training, find_training
from transplt.syntax.nodes import begins, by_place, ends, inner_nodes, is_false
from transplt.syntax.scan import FUNCTIONS, chain, statement


def thawed_late(program: Program) -> Iterator[tuple[File, ast.Attribute | ast.Call]]:
    """Where parameters are freed under a condition of the training, or behind a first training.

    Those that are freed and frozen in each iteration, as in a GAN, are free at the first step that takes them.
    """
    training, models = program.once(find_training), models_asked(program)
    for file in program.files:
        for asked in gradients_asked(file):
            node, value = asked.node, asked.value
            if asked.freezes or _in_constructor(node) or not (over_parameters(node) or is_part(asked.of, models)):
                continue
            if _late(program, training, file, node, 3, value.id if isinstance(value, ast.Name) else ""):
                yield file, node


def made_late(program: Program) -> Iterator[tuple[File, ast.Attribute]]:
    """Where a part of a model with parameters of its own is made when training has begun: `model.head = Linear(...)`.

    What only wraps a part of the model, as DataParallel does, keeps its parameters.
    """
    training, models = program.once(find_training), models_asked(program)
    for file in program.files:
        for store in by_place(file.scan.stores):
            if not is_part(store.value, models) or _in_constructor(store) or not makes_parameters(program, file, store):
                continue
            if _late(program, training, file, store, 3, conditional=False):
                yield file, store


def makes_parameters(program: Program, file: File, store: ast.expr) -> bool:
    """True where what is assigned holds a new layer, or a new object of a model of the program."""
    value = getattr(statement(store), "value", None)
    for call in inner_nodes(value, ast.Call) if value is not None else ():
        callee = program.callee(file, call)
        body = callee.body if isinstance(callee, ast.ClassDef) else []
        if is_layer(file, call) or any(isinstance(item, FUNCTIONS) and item.name == "forward" for item in body):
            return True
    return False


def _in_constructor(node: ast.AST) -> bool:
    return any(isinstance(above, FUNCTIONS) and above.name == "__init__" for above in chain(node))


def _late(
    program: Program, training: Training, file: File, node: ast.expr, depth: int, value: str = "",
    conditional: bool = True,
) -> bool:  # fmt: skip
    """True for a place that runs when training has begun; `value` is the parameter that says free or frozen.

    `conditional`: in a loop that trains, only what stands under a condition is late.
    """
    conditions = False
    for above in chain(node):
        conditions = conditions or isinstance(above, (ast.If, ast.IfExp))
        if isinstance(above, LOOPS) and training.is_in(file, above):
            return conditions or not conditional
        if isinstance(above, FUNCTIONS):
            break
    function = enclosing_function(node)
    if not _in_training_loop(program, training, function, depth) and _behind_training(training, file, node):
        return True
    for at, site in program.call_sites.get(function, []) if function is not None and depth else []:
        given = dict(program.arguments(site, function)).get(value) if function is not None else None
        if not is_false(given):
            name = given.id if isinstance(given, ast.Name) else ""
            if _late(program, training, at, site, depth - 1, name, conditional):
                return True
    return False


def _behind_training(training: Training, file: File, node: ast.expr) -> bool:
    """True where a call above a place trains, that is neither in another branch nor around it."""
    above = (call for call in file.scan.calls if ends(call) <= begins(node))
    near = (call for call in above if enclosing_function(call) is enclosing_function(node))
    return any(training.runs(file, call) and not excludes(call, node) for call in near)


def _in_training_loop(program: Program, training: Training, function: ast.AST | None, depth: int) -> bool:
    """True for a function that runs in each iteration of a loop that trains."""
    for at, site in program.call_sites.get(function, []) if function is not None and depth else []:
        if any(isinstance(above, LOOPS) and training.is_in(at, above) for above in chain(site)):
            return True
        if _in_training_loop(program, training, enclosing_function(site), depth - 1):
            return True
    return False
