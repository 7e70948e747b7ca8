"""Losses that are worked out on the CPU: a GradScaler of the card scales none of them.

Source: torch_npu's GradScaler.scale wants outputs on an npu, as torch.cuda.amp.GradScaler does on a cuda device.
"""

from __future__ import annotations

import ast

from transplt.fixers.amp.forward import is_compute
from transplt.fixers.amp.reading import own_nodes, reads, writes
from transplt.program.cards import is_cpu_device
from transplt.program.program import File, Program
from transplt.program.variable_values import values_of
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.nodes import string_of


def moved_to_host(
    program: Program, file: File, region: list[ast.stmt], losses: list[ast.expr], known: set[str]
) -> ast.Call | None:
    """The call in a region that moves outputs of a network to the CPU, on their way to one of the losses."""
    needed = {name for loss in losses for name in reads(loss)}
    for item in reversed(region):
        if writes(item) & needed:
            needed |= reads(item)
    outputs: set[str] = set()
    for item in region:
        contributes = bool(writes(item) & needed) or any(id(at) in {id(x) for x in losses} for at in ast.walk(item))
        if contributes and reads(item) & outputs:
            for call in own_nodes(item):
                if not isinstance(call, ast.Call) or not _to_host(program, file, call):
                    continue
                assert isinstance(call.func, ast.Attribute)
                cuts = names_of(TENSOR, "cuts")
                cut = any(getattr(at, "attr", "") in cuts for at in ast.walk(call.func.value))
                if not cut and reads(call.func.value) & outputs:
                    return call
        if is_compute(program, file, item, known) or reads(item) & outputs:
            outputs |= writes(item)
    return None


def _to_host(program: Program, file: File, call: ast.Call) -> bool:
    """True for `x.cpu()`, `x.to("cpu")` and `x.to(device)` of a variable that holds nothing but the CPU."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "cpu":
        return True
    if call.func.attr != "to" or not call.args:
        return False
    held = values_of(program, file, call.args[0])
    return bool(held) and all(string_of(value) == "cpu" or is_cpu_device(at.names, value) for at, value in held)
