"""`float64`: operators that the card has no kernel for in 64-bit floats are computed on the CPU.

Facts: rules/support/card_types.json.
"""

from __future__ import annotations

from functools import partial

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import on_file
from transplt.fixers.adaptors.refused import function_of, given_to, refused_places, write_call
from transplt.fixers.adaptors.writer import AdaptorWriter, writer_for
from transplt.program.refused_types import NEEDS

fixer = Fixer(__name__, code="NPU875", rank=-80, theme="adapt:float64", needs=NEEDS)


@on_file(fixer, writer_for)
def float64_on_the_cpu(work: Work, writer: AdaptorWriter) -> None:
    """Let operators that refuse float64 run on the CPU."""
    for each in work.once(refused_places):
        node, function = each.node, function_of(work, each.node)
        if function and each.dtypes == {"float64"} and each.operator.partition(".")[0] != "polar":
            message = f"{function} of float64: npu_port.on_cpu"
            write_call(writer, each, fixer.code, "on_cpu", message, partial(given_to, node, function))
