"""Which models an optimizer is given the parameters of."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.program.models import Models, base_of, made_in
from transplt.program.program import File, Program, Slot, Value
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.asks import keyword_of, last_name
from transplt.syntax.scan import FUNCTIONS, parent

_PASSES_ON = frozenset("list tuple set iter filter chain from_iterable reversed sorted dict items values".split())


@dataclass(slots=True)
class Given:
    """The origins of the models whose parameters go to an optimizer; not `complete` when some cannot be followed.

    `parts` are an origin with the names below it: (model, "encoder") of `model.encoder.parameters()`.
    """

    origins: set[Slot] = field(default_factory=set)
    parts: set[tuple[Slot, tuple[str, ...]]] = field(default_factory=set)
    complete: bool = True

    def shares(self, other: Given) -> bool:
        """True when both are given the parameters of one model, or of a part of it."""
        return any(
            origin == same and all(a == b for a, b in zip(path, names, strict=False))
            for origin, path in self.parts
            for same, names in other.parts
        )


def given_to(models: Models, file: File, call: ast.Call) -> Given:
    """What the call that makes an optimizer gives it to train."""
    return parameters_given(models.program, file, call)


def parameters_given(program: Program, file: File, call: ast.Call) -> Given:
    """What the call that makes an optimizer gives it to train, in a program whose models were not looked for."""
    given = Given()
    first = call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else keyword_of(call, "params")
    if first is None:
        given.complete = False
    else:
        _follow(program, file, first, given, set())
    return given


def _follow(program: Program, file: File, node: ast.expr, given: Given, seen: set[int]) -> None:
    if id(node) in seen or len(seen) > 500:
        return
    seen.add(id(node))
    if isinstance(node, ast.Call):
        _called(program, file, node, given, seen)
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        for item in node.elts:
            _follow(program, file, item, given, seen)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "params":
                _follow(program, file, value, given, seen)
    elif isinstance(node, ast.BinOp):
        _follow(program, file, node.left, given, seen)
        _follow(program, file, node.right, given, seen)
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        _follow(program, file, node.generators[0].iter, given, seen)
    elif isinstance(node, ast.Starred):
        _follow(program, file, node.value, given, seen)
    elif isinstance(node, (ast.Name, ast.Attribute)) and (slot := program.slot(file, node)) is not None:
        values = [*program.values.get(slot, ()), *added(program, file, slot), *counted(program, file, slot)]
        if not values:
            given.complete = False
        for value in values:
            _follow(program, value.file, value.node, given, seen)
    else:
        given.complete = False


def _called(program: Program, file: File, call: ast.Call, given: Given, seen: set[int]) -> None:
    last = last_name(call.func)
    if isinstance(call.func, ast.Attribute) and last in names_of(MODULE, "parameters"):
        base = base_of(call.func.value)
        slot = program.slot(file, base) if base is not None else None
        if slot is None or (isinstance(base, ast.Name) and base.id in ("self", "cls")):
            given.complete = False
        else:
            origins = made_in(program, slot)
            below = ast.unparse(call.func.value)[len(ast.unparse(base)) :] if base is not None else ""
            path = tuple(below.removeprefix(".module").strip(".").split(".")) if below.strip(".") else ()
            given.origins.update(origins)
            given.parts.update((origin, path) for origin in origins)
        return
    callee = program.callee(file, call)
    if isinstance(callee, FUNCTIONS):
        for value in program.returns(callee):
            _follow(program, program.owner[callee], value, given, seen)
    elif last in _PASSES_ON:
        for argument in call.args:
            if not isinstance(argument, (ast.Lambda, ast.Constant)):
                _follow(program, file, argument, given, seen)
        if isinstance(call.func, ast.Attribute) and last in ("items", "values"):
            _follow(program, file, call.func.value, given, seen)
    else:
        given.complete = False


def counted(program: Program, file: File, slot: Slot) -> list[Value]:
    """`for parameter in model.parameters(): ...`"""
    loops = [node for node in ast.walk(file.scan.tree) if isinstance(node, (ast.For, ast.AsyncFor))]
    targets = [
        (loop, target)
        for loop in loops
        for target in (loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target])
    ]
    return [Value(file, loop.iter) for loop, target in targets if program.slot(file, target) == slot]


def added(program: Program, file: File, slot: Slot) -> list[Value]:
    """`params += [...]`, `params.append(...)`."""
    found = []
    for name in ("append", "extend", "insert"):
        for node in file.scan.attributes.get(name, ()):
            above = parent(node)
            if program.slot(file, node.value) == slot and isinstance(above, ast.Call) and above.args:
                found.append(Value(file, above.args[-1]))
    for inner in ast.walk(file.scan.tree):
        if isinstance(inner, ast.AugAssign) and program.slot(file, inner.target) == slot:
            found.append(Value(file, inner.value))
    return found
