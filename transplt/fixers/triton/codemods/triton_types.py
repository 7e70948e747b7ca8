"""Types that operations of Triton take on a GPU and not on an NPU: reads and writes, and all other operations.

The types are those that are certain (fixers/triton/reader/tiles.py): what a kernel casts to or makes, and the tensors
that launches give it. Facts: rules/support/triton_types.json, what the compiler refuses of each operation and type, and
the page of each in triton-ascend's documentation: what that alone refuses is a remark. What tl.dot and atomics take is
in modules of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from transplt.base.finding import Effort, Level
from transplt.base.grouped import grouped
from transplt.edits.edit import Finds, Found
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.triton.reader.elements import launches_of, tensor_given
from transplt.fixers.triton.reader.kernels import Kernel, kernels_in
from transplt.fixers.triton.reader.refused import Refused, condition_of, lines, refused_accesses, refused_operations
from transplt.fixers.triton.reader.tiles import Model, model_of
from transplt.fixers.triton.reader.values import UNKNOWN
from transplt.program.programs import programs_of
from transplt.rules.card_limits import card_title
from transplt.rules.triton import page_of, refuses, types_hold_for
from transplt.syntax.nodes import begins

fixer = Fixer(__name__, code="NPU570", rank=266, edits=False, needs=(b"triton",), words=("triton",))
_OTHERS = "NPU573"
#: What to write for a type that is refused.
INSTEAD = {
    "float64": "float32",
    "uint8": "int8, or int16 for values over 127",
    "uint16": "int32",
    "uint32": "int32, or int64 for values over 2147483647",
    "uint64": "int64",
    "int64": "int32, if the values fit",
    "int32": "float32, which holds whole numbers up to 16777216",
    "bool": "int8",
}
_FLOAT8 = "bfloat16 or float16"
#: Operators as a kernel writes them, by triton-ascend's names of them.
_WRITTEN = {"and": "`&`", "or": "`|`", "xor": "`^`", "lshift": "`<<`", "rshift": "`>>`"}
#: Whole numbers up to which `//` and tl.cdiv of int32 tiles are right on an NPU, which divides them in float32
#: (docs/zh/triton_api/Math_Ops/cdiv.md).
_LARGEST = 16777216
#: Reads and writes take no part of the kernel's arithmetic.
_MOVED = "compare the results with those of a GPU: the compiler stores and computes it as the signed type of that width"


@fixer.on(ast.Module)
def types(work: Work, tree: ast.Module) -> Finds:
    """Report what each kernel of the file reads, writes and computes in a type that the card refuses."""
    own = programs_of(work.project).own(work.file)
    card = work.settings.hardware
    for kernel in kernels_in(own):
        model = model_of(kernel, work.project)
        accesses = [*refused_accesses(model, card)]
        for dtype, base, found in _joined(accesses):
            if found[0].compiles:
                yield _remark(work, kernel, model, fixer.code, found)
                continue
            whose = f" of {base}" if base else ""
            yield work.note(
                found[0].operation.node,
                fixer.code,
                f"{_names_of(found)} {_take(found)} no {dtype} on {card_title(card)}: kernel {kernel.name}, "
                f"{dtype}{whose} in {_lines(model, found)}",
                api=f"triton.language.{found[0].name}",
                help=f"pass {instead(dtype)} to the kernel; {page_of(found[0].name)} of triton-ascend",
                effort=Effort.MEDIUM,
            )
        yield from _launches(work, kernel, model, accesses)
        for dtype, _, found in _joined(refused_operations(model, card)):
            if found[0].compiles:
                yield _remark(work, kernel, model, _OTHERS, found)
                continue
            if found[0].to:
                dtype += f" to {found[0].to}"
            yield work.note(
                found[0].operation.node,
                _OTHERS,
                f"{_names_of(found)} {_take(found)} no {dtype} on {card_title(card)}: kernel {kernel.name}, "
                f"{_lines(model, found)}",
                api=f"triton.language.{found[0].name}",
                help=f"compute in {instead(found[0].dtype)}; {page_of(found[0].name) or 'the code'} of triton-ascend",
                effort=Effort.MEDIUM,
            )
        if types_hold_for(card):
            yield from _quotients(work, kernel, model)


def _remark(work: Work, kernel: Kernel, model: Model, code: str, found: list[Refused]) -> Found:
    """What the documentation alone refuses."""
    dtype = found[0].dtype
    return work.note(
        found[0].operation.node,
        code,
        f"{_names_of(found)} of {dtype} {'is' if len(_ops(found)) == 1 else 'are'} not documented for "
        f"{card_title(work.settings.hardware)}, and {'compiles' if len(_ops(found)) == 1 else 'compile'}: kernel "
        f"{kernel.name}, {_lines(model, found)}",
        api=f"triton.language.{found[0].name}",
        level=Level.INFO,
        help=_MOVED,
    )


def instead(dtype: str) -> str:
    """What to take for a type that is refused."""
    return INSTEAD.get(dtype, _FLOAT8)


def _joined(found: Iterable[Refused]) -> list[tuple[str, str, list[Refused]]]:
    """The places by type and parameter, each list by place."""
    groups = grouped(((each.dtype, each.base, each.compiles, each.to), each) for each in found)
    ordered = ((key, sorted(group, key=lambda each: begins(each.operation.node))) for key, group in groups.items())
    return [(dtype, base, group) for (dtype, base, _, _), group in ordered]


def _lines(model: Model, found: list[Refused]) -> str:
    nodes = [each.operation.node for each in found]
    condition = condition_of(model, nodes)
    return f"{lines(nodes)}, if {condition}" if condition else lines(nodes)


def _names_of(found: list[Refused]) -> str:
    names = [*dict.fromkeys(each.name for each in found)]
    operators = {each.name for each in found if not isinstance(each.operation.node, ast.Call)}
    shown = [_WRITTEN.get(name, name) if name in operators else f"tl.{name}" for name in names[:4]]
    if len(names) > 4:
        return f"{', '.join(shown)} and {len(names) - 4} more operations"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _ops(found: list[Refused]) -> set[str]:
    return {each.name for each in found}


def _take(found: list[Refused]) -> str:
    return "takes" if len(_ops(found)) == 1 else "take"


def _launches(work: Work, kernel: Kernel, model: Model, reported: list[Refused]) -> Finds:
    """Launches that give a kernel a type it cannot read, where others give it another one."""
    card = work.settings.hardware
    used: dict[str, str] = {}
    for each in model.operations:
        pointer = next(iter(each.given.values()), UNKNOWN)
        if each.name in ("load", "store") and pointer.shape != ():
            used.setdefault(pointer.base, each.name)
    told = {(each.base, each.dtype) for each in reported}
    for launch in launches_of(kernel, work.project):
        for name, node in launch.arguments.items():
            held = tensor_given(launch.file, node, work.project) if name in used else None
            dtype = next(iter(held.types)) if held is not None and len(held.types) == 1 else ""
            if (name, dtype) not in told and refuses(used.get(name, ""), dtype, card):
                yield work.note(
                    node,
                    fixer.code,
                    f"tl.{used[name]} takes no {dtype} on {card_title(card)}: kernel {kernel.name} gets it as {name}",
                    api=f"triton.language.{used[name]}",
                    help=f"pass {instead(dtype)} to the kernel; {page_of(used[name])} of triton-ascend",
                    effort=Effort.MEDIUM,
                )


def _quotients(work: Work, kernel: Kernel, model: Model) -> Finds:
    for each in model.operations:
        if each.name == "cdiv" and isinstance(each.node, ast.Call):
            size = each.given["x"].size if "x" in each.given else None
            if size is not None and (size.known or 0) > _LARGEST:
                yield work.note(
                    each.node,
                    _OTHERS,
                    f"tl.cdiv works up to {_LARGEST} on an NPU: {size} in kernel {kernel.name}",
                    api="triton.language.cdiv",
                    help="divide on the host with triton.cdiv, and pass the quotient to the kernel",
                    blocks="numbers",
                )
    # Of positions alone it is exact.
    nodes = [each.node for each in model.operations if each.name in ("floordiv", "cdiv")
             and any(value.is_tile and value.data and value.dtype == "int32" for value in each.operands)]  # fmt: skip
    if nodes:
        yield work.note(
            nodes[0],
            _OTHERS,
            f"`//` and tl.cdiv of int32 tiles go through float32 on an NPU, exact up to {_LARGEST}: kernel "
            f"{kernel.name}, {lines(nodes)}",
            api="triton.language.cdiv",
            level=Level.INFO,
            help="if numbers are larger, divide on the host or in int64",
            blocks="numbers",
        )
