"""`jit-script`: where TorchScript stands between a model and what the NPU does with it."""

from __future__ import annotations

import ast

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import writer_for
from transplt.syntax.nodes import by_place, call_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU772", rank=530, theme="tune:jit-script", needs=(b"jit",))

_SCRIPTS = frozenset({"torch.jit.script", "torch.jit.script_method", "torch.jit.script_if_tracing"})
_HELP = "remove the decorator (or call the function itself), and measure: NPU kernels are made for eager operators"


@on_file(fixer, writer_for)
def scripts(work: Work, writer: Writer) -> None:
    """Say where code is compiled by TorchScript."""
    named = ("script", "script_method", "script_if_tracing")
    nodes: list[ast.expr] = [node for name in named for node in work.scan.attributes.get(name, ())]
    nodes += [
        node for names in work.scan.names.values() for node in names if not isinstance(parent(node), ast.Attribute)
    ]
    # Decorators and callees: an alias or an argument does not count yet.
    applied = (
        node for node in nodes if node in getattr(parent(node), "decorator_list", ()) or call_of(node) is not None
    )
    found = [node for node in applied if (work.names.qualified(node) or "") in _SCRIPTS]
    for node in by_place(found):
        writer.remark(node, fixer.code, f"{work.names.qualified(node)} has no fuser for the NPU", _HELP)
