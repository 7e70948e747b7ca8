"""Types and devices that expressions name: `torch.float64`, `x.dtype`, `"cuda"`, `args.device`."""

from __future__ import annotations

import ast
from collections.abc import Callable

from transplt.flow.marks import DEVICE, marks_by_name
from transplt.program.held_values import HeldValues, Passed
from transplt.program.program import File, ProgramValue, enclosing_function
from transplt.program.tensors import CARD, CPU, DTYPES, Tensor
from transplt.syntax.nodes import is_none, last_name, string_of

_NOW = frozenset({"torch.cuda.current_device", "torch.npu.current_device"})
_OPTIONS = frozenset("self args opt cfg config opts options params hparams".split())


class Named:
    """What expressions say that are given as a type or a device. `tensor` answers for those that are tensors."""

    def __init__(self, held: HeldValues, tensor: Callable[[File, ast.expr], Tensor | None]) -> None:
        self.held, self._tensor = held, tensor
        self._types: dict[int, frozenset[str]] = {}
        self._devices: dict[int, str] = {}

    def is_type(self, file: File, node: ast.expr) -> bool:
        """True for what is a type and no device."""
        return last_name(node) == "dtype" or bool(self.types(file, node))

    def is_device(self, file: File, node: ast.expr) -> bool:
        """True for what is a device and no type."""
        return DEVICE in marks_by_name(last_name(node)) or bool(self.device(file, node))

    def types(self, file: File, node: ast.expr) -> frozenset[str]:
        """The types that an expression may name; empty where they are not known."""
        full = file.names.qualified(node)
        if full is not None and full.startswith("torch."):
            name = DTYPES.get(full.removeprefix("torch."))
            return frozenset({name} if name else ())
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            held = self._tensor(file, node.value)
            return held.types if held is not None else frozenset()
        key = id(node)
        if key not in self._types:
            self._types[key] = frozenset()  # what leads back to itself is not known
            every = [self.types(each.file, each.node) if each is not None else frozenset[str]()
                     for each in self._values_of(file, node)]  # fmt: skip
            self._types[key] = frozenset().union(*every) if all(every) else frozenset()
        return self._types[key]

    def device(self, file: File, node: ast.expr) -> str:
        """CPU, CARD, or empty where it may be either. One that is chosen when the program runs is the card."""
        match node:
            case ast.Constant(value=bool()):
                return ""
            case ast.Constant(value=int()):
                return CARD
            case ast.Constant():
                text = string_of(node) or ""
                return CPU if text.startswith("cpu") else CARD if text.startswith(("cuda", "npu")) else ""
            case ast.JoinedStr():
                return self.device(file, node.values[0]) if node.values else ""
            case ast.IfExp():
                found = {self.device(file, node.body), self.device(file, node.orelse)}
                return CARD if CARD in found else CPU if found == {CPU} else ""
            case ast.Call():
                full = file.names.qualified(node.func) or ""
                if full in _NOW:
                    return CARD
                return self.device(file, node.args[0]) if full == "torch.device" and node.args else ""
            case ast.Attribute(attr="device") if last_name(node.value) not in _OPTIONS:
                held = self._tensor(file, node.value)
                if held is not None and held.device:
                    return held.device
                function = enclosing_function(node)  # the device of what a module computes with
                return CARD if function is not None and self.held.in_module(file, function) else ""
        key = id(node)
        if key not in self._devices:
            self._devices[key] = ""  # what leads back to itself is not known
            self._devices[key] = self._of_variable(file, node)
        return self._devices[key]

    def _of_variable(self, file: File, node: ast.expr) -> str:
        """What a variable says that holds a device: of the options of the program it is the card."""
        given = [each for each in self._values_of(file, node) if each is None or not is_none(each.node)]
        found = {self.device(each.file, each.node) if each is not None else "" for each in given}
        if CARD in found or found == {CPU}:
            return CARD if CARD in found else CPU
        if DEVICE not in marks_by_name(last_name(node)):
            return ""
        # The options of the program say the card; so does a caller that is not in sight and has to say something.
        sources = self.held.sources(file, node)
        asked = bool(sources) and all(isinstance(each, Passed) and each.asked for each in sources)
        return CARD if isinstance(node, ast.Attribute) or (asked and found <= {""}) else ""

    def _values_of(self, file: File, node: ast.expr) -> list[ProgramValue | None]:
        """What a variable may hold; None among it for what cannot be followed."""
        found: list[ProgramValue | None] = []
        for each in self.held.sources(file, node):
            if isinstance(each, Passed):
                found += each.values or [None]
            else:
                found.append(each if isinstance(each, ProgramValue) and each.index is None else None)
        return found
