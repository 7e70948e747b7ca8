"""Two dumps beside each other: step by step, rank by rank, until one differs."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from transplt.disk.child import leave_signals
from transplt.precision.behind import Behind, behind, together
from transplt.precision.distance import apart, by_figures
from transplt.precision.elements import elements
from transplt.precision.judge import OPTIMIZER, WEIGHTS, Judgement, judge
from transplt.precision.match import Match, Matched, match
from transplt.precision.metrics import Metrics, measure
from transplt.precision.record import Dump, Part, Record, Tensor, UnusableDump

#: Fewer pairs of files than this are not worth processes of their own.
_WORTH_PROCESSES = 8
AllMetrics = dict[tuple[str, str], Metrics]


@dataclass(slots=True)
class Compared:
    """One rank in one step."""

    step: int
    rank: int
    verdict: Judgement | None
    operators: int
    differing: int  #: operators whose outputs are beyond the tolerance
    behind: Behind  #: what runs behind the last backward pass
    source: tuple[str, ...] = ()  #: the frames of the operator of the verdict, innermost first


@dataclass(slots=True)
class Comparison:
    npu: Dump
    bench: Dump
    tolerance: float | None
    steps: tuple[int, ...]  #: on both sides
    compared: list[Compared] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def first(self) -> Compared | None:
        """The rank that diverged first in the first step that differs: where the earliest operator did."""
        found = [each for each in self.compared if each.verdict is not None]
        return min(found, key=lambda each: (each.step, each.verdict.position, each.rank), default=None)  # type: ignore[union-attr]

    @property
    def same(self) -> bool:
        return self.first is None and self.npu.steps == self.bench.steps and not self.behind.left

    @property
    def behind(self) -> Behind:
        """What runs behind the last backward pass, of all ranks and steps."""
        return together(each.behind for each in self.compared)


def compare(npu: Dump, bench: Dump, given: float | None = None, jobs: int | None = None) -> Comparison:
    """How the two dumps differ. UnusableDump where they cannot be compared: other ranks, no common step."""
    if npu.ranks != bench.ranks:
        raise UnusableDump(
            f"the dumps have different ranks: {_listed(npu.ranks)} on the NPU's side, {_listed(bench.ranks)} on the "
            "bench's; both runs need the same number of cards"
        )
    steps = tuple(sorted({*npu.steps} & {*bench.steps}))
    if not steps:
        raise UnusableDump(
            f"the dumps have no step in common: {_listed(npu.steps)} on the NPU's side, {_listed(bench.steps)} on the "
            "bench's"
        )
    found = Comparison(npu, bench, given, steps)
    if npu.steps != bench.steps:
        found.notes.append(f"steps differ: NPU {_listed(npu.steps)}, bench {_listed(bench.steps)}")
    for step in steps:
        ranks = [rank for rank in npu.ranks if (step, rank) in npu.parts and (step, rank) in bench.parts]
        if len(ranks) < len(npu.ranks):
            found.notes.append(f"step {step}: only ranks {_listed(ranks)} are on both sides")
        tasks = [(step, rank, npu.parts[step, rank], bench.parts[step, rank], given) for rank in ranks]
        found.compared += _all(tasks, jobs)
        if found.first is not None:
            _since(found, step)
            break
    return found


def _since(found: Comparison, step: int) -> None:
    """Weights that differ after steps that were the same come from the update between them."""
    first = found.first
    assert first is not None and first.verdict is not None
    if step != found.steps[0] and first.verdict.kind == WEIGHTS:
        first.verdict.kind = OPTIMIZER
        first.verdict.how += f" at the start of step {step}, and all before it was the same"


_Task = tuple[int, int, Part, Part, float | None]


def _all(tasks: Sequence[_Task], jobs: int | None) -> Iterator[Compared]:
    count = min(jobs if jobs is not None else os.cpu_count() or 1, len(tasks) // 2)
    if len(tasks) < _WORTH_PROCESSES or count < 2:
        yield from map(_one, tasks)
        return
    # Records hold no circles; looking for some took a quarter of the time.
    with ProcessPoolExecutor(count, initializer=_begin) as pool:
        yield from pool.map(_one, tasks, chunksize=max(1, min(16, len(tasks) // (4 * count))))


def _begin() -> None:
    gc.disable()
    leave_signals()


def _one(task: _Task) -> Compared:
    step, rank, npu, bench, given = task
    matched, metrics = matched_with_metrics(npu, bench, given)
    verdict = judge(matched, metrics)
    differing = sum(each.one_sided or each.outputs > 1 for each in matched.model)
    frames = frames_of(npu, bench, verdict.match) if verdict is not None else ()
    return Compared(step, rank, verdict, len(matched.model), differing, behind(matched), frames)


def matched_with_metrics(npu: Part, bench: Part, given: float | None = None) -> tuple[Matched, AllMetrics]:
    """The operators of both, and the metrics of the tensors whose elements both have, by the names of their files."""
    metrics: AllMetrics = {}
    records: list[Record] = []

    def distance(one: Tensor, other: Tensor, least: float) -> float:
        if one.path is None or other.path is None or one.shape != other.shape:
            return by_figures(one, other, least)
        ours, theirs = elements(records[0], one), elements(records[1], other)
        if ours is None or theirs is None:
            return by_figures(one, other, least)
        metrics[one.path, other.path] = measure(ours, theirs)
        return apart(one, other, least, metrics[one.path, other.path])

    return match(npu, bench, given, distance, records), metrics


def frames_of(npu: Part, bench: Part, found: Match) -> tuple[str, ...]:
    """The frames of an operator; of a backward operator those of its forward call. The bench's, if only it has it."""
    row, part = (found.npu, npu) if found.npu is not None else (found.bench, bench)
    assert row is not None
    stacks = part.stacks()
    for name in (row.name, row.name.replace("backward", "forward"), row.name.replace("parameters_grad", "forward")):
        if name in stacks:
            return stacks[name]
    return ()


def _listed(numbers: Sequence[int]) -> str:
    """`0-7, 9`; at most a handful."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [f"{low}" if low == high else f"{low}-{high}" for low, high in runs]
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "") or "none"
