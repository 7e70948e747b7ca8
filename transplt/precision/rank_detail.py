"""One rank in one step with all its rows: what tables, page and text are made of."""

from __future__ import annotations

from collections.abc import Mapping

from transplt.precision.advice import Advice, advise
from transplt.precision.compare import Compared, Comparison, matched_with_metrics
from transplt.precision.match import Matched
from transplt.precision.table import Line, first_by_ptdbg, lines


class Detail:
    """One rank in one step with all its rows."""

    def __init__(self, found: Comparison, compared: Compared) -> None:
        parts = found.npu.parts, found.bench.parts
        key = compared.step, compared.rank
        self.compared = compared
        self.matched: Matched
        self.matched, metrics = matched_with_metrics(parts[0][key], parts[1][key], found.tolerance)
        self.lines: list[Line] = [*lines(self.matched, metrics, found.tolerance)]
        self.stacks: Mapping[str, tuple[str, ...]] = {**parts[1][key].stacks(), **parts[0][key].stacks()}
        self.advice: Advice = advise(self.lines, compared.verdict)
        self.ptdbg = first_by_ptdbg(self.lines)

    @property
    def has_elements(self) -> bool:
        return any(line.metrics is not None for line in self.lines)
