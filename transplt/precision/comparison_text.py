"""What `compare` prints besides its first line."""

from __future__ import annotations

from transplt.base.errors import UsageError, shown
from transplt.base.render.cell import figure, visible
from transplt.precision.compare import Comparison
from transplt.precision.elements import elements, numpy_or_sentence
from transplt.precision.match import Match, pairs
from transplt.precision.rank_detail import Detail
from transplt.precision.record import Tensor, named
from transplt.precision.silent_errors import known_lines, rows_called

_MOST_RANKS = 20


def by_ptdbg(detail: Detail, *, verdict: bool) -> str:
    """The result by the rule of ptdbg, in one line."""
    before = "" if verdict else "rule of ptdbg (Cosine < 0.99 and MaxAbsError > 0.001): "
    if not detail.has_elements:
        return f"{before}not known: the dumps have no elements of tensors (task `tensor`)"
    line = detail.ptdbg
    if line is None or line.metrics is None:
        return f"{before}every row meets the requirements"
    cosine, absolute = figure(line.metrics.figures.cosine), figure(line.metrics.figures.max_absolute)
    return f"{before}first at {visible(line.npu_name)} (row {line.index}): Cosine {cosine}, MaxAbsError {absolute}"


def ranks_text(found: Comparison) -> str:
    """A line for each rank of the step that differs, where there are several."""
    if len(found.npu.ranks) < 2 or found.first is None:
        return ""
    rows = [each for each in found.compared if each.step == found.first.step and each.verdict is not None]
    text = ""
    for each in rows[:_MOST_RANKS]:
        assert each.verdict is not None
        text += f"  rank {each.rank}: {visible(each.verdict.name)} ({each.verdict.kind}: {visible(each.verdict.how)})\n"
    if len(rows) > _MOST_RANKS:
        text += f"  and {len(rows) - _MOST_RANKS} ranks more\n"
    return text


def known_at(detail: Detail) -> list[str]:
    """What is known of the operator that diverged first: wrong numbers that an NPU gives without an error."""
    verdict = detail.compared.verdict
    rows = [each.row for each in detail.matched.model]
    return known_lines(rows_called(rows, [verdict.name])) if verdict is not None else []


def one_operator(detail: Detail, name: str, top: int, tensor: str = "") -> str:
    """The tensors of one operator, or the one that is named (`input.0`): figures of both sides, and the elements that
    are farthest apart."""
    matched = detail.matched
    matches = [*matched.model, *matched.gradients, *matched.optimizer, *matched.steps]
    wanted = {row.name for row in named([each.row for each in matches], name)}
    chosen = [each for each in matches if each.row.name in wanted]
    if not chosen:
        raise UsageError(f"no operator {shown(name)} in step {detail.compared.step}, rank {detail.compared.rank}")
    there = [one for each in chosen for one in each.row.tensors if one.is_tensor]
    if tensor and not any(_means(tensor, one) for one in there):
        names = ", ".join(dict.fromkeys(shown(one.name) for one in there))
        raise UsageError(f"{shown(name)} has no tensor {shown(tensor)}; it has {names}")
    return "\n".join(_operator(detail, each, top, tensor) for each in chosen)


def _operator(detail: Detail, each: Match, top: int, tensor: str) -> str:
    npu, bench = each.npu, each.bench
    if npu is None or bench is None:
        return f"{visible(each.row.name)} is only on the {'NPU' if bench is None else 'bench'}'s side\n"
    text = f"{visible(npu.name)} beside {visible(bench.name)}\n"
    for one, other in pairs(npu.tensors, bench.tensors):
        if tensor and not _means(tensor, one):
            continue
        text += f"  {visible(one.name)}  {one.dtype} {[*one.shape]}\n"
        for side, each_side in (("NPU", one), ("bench", other)):
            figures = zip(("max", "min", "mean", "norm"), each_side[3:7], strict=True)
            known = "  ".join(f"{name} {value:.8g}" for name, value in figures if value is not None)
            text += f"    {side:<6}{known}\n"
        text += _elements(detail, one, other, top)
    return text


def _means(name: str, tensor: Tensor) -> bool:
    return name in (tensor.name, tensor.name.partition(".")[2])


def _elements(detail: Detail, one: Tensor, other: Tensor, top: int) -> str:
    if one.path is None or other.path is None:
        return ""
    ours, theirs = elements(detail.matched.npu, one), elements(detail.matched.bench, other)
    if ours is None or theirs is None or ours.shape != theirs.shape or not ours.size:
        return ""
    np = numpy_or_sentence()
    n, b = ours.astype("f8").reshape(-1), theirs.astype("f8").reshape(-1)
    with np.errstate(all="ignore"):
        d = np.abs(n - b)
        d[np.isnan(d)] = np.inf
        d[(n == b) | (np.isnan(n) & np.isnan(b))] = 0.0
    worst = np.argsort(-d, kind="stable")[:top]
    if not d[worst[0]]:
        return "    all elements are equal\n"
    text = f"    {'position':<20}{'NPU':>16}{'bench':>16}{'absolute':>14}{'relative':>14}\n"
    for place in worst[d[worst] > 0]:
        where = ",".join(str(int(each)) for each in np.unravel_index(place, ours.shape)) or "0"
        relative = d[place] / abs(b[place]) if b[place] else float("nan")
        text += f"    {where:<20}{n[place]:>16.8g}{b[place]:>16.8g}{d[place]:>14.4g}{relative:>14.4g}\n"
    return text
