"""binary_cross_entropy of what a sigmoid gives: both in float32, inside of the block.

In half precision a sigmoid is 1 from 8.4 on, and the gradient of the loss there is beyond float16. Of float32 it keeps
its digits, and the gradient that goes back into half precision is `output - target`, which is small. So the sigmoid
gets float32, and the loss runs outside of autocast, where torch allows it: for certain only where each of these losses
stands in this file, and what it gets is seen to come out of a sigmoid of this file.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.edits.trees.expressions import between, method_called
from transplt.edits.writer import Writer
from transplt.fixers.amp.float_only import float_only_calls
from transplt.fixers.amp.training_units import Unit
from transplt.program.loops import lifted
from transplt.program.program import File, Function, Program
from transplt.program.variable_values import values_of
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.nodes import attribute_of, begins, block_of, last_name, plain_name
from transplt.syntax.scan import FUNCTIONS, statement

_CODE = "NPU740"
_LOSS = "binary_cross_entropy runs in float32, outside of autocast"
SIGMOID = "the sigmoid before binary_cross_entropy gets float32"
_FUNCTIONS = frozenset({"torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit"})
_LAYERS = frozenset({"torch.nn.Sigmoid", "torch.nn.modules.activation.Sigmoid"})
_SEQUENCES = frozenset({"torch.nn.Sequential", "torch.nn.modules.container.Sequential"})
PARALLEL = frozenset({"torch.nn.parallel.data_parallel"})
#: Methods that give the same numbers in another shape, or elsewhere.
SAME = names_of(TENSOR, "keeps_type", "to_card") | {"float"}


@dataclass(slots=True)
class Float32:
    """Calls of binary_cross_entropy under autocast, and the sigmoids that they get the values of."""

    losses: list[ast.Call]
    calls: dict[int, ast.Call] = field(default_factory=dict)  # torch.sigmoid(x), x.sigmoid()
    layers: dict[int, ast.Call] = field(default_factory=dict)  # nn.Sigmoid()


def unsafe_under_autocast(unit: Unit) -> ast.expr | None:
    """The first call under autocast that ends in a binary_cross_entropy which cannot be put into float32."""
    if in_float32(unit) is not None:
        return None
    return next((call if file is unit.file else unit.first for file, call in float_only_calls(unit)), None)


def in_float32(unit: Unit) -> Float32 | None:
    """The losses of a unit with their sigmoids; None where one of them cannot be seen for certain."""
    calls = float_only_calls(unit)
    if any(file is not unit.file or last_name(call.func) == "" for file, call in calls):
        return None
    return sigmoids_of(unit.program, unit.file, [call for _, call in calls])


def sigmoids_of(program: Program, file: File, losses: list[ast.Call]) -> Float32 | None:
    """Calls of binary_cross_entropy in a file with their sigmoids; None where one gets what cannot be followed."""
    found = Float32(losses)
    for call in losses:
        given = call.args[0] if len(call.args) > 1 and not isinstance(call.args[0], ast.Starred) else None
        if given is None or not _Trace(program, file, found).value(file, given, None):
            return None
    return found


class _Trace:
    """Follows a value back to the sigmoids that it comes out of, all of them in one file."""

    def __init__(self, program: Program, file: File, found: Float32) -> None:
        self.program, self.file, self.found = program, file, found
        self.seen: set[tuple[int, int | None]] = set()

    def value(self, file: File, node: ast.expr, index: int | None) -> bool:
        """True when an expression (or the item `index` of it) is surely what a sigmoid gives."""
        if (id(node), index) in self.seen:
            return True
        if file is not self.file or len(self.seen) > 200:
            return False
        self.seen.add((id(node), index))
        match node:
            case ast.Tuple(elts=elements):
                return index is not None and index < len(elements) and self.value(file, elements[index], None)
            case ast.Call():
                return self.call(file, node, index)
            case ast.Name() if (last := _last_value(file, node)) is not None:
                return self.value(file, last, index)
            case ast.Name() | ast.Attribute():
                slot = self.program.slot(file, node)
                values = self.program.values.get(slot, []) if slot is not None else []
                if index is not None and any(value.index is not None for value in values):
                    return False
                return bool(values) and all(
                    self.value(each.file, each.node, index if each.index is None else each.index) for each in values
                )
        return False

    def call(self, file: File, call: ast.Call, index: int | None) -> bool:
        func, known = call.func, file.names.qualified(call.func) or ""
        if known in _FUNCTIONS and len(call.args) == 1:
            self.found.calls[id(call)] = call
            return index is None
        if known in PARALLEL and len(call.args) > 1:
            return self.runs(file, call.args[0], index)
        if isinstance(func, ast.Attribute) and not known:
            if func.attr == "sigmoid" and not call.args:
                self.found.calls[id(call)] = call
                return index is None
            if func.attr in SAME and self.program.callee(file, call) is None:
                return self.value(file, func.value, index)
        callee = self.program.callee(file, call)
        if isinstance(callee, FUNCTIONS):
            return self.returned(callee, index)
        return callee is None and not known and self.runs(file, func, index)

    def returned(self, function: Function, index: int | None) -> bool:
        owner = self.program.owner[function]
        values = list(self.program.returns(function))
        return bool(values) and all(self.value(owner, value, index) for value in values)

    def runs(self, file: File, func: ast.expr, index: int | None) -> bool:
        """What a network gives: its class has a `forward` that ends in a sigmoid, or its last layer is one."""
        made = values_of(self.program, file, func)
        own = plain_name(func) == "self"
        return bool(made) and not own and all(self.network(at, each, index) for at, each in made)

    def network(self, file: File, node: ast.expr, index: int | None) -> bool:
        if not isinstance(node, ast.Call) or (id(node), index) in self.seen:
            return (id(node), index) in self.seen
        self.seen.add((id(node), index))
        cls = self.program.class_of(file, node)
        if cls:
            forward = self.program.method(cls, "forward")
            return forward is not None and self.returned(forward, index)
        match node.func:
            case ast.Attribute(value=ast.Name() | ast.Attribute() as network, attr=method) if method in SAME:
                return self.runs(file, network, index)
        return index is None and self.layer(file, node)

    def layer(self, file: File, node: ast.expr) -> bool:
        """True for `nn.Sigmoid()`, and for a Sequential that ends in it."""
        if file is not self.file:
            return False
        if isinstance(node, (ast.Name, ast.Attribute)):
            slot = self.program.slot(file, node)
            values = self.program.values.get(slot, []) if slot is not None and len(self.seen) < 200 else []
            if (id(node), None) in self.seen:
                return True
            self.seen.add((id(node), None))
            return bool(values) and all(value.index is None and self.layer(file, value.node) for value in values)
        if not isinstance(node, ast.Call):
            return False
        known = file.names.qualified(node.func) or ""
        if known in _LAYERS:
            self.found.layers[id(node)] = node
            return True
        if known in _SEQUENCES and node.args and not isinstance(node.args[-1], ast.Starred):
            return self.layer(file, node.args[-1])
        moved = attribute_of(node.func) in SAME and not known
        return moved and isinstance(node.func, ast.Attribute) and self.layer(file, node.func.value)


def _last_value(file: File, name: ast.Name) -> ast.expr | None:
    """What a local name was given right above, in a statement that has run whenever the name is read."""
    stores = [binding.node for binding in file.names.bindings_of(name) if isinstance(binding.node, ast.Name)]
    above = [node for node in stores if begins(statement(node)) < begins(statement(name))]
    last = statement(max(above, key=begins)) if above else None
    match last:
        case ast.Assign(targets=[ast.Name(), *_], value=value):
            return value if lifted(name, block_of(last)) is not None else None
    return None


def write_float32(writer: Writer, every: list[Float32]) -> None:
    """The losses outside of autocast, and the sigmoids in float32."""
    losses = {id(call): call for each in every for call in each.losses}
    if not losses:
        return
    for call in losses.values():
        if name := writer.helper("in_float32", _CODE, _LOSS, at=call):
            writer.rewrite(call.func, _CODE, _LOSS, between(f"{name}(", ")"), apart=True)
    write_sigmoids(writer, every, _CODE)


def write_sigmoids(writer: Writer, every: list[Float32], code: str) -> None:
    """The sigmoids in float32."""
    for call in {id(call): call for each in every for call in each.layers.values()}.values():
        if name := writer.helper("Float32Sigmoid", code, SIGMOID, at=call):
            writer.rewrite(call.func, code, SIGMOID, name)
    for call in {id(call): call for each in every for call in each.calls.values()}.values():
        given = call.args[0] if call.args else call.func.value  # type: ignore[attr-defined]
        writer.rewrite(given, code, SIGMOID, method_called("float"), apart=True)
