"""What the vector unit of an NPU does not do, so that scalar code does: slow, and right.

Additions of int64, comparisons of int64 and int32 (triton-ascend, docs/en/migration_guide/performance_guidelines.md),
reads at positions that a tile gives (docs/en/programming_guide.md); shifts by a tile, which are not documented, as are
those of unsigned numbers (docs/zh/triton_api/Logical_Ops/lshift.md).
"""

from __future__ import annotations

import ast

from transplt.base.finding import Level
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.triton.reader.kernels import Kernel, kernels_in
from transplt.fixers.triton.reader.refused import lines
from transplt.fixers.triton.reader.tiles import Model, model_of
from transplt.fixers.triton.reader.values import Kind
from transplt.program.programs import programs_of
from transplt.rules.card_limits import card_title
from transplt.rules.triton import is_undocumented, types_hold_for
from transplt.syntax.nodes import last_name

fixer = Fixer(__name__, code="NPU576", rank=270, edits=False, needs=(b"triton",), words=("triton",))
_DISCRETE, _SHIFTS = "NPU577", "NPU579"
_COMPUTES = frozenset({"where", "mul", "sum", "cast"})
_SHIFT = {"lshift": "<<", "rshift": ">>"}
_COMPARE = "compare the results with those of a GPU, or shift signed numbers of the next larger type"


@fixer.on(ast.Module)
def scalars(work: Work, tree: ast.Module) -> Finds:
    """Report what each kernel of the file does that becomes scalar code."""
    own = programs_of(work.project).own(work.file)
    for kernel in kernels_in(own) if types_hold_for(work.settings.hardware) else ():
        model = model_of(kernel, work.project)
        yield from _integers(work, kernel, model)
        yield from _discrete(work, kernel, model)
        yield from _shifts(work, kernel, model)
        yield from _nans(work, kernel, model)


def _integers(work: Work, kernel: Kernel, model: Model) -> Finds:
    added = [
        each.node
        for each in model.operations
        if each.name in ("add", "sub") and each.result.is_tile and each.result.dtype == "int64"
    ]
    compared: set[int] = set()
    for each in model.operations:
        if each.name == "where" and "condition" in each.given:
            compared |= each.given["condition"].compared
        elif each.name in _COMPUTES and each.result.data:
            compared |= {line for value in each.operands for line in value.compared}
    says = []
    if added:
        says.append(f"additions of int64 tiles ({lines(added)})")
    nodes: list[ast.expr | ast.stmt] = [
        each.node for each in model.operations if isinstance(each.node, ast.Compare) and each.node.lineno in compared
    ]
    if nodes:
        says.append(f"comparisons of whole numbers used in arithmetic ({lines(nodes)})")
    if says:
        yield work.note(
            min([*added, *nodes], key=lambda node: node.lineno),
            fixer.code,
            f"scalar code on an NPU in kernel {kernel.name}: {', '.join(says)}",
            api="triton",
            level=Level.INFO,
            help="use int64 only for the scalar start of a pointer and add int32 tiles to it, if one program's part "
                 "stays under 2**31; compare in float32 if numbers stay under 2**24",
        )


def _discrete(work: Work, kernel: Kernel, model: Model) -> Finds:
    found = [
        each
        for each in model.operations
        if each.name in ("load", "store")
        and (pointer := next(iter(each.given.values()), None)) is not None
        and pointer.kind is Kind.POINTER
        and pointer.shape != ()
        and -1 in pointer.scattered
    ]
    if found:
        names = [*dict.fromkeys(f"tl.{each.name}" for each in found)]
        yield work.note(
            found[0].node,
            _DISCRETE,
            f"{' and '.join(names)} at positions loaded from memory runs one element at a time on an NPU: kernel "
            f"{kernel.name}, {lines([each.node for each in found])}",
            api=f"triton.language.{found[0].name}",
            level=Level.INFO,
            help="if the range is small, load all of it and select with tl.gather",
        )


def _shifts(work: Work, kernel: Kernel, model: Model) -> Finds:
    card = work.settings.hardware
    for each in model.operations:
        if each.name not in _SHIFT or "other" not in each.given:
            continue
        left, right = each.given["input"], each.given["other"]
        if right.is_tile:
            say, do = "by a tile runs one element at a time on an NPU", "multiply or divide by a tile of powers of 2"
        elif left.is_tile and is_undocumented(each.name, left.dtype, card):
            say, do = f"of {left.dtype} is not documented for {card_title(card)}, and compiles", _COMPARE
        else:
            continue
        shift = _SHIFT[each.name]
        yield work.note(
            each.node, _SHIFTS, f"`{shift}` {say}: kernel {kernel.name}", api="triton", level=Level.INFO, help=do
        )


def _nans(work: Work, kernel: Kernel, model: Model) -> Finds:
    found = [each for each in model.operations if last_name(each.nodes.get("propagate_nan")) == "NONE"]
    if found:
        yield work.note(
            found[0].node,
            _SHIFTS,
            f"propagate_nan=NONE takes more of a core's buffer on an NPU: kernel {kernel.name}, "
            f"{lines([each.node for each in found])}",
            api=f"triton.language.{found[0].name}",
            level=Level.INFO,
            help="if no input is NaN, tl.PropagateNan.ALL gives the same result",
        )
