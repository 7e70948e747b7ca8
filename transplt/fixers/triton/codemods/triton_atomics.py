"""Atomic operations of Triton: types that an NPU has none for, or a lock, and orders of memory that it lacks."""

from __future__ import annotations

import ast

from transplt.base.finding import Effort, Level
from transplt.base.grouped import grouped
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.triton.codemods.triton_types import instead
from transplt.fixers.triton.reader.kernels import Kernel, kernels_in
from transplt.fixers.triton.reader.operations import ATOMICS, Operation
from transplt.fixers.triton.reader.refused import lines, refused_atomics
from transplt.fixers.triton.reader.tiles import Model, model_of
from transplt.program.programs import programs_of
from transplt.rules.card_limits import card_title
from transplt.rules.triton import page_of, values_of
from transplt.syntax.nodes import string_of

fixer = Fixer(
    __name__, code="NPU571", rank=267, edits=False, needs=(b"atomic_",),
    words=("atomic_add", "atomic_cas", "atomic_xchg"),
)  # fmt: skip
_MEANS = {
    "sem": "nothing to do if acq_rel is enough: it orders at least as strictly",
    "scope": "nothing to do if only programs of one card are meant",
}
_SYSTEM = "an NPU only orders the programs of one card: let other cards wait for the end of the launch"


@fixer.on(ast.Module)
def atomics(work: Work, tree: ast.Module) -> Finds:
    """Report the atomics of each kernel of the file that the card refuses."""
    own = programs_of(work.project).own(work.file)
    card = work.settings.hardware
    for kernel in kernels_in(own):
        model = model_of(kernel, work.project)
        refused = refused_atomics(model, card)
        groups = grouped(((each.name, each.dtype, each.compiles), each.operation) for each in refused)
        for (name, dtype, compiles), found in groups.items():
            if compiles:
                yield work.note(
                    found[0].node,
                    fixer.code,
                    f"tl.{name} of {dtype} runs as a locked loop over single elements on {card_title(card)}: kernel "
                    f"{kernel.name}, {lines([each.node for each in found])}",
                    api=f"triton.language.{name}",
                    level=Level.INFO,
                    help=f"{instead(dtype)} is faster; {page_of(name)} of triton-ascend",
                )
                continue
            yield work.note(
                found[0].node,
                fixer.code,
                f"tl.{name} takes no {dtype} on {card_title(card)}: kernel {kernel.name}, "
                f"{lines([each.node for each in found])}",
                api=f"triton.language.{name}",
                help=f"use {instead(dtype)}; {page_of(name)} of triton-ascend",
                effort=Effort.MEDIUM,
            )
        yield from _orders(work, kernel, model)


def _orders(work: Work, kernel: Kernel, model: Model) -> Finds:
    """`sem` and `scope` that an NPU does not have."""
    groups: dict[tuple[str, str], list[Operation]] = {}
    for each in model.operations:
        for argument in ("sem", "scope") if each.name in ATOMICS else ():
            given = string_of(each.nodes.get(argument))
            if given is not None and given not in values_of(argument):
                groups.setdefault((argument, given), []).append(each)
    for (argument, given), found in groups.items():
        name = found[0].name
        yield work.note(
            found[0].node,
            fixer.code,
            f'{argument}="{given}" of tl.{name} becomes {values_of(argument)[0]} on an NPU: kernel {kernel.name}, '
            f"{lines([each.node for each in found])}",
            api=f"triton.language.{name}",
            level=Level.MANUAL if given == "sys" else Level.INFO,
            help=_MEANS[argument] if given != "sys" else _SYSTEM,
        )
