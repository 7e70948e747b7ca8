"""Which layers of a model a forward pass may leave out, so that they get no gradients in a step."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from transplt.program.gradients import without_gradients
from transplt.program.loops import excludes
from transplt.program.models import Models
from transplt.program.program import File, Program, Variable
from transplt.rules.torch_callables import names_of
from transplt.syntax.nodes import arguments_of, begins, by_place, ends, inner_nodes, last_name, of_kind, root_name
from transplt.syntax.scan import chain, parent

#: What holds several layers.
_LISTS = frozenset({"torch.nn.ModuleList", "torch.nn.ModuleDict"})
#: What draws, and what counts what data hold: by their names, of any generator and tensor.
_DRAWN = names_of("torch", "draws") | frozenset(
    "random uniform choice choices sample randrange shuffle any numel nonzero binomial".split()
)
_OF_KIND = names_of("builtins", "asks") | {"len"}


def left_out_at_times(program: Program) -> tuple[File, ast.ClassDef] | None:
    """A model of the program with a layer that takes part in some steps and not in others."""
    for cls in program.call_sites:
        if not isinstance(cls, ast.ClassDef):
            continue
        for name, used in _used_layers(program, cls).items():
            # A condition other than `self.training` may change while a model trains; of one of several layers, what is
            # drawn or found in the data.
            several = name in _lists(program, cls)
            if used and all(
                any(_is_drawn(test) if several else last_name(test) != "training" for test in conditions)
                for conditions in used
            ):
                return program.owner[cls], cls
    return None


def leaves_layers_out(program: Program, made: ast.AST | None) -> bool:
    """True when a layer of a model is used under a condition or without gradients only, or nowhere: of a class that is
    made, or of one that it or a function which makes it is made of."""
    pending, seen = [made], set[ast.AST | None]()
    while pending:
        made = pending.pop()
        if made in seen or not isinstance(made, (ast.FunctionDef, ast.ClassDef)):
            continue
        seen.add(made)
        init = _constructor(made) if isinstance(made, ast.ClassDef) else made
        if isinstance(made, ast.ClassDef) and init is not None:
            every = {name for name, _ in _attributes(init)}
            left_out = any(map(all, _used_layers(program, made).values()))
            if left_out or _runs_without_gradients(made, init, every):
                return True
        calls = inner_nodes(init, ast.Call) if init is not None else ()
        pending += [program.callee(program.owner[made], call) for call in calls]
    return False


def _is_drawn(test: ast.expr) -> bool:
    """True for a condition or an index that is drawn, or counts what the data hold: by what its function gives it."""
    around = [above for above in chain(test) if isinstance(above, ast.FunctionDef)]
    stored = [each for function in around[:1] for each in inner_nodes(function, ast.Assign)]
    names = {node.id for node in inner_nodes(test, ast.Name)}
    parts = [test, *(each.value for each in stored if names & set(map(last_name, each.targets)))]
    return any(last_name(call.func) in _DRAWN for part in parts for call in inner_nodes(part, ast.Call))


def _lists(program: Program, cls: ast.ClassDef) -> set[str]:
    """The attributes that hold several layers, of which a pass may take some."""
    init = _constructor(cls)
    held = _attributes(init) if init is not None else ()
    names = program.owner[cls].names
    return {
        name for name, value in held if isinstance(value, ast.Call) and (names.qualified(value.func) or "") in _LISTS
    }


def _constructor(cls: ast.ClassDef) -> ast.FunctionDef | None:
    return next((node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None)


def _attributes(init: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """What a constructor gives to attributes, and what that is."""
    for node in inner_nodes(init, ast.Assign):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                stored = [*zip(targets, values, strict=False)]
            case _:
                stored = [(node.targets[0], node.value)]
        for target, value in stored:
            match target:
                case ast.Attribute(value=ast.Name(id="self"), attr=name) if not isinstance(value, ast.Constant):
                    yield name, value


def _used_layers(program: Program, cls: ast.ClassDef) -> dict[str, list[list[ast.expr]]]:
    """The layers of a model with parameters, and for each of their uses the conditions that it stands under."""
    init = _constructor(cls)
    if init is None:
        return {}
    several = _lists(program, cls)
    layers = dict(_layers(program.owner[cls], init)) | dict.fromkeys(several, True)
    found: dict[str, list[list[ast.expr]]] = {name: [] for name in layers}
    for function in _other_methods(cls, init):
        returns = [each for each in inner_nodes(function, ast.If)
                   if isinstance(each.body[-1], ast.Return) and _is_drawn(each.test)]  # fmt: skip
        for node in inner_nodes(function, ast.Attribute):
            if node.attr in found and last_name(root_name(node)) == "self":
                above = [each.test for each in chain(node) if isinstance(each, (ast.If, ast.IfExp))]
                above += _left_out_of(node) if node.attr in several else []
                above += [at.test for at in returns if _leaves_before(at, node)]
                found[node.attr].append([test for test in above if not _is_same_in_each_step(test, init)])
    return {name: used for name, used in found.items() if used or layers[name]}


def _layers(file: File, init: ast.FunctionDef) -> Iterator[tuple[str, bool]]:
    """The attributes that hold layers with parameters, True with those that are one: no `nn.Sequential`."""
    for name, value in _attributes(init):
        if isinstance(value, ast.Call) and any(is_layer(file, call) for call in inner_nodes(value, ast.Call)):
            yield name, is_layer(file, value)


def _leaves_before(test: ast.If, layer: ast.Attribute) -> bool:
    """True where a function may return in front of a use of a layer, and has not used it there."""
    asked = {node.attr for node in inner_nodes(test, ast.Attribute)}
    return ends(test) <= begins(layer) and layer.attr not in asked and not excludes(test, layer)


def _left_out_of(layers: ast.Attribute) -> list[ast.expr]:
    """The conditions under which a use of several layers leaves one of them out, and what chooses one of them."""
    above, around = parent(layers), chain(layers)
    loops = [(each, {node.id for node in inner_nodes(each.target, ast.Name)}) for each in of_kind(ast.For, around)]
    match above:
        case ast.Subscript(slice=index):
            names = {node.id for node in inner_nodes(index, ast.Name)}
            for loop in (loop for loop, counted in loops if counted & names):
                stored = (node for node in inner_nodes(loop, ast.Assign) if node.value is above)
                held = {last_name(target) for node in stored for target in node.targets}
                return _skipped_by(loop.body, {ast.unparse(above), *held})
            return [index] if names else []
        case ast.Call() if last_name(above.func) in _DRAWN:
            return [above]
    for loop, counted in loops:
        if any(each is layers for each in ast.walk(loop.iter)):
            return _skipped_by(loop.body, counted)
    return [test for each in of_kind(ast.comprehension, around) for test in each.ifs]


def _skipped_by(block: list[ast.stmt], layers: set[str]) -> list[ast.expr]:
    """The conditions under which a block does not come to the first use of some layers."""
    tests: list[ast.expr] = []
    for node in block:
        if isinstance(node, ast.If):
            uses = [_uses(branch, layers) for branch in (node.body, node.orelse)]
            if any(uses):
                return tests if all(uses) else [*tests, node.test]
            tests += [node.test] if isinstance(node.body[-1], (ast.Continue, ast.Break, ast.Return)) else []
        elif _uses([node], layers):
            either = inner_nodes(node, ast.IfExp)
            return tests + [at.test for at in either if _uses([at.body], layers) is not _uses([at.orelse], layers)]
    return tests


def _uses(block: Sequence[ast.AST], layers: set[str]) -> bool:
    """True for code that calls a layer, or hands it on."""
    calls = (call for node in block for call in inner_nodes(node, ast.Call))
    return any(not layers.isdisjoint(map(ast.unparse, (call.func, *arguments_of(call)))) for call in calls)


def _other_methods(cls: ast.ClassDef, init: ast.FunctionDef) -> list[ast.FunctionDef]:
    return [node for node in cls.body if isinstance(node, ast.FunctionDef) and node is not init]


def _runs_without_gradients(cls: ast.ClassDef, init: ast.FunctionDef, attributes: set[str]) -> bool:
    """True when a model runs a part of itself under `no_grad` and nowhere else: it gets no gradients."""
    cut: dict[str, bool] = {}
    attributes = attributes - frozen_from_the_start(init)  # no wrapper waits for gradients of these
    for function in _other_methods(cls, init):
        for node in ast.walk(function):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if name in attributes:
                    cut[name] = cut.get(name, True) and without_gradients(node)
    return any(cut.values())


def frozen_from_the_start(init: ast.FunctionDef) -> set[str]:
    """The attributes of a model whose parameters its constructor freezes, in a loop or by `requires_grad_(False)`."""
    found: set[str] = set()
    for node in ast.walk(init):
        match node:
            case ast.Call(func=ast.Attribute(value=frozen, attr="requires_grad_")):
                off = [each.value for each in arguments_of(node) if isinstance(each, ast.Constant)] == [False]
                found |= {last_name(frozen)} if off and root_name(frozen) is not frozen else set()
            case ast.For():
                found |= _frozen_in(node)
    return found


def _frozen_in(loop: ast.For) -> set[str]:
    """The attributes of whose parameters a loop says `p.requires_grad = False`, for each."""
    pairs = [(loop.target, loop.iter)]
    match loop.target, loop.iter:
        case ast.Tuple(elts=targets), ast.Call(func=func, args=every) if last_name(func) == "zip":
            pairs = list(zip(targets, every, strict=False))
    found = set[str]()
    for target, over in pairs:
        match over:
            case ast.Call(func=ast.Attribute(value=model, attr="parameters")):
                if any(_freezes(statement, last_name(target)) for statement in loop.body):
                    found.add(last_name(model))
    return found


def _freezes(statement: ast.stmt, name: str) -> bool:
    """True for `name.requires_grad = False`."""
    match statement:
        case ast.Assign(targets=targets, value=ast.Constant(value=False)):
            return any(
                isinstance(target, ast.Attribute) and target.attr == "requires_grad" and last_name(target.value) == name
                for target in targets
            )
    return False


def is_layer(file: File, call: ast.Call) -> bool:
    """True for a call that makes a layer of torch.nn with parameters, or a parameter."""
    full = file.names.qualified(call.func) or ""
    return full.startswith("torch.nn.") and full.rpartition(".")[2].startswith(
        ("Linear", "Conv", "LSTM", "GRU", "RNN", "Embedding", "Bilinear", "Parameter", "Multihead", "Transformer")
    )


def _is_same_in_each_step(test: ast.expr, init: ast.FunctionDef) -> bool:
    """True for a condition on an attribute that the constructor sets, or on the place or the kind of a layer."""
    stored = {node.attr for node in inner_nodes(init, ast.Attribute) if isinstance(node.ctx, ast.Store)}
    asked = {node.attr for node in inner_nodes(test, ast.Attribute)}
    loops = [above.target for above in chain(test) if isinstance(above, ast.For)]
    counted = {node.id for target in loops for node in inner_nodes(target, ast.Name)}
    of_kind = [call for call in inner_nodes(test, ast.Call) if last_name(call.func) in _OF_KIND]
    kinds = {id(node) for call in of_kind for each in call.args[1:] for node in ast.walk(each)}
    names = {node.id for node in inner_nodes(test, ast.Name) if id(node) not in kinds}
    calls = {last_name(call.func) for call in inner_nodes(test, ast.Call)}
    same = names <= {"self", *counted, *_OF_KIND} and calls <= _OF_KIND and asked <= stored - {"training"}
    return same and bool(asked | (names & counted))


def dropped_output(models: Models, origin: Variable) -> ast.Call | None:
    """Where an output of a layer of its own is thrown away: `real, _ = model(x)`. It gets no gradients there."""
    heads = heads_of(models.program, origin)
    for file in models.program.files if heads else ():
        for call in by_place(file.scan.calls):
            match parent(call):
                case ast.Assign(targets=[ast.Tuple(elts=targets), *_]) if models.origin(file, call.func) == origin:
                    dropped = [at for at, node in enumerate(targets) if last_name(node).startswith("_")]
                    if any(at in heads for at in dropped) and not without_gradients(call):
                        return call
    return None


def heads_of(program: Program, origin: Variable) -> frozenset[int]:
    """Positions in the tuple that a model gives, of what a layer of its own gives and nothing else is made of."""
    calls = [(each.file, call) for each in program.values.get(origin, ()) for call in inner_nodes(each.node, ast.Call)]
    made = [program.callee(file, call) for file, call in calls]
    inside = [node for cls in made if isinstance(cls, ast.ClassDef) for node in cls.body]
    forwards = [node for node in inside if isinstance(node, ast.FunctionDef) and node.name == "forward"]
    return frozenset(head for forward in forwards for head in _heads(forward))


def _heads(forward: ast.FunctionDef) -> Iterator[int]:
    """Positions in the tuple that a forward pass returns, of what one layer gives and nothing else is made of."""
    nodes = list(ast.walk(forward))
    used = [node.attr for node in of_kind(ast.Attribute, nodes) if last_name(node.value) == "self"]
    names = [node.id for node in of_kind(ast.Name, nodes) if isinstance(node.ctx, ast.Load)]
    stored = [(target, node.value) for node in of_kind(ast.Assign, nodes) for target in node.targets]
    made = {target.id: value for target, value in stored if isinstance(target, ast.Name)}
    for given in of_kind(ast.Tuple, (node.value for node in of_kind(ast.Return, nodes))):
        for at, each in enumerate(given.elts):
            value = made.get(each.id) if isinstance(each, ast.Name) and names.count(each.id) == 1 else each
            match value:
                case ast.Call(func=ast.Attribute(value=layers, attr=name)):
                    if last_name(layers) == "self" and used.count(name) == 1:
                        yield at
