"""Two dumps beside each other: step by step, rank by rank, until one differs."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from transplt.base.disk.child import leave_signals
from transplt.precision.after_backward import Behind, behind, changed_at_start, judge_noisy, together
from transplt.precision.align import in_optimizer
from transplt.precision.distance import apart, by_figures
from transplt.precision.elements import elements
from transplt.precision.judge import judge
from transplt.precision.judgement import OPTIMIZER, WEIGHTS, AllMetrics, Judgement
from transplt.precision.match import Match, Matched, match
from transplt.precision.metrics import measured
from transplt.precision.record import GRADIENT, TRANSPLT, Dump, Part, Record, Tensor, UnusableDump
from transplt.precision.weights import Weights, apart_by_noise, weights_of

#: Fewer pairs of files than this are not worth processes of their own.
_WORTH_PROCESSES = 8


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
    stepped: tuple[str, ...] = ()  #: those of the last step of an optimizer
    weights: Weights | None = None  #: for the next step
    #: A weight that differs at the start since its gradient was nothing but rounding: the step is not compared.
    noisy: str = ""


@dataclass(slots=True)
class Comparison:
    npu: Dump
    bench: Dump
    tolerance: float | None
    steps: tuple[int, ...]  #: on both sides
    compared: list[Compared] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: Steps behind which one side has operators of torch's own alone, and the weights of the next step are the same.
    settled: list[Compared] = field(default_factory=list)
    noise: str = ""  #: from which step on little is compared, and why

    @property
    def first(self) -> Compared | None:
        """The rank that diverged first in the first step that differs: where the earliest operator did."""
        found = [each for each in self.compared if each.verdict is not None]
        return min(found, key=lambda each: (each.step, each.verdict.position, each.rank), default=None)  # type: ignore[union-attr]

    @property
    def same(self) -> bool:
        return self.first is None and self.npu.steps == self.bench.steps

    @property
    def behind(self) -> Behind:
        """What runs behind the last backward pass, of all ranks and steps."""
        return together(each.behind for each in self.compared)


def compare(npu: Dump, bench: Dump, given: float | None = None, jobs: int | None = None) -> Comparison:
    """How the two dumps differ. UnusableDump where they cannot be compared: other ranks, no common step."""
    if npu.ranks != bench.ranks:
        raise UnusableDump(
            f"the dumps have different ranks: {_ranges(npu.ranks)} on the NPU's side, {_ranges(bench.ranks)} on the "
            "bench's; both runs need the same number of cards"
        )
    steps = tuple(sorted({*npu.steps} & {*bench.steps}))
    if not steps:
        raise UnusableDump(
            f"the dumps have no step in common: {_ranges(npu.steps)} on the NPU's side, {_ranges(bench.steps)} on the "
            "bench's"
        )
    found = Comparison(npu, bench, given, steps)
    if npu.steps != bench.steps:
        found.notes.append(f"steps differ: NPU {_ranges(npu.steps)}, bench {_ranges(bench.steps)}")
    before: dict[int, Compared] = {}
    for step in steps:
        ranks = [rank for rank in npu.ranks if (step, rank) in npu.parts and (step, rank) in bench.parts]
        if len(ranks) < len(npu.ranks):
            found.notes.append(f"step {step}: only ranks {_ranges(ranks)} are on both sides")
        known = {rank: each.weights for rank, each in before.items() if each.step == step - 1}
        last_step = step == steps[-1]
        tasks = [
            (step, rank, npu.parts[step, rank], bench.parts[step, rank], given, known.get(rank), last_step)
            for rank in ranks
        ]
        now = [*_all(tasks, jobs)]
        found.compared += now
        _note_noise(found, now)
        _settle(found, before, now)
        if any(each.verdict is not None and not each.verdict.settled_later for each in found.compared):
            _since(found, step, before)
            break
        for each in now:
            if (last := before.get(each.rank)) is not None:
                last.weights = None
            before[each.rank] = each
    return found


def _note_noise(found: Comparison, now: Sequence[Compared]) -> None:
    noisy = next((each for each in now if each.noisy), None)
    if noisy is not None and not found.noise:
        found.noise = (
            f"from step {noisy.step} on {noisy.noisy} differs, and its gradient is only rounding: from there on only "
            "the settings of optimizers were compared"
        )


def _settle(found: Comparison, before: Mapping[int, Compared], now: Sequence[Compared]) -> None:
    """Operators of torch's own that one side has alone did the same, where the weights of the next step are the same;
    and so they do in the last step, of which no later one tells."""
    for each in now:
        last = before.get(each.rank)
        waits = last is not None and last.verdict is not None and last.verdict.settled_later
        if last is not None and waits and (each.verdict is None or each.verdict.kind != WEIGHTS):
            last.verdict = None
            found.settled.append(last)
        ends = each.verdict is not None and each.verdict.settled_later and each.step == found.steps[-1]
        if ends and any(other.rank == each.rank for other in found.settled):
            each.verdict = None
            found.settled.append(each)


def _since(found: Comparison, step: int, before: Mapping[int, Compared]) -> None:
    """Weights that differ after steps that were the same come from the update between them."""
    first = found.first
    assert first is not None and first.verdict is not None
    if step != found.steps[0] and first.verdict.kind == WEIGHTS and first.step == step:
        first.verdict.kind = OPTIMIZER
        first.verdict.behind = True
        first.verdict.how += f" at the start of step {step}, and all before it was the same"
        last = before.get(first.rank)
        key = first.step, first.rank
        matched = match(found.npu.parts[key], found.bench.parts[key], found.tolerance)
        each = changed_at_start(matched)
        changed = () if each is None else frames_of(found.npu.parts[key], found.bench.parts[key], each)
        first.source = changed or (last.stepped if last is not None else ())


_Task = tuple[int, int, Part, Part, float | None, Weights | None, bool]


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
    step, rank, npu, bench, given, before, last = task
    matched, metrics = matched_with_metrics(npu, bench, given)
    noisy = apart_by_noise(matched, before)
    verdict = judge(matched, metrics, before) if not noisy else judge_noisy(matched)
    differing = sum(each.one_sided or each.outputs > 1 for each in matched.model) if not noisy else 0
    frames = frames_of(npu, bench, verdict.match, verdict.of) if verdict is not None else ()
    stepped = frames_of(npu, bench, matched.steps[-1]) if matched.steps else _stepped(matched)
    late = matched.npu.recorder == matched.bench.recorder == TRANSPLT  # it takes gradients when an optimizer steps
    if verdict is not None and late and verdict.behind and verdict.match.row.kind == GRADIENT and stepped:
        frames = stepped
    found = Compared(step, rank, verdict, len(matched.model), differing, behind(matched), frames, stepped, noisy=noisy)
    found.weights = None if last else weights_of(matched, before)
    return found


def _stepped(matched: Matched) -> tuple[str, ...]:
    """The frames of what an optimizer called, if there is something."""
    assert matched.parts is not None
    for each in matched.optimizer:
        part = matched.parts[each.npu is None]
        frames = matched.stacks_of(part).get(each.row.name, ())
        if in_optimizer(frames):
            return frames
    return ()


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
        metrics[one.path, other.path] = measured(
            ours, theirs, lambda: (elements(records[0], one), elements(records[1], other))
        )
        return apart(one, other, least, metrics[one.path, other.path])

    return match(npu, bench, given, distance, records), metrics


def frames_of(npu: Part, bench: Part, found: Match, of: str = "") -> tuple[str, ...]:
    """The frames of an operator; of a backward operator those of its forward call. The bench's, if only it has it. `of`
    is the name of another row that has them."""
    row, part = (found.npu, npu) if found.npu is not None else (found.bench, bench)
    assert row is not None
    stacks = part.stacks()
    forward = row.name.replace("backward", "forward"), row.name.replace("parameters_grad", "forward")
    return next((stacks[name] for name in (of, row.name, *forward) if name in stacks), ())


def _ranges(numbers: Sequence[int]) -> str:
    """`0-7, 9`; at most a handful."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [f"{low}" if low == high else f"{low}-{high}" for low, high in runs]
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "") or "none"
