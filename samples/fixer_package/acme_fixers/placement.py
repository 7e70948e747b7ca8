"""`acme.to_gpu(x)` is `acme.to_npu(x)`; `acme.use_gpu(n)` takes the number of a card, which has no place on NPUs."""

import ast
from collections.abc import Iterator

from transplt.base.finding import Effort
from transplt.edits.edit import Edit, Note
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.trees.names import attribute_named

# `words` make a file worth a look that does not name CUDA.
moved = Fixer(f"{__name__}.moved", code="NPU018", words=("to_gpu",))
chosen = Fixer(f"{__name__}.chosen", code="NPU019", words=("use_gpu",))


@moved.on(ast.Call, name="acme.to_gpu")
def to_npu(work: Work, call: ast.Call) -> Iterator[Edit]:
    """The function has another name; what it is given stays."""
    if isinstance(call.func, ast.Attribute) and work.take(call.func):
        yield Edit(call.func, moved.code, "acme.to_gpu becomes acme.to_npu", attribute_named("to_npu"), api="acme.to_gpu")


@chosen.on(ast.Call, name="acme.use_gpu")
def by_number(work: Work, call: ast.Call) -> Iterator[Note]:
    """Nobody can tell which card is meant: a person decides."""
    if work.take(call):
        yield work.note(
            call, chosen.code, "acme.use_gpu has no counterpart", api="acme.use_gpu",
            help="leave the call out: each process has one card", effort=Effort.LOW,
        )
