"""Operators that are given a type of tensors which the card refuses, where the text says which type that is.

Complex numbers, 64-bit floats and the unsigned integers beyond uint8: types that CUDA computes with and CANN often
does not. Facts: rules/support/card_types.json, which the emulated card enforces too (NPU791). What is found: each type
that a tensor may have is refused, and the tensor lies on the card (tensor_types.py says what that takes for granted).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache

from transplt.flow.facts import ProjectFacts
from transplt.flow.value_spread import spread
from transplt.program.program import File, program_of
from transplt.program.tensor_calls import HAND_ON
from transplt.program.tensor_types import TensorTypes
from transplt.program.tensors import CARD, CPU, DTYPES, Known, Number, Tensor, promoted
from transplt.rules.card_types import ALL, Types, refusal, types_of
from transplt.rules.torch_calls import TENSOR, Overload, operators_by_last_name, overloads_of, real_only
from transplt.syntax.nodes import begins, ends, hides_arguments, last_name, string_of
from transplt.syntax.scan import parent

#: Texts one of which a file holds that makes such types.
NEEDS = (b"complex", b"polar", b"double", b"float64", b"uint16", b"uint32", b"uint64", b"fft", b"cfloat", b"stft")
#: Types that CUDA computes with, and that are told of.
_WIDE = frozenset("float64 complex32 complex64 complex128 uint16 uint32 uint64".split())
_COMPLEX = frozenset({"complex32", "complex64", "complex128"})
#: What makes them, by its last name.
_MAKERS = {
    **dict.fromkeys(
        "polar complex view_as_complex fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn stft complex32 complex64 "
        "complex128 cfloat cdouble chalf".split(),
        _COMPLEX,
    ),
    **{name: frozenset({kind}) for name, kind in DTYPES.items() if kind in _WIDE - _COMPLEX},
}
_INDEX = "index"
_OPERATORS: dict[type[ast.operator], str] = {
    ast.MatMult: "torch.matmul", ast.Add: "torch.add", ast.Sub: "torch.sub", ast.Mult: "torch.mul",
    ast.Div: "torch.div", ast.Pow: "torch.pow",
}  # fmt: skip
_Given = dict[str, list[Known | None]]


@dataclass(frozen=True, slots=True)
class Refused:
    """A place at which an operator of ATen (`index.Tensor`) is given types that it refuses, and the row."""

    node: ast.expr
    operator: str
    row: Types
    dtypes: frozenset[str]

    @property
    def name(self) -> str:
        """The operator as messages name it: `aten::index`."""
        return f"aten::{self.operator.partition('.')[0].removesuffix('_overrideable')}"

    @property
    def complex(self) -> bool:
        """True where all types are complex."""
        return self.dtypes <= _COMPLEX


def refused_in(file: File, project: ProjectFacts, card: str) -> list[Refused]:
    """Each place where an operator is given a type that a card (`910B`) refuses, by place."""
    near = _near(file, card)
    if not near:
        return []
    types = TensorTypes(program_of([file], project), default_double=project.default_is_double)
    every = ((node, _answer_of(file, types, node, card)) for node in near)
    found = [Refused(node, *answer) for node, answer in every if answer is not None]
    return sorted(found, key=lambda each: (begins(each.node), ends(each.node)))


def complex_indices(file: File, project: ProjectFacts) -> list[ast.Subscript]:
    """Where a tensor that is complex for certain is indexed by what may be a tensor, and does not lie on the CPU for
    certain: what a card may refuse, in the order of the scan.
    """
    types = TensorTypes(program_of([file], project), default_double=project.default_is_double)
    found = []
    for node in file.scan.subscripts:
        if _name_of(node) != _INDEX:
            continue
        every = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        rest = [each for each in every if not isinstance(each, (ast.Slice, ast.Constant, ast.Starred))]
        if all(isinstance(types.of(file, each), Number) for each in rest):
            continue
        held = types.tensor(file, node.value)
        if held is not None and held.device != CPU and held.types and held.types <= _COMPLEX:
            found.append(node)
    return found


def _near(file: File, card: str) -> list[ast.expr]:
    """The calls, subscripts and operations that may have to do with what makes such a type and may refuse it."""
    scan = file.scan
    makers = {
        node: name
        for name in sorted(_MAKERS)
        for node in (*scan.names.get(name, ()), *scan.attributes.get(name, ()))
        if not (file.names.qualified(node) or "").startswith(("numpy.", "scipy."))
    }
    kinds = frozenset[str]().union(*(_MAKERS[name] for name in makers.values()))
    wanted = _refusing(card, kinds) if kinds else frozenset[str]()
    found: dict[ast.expr, None] = {}
    for node in spread(file.names, makers, HAND_ON) if wanted else ():
        above: ast.AST = node
        while not isinstance(above, ast.stmt):
            if isinstance(above, (ast.Subscript, ast.Call, ast.BinOp)) and _name_of(above) in wanted:
                found[above] = None
            above = parent(above)
    return list(found)


def _name_of(node: ast.Subscript | ast.Call | ast.BinOp) -> str:
    """The last name of what runs, as `_refusing` has it."""
    match node:
        case ast.Call():
            return last_name(node.func)
        case ast.BinOp():
            return _OPERATORS.get(type(node.op), "").removeprefix("torch.")
        case ast.Subscript(slice=ast.Slice() | ast.Constant()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
            return ""
    return _INDEX


@cache
def _refusing(card: str, kinds: frozenset[str]) -> frozenset[str]:
    """The last names of functions, methods and operators that refuse one of some types."""
    found = {
        name
        for name, operators in operators_by_last_name().items()
        for each in operators
        if not (kinds <= _COMPLEX and real_only(each))
        and any(row.refuses & kinds for row in types_of(each, card).values())
    }
    return frozenset({*found, *({"einsum"} if "bmm" in found else ())})


_Answer = tuple[str, Types, frozenset[str]]


def _answer_of(file: File, types: TensorTypes, node: ast.expr, card: str) -> _Answer | None:
    """The operator that refuses what a node gives it, the row that says so and the types; None for one that may not."""
    if isinstance(node, ast.Subscript):
        held = types.tensor(file, node.value)
        if held is None or not _tells(held) or not _by_tensor(types, file, node.slice):
            return None
        found = _refuses("index.Tensor", {"self": [held]}, card)
        return ("index.Tensor", *found) if found is not None else None
    if isinstance(node, ast.Call):
        return _of_call(file, types, node, card)
    assert isinstance(node, ast.BinOp)
    sides = [("", node.left), ("", node.right)]
    if not any(_tells(types.of(file, each)) for _, each in sides):
        return None
    return _chosen(types, file, overloads_of(_OPERATORS[type(node.op)]), sides, card)


def _by_tensor(types: TensorTypes, file: File, index: ast.expr) -> bool:
    """True where an index holds a tensor or a list for certain."""
    every = index.elts if isinstance(index, ast.Tuple) else [index]
    for each in every:
        held = types.of(file, each) if not isinstance(each, (ast.Slice, ast.Constant, ast.Starred)) else None
        if (isinstance(held, Tensor) and held.sure) or isinstance(each, ast.List):
            return True
    if isinstance(index, ast.Name):
        values = [getattr(source, "node", None) for source in types.held.sources(file, index)]
        return bool(values) and all(
            isinstance(node, (ast.Tuple, ast.List)) and _by_tensor(types, file, ast.Tuple(node.elts, ast.Load()))
            for node in values
        )
    return False


def _of_call(file: File, types: TensorTypes, call: ast.Call, card: str) -> _Answer | None:
    if hides_arguments(call) or types.program.callee(file, call) is not None:
        return None
    full = types.full(file, call)
    if full == "torch.einsum":
        return _of_einsum(file, types, call, card)
    overloads = overloads_of(full) if full else ()
    if not overloads or any(keyword.arg == "dtype" for keyword in call.keywords):
        return None
    every: list[tuple[str, ast.expr]] = [("", each) for each in call.args]
    every += [(keyword.arg or "", keyword.value) for keyword in call.keywords]
    if full.startswith(TENSOR) and isinstance(call.func, ast.Attribute):
        every.insert(0, ("", call.func.value))
    if not any(_tells(each) for _, node in every for each in _tensors(types, file, node)):
        return None
    return _chosen(types, file, overloads, every, card)


def _chosen(
    types: TensorTypes, file: File, overloads: tuple[Overload, ...], every: list[tuple[str, ast.expr]], card: str
) -> _Answer | None:
    """What each of the overloads that may run refuses; None where one of them may take what is given."""
    given = [filled for each in overloads if (filled := _filled(types, file, each, every, strict=True))]
    given = given or [filled for each in overloads if (filled := _filled(types, file, each, every, strict=False))]
    answers = [_refuses(overload.operator, filled, card) for overload, filled in given]
    return (given[0][0].operator, *answers[0]) if all(answers) and answers and answers[0] is not None else None


def _tensors(types: TensorTypes, file: File, node: ast.expr) -> list[Known | None]:
    """What an argument gives; of a list that is written out what its elements give."""
    elements = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    return [types.of(file, each) for each in elements if not isinstance(each, ast.Starred)]


def _filled(
    types: TensorTypes, file: File, overload: Overload, every: list[tuple[str, ast.expr]], *, strict: bool
) -> tuple[Overload, _Given] | None:
    """What the arguments of a call are to an overload; None where it does not take them."""
    places = [each for each in overload.parameters if not each.keyword_only]
    by_name = {each.name: each for each in overload.parameters}
    if places:
        by_name.setdefault("input", places[0])
    found: _Given = {}
    for index, (name, node) in enumerate(every):
        parameter = by_name.get(name) if name else places[index] if index < len(places) else None
        if parameter is None or parameter.name in found:
            return None
        values = _tensors(types, file, node)
        if not _fits(parameter.kind, node, values, strict=strict):
            return None
        found[parameter.name] = values
    if any(not each.optional and each.name not in found for each in overload.parameters):
        return None
    return overload, found


def _fits(kind: str, node: ast.expr, values: list[Known | None], *, strict: bool) -> bool:
    if isinstance(node, (ast.List, ast.Tuple)):
        return kind in ("[]", "~")
    value = values[0] if values else None
    if isinstance(value, Tensor) and value.sure:
        return kind == ""
    if isinstance(value, Number) or isinstance(node, ast.Constant):
        return kind in ("#", "~") or (kind == "" and not strict)
    return True


def _of_einsum(file: File, types: TensorTypes, call: ast.Call, card: str) -> _Answer | None:
    """Two operands of which a letter is summed up are multiplied by bmm (`sumproduct_pair` of PyTorch's Linear.cpp)."""
    equation = string_of(call.args[0]) if len(call.args) == 3 else None
    if equation is None or "->" not in equation:
        return None
    read, _, made = equation.replace(" ", "").partition("->")
    left, _, right = read.partition(",")
    if not {each for each in left if each.isalpha()} & {*right} - {*made}:
        return None
    values = [types.of(file, each) for each in call.args[1:]]
    found = _refuses("bmm", {"self": [values[0]], "mat2": [values[1]]}, card)
    return ("bmm", *found) if found is not None else None


def _tells(value: Known | None) -> bool:
    """True for a tensor on the card whose types are all among those that are told of."""
    return isinstance(value, Tensor) and value.device == CARD and bool(value.types) and value.types <= _WIDE


def _refuses(operator: str, given: _Given, card: str) -> tuple[Types, frozenset[str]] | None:
    """The row that says why an operator refuses what it is given, and the types of it; None where it may take it."""
    plain = real_only(operator)
    for name, values in given.items():
        for value in values:
            if plain and isinstance(value, Tensor) and any(each.startswith("complex") for each in value.types):
                return None  # CUDA refuses it too: this is not what the program comes by with
            if isinstance(value, Tensor) and _tells(value):
                rows = [refusal(operator, each, card, name) for each in sorted(value.types)]
                if all(rows) and rows[0] is not None:
                    return rows[0], value.types
    computed = [value for name, values in given.items() for value in values]
    whole = promoted(computed)
    if _tells(whole):
        rows = [refusal(operator, each, card, ALL) for each in sorted(whole.types)]
        if all(rows) and rows[0] is not None:
            return rows[0], whole.types
    return None
