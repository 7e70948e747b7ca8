"""Operators that are given a type of tensors which the card refuses, where the text says which type that is.

Complex numbers, 64-bit floats and the unsigned integers beyond uint8: types that CUDA computes with and CANN often
does not. Facts: rules/support/card_types.json, which the emulated card enforces too (NPU791). A finding is given where
each type that a tensor may have is refused, and the tensor lies on the card (program/tensor_types.py says what that
takes for granted).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.program.program import File, program_of
from transplt.program.tensor_types import TensorTypes
from transplt.program.tensors import CARD, DTYPES, Known, Number, Tensor, promoted
from transplt.rules.card_limits import limit_text
from transplt.rules.card_types import ALL, CARDS, TITLES, Types, refusal
from transplt.rules.torch_calls import TENSOR, Overload, last_names, overloads_of, real_only
from transplt.syntax.asks import begins, hides_arguments, string_of

_WORDS = ("view_as_complex", "torch.polar", "torch.complex", "torch.fft", "cfloat", "cdouble", "torch.uint16")
fixer = Fixer(
    __name__,
    code="NPU137",
    rank=264,
    needs=(b"complex", b"polar", b"double", b"float64", b"uint16", b"uint32", b"uint64", b"fft", b"cfloat", b"stft"),
    words=_WORDS,
)
#: Types that CUDA computes with, and that are told of.
_WIDE = frozenset("float64 complex32 complex64 complex128 uint16 uint32 uint64".split())
_MAKERS = frozenset(
    "polar complex view_as_complex fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn stft complex32 complex64 complex128 "
    "cfloat cdouble chalf double float64 uint16 uint32 uint64".split()
)
_COMPLEX_INDEX = (
    "index torch.view_as_real(...) and make what comes of it complex again by torch.view_as_complex, or compute this "
    "on the CPU"
)
_OPERATORS: dict[type[ast.operator], str] = {
    ast.MatMult: "torch.matmul", ast.Add: "torch.add", ast.Sub: "torch.sub", ast.Mult: "torch.mul",
    ast.Div: "torch.div", ast.Pow: "torch.pow",
}  # fmt: skip
_PRODUCT = re.compile(rb"[\w)\]}][ \t]*@|^[ \t]*@=?[ \t]", re.M)  # `@` that begins no decorator
_Given = dict[str, list[Known | None]]


@fixer.on(ast.Module)
def refused(work: Work, tree: ast.Module) -> Finds:
    """Report each place where an operator is given a type that the card of the settings refuses."""
    card = CARDS.get(work.settings.hardware, "")
    if not card or not (_MAKERS & {*work.scan.attributes, *work.scan.names}):
        return
    types = TensorTypes(program_of([work.file], work.project), default_double=work.project.default_is_double)
    found = [*_in_subscripts(work, types, card), *_in_calls(work, types, card), *_in_operators(work, types, card)]
    for node, operator, row, dtypes in sorted(found, key=lambda each: (begins(each[0]), each[1])):
        name = f"aten::{operator.partition('.')[0].removesuffix('_overrideable')}"
        dtype = " or ".join(sorted(dtypes))
        text = limit_text("operator")
        message = text.message.format(name=name, dtype=dtype, card=TITLES[card])
        listed = f"takes {', '.join(row.takes)}" if row.takes else "refuses it"
        is_index = operator == "index.Tensor" and all(each.startswith("complex") for each in dtypes)
        yield work.note(
            node,
            fixer.code,
            f"{message}: {row.function} {listed}",
            api=name,
            help=f"{_COMPLEX_INDEX if is_index else text.help}; {row.path}",
        )


_Found = tuple[ast.expr, str, Types, frozenset[str]]


def _in_subscripts(work: Work, types: TensorTypes, card: str) -> Iterator[_Found]:
    """`x[idx]` with a tensor or a list: an operator; with slices and whole numbers it is a view."""
    file = work.file
    for node in work.scan.subscripts:
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, (ast.Slice, ast.Constant)):
            continue
        held = types.tensor(file, node.value)
        if held is None or not _tells(held) or not _by_tensor(types, file, node.slice):
            continue
        found = _refuses("index.Tensor", {"self": [held]}, card)
        if found is not None:
            yield (node, "index.Tensor", *found)


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


def _in_calls(work: Work, types: TensorTypes, card: str) -> Iterator[_Found]:
    file = work.file
    for call in work.scan.calls_by_last_name((*sorted(last_names()), "einsum")):
        if hides_arguments(call) or types.program.callee(file, call) is not None:
            continue
        full = types.full(file, call)
        if full == "torch.einsum":
            yield from _in_einsum(file, types, call, card)
            continue
        overloads = overloads_of(full) if full else ()
        if not overloads or any(keyword.arg == "dtype" for keyword in call.keywords):
            continue
        every: list[tuple[str, ast.expr]] = [("", each) for each in call.args]
        every += [(keyword.arg or "", keyword.value) for keyword in call.keywords]
        if full.startswith(TENSOR) and isinstance(call.func, ast.Attribute):
            every.insert(0, ("", call.func.value))
        if not any(_tells(each) for _, node in every for each in _tensors(types, file, node)):
            continue
        answer = _answer(types, file, overloads, every, card)
        if answer is not None:
            yield (call, *answer)


def _answer(
    types: TensorTypes, file: File, overloads: tuple[Overload, ...], every: list[tuple[str, ast.expr]], card: str
) -> tuple[str, Types, frozenset[str]] | None:
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


def _in_einsum(file: File, types: TensorTypes, call: ast.Call, card: str) -> Iterator[_Found]:
    """Two operands of which a letter is summed up are multiplied by bmm (`sumproduct_pair` of PyTorch's Linear.cpp)."""
    equation = string_of(call.args[0]) if len(call.args) == 3 else None
    if equation is None or "->" not in equation:
        return
    read, _, made = equation.replace(" ", "").partition("->")
    left, _, right = read.partition(",")
    if not {each for each in left if each.isalpha()} & {*right} - {*made}:
        return
    values = [types.of(file, each) for each in call.args[1:]]
    found = _refuses("bmm", {"self": [values[0]], "mat2": [values[1]]}, card)
    if found is not None:
        yield (call, "bmm", *found)


def _in_operators(work: Work, types: TensorTypes, card: str) -> Iterator[_Found]:
    """`a @ b`, `a + b`."""
    file, data = work.file, work.source.utf8
    wanted = {kind: name for kind, name in _OPERATORS.items() if _may_refuse(name, card, data)}
    for node in ast.walk(work.scan.tree) if wanted else ():
        name = wanted.get(type(node.op)) if isinstance(node, ast.BinOp) else None
        if name is None or not isinstance(node, ast.BinOp):
            continue
        sides = [("", node.left), ("", node.right)]
        if any(_tells(types.of(file, each)) for _, each in sides):
            answer = _answer(types, file, overloads_of(name), sides, card)
            if answer is not None:
                yield (node, *answer)


def _may_refuse(name: str, card: str, data: bytes) -> bool:
    """True for an operator that refuses a type which the file can make: most do not, and are not looked for."""
    if name == "torch.matmul":
        return _PRODUCT.search(data) is not None
    return any(word in data for word in _refused_words(name, card))


@cache
def _refused_words(name: str, card: str) -> tuple[bytes, ...]:
    kinds = [each for each in sorted(_WIDE) if all(
        any(refusal(overload.operator, each, card, argument) for argument in ("self", ALL))
        for overload in overloads_of(name)
    )]  # fmt: skip
    names = [name for name, kind in DTYPES.items() if kind in kinds]
    return tuple(each.encode() for each in names)


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
