"""Learning rates of NumPy, which stand in the state of the optimizer that is saved: `torch.load` refuses the file since
torch 2.6 (whole_objects.py says why).

`group["lr"] = base * np.minimum(step / warmup, 1.0)` is a scalar of NumPy, and so is an element of an array of them.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.last_value import last_value
from transplt.flow.program_switches import KEEPS_RATES, is_set, loads_objects
from transplt.program.numpy_values import NumpyValues
from transplt.program.program import program_of
from transplt.syntax.nodes import of_kind, string_of

fixer = Fixer(__name__, code="NPU154", rank=182, versions=">=2.6", needs=(b"numpy",), words=("['lr'] =", '["lr"] ='))

_MESSAGE = "torch.load refuses the saved state of this optimizer since torch 2.6: its learning rate is a NumPy number"
_HELP = "set the learning rate to float(...), or load the file with weights_only=False"


@fixer.on(ast.Module)
def rates_of_numpy(work: Work, tree: ast.Module) -> Finds:
    """Report a rate that is computed by NumPy, where the project saves optimizers and loads as torch.load does."""
    project = work.project
    if not (project.known and project.loads and is_set(project.switches, KEEPS_RATES)):
        return
    rates = [node.value for node in work.scan.assigns for each in of_kind(ast.Subscript, node.targets)
             if string_of(each.slice) == "lr"]  # fmt: skip
    if not rates or loads_objects(work.scan.path, project.switches):
        return
    arrays = NumpyValues(program_of([work.file], project))
    for rate in dict.fromkeys(rates):
        if _is_numpy(work, rate) or arrays.is_one(work.file, rate):
            yield work.note(rate, fixer.code, _MESSAGE, api="torch.save", help=_HELP)


def _is_numpy(work: Work, value: ast.expr, depth: int = 4) -> bool:
    """True for a number that a function of NumPy makes of others, and for what is computed of one."""
    match value:
        case ast.BinOp(left=left, right=right) if depth:
            return _is_numpy(work, left, depth - 1) or _is_numpy(work, right, depth - 1)
        case ast.Name() if depth and (above := last_value(work.scan, value)) is not None:
            return _is_numpy(work, above, depth - 1)
        case ast.Call(func=func):
            return (work.names.qualified(func) or "").rpartition(".")[0] == "numpy"
    return False
