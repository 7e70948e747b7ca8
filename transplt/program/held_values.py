"""What variables may have been given where they are read: stores of their function, arguments of calls, attributes.

Where `program.values` holds all that a variable is ever given, this looks at which of it may reach a place.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.flow.reaching_definitions import reaching
from transplt.program.call_conditions import defaults
from transplt.program.program import File, Program, ProgramValue, Variable, enclosing_function
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import argument_at, is_none, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, parent
from transplt.syntax.scopes import Binding

_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
_TENSOR_NAMES = frozenset("Tensor LongTensor FloatTensor BoolTensor IntTensor DoubleTensor".split())


@dataclass(frozen=True, slots=True)
class Passed:
    """A parameter: what the calls in sight give it, or its default where one of them gives nothing.

    `forward`: it is one of `forward` of a module or of a function of autograd, whose calls are not followed. `tensor`:
    its annotation says that it is one. `asked`: it has no default, or is one of `forward` with None. `argument`: where
    it is declared.
    """

    values: tuple[ProgramValue, ...]
    forward: bool
    tensor: bool
    argument: ast.arg
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """What an attribute holds whose object moves it to another device, now or later."""

    value: ProgramValue


@dataclass(frozen=True, slots=True)
class Item:
    """One of what a loop or a comprehension goes through."""

    of: ProgramValue


#: None for what cannot be followed.
Source = ProgramValue | Passed | Moved | Item | None


class HeldValues:
    """What the variables of a program may hold."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._registered: dict[Variable, list[ProgramValue]] | None = None

    def sources(self, file: File, node: ast.expr) -> list[Source]:
        """What a name or an attribute may have been given where it is read."""
        if isinstance(node, ast.Name):
            return self._of_name(file, node)
        return self._of_attribute(file, node) if isinstance(node, ast.Attribute) else [None]

    def _of_name(self, file: File, node: ast.Name) -> list[Source]:
        scope = file.scan.scope_of(node)
        found = file.names.lookup(node.id, scope)
        if found is None:
            return [None]
        owner, bindings = found
        if owner.kind == "comprehension":
            return [self._bound(file, each) for each in bindings]
        while scope is not owner and scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        # After `x += 1` a tensor has the type it had.
        stores = [each for each in bindings if not isinstance(parent(each.node), ast.AugAssign)]
        if scope is owner and owner.kind != "class":
            nodes, certain = reaching([each.node for each in stores if each.kind != "param"], node)
            stores = [each for each in stores if each.node in nodes or (each.kind == "param" and not certain)]
        elif any(each.kind == "import" for each in stores):
            slot = self.program.slot(file, node)
            return [*self.program.values.get(slot, ())] or [None] if slot is not None else [None]
        return [self._bound(file, each) for each in stores] or [None]

    def _bound(self, file: File, binding: Binding) -> Source:
        node = binding.node
        if binding.kind == "param" and isinstance(node, ast.arg):
            return self._parameter(file, node)
        if binding.kind != "assign" or not isinstance(node, ast.Name):
            return None
        if (value := assigned_value(node)) is not None:
            return ProgramValue(file, value)
        match above := parent(node):
            case ast.For(target=target) | ast.comprehension(target=target) if target is node:
                return Item(ProgramValue(file, above.iter))
            case ast.Tuple(elts=targets) | ast.List(elts=targets) if isinstance(holder := parent(above), ast.Assign):
                index = targets.index(node)
                match holder.value:
                    case ast.Tuple(elts=values) | ast.List(elts=values) if len(values) == len(targets):
                        return ProgramValue(file, values[index])
                return ProgramValue(file, holder.value, index)
        return None

    def _parameter(self, file: File, node: ast.arg) -> Source:
        function = parent(parent(node))
        if not isinstance(function, FUNCTIONS):
            return None
        tensor = _says_tensor(node.annotation)
        default = dict(defaults(function)).get(node.arg)
        if function.name in ("forward", "backward") and self.in_module(file, function):
            return Passed((), True, tensor, node, asked=default is None or is_none(default))
        every = self.program.values.get(self.program.parameter_slot(function, node.arg), ())
        given = [each for each in every if isinstance(parent(each.node), (ast.Call, ast.keyword))]  # not what it stores
        sites = self.program.call_sites.get(function, ())
        if default is not None and (not sites or len(given) < len(sites)):
            given.append(ProgramValue(file, default))
        return Passed(tuple(given), False, tensor, node, asked=default is None)

    def in_module(self, file: File, function: ast.AST) -> bool:
        """True for a method of a module, of a class whose bases or theirs are called so, and of a function of autograd.
        """
        pending, seen = [(file, parent(function))], set[ast.AST]()
        while pending:
            at, cls = pending.pop()
            if not isinstance(cls, ast.ClassDef) or cls in seen:
                continue
            seen.add(cls)
            for base in cls.bases:
                if last_name(base).endswith("Module") or at.names.qualified(base) in _FUNCTIONS:
                    return True
                found = self.program.named(at, base)
                if found is not None:
                    pending.append((self.program.owner[found], found))
        return False

    def _of_attribute(self, file: File, node: ast.Attribute) -> list[Source]:
        slot = self.program.slot(file, node)
        if slot is None:
            return [None]
        function, text = enclosing_function(node), ast.unparse(node)
        here = [
            each for each in file.scan.stores
            if each.attr == node.attr and enclosing_function(each) is function and ast.unparse(each) == text
        ]  # fmt: skip
        nodes, certain = reaching(here, node)
        if certain:
            held = [assigned_value(each) for each in nodes]
            return [ProgramValue(file, each) if each is not None else None for each in held]
        every = [*self.program.values.get(slot, ()), *self._buffers().get(slot, ())]
        kept = [each for each in every if not is_none(each.node) and not _of_itself(each.node, text)]
        moved = any(_of_itself(each.node, text) for each in every)
        return [Moved(each) if moved else each for each in kept] or [None]

    def _buffers(self) -> dict[Variable, list[ProgramValue]]:
        """The calls by which modules register buffers, by the attribute that these are."""
        if self._registered is None:
            self._registered = {}
            for file in self.program.files:
                for call in file.scan.calls_by_last_name(("register_buffer",)):
                    name = string_of(call.args[0]) if call.args else None
                    if name is not None and isinstance(call.func, ast.Attribute):
                        cls = self.program.class_of(file, call.func.value)
                        slot = ("self", self.program.root_class(cls), name)
                        self._registered.setdefault(slot, []).append(ProgramValue(file, call))
        return self._registered


def buffer_of(call: ast.Call) -> ast.expr | None:
    """The tensor that `register_buffer` is given."""
    return argument_at(call, 1, "tensor")


def _says_tensor(annotation: ast.expr | None) -> bool:
    """True for an annotation that names a tensor, alone or as one that may be missing."""
    if isinstance(annotation, ast.Subscript) and last_name(annotation.value) == "Optional":
        return _says_tensor(annotation.slice)
    if isinstance(annotation, ast.BinOp):
        return _says_tensor(annotation.left) and is_none(annotation.right)
    return last_name(annotation) in _TENSOR_NAMES


def _of_itself(node: ast.expr, text: str) -> bool:
    """True for `self.x.to(device)` of `self.x = self.x.to(device)`, also item by item."""
    match node:
        case ast.ListComp(elt=moved, generators=[ast.comprehension(target=item, iter=over, ifs=[])]):
            inner = _receiver(moved)
            return ast.unparse(over) == text and isinstance(inner, ast.Name) and inner.id == ast.unparse(item)
    inner = _receiver(node)
    return isinstance(inner, ast.Attribute) and ast.unparse(inner) == text


def _receiver(node: ast.expr) -> ast.expr | None:
    """What methods are called of, one after the other: `x` of `x.to(device).float()`; None where none is."""
    inner = node
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        inner = inner.func.value
    return inner if inner is not node else None
