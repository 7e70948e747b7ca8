"""One row for each tensor of each operator of a step: what the CSV, the workbook and the page show."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from transplt.base.render.cell import cell
from transplt.precision.after_backward import rows_behind
from transplt.precision.distance import apart, overflows, tolerance
from transplt.precision.judgement import AllMetrics
from transplt.precision.match import Match, Matched, Measure, is_unwritten, taken_in
from transplt.precision.metrics import Measured
from transplt.precision.record import Row, Tensor

#: Of the ptdbg rule: a row is bad when both hold.
COSINE, MAX_ABSOLUTE = 0.99, 0.001
#: The ten of msaccucmp and what msprobe and ptdbg add; the names in front are those of the attributes.
_METRICS = (
    ("cosine", "CosineSimilarity"), ("max_absolute", "MaxAbsoluteError"),
    ("accumulated_relative", "AccumulatedRelativeError"), ("relative_euclidean", "RelativeEuclideanDistance"),
    ("kullback_leibler", "KullbackLeiblerDivergence"), ("standard_deviation", "StandardDeviation"),
    ("mean_absolute", "MeanAbsoluteError"), ("root_mean_square", "RootMeanSquareError"),
    ("max_relative", "MaxRelativeError"), ("mean_relative", "MeanRelativeError"),
    ("one_thousandth", "One Thousandth Err Ratio"), ("five_thousandths", "Five Thousandths Err Ratio"),
)  # fmt: skip
#: What ptdbg calls them.
_ALIASES = {"CosineSimilarity": "Cosine", "MaxAbsoluteError": "MaxAbsError", "RootMeanSquareError": "RMSE"}
_SIDE = ("max", "min", "mean", "l2norm")


@dataclass(slots=True)
class Line:
    """One tensor of both sides, or of one."""

    index: int
    npu_name: str
    bench_name: str
    npu: Tensor | None
    bench: Tensor | None
    role: str  #: input, parameter or output
    phase: str
    metrics: Measured | None
    distance: float  #: relative to the bench; nan where one side is missing
    tolerance: float
    error: str
    operator: str
    position: int
    of_model: bool  #: False for gradients of parameters and the optimizer's operators

    @property
    def reached(self) -> str:
        """`Yes`, `No`, or `Unmatched`, by distance and tolerance."""
        if self.npu is None or self.bench is None or self.npu.shape != self.bench.shape:
            return "Unmatched"
        return "No" if self.distance > self.tolerance else "Yes"

    @property
    def reached_ptdbg(self) -> str:
        """By the rule of ptdbg; `None` where there are no elements to decide it by."""
        if self.npu is None or self.bench is None or self.npu.shape != self.bench.shape:
            return "Unmatched"
        if self.metrics is None or self.metrics.error:
            return "None"
        return "No" if self.turned and self.metrics.figures.max_absolute > MAX_ABSOLUTE else "Yes"

    @property
    def turned(self) -> bool:
        """Whether the cosine is a bad one: of two that are near each other it need not be known."""
        return self.metrics is not None and not self.metrics.near and self.metrics.figures.cosine < COSINE


def lines(matched: Matched, metrics: AllMetrics, given: float | None = None) -> Iterator[Line]:
    """All tensors of a step, in the order of the run; gradients of parameters and the optimizer's operators last."""
    index = 0
    measured = matched.measured or Measure(given)
    for group in (matched.model, matched.gradients, [*rows_behind(matched)]):
        for each in group:
            for role, npu, bench in _tensors(each):
                line = _line(each, role, npu, bench, metrics, given, measured)
                line.index, line.of_model = index, group is matched.model
                yield line
                index += 1


def _tensors(each: Match) -> Iterator[tuple[str, Tensor | None, Tensor | None]]:
    for role in ("inputs", "parameters", "outputs"):
        ours: Sequence[Tensor] = getattr(each.npu, role, ())
        theirs: Sequence[Tensor] = getattr(each.bench, role, ())
        there = {tensor.name: tensor for tensor in theirs if tensor.is_tensor}
        for tensor in ours:
            if tensor.is_tensor:
                yield role[:-1], tensor, there.pop(tensor.name, None)
        for tensor in there.values():
            yield role[:-1], None, tensor


def _line(
    each: Match, role: str, npu: Tensor | None, bench: Tensor | None, metrics: AllMetrics, given: float | None,
    measured: Measure,
) -> Line:  # fmt: skip
    found, distance, allowed, error = None, math.nan, 0.0, ""
    if npu is None or bench is None:
        error = f"only on the {'NPU' if bench is None else 'bench'}'s side"
    else:
        found = metrics.get((npu.path or "", bench.path or ""))
        allowed = tolerance(npu, bench, given)
        assert each.npu is not None and each.bench is not None
        least = max(each.least, measured.least(each.bench) if role == "output" else 0.0)
        distance = apart(npu, bench, least, found)
        if is_unwritten(each.npu) or (role == "input" and npu not in taken_in(each.npu)):
            distance = 0.0  # nobody has read what is written over
        if npu.shape != bench.shape:
            error = "the shapes differ"
        elif npu.dtype != bench.dtype:
            error = "the types differ"
        elif overflows(npu):
            error = "overflow on the NPU's side" if not overflows(bench) else "overflow on both sides"
        elif found is not None:
            error = found.error
    return Line(
        0, _name(each.npu, npu), _name(each.bench, bench), npu, bench, role, each.row.phase, found, distance, allowed,
        error, each.row.name, each.position, True,
    )  # fmt: skip


def _name(row: Row | None, tensor: Tensor | None) -> str:
    """`Functional.relu.0.forward.input.0`; `*` for a side without it, as msaccucmp has it."""
    return "*" if row is None or tensor is None else f"{row.name}.{tensor.name}"


def header(rule: str) -> list[str]:
    """The columns of the table; with the rule `ptdbg`, by its names of the metrics."""
    names = [label if rule != "ptdbg" else _ALIASES.get(label, label) for _, label in _METRICS]
    sides = [f"{side} {figure}" for side in ("NPU", "Bench") for figure in _SIDE]
    return [
        "Index", "NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape", *names,
        "Relative L2 Distance", "Tolerance", *sides, "Accuracy Reached or Not", "Err_message", "NPU_Stack_Info",
    ]  # fmt: skip


def cells(line: Line, rule: str, stacks: Mapping[str, tuple[str, ...]]) -> list[str | int | float]:
    """One row of it; what is not known is empty."""
    sides: list[str | int | float] = []
    for tensor in (line.npu, line.bench):
        figures = (None,) * 4 if tensor is None else tensor[3:7]
        sides += [_number(value) for value in figures]
    metrics = [_number(getattr(line.metrics.figures, name)) if line.metrics else "" for name, _ in _METRICS]
    if line.metrics is not None and line.metrics.error:
        metrics = ["N/A"] * len(_METRICS)
    return [
        line.index, cell(line.npu_name), cell(line.bench_name), *(tensor.dtype if tensor else "" for tensor in
        (line.npu, line.bench)), *(str([*tensor.shape]) if tensor else "" for tensor in (line.npu, line.bench)),
        *metrics, _number(line.distance), line.tolerance, *sides,
        line.reached_ptdbg if rule == "ptdbg" else line.reached, line.error,
        cell(" | ".join(frame.replace("\n", " ") for frame in stacks.get(line.operator, ()))),
    ]  # fmt: skip


def _number(value: object) -> str | float:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isnan(value):
        return value if math.isfinite(value) else str(value)
    return ""


def csv_text(rows: Sequence[Line], rule: str, stacks: Mapping[str, tuple[str, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header(rule))
    writer.writerows(cells(line, rule, stacks) for line in rows)
    return text.getvalue()


def first_by_ptdbg(rows: Sequence[Line]) -> Line | None:
    """The first row that the rule of ptdbg calls bad."""
    return next((line for line in rows if line.reached_ptdbg == "No"), None)
