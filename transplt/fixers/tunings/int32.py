"""`int32`: indices that only look something up in an embedding are made in 32 bits.

Targets of cross_entropy and nll_loss stay int64: PyTorch refuses other types there. The Ascend porting guide casts
targets (`target.to(torch.int32)`), for torch 1.5 and 1.8; who asks for this tuning for that gets a note at the loss.
"""

from __future__ import annotations

from transplt.edits.fixer import Fixer
from transplt.edits.trees.names import attribute_named
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import rewrite_unless_gone, writer_for
from transplt.program.indices import long_lookups
from transplt.syntax.nodes import by_place

_NEEDS = (b"mbedding", b"index_select", b"cross_entropy", b"nll_loss", b"CrossEntropyLoss", b"NLLLoss")
fixer = Fixer(__name__, code="NPU771", rank=520, theme="tune:int32", needs=_NEEDS)

_MESSAGE = "32-bit indices: the embedding accepts them, and they need half the memory"
#: Losses whose targets are numbers of classes.
_LOSSES = frozenset(
    {*(f"torch.nn.functional.{name}" for name in ("cross_entropy", "nll_loss")),
     *(f"torch.nn.{name}" for name in ("CrossEntropyLoss", "NLLLoss"))}
)  # fmt: skip


@on_file(fixer, writer_for)
def indices(work: Work, writer: Writer) -> None:
    """Look at the casts and the ranges of a file."""
    for node, new, api in long_lookups(work.scan, work.names):
        rewrite_unless_gone(writer, node, fixer.code, _MESSAGE, attribute_named(new), api=api)
    loss = next((call for call in by_place(work.scan.calls) if work.names.qualified(call.func) in _LOSSES), None)
    if loss is not None:
        why = "the targets of this loss stay 64-bit: the cast to int32 of the porting guide, for torch 1.5 and 1.8,"
        help_ = "nothing to do; a script that already casts them can stop doing so"
        writer.remark(loss, fixer.code, f"{why} is not needed since torch 2.1", help_)
