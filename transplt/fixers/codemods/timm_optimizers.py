"""Optimizers of apex that timm makes by their names, `--opt fusedadam`: it stops where CUDA is not available.

timm/optim/_optim_factory.py of 1.0: `assert torch.cuda.is_available(), 'CUDA required for APEX optimizers'`; names that
it does not list, as fusedmomentum, it refuses anywhere.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.option_defaults import options_in
from transplt.syntax.nodes import argument_at, string_of

fixer = Fixer(__name__, code="NPU501", rank=366, words=("create_optimizer",), needs=(b"timm",))

_MAKERS = tuple(
    f"timm.optim{module}.create_optimizer{version}" for module in ("", ".optim_factory") for version in ("", "_v2")
)


@fixer.on(ast.Call, name=_MAKERS)
def of_apex(work: Work, call: ast.Call) -> Finds:
    """Report such a name in the call, as the default of `--opt`, and where all commands of the project give it."""
    given = string_of(argument_at(call, 1, "opt"))
    options = (each for each in options_in(work.source.utf8) if each.name == "opt" and given is None)
    values = [value for each in options for value in work.project.as_given(each, work.scan.path).default]
    named = next(iter(values), given)
    if isinstance(named, str) and named.startswith("fused"):
        message = f"the optimizer {named} of timm is one of apex, which timm makes only for CUDA"
        help_ = f"take {named.removeprefix('fused')}, in the commands and as the default"
        yield work.note(call.func, fixer.code, message, api=f"--opt {named}", help=help_)
