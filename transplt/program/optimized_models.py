"""Which models an optimizer is given the parameters of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from transplt.program.models import base_of, made_in
from transplt.program.program import File, Program, ProgramValue, Variable
from transplt.program.whole_models import Model, model_of
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.nodes import argument_at, inner_nodes, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, parent

_PASSES_ON = frozenset("list tuple set iter filter chain from_iterable reversed sorted dict items values".split())
#: An origin with the names below it: (model, ("encoder",)) of `model.encoder.parameters()`.
ModelPart = tuple[Variable, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ParametersGiven:
    """The parts of models whose parameters go to an optimizer; not `complete` when some cannot be followed.

    `whole` is where the model comes from that is all it gets: `SGD(model.parameters())`.
    """

    parts: tuple[ModelPart, ...] = ()
    complete: bool = True
    whole: Model | None = None

    @property
    def origins(self) -> tuple[Variable, ...]:
        """The origins of the models."""
        return tuple(dict.fromkeys(origin for origin, _ in self.parts))

    def shares(self, other: ParametersGiven) -> bool:
        """True when both are given the parameters of one model, or of a part of it."""
        of_parts = any(
            origin == same and all(a == b for a, b in zip(path, names, strict=False))
            for origin, path in self.parts
            for same, names in other.parts
        )
        return of_parts or (self.whole is not None and self.whole == other.whole)


def parameters_given(program: Program, file: File, call: ast.Call) -> ParametersGiven:
    """What the call that makes an optimizer gives it to train."""
    first = argument_at(call, 0, "params")
    if first is None or isinstance(first, ast.Starred):
        return ParametersGiven(complete=False)
    found = [*_follow(program, file, first, set())]
    parts = tuple(dict.fromkeys(part for part in found if part is not None))
    return ParametersGiven(parts, None not in found, model_of(program, file, first))


def _follow(program: Program, file: File, node: ast.expr, seen: set[int]) -> Iterator[ModelPart | None]:
    """The parts whose parameters an expression holds, and None for what cannot be followed."""
    if id(node) in seen or len(seen) > 500:
        return
    seen.add(id(node))
    inside: list[ast.expr] = []
    match node:
        case ast.Call():
            yield from _called(program, file, node, seen)
        case ast.List() | ast.Tuple() | ast.Set():
            inside = node.elts
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            inside = [value for key, value in pairs if string_of(key) == "params"]
        case ast.BinOp():
            inside = [node.left, node.right]
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            inside = [node.generators[0].iter]
        case ast.Starred():
            inside = [node.value]
        case ast.Name() | ast.Attribute() if (slot := program.slot(file, node)) is not None:
            values = [*program.values.get(slot, ()), *added(program, file, slot), *counted(program, file, slot)]
            if not values:
                yield None
            for value in values:
                yield from _follow(program, value.file, value.node, seen)
        case _:
            yield None
    for item in inside:
        yield from _follow(program, file, item, seen)


def _called(program: Program, file: File, call: ast.Call, seen: set[int]) -> Iterator[ModelPart | None]:
    last = last_name(call.func)
    if isinstance(call.func, ast.Attribute) and last in names_of(MODULE, "parameters"):
        base = base_of(call.func.value)
        slot = program.slot(file, base) if base is not None else None
        if base is None or slot is None or (isinstance(base, ast.Name) and base.id in ("self", "cls")):
            yield None
            return
        below = ast.unparse(call.func.value)[len(ast.unparse(base)) :].removeprefix(".module").strip(".")
        yield from ((origin, tuple(below.split(".")) if below else ()) for origin in made_in(program, slot))
        return
    callee = program.callee(file, call)
    if isinstance(callee, FUNCTIONS):
        for value in program.returns(callee):
            yield from _follow(program, program.owner[callee], value, seen)
    elif last in _PASSES_ON:
        given = [item for item in call.args if not isinstance(item, (ast.Lambda, ast.Constant))]
        if isinstance(call.func, ast.Attribute) and last in ("items", "values"):
            given.append(call.func.value)
        for argument in given:
            yield from _follow(program, file, argument, seen)
    else:
        yield None


def counted(program: Program, file: File, slot: Variable) -> list[ProgramValue]:
    """`for parameter in model.parameters(): ...`"""
    loops = [node for node in ast.walk(file.scan.tree) if isinstance(node, (ast.For, ast.AsyncFor))]
    targets = [
        (loop, target)
        for loop in loops
        for target in (loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target])
    ]
    return [ProgramValue(file, loop.iter) for loop, target in targets if program.slot(file, target) == slot]


def added(program: Program, file: File, slot: Variable) -> list[ProgramValue]:
    """`params += [...]`, `params.append(...)`."""
    found = []
    for name in ("append", "extend", "insert"):
        for node in file.scan.attributes.get(name, ()):
            above = parent(node)
            if program.slot(file, node.value) == slot and isinstance(above, ast.Call) and above.args:
                found.append(ProgramValue(file, above.args[-1]))
    for inner in inner_nodes(file.scan.tree, ast.AugAssign):
        if program.slot(file, inner.target) == slot:
            found.append(ProgramValue(file, inner.value))
    return found
