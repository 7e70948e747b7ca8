"""Trained numbers that NumPy made: they are float64, and the gradient that float32 tensors give them does not fit.

A cast to float64 gives float32 on an NPU (torch_npu warns "dtype cast replace with float"), and autograd refuses that
as the gradient of a float64 number, with "expected dtype Double but got float" (run on torch_npu 2.13).
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.codemods.double_models import moves, same_variable
from transplt.syntax.nodes import is_false, keyword_of, of_kind
from transplt.syntax.scan import chain, statement

fixer = Fixer(__name__, code="NPU136", rank=263, needs=(b"numpy",), words=("tensor(",))

_MESSAGE = "this trained number is float64, as NumPy made it: a gradient from float32 tensors stops backward() on NPUs"
_HELP = "make it float32: torch.tensor(..., dtype=torch.float32)"
#: Functions of NumPy that give float64 of any number.
_OF_FLOATS = frozenset("cbrt exp expm1 float64 log log10 log1p log2 sqrt".split())


@fixer.on(ast.Call, last="tensor")
def numbers_of_numpy(work: Work, call: ast.Call) -> Finds:
    """Report `torch.tensor(np.log(x)).to(device)` without a type, where it gets a gradient."""
    match call:
        case ast.Call(args=[ast.Call(func=made, args=[_])]) if keyword_of(call, "dtype") is None:
            module, _, name = (work.names.qualified(made) or "").rpartition(".")
            around = keyword_of(call, "device") or next(
                (each for each in of_kind(ast.Call, chain(call)) if moves(work, each)), None
            )
            if module == "numpy" and name in _OF_FLOATS and around is not None and _is_trained(work, call):
                yield work.note(call, fixer.code, _MESSAGE, api="torch.float64", help=_HELP, effort=Effort.LOW)


def _is_trained(work: Work, call: ast.Call) -> bool:
    """True for a tensor that gets a gradient: by its own word, as a parameter, or by a word for its variable."""
    asked = keyword_of(call, "requires_grad")
    if asked is not None:
        return not is_false(asked)
    if any(work.names.qualified(each.func) == "torch.nn.Parameter" for each in of_kind(ast.Call, chain(call))):
        return True
    words = (each for word in ("requires_grad", "requires_grad_") for each in work.scan.attributes.get(word, ()))
    match statement(call):
        case ast.Assign(targets=[held]):
            return any(same_variable(each.value, held) for each in words)
    return False
