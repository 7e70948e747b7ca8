"""Which layers of a model a forward pass may leave out, so that they get no gradients in a step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.program.gradients import without_gradients
from transplt.program.models import Models
from transplt.program.program import File, Program, Variable
from transplt.syntax.asks import arguments_of, by_place, last_name, root_name
from transplt.syntax.scan import chain, parent


def left_out_at_times(program: Program) -> tuple[File, ast.ClassDef] | None:
    """A model of the program with a layer that takes part in some steps and not in others."""
    for cls in program.call_sites:
        if isinstance(cls, ast.ClassDef) and any(
            used and all(map(_may_differ, used)) for used in _used_layers(program, cls).values()
        ):
            return program.owner[cls], cls
    return None


def _may_differ(conditions: list[ast.expr]) -> bool:
    """True for a use under a condition that may change while a model trains."""
    return any(last_name(test) != "training" for test in conditions)


def leaves_layers_out(program: Program, cls: ast.ClassDef) -> bool:
    """True when a layer of a model is used under a condition or without gradients only, or nowhere."""
    init = _constructor(cls)
    if init is None:
        return False
    every = {name for name, _ in _attributes(init)}
    uses = _used_layers(program, cls)
    return any(all(used) for used in uses.values()) or _runs_without_gradients(cls, init, every)


def _constructor(cls: ast.ClassDef) -> ast.FunctionDef | None:
    return next((node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None)


def _attributes(init: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """What a constructor gives to attributes, and what that is."""
    for node in ast.walk(init):
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Attribute):
            plain = isinstance(target.value, ast.Name) and target.value.id == "self"
            if plain and not isinstance(node.value, ast.Constant):
                yield target.attr, node.value


def _used_layers(program: Program, cls: ast.ClassDef) -> dict[str, list[list[ast.expr]]]:
    """The layers of a model with parameters, and for each of their uses the conditions that it stands under."""
    file, init = program.owner[cls], _constructor(cls)
    found: dict[str, list[list[ast.expr]]] = {}
    if init is None:
        return found
    for name, value in _attributes(init):
        if isinstance(value, ast.Call) and is_layer(file, value):
            found[name] = []
    for function in cls.body:
        if not isinstance(function, ast.FunctionDef) or function is init:
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and node.attr in found and last_name(root_name(node)) == "self":
                above = [each.test for each in chain(node) if isinstance(each, (ast.If, ast.IfExp))]
                found[node.attr].append([test for test in above if not _settled(test, init)])
    return found


def _runs_without_gradients(cls: ast.ClassDef, init: ast.FunctionDef, attributes: set[str]) -> bool:
    """True when a model runs a part of itself under `no_grad` and nowhere else: it gets no gradients."""
    cut: dict[str, bool] = {}
    attributes = attributes - frozen_from_the_start(init)  # no wrapper waits for gradients of these
    for function in [node for node in cls.body if isinstance(node, ast.FunctionDef) and node is not init]:
        for node in ast.walk(function):
            func = node.func if isinstance(node, ast.Call) else None
            own = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
            if own and isinstance(func, ast.Attribute) and func.attr in attributes:
                cut[func.attr] = cut.get(func.attr, True) and without_gradients(node)
    return any(cut.values())


def frozen_from_the_start(init: ast.FunctionDef) -> set[str]:
    """The attributes of a model whose parameters its constructor freezes, in a loop or by `requires_grad_(False)`."""
    found: set[str] = set()
    for node in ast.walk(init):
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr == "requires_grad_" and isinstance(node, ast.Call):
            off = [each.value for each in arguments_of(node) if isinstance(each, ast.Constant)] == [False]
            found |= {last_name(func.value)} if off and root_name(func.value) is not func.value else set()
        if isinstance(node, ast.For):
            zipped = isinstance(node.iter, ast.Call) and last_name(node.iter.func) == "zip"
            pairs = [(node.target, node.iter)]
            if zipped and isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Tuple):
                pairs = list(zip(node.target.elts, node.iter.args, strict=False))
            for target, over in pairs:
                every = over.func if isinstance(over, ast.Call) else None
                named = isinstance(every, ast.Attribute) and every.attr == "parameters"
                if named and isinstance(every, ast.Attribute) and _freezes(node, last_name(target)):
                    found.add(last_name(every.value))
    return found


def _freezes(loop: ast.For, name: str) -> bool:
    """True for a loop that says `name.requires_grad = False` of each."""
    stores = (node for node in loop.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant))
    return any(
        isinstance(target, ast.Attribute) and target.attr == "requires_grad" and last_name(target.value) == name
        for node in stores
        if isinstance(node.value, ast.Constant) and node.value.value is False
        for target in node.targets
    )


def is_layer(file: File, call: ast.Call) -> bool:
    """True for a call that makes a layer of torch.nn with parameters, or a parameter."""
    full = file.names.qualified(call.func) or ""
    return full.startswith("torch.nn.") and full.rpartition(".")[2].startswith(
        ("Linear", "Conv", "LSTM", "GRU", "RNN", "Embedding", "Bilinear", "Parameter", "Multihead", "Transformer")
    )


def _settled(test: ast.expr, init: ast.FunctionDef) -> bool:
    """True for a condition on an attribute that the constructor sets: it is the same in each step."""
    set_there = [node for node in ast.walk(init) if isinstance(node, ast.Attribute)]
    stored = {node.attr for node in set_there if isinstance(node.ctx, ast.Store)}
    inner = [node for node in ast.walk(test) if isinstance(node, ast.Attribute)]
    names = [node for node in ast.walk(test) if isinstance(node, ast.Name) and node.id != "self"]
    return bool(inner) and not names and all(node.attr in stored and node.attr != "training" for node in inner)


def dropped_output(models: Models, origin: Variable) -> ast.Call | None:
    """Where an output of a layer of its own is thrown away: `real, _ = model(x)`. It gets no gradients there."""
    forwards = []
    for value in models.program.values.get(origin, ()):
        for call in [node for node in ast.walk(value.node) if isinstance(node, ast.Call)]:
            made = models.program.callee(value.file, call)
            if isinstance(made, ast.ClassDef):
                forwards += [node for node in made.body if isinstance(node, ast.FunctionDef) and node.name == "forward"]
    heads = [head for forward in forwards for head in _heads(forward)]
    for file in models.program.files if heads else ():
        for call in by_place(file.scan.calls):
            above = parent(call)
            targets = above.targets[0] if isinstance(above, ast.Assign) and above.value is call else None
            if isinstance(targets, ast.Tuple) and models.origin(file, call.func) == origin:
                dropped = [at for at, node in enumerate(targets.elts) if last_name(node).startswith("_")]
                if any(at in heads for at in dropped) and not without_gradients(call):
                    return call
    return None


def _heads(forward: ast.FunctionDef) -> Iterator[int]:
    """Positions in the tuple that a forward pass returns, of what one layer gives and nothing else is made of."""
    nodes = list(ast.walk(forward))
    used = [node.attr for node in nodes if isinstance(node, ast.Attribute) and last_name(node.value) == "self"]
    names = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    made = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        given = node.value.elts if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) else []
        for at, each in enumerate(given):
            value = made.get(each.id) if isinstance(each, ast.Name) and names.count(each.id) == 1 else each
            func = value.func if isinstance(value, ast.Call) else None
            own = isinstance(func, ast.Attribute) and last_name(func.value) == "self"
            if own and isinstance(func, ast.Attribute) and used.count(func.attr) == 1:
                yield at
