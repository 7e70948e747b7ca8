"""What a program does with a model before it can be wrapped, or beside its wrapper, which knows nothing of that."""

from __future__ import annotations

import ast

from transplt.flow.callees import DATA_PARALLEL
from transplt.program.cards import MOVES
from transplt.program.gradients import without_gradients
from transplt.program.late_parameters import makes_parameters
from transplt.program.models import Models, takes_wrapper
from transplt.program.program import File, Program, Variable, enclosing_function, stores_of
from transplt.program.variable_values import values_of
from transplt.program.wrapper_places import Wrap, before_wrap, part_at
from transplt.syntax.files import names_and_attributes
from transplt.syntax.nodes import attribute_of, begins, call_of, inner_nodes, last_name, root_name, string_of
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

_TAKES_LAYERS = frozenset({"append", "extend", "insert", "add_module", "register_module", "register_parameter"})


def made_anew(models: Models, wrap: Wrap) -> ast.expr | None:
    """Where another model is made under the name of one that was wrapped, and trained behind that: the wrapper would
    exchange the gradients of the first."""
    for file, node in stores_of(models.program, wrap.origin):
        if file is not wrap.file or before_wrap(file, node, wrap):
            continue
        here = [loop for at, loop in models.training.regions if at is file]
        same = [loop for loop in here if enclosing_function(loop) is enclosing_function(node)]
        calls = [call for call in file.scan.calls if enclosing_function(call) is enclosing_function(node)]
        later = [call for call in calls if begins(call) > begins(node) and models.training.runs(file, call)]
        if later or any(begins(loop) > begins(node) or loop in chain(node) for loop in same):
            return node
    return None


def grown_later(models: Models, wrap: Wrap) -> ast.expr | None:
    """Where a layer is put into a model that was wrapped: the wrapper exchanges nothing for it."""
    program = models.program
    same = {wrap.origin, *(slot for slot, first in models.wrapped.items() if first == wrap.origin)}
    for file in program.files:
        for node in names_and_attributes(file):
            part = part_at(node)
            if part is node or program.slot(file, node) not in same or before_wrap(file, node, wrap):
                continue
            call = call_of(part)
            method = program.callee(file, call) if call is not None else None
            if isinstance(method, FUNCTIONS):  # net.grow()
                puts = any(_puts_in(each) for each in ast.walk(method) if last_name(root_name(each)) == "self")
                made = [each.value for each in ast.walk(method) if isinstance(each, (ast.Assign, ast.Expr))]
                if puts and any(makes_parameters(program, program.owner[method], each) for each in made):
                    return node
            elif _puts_in(part) and makes_parameters(program, file, part):
                return node
    return None


def _puts_in(part: ast.AST) -> bool:
    """True for a part of a model that is assigned, or asked to take layers: `self.blocks.append`."""
    taken = isinstance(part, ast.Attribute) and part.attr in _TAKES_LAYERS and call_of(part) is not None
    return taken or isinstance(getattr(part, "ctx", None), ast.Store)


def state_elsewhere(models: Models, origin: Variable) -> str | None:
    """Where the state of a model is read or loaded through an object whose class is not known, or that may be any of
    those that `getattr(self, name)` gives: with what names?"""
    program = models.program
    for file in program.files if origin[0] == "self" else ():
        for node in (*file.scan.attributes.get("state_dict", ()), *file.scan.attributes.get("load_state_dict", ())):
            unknown = attribute_of(node.value) == origin[2] and program.slot(file, node.value) is None
            names = inner_nodes(node.value, ast.Name)
            held = [node.value, *(value for each in names for _, value in values_of(program, file, each))]
            if unknown or any(_is_chosen(program, file, call, origin) for each in held for call in ast.walk(each)):
                return f"line {node.lineno} of {file.path}"
    return None


def _is_chosen(program: Program, file: File, node: ast.AST, origin: Variable) -> bool:
    """True for `getattr(self, name)` of an object that has a model, by a name that is made when the program runs."""
    match node:
        case ast.Call(func=ast.Name("getattr"), args=[owner, name, *_]) if string_of(name) is None:
            return program.root_class(program.class_of(file, owner)) == origin[1]
    return False


def moved_off(models: Models, wrap: Wrap) -> ast.expr | None:
    """Where a model that was wrapped goes to the CPU, if it comes back, too: its tensors lose the wrapper's hooks."""
    same = {wrap.origin, *(slot for slot, first in models.wrapped.items() if first == wrap.origin)}
    moves: dict[str, ast.expr] = {}
    for file in models.program.files:
        for node in names_and_attributes(file):
            moved = parent(node)
            if models.program.slot(file, node) in same and call_of(moved) and not before_wrap(file, node, wrap):
                moves.setdefault(attribute_of(moved), node)
    return moves.get("cpu") if not MOVES.isdisjoint(moves) else None


def handed_over(models: Models, wrap: Wrap) -> ast.expr | None:
    """Where an object is made of the bare model before it is wrapped, such as a loss, an average or a trainer."""
    program = models.program
    for node in names_and_attributes(wrap.file):
        if not isinstance(node.ctx, ast.Load) or program.slot(wrap.file, node) != wrap.origin:
            continue
        if not before_wrap(wrap.file, node, wrap):
            continue
        above = parent(node)
        call = parent(above) if isinstance(above, ast.keyword) else above
        if isinstance(call, ast.Call) and call.func is not node:
            if isinstance(program.callee(wrap.file, call), ast.ClassDef):
                return node
            name = wrap.file.names.qualified(call.func) or ""
            if isinstance(statement(call), ast.Assign) and name.startswith("torch.nn.") and name not in DATA_PARALLEL:
                return node
    return None


def run_bare(models: Models, wrap: Wrap) -> ast.expr | None:
    """Where a model is given without its wrapper to a function that runs it with gradients, as other models are given
    to it, too: the wrapper would not see that pass."""
    program = models.program
    for file in program.files:
        for node in names_and_attributes(file):
            above = parent(node)
            call = parent(above) if isinstance(above, ast.keyword) else above
            callee = program.callee(file, call) if isinstance(call, ast.Call) and call.func is not node else None
            if not isinstance(call, ast.Call) or not isinstance(callee, FUNCTIONS) or without_gradients(call):
                continue
            if models.origin(file, node) != wrap.origin or before_wrap(file, node, wrap):
                continue
            name = next((name for name, given in program.arguments(call, callee) if given is node), "")
            owner, slot = program.owner[callee], program.parameter_slot(callee, name)
            runs = [each for each in owner.scan.calls if program.slot(owner, each.func) == slot]
            if not takes_wrapper(models, file, call, node) and not all(map(without_gradients, runs)):
                return node
    return None


def frozen_later(models: Models, wrap: Wrap) -> bool:
    """True when what is trained of a model changes behind the place where it is wrapped."""
    program = models.program
    same = {wrap.origin, *(slot for slot, first in models.wrapped.items() if first == wrap.origin)}
    for file in program.files:
        for store in [*file.scan.stores, *file.scan.attributes.get("requires_grad_", ())]:
            if store.attr not in ("requires_grad", "requires_grad_"):
                continue
            heads = (above.iter for above in chain(store) if isinstance(above, (ast.For, ast.AsyncFor)))
            nodes: list[ast.expr] = [store.value, *heads]
            inner = [each for node in nodes for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute))]
            if not any(program.slot(file, each) in same for each in inner):
                continue
            if isinstance(store.ctx, ast.Load) and call_of(store) is None:
                continue
            function = enclosing_function(store)  # what a model freezes of itself when it is made stays as it is
            if not before_wrap(file, store, wrap) and (function is None or function.name != "__init__"):
                return True
    return False
