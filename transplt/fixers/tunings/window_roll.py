"""`window-roll`: `torch.roll` of the height and width of (N, H, W, C) becomes torch_npu.contrib.function.roll.

Source: torch_npu/contrib/function/roll.py: it looks the elements up by indices that are made once for each size, shift
and pair of axes, in both directions; it takes (x, shifts, dims) and raises unless x has four dimensions.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.around import scripted
from transplt.fixers.tuning_writer import writer_for
from transplt.flow.last_value import last_value
from transplt.program.code_shapes import is_window_roll
from transplt.program.program import enclosing_function
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.nodes import argument_at
from transplt.syntax.scopes import Binding

fixer = Fixer(__name__, code="NPU768", rank=470, theme="tune:window-roll")

TARGET = "torch_npu.contrib.function.roll"
_SHAPED = frozenset({"view", "reshape", "permute"})


@fixer.on(ast.Call, last="roll")
def cyclic_shift_of_windows(work: Work, call: ast.Call) -> Finds:
    """Rewrite a shift whose input is seen to have four dimensions."""
    if not is_window_roll(work.names, call) or not call.args or scripted(work, call):
        return
    shifts = argument_at(call, 1, "shifts")
    if not isinstance(shifts, ast.Tuple) or len(shifts.elts) != 2 or not _has_four(work, call.args[0], 0):
        return
    if writer := writer_for(work, fixer):
        message = f"{work.text(call.func)} of windows -> {TARGET}"
        writer.change_alone(call.func, fixer.code, message, TARGET, writes_npu=True, api="torch.roll")
        yield from writer.found


def _has_four(work: Work, node: ast.expr, depth: int) -> bool:
    """True for a tensor that was last given four dimensions by `view(a, b, c, d)` and its like."""
    if depth > 4:
        return False
    match node:
        case ast.Name():
            given = last_value(work.scan, node)
            return given is not None and _has_four(work, given, depth + 1)
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in names_of(TENSOR, "same_tensor"):
            return _has_four(work, value, depth + 1)
        case ast.Call(func=ast.Attribute(attr=method), args=[ast.Tuple(elts=sizes) | ast.List(elts=sizes)] | sizes):
            return method in _SHAPED and len(sizes) == 4 and not any(isinstance(size, ast.Starred) for size in sizes)
        case ast.Call(func=ast.Name(id=name)):
            match work.scan.root.bindings.get(name, []):
                case [Binding(node=ast.FunctionDef() | ast.AsyncFunctionDef() as function)]:
                    made = [line.value for line in work.scan.returns if enclosing_function(line) is function]
                    return bool(made) and all(value is not None and _has_four(work, value, depth + 1) for value in made)
    return False
