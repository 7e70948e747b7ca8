"""Expert advice on a whole net: three lines of the form that msaccucmp's advisor writes.

The checks are those of its source (mindstudio-probe 26.2.0, `mscmp_advisor`) in their order: overflow of float16,
inputs that differ, then whether the last outputs are good. Where it flags no NaN, this does; and inputs need not be
named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transplt.precision.distance import overflows
from transplt.precision.judgement import ARGUMENT, DATA, GRADIENT, NUMERIC, WEIGHTS, Judgement
from transplt.precision.table import Line


@dataclass(frozen=True)
class Advice:
    kind: str
    index: int | None  #: of the row in the table
    text: str

    def __str__(self) -> str:
        index = "NA" if self.index is None else self.index
        return f"Detection Type: {self.kind}\nOperator Index: {index}\nExpert Advice: {self.text}\n"


def advise(rows: Sequence[Line], verdict: Judgement | None) -> Advice:
    """The advice on the rows of one table, which follows its verdict."""
    for line in rows:
        if line.npu is not None and line.npu.dtype == "float16" and overflows(line.npu):
            text = "Float16 data overflow occurs. Rectify the fault and perform comparison again."
            return Advice("FP16 overflow", line.index, text)
    if verdict is None:
        text = "All operators agree. If the model is still worse, check how its results are used."
        return Advice("Global consistency", None, text)
    own = next((line.index for line in rows if line.operator == verdict.match.row.name), None)
    bad = next((line.index for line in rows if line.operator == verdict.match.row.name and _bad(line)), own)
    if verdict.behind:
        text = "All operators up to the last backward pass agree. Check gradients, loss scale and optimizer."
        kind = "Input inconsistent" if verdict.kind == GRADIENT else "Global consistency: problem node"
        return Advice(kind, bad, text)
    if verdict.kind in (WEIGHTS, DATA):
        text = "An input or a weight differs before any operator made it. Use the same data, preprocessing and weights."
        return Advice("Input inconsistent", bad, text)
    if verdict.kind == ARGUMENT:
        text = "An argument differs, without effect in these steps. Check it: with other data it may matter."
        return Advice("Global consistency: single-point error", bad, text)
    outputs = [line for line in rows if line.role == "output" and line.npu is not None and line.bench is not None]
    ends = {line.phase: line.position for line in outputs if line.of_model}
    later = any(_bad(line) for line in outputs if not line.of_model or line.position in ends.values())
    if verdict.kind != NUMERIC or later:
        text = "From this operator on tensors differ, up to the last ones. Check this operator first."
        return Advice("Global consistency: problem node", bad, text)
    text = ("This operator differs, but the last outputs agree. It may be optimised differently, and often needs no "
            "change.")
    return Advice("Global consistency: single-point error", bad, text)


def _bad(line: Line) -> bool:
    return line.turned or line.reached == "No"
