"""`rope`: complex numbers where the card takes none, as rotary embeddings have them: they run on their parts.

Indices into a complex table, torch.polar of float64, gather and the like, matrix products.

Facts: rules/support/card_types.json (aclnnIndex, aclnnGather and matrix products take no complex numbers, aclnnPolar
float32 alone).
"""

from __future__ import annotations

import ast
from functools import partial

from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import calling
from transplt.edits.trees.new_calls import indexed_by_parts
from transplt.edits.work import Work
from transplt.edits.writer import on_file
from transplt.fixers.adaptors.refused import ANSWERED, function_of, given_to, refused_places, write_call
from transplt.fixers.adaptors.writer import AdaptorWriter, writer_for
from transplt.program.refused_types import NEEDS, Refused, complex_indices

fixer = Fixer(__name__, code="NPU874", rank=-90, theme="adapt:rope", needs=NEEDS)

#: Operators that move numbers, and products of two: real and imaginary parts go their own ways.
_MOVING = frozenset("cat gather index_add index_select masked_select roll tril triu".split())
_PRODUCTS = frozenset("bmm dot mm mv".split())


@on_file(fixer, writer_for)
def complex_numbers(work: Work, writer: AdaptorWriter) -> None:
    """Let operators that refuse complex numbers run on their parts."""
    places = work.once(refused_places)
    for node in complex_indices(work.file, work.project) if b"complex" in work.source.utf8 else ():
        _index(writer, node)
    for each in places:
        if each.operator.partition(".")[0] == "polar":
            if function_of(work, each.node).endswith("polar"):
                message = "torch.polar of a dtype other than float32 -> npu_port.polar"
                write_call(writer, each, fixer.code, "polar", message, calling)
        elif each.complex:
            _parts(writer, each)


def _parts(writer: AdaptorWriter, place: Refused) -> None:
    node, name = place.node, place.operator.partition(".")[0]
    if isinstance(node, ast.Subscript):
        _index(writer, node)
        return
    function = function_of(writer.work, node)
    helper = "by_parts" if name in _MOVING else "by_products" if name in _PRODUCTS else ""
    if function and helper:
        message = f"{function} of complex numbers: npu_port.{helper}"
        write_call(writer, place, fixer.code, helper, message, partial(given_to, node, function))


def _index(writer: AdaptorWriter, node: ast.Subscript) -> None:
    """Of a whole number or a slice the real view gives the same: this holds for whatever the index is."""
    if writer.work.take(node):
        message = "index of a complex tensor: of its real view"
        writer.rewrite(node, fixer.code, message, indexed_by_parts(writer.torch), api="aten::index")
        if not writer.keeps(node, fixer.code):
            writer.takes_care(node, ANSWERED)
