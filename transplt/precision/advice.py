"""Expert advice on a whole net: three lines of the form that msaccucmp's advisor writes.

The checks are those of its source (mindstudio-probe 26.2.0, `mscmp_advisor`) in their order: overflow of float16,
inputs that differ, then whether the last outputs are good. Where it flags no NaN, this does; and inputs need not be
named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transplt.precision.behind import Behind
from transplt.precision.distance import overflows
from transplt.precision.table import COSINE, Line


@dataclass(frozen=True)
class Advice:
    kind: str
    index: int | None  #: of the row in the table
    text: str

    def __str__(self) -> str:
        index = "NA" if self.index is None else self.index
        return f"Detection Type: {self.kind}\nOperator Index: {index}\nExpert Advice: {self.text}\n"


def advise(rows: Sequence[Line], behind: Behind) -> Advice:
    """The advice on the rows of one table; `behind` are those behind the last backward pass."""
    for line in rows:
        if line.npu is not None and line.npu.dtype == "float16" and overflows(line.npu):
            return Advice(
                "FP16 overflow",
                line.index,
                "Float16 data overflow occurs. Rectify the fault and perform comparison again.",
            )
    outputs = [line for line in rows if line.role == "output" and line.npu is not None and line.bench is not None]
    first = next((line for line in rows if line.reached == "No"), None)
    if first is not None and first.role != "output" and first.phase == "forward":
        text = "An input or a weight differs before any operator made it. Use the same data, preprocessing and weights."
        if not first.of_model:
            text = "An input differs behind the last backward pass. Look at gradients, loss scale and optimizer."
        return Advice("Input inconsistent", first.index, text)
    bad = [line for line in outputs if _bad(line)]
    if not bad:
        text = "All operators agree. If the model is still worse, look at what is done with its results."
        if behind.left:
            text = f"All operators up to the last backward pass agree. Behind it: {behind.left_of_it}. Look at these."
        return Advice("Global consistency", None, text)
    ends = {line.phase: line.position for line in outputs if line.of_model}
    if any(_bad(line) for line in outputs if line.of_model and line.position in ends.values()):
        text = "From this operator on tensors differ, and so do the last ones. Look at it first."
        return Advice("Global consistency: problem node", bad[0].index, text)
    text = "This operator differs, and the last outputs agree. It may be optimised otherwise, and can often be left."
    return Advice("Global consistency: single-point error", bad[0].index, text)


def _bad(line: Line) -> bool:
    if line.metrics is not None and line.metrics.cosine == line.metrics.cosine and line.metrics.cosine < COSINE:
        return True
    return line.reached == "No"
