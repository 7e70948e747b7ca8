"""What op-plugin's YAML says of functions of CANN: its lines `exec:`, with types of the schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from card_types.operators import Operator, registered
from card_types.sources import statement

from .arguments import CHANGED, FILLED, Argument, of_variable
from .types import converted, type_of

#: Types of schemas as the generated functions have them.
_BASE = {
    "Tensor": "Tensor", "Scalar": "Scalar", "int": "int64_t", "SymInt": "int64_t", "bool": "bool", "float": "double",
    "str": "string_view", "ScalarType": "ScalarType",
}  # fmt: skip
_LISTS = {"Tensor": "TensorList", "int64_t": "IntArrayRef", "bool": "array<bool,1>"}


@dataclass(frozen=True, slots=True)
class Call:
    """A function of CANN with its arguments, and the operator of PyTorch that it computes; `known`: all arguments but
    those to be filled are the operator's own."""

    function: str
    arguments: tuple[Argument, ...]
    operator: str
    known: bool


def type_in_schema(text: str) -> str:
    """The C++ type of a parameter of a schema."""
    match = re.match(r"(\w+)(?:\([^)]*\))?(\[\d*\])?(\?)?$", text)
    if match is None or match[1] not in _BASE:
        return ""
    kind = _BASE[match[1]]
    if match[2]:
        kind = _LISTS.get(kind, f"ArrayRef<{kind}>")
    if match[3] and kind == "IntArrayRef":
        return "OptionalIntArrayRef"
    return f"optional<{kind}>" if match[3] else kind


def calls(folder: Path, version: str) -> Iterator[tuple[Call, bool]]:
    """Calls, and whether the operator is one of PyTorch itself."""
    for parts in (("official", "symint"), ("custom",)):
        for operator in registered(folder, version, parts):
            call = _call(operator) if operator.exec else None
            if call is not None:
                yield call, parts != ("custom",)


def _call(operator: Operator) -> Call | None:
    function, *names = (each.strip() for each in operator.exec.split(","))
    own = dict(operator.parameters)
    outputs = [name for name, _ in operator.outputs]
    names = names or [*own, *(name for name in outputs if name not in own)]
    kinds = {name: type_in_schema(kind) for name, kind in own.items()} | dict.fromkeys(outputs, "Tensor")
    for name, text in operator.new:
        declared = statement(text).child_by_field_name("declarator")
        value = declared.child_by_field_name("value") if declared is not None else None
        kinds[name] = type_of(value, lambda each, _: kinds.get(each, ""))
    found = []
    for name in names:
        letter = converted(kinds.get(name, ""))
        written = "!" in own.get(name, "")
        filled = name in outputs or (written and re.match(r"(\w+_)?out\d*$|result|values|indices", name))
        mark = FILLED if filled else CHANGED * written
        shown = name if name in own or name in outputs else of_variable(name)
        found.append(Argument(shown, letter[:1], mark + letter[1:]))
    known = all(each.name in own or each.marks.startswith(FILLED) for each in found)
    return Call(function, tuple(found), operator.name, known)
