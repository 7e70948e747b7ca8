"""Types that operations of Triton take on a GPU and not on an NPU: reads and writes, and all other operations.

The types are those that are certain (fixers/triton/reader/tiles.py): what a kernel casts to or makes, and the tensors
that launches give it. Facts: rules/support/triton_types.json, from the page of each operation in triton-ascend's
documentation. What tl.dot and atomics take is in modules of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.triton.reader.elements import launches_of, tensor_given
from transplt.fixers.triton.reader.kernels import Kernel, kernels_in
from transplt.fixers.triton.reader.refused import (
    Refused,
    condition_of,
    lines,
    refused_accesses,
    refused_operations,
)
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
    "int64": "int32, where the values fit",
    "int32": "float32, which holds whole numbers up to 16777216",
    "bool": "int8",
}
_FLOAT8 = "bfloat16 or float16"
#: Operators as a kernel writes them, by triton-ascend's names of them.
_WRITTEN = {"and": "`&`", "or": "`|`", "xor": "`^`", "lshift": "`<<`", "rshift": "`>>`"}
#: Whole numbers up to which tl.cdiv is right on an NPU (docs/zh/triton_api/Math_Ops/cdiv.md).
_LARGEST_CDIV = 16777216


@fixer.on(ast.Module)
def types(work: Work, tree: ast.Module) -> Finds:
    """Report what each kernel of the file reads, writes and computes in a type that the card refuses."""
    own = programs_of(work.project).own(work.file)
    card = work.settings.hardware
    for kernel in kernels_in(own) if types_hold_for(card) else ():
        model = model_of(kernel, work.project)
        accesses = [*refused_accesses(model, card)]
        for dtype, base, found in _joined(accesses):
            whose = f" of {base}" if base else ""
            yield work.note(
                found[0].operation.node,
                fixer.code,
                f"{_names_of(found)} {_take(found)} no {dtype} on {card_title(card)}: kernel {kernel.name}, "
                f"{dtype}{whose} in {_lines(model, found)}",
                api=f"triton.language.{found[0].name}",
                help=f"give the kernel {instead(dtype)}; {page_of(found[0].name)} of triton-ascend",
                effort=Effort.MEDIUM,
            )
        yield from _launches(work, kernel, model, accesses)
        for dtype, _, found in _joined(refused_operations(model, card)):
            yield work.note(
                found[0].operation.node,
                _OTHERS,
                f"{_names_of(found)} {_take(found)} no {dtype} on {card_title(card)}: kernel {kernel.name}, "
                f"{_lines(model, found)}",
                api=f"triton.language.{found[0].name}",
                help=f"compute in {instead(dtype)}; {page_of(found[0].name)} of triton-ascend",
                effort=Effort.MEDIUM,
            )
        yield from _large_quotients(work, kernel, model)


def instead(dtype: str) -> str:
    """What to take for a type that is refused."""
    return INSTEAD.get(dtype, _FLOAT8)


def _joined(found: Iterable[Refused]) -> list[tuple[str, str, list[Refused]]]:
    """The places by type and parameter, each list by place."""
    groups: dict[tuple[str, str], list[Refused]] = {}
    for each in found:
        groups.setdefault((each.dtype, each.base), []).append(each)
    ordered = ((key, sorted(group, key=lambda each: begins(each.operation.node))) for key, group in groups.items())
    return [(dtype, base, group) for (dtype, base), group in ordered]


def _lines(model: Model, found: list[Refused]) -> str:
    nodes = [each.operation.node for each in found]
    condition = condition_of(model, nodes)
    return f"{lines(nodes)}, where {condition} has it so" if condition else lines(nodes)


def _names_of(found: list[Refused]) -> str:
    names = [*dict.fromkeys(each.name for each in found)]
    operators = {each.name for each in found if not isinstance(each.operation.node, ast.Call)}
    shown = [_WRITTEN.get(name, name) if name in operators else f"tl.{name}" for name in names[:4]]
    if len(names) > 4:
        return f"{', '.join(shown)} and {len(names) - 4} more operations"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _take(found: list[Refused]) -> str:
    return "takes" if len({each.name for each in found}) == 1 else "take"


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
                    help=f"give the kernel {instead(dtype)}; {page_of(used[name])} of triton-ascend",
                    effort=Effort.MEDIUM,
                )


def _large_quotients(work: Work, kernel: Kernel, model: Model) -> Finds:
    for each in model.operations:
        if each.name == "cdiv" and isinstance(each.node, ast.Call):
            size = each.given["x"].size if "x" in each.given else None
            if size is not None and (size.known or 0) > _LARGEST_CDIV:
                yield work.note(
                    each.node,
                    _OTHERS,
                    f"tl.cdiv takes numbers up to {_LARGEST_CDIV} on an NPU: {size} in kernel {kernel.name}",
                    api="triton.language.cdiv",
                    help="divide on the host, by triton.cdiv, and give the kernel the quotient",
                )
