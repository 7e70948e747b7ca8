"""A profile of a GPU beside one of an NPU: operators matched by name and shapes, and the parts of a step.

What launches a kernel may differ between the two: a convolution is `aten::cudnn_convolution` on one and
`aten::convolution_overrideable` on the other, both inside `aten::conv2d` with the same shapes. So a call that has no
partner is brought together at the innermost caller that both have.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transplt.base.render.cell import visible
from transplt.base.text.regular_file import open_regular
from transplt.precision.diagnose.profiles.calls import Called, Calls, Key, read_calls
from transplt.precision.diagnose.profiles.names import operator_of
from transplt.precision.diagnose.profiles.profile import Profile
from transplt.precision.diagnose.profiles.report import cut, parts_of, slowest
from transplt.precision.diagnose.profiles.units import ms, percent
from transplt.rules.profiles import COMMUNICATION

SHAPE, CALLER, OTHER_SHAPES, GPU_ONLY, NPU_ONLY = (
    "name and shapes", "same caller", "other shapes", "only on the GPU", "only on the NPU",
)  # fmt: skip
_MATCHED = (SHAPE, CALLER)
_MOST_ROWS, _MOST_SHAPES = 15, 200


@dataclass(slots=True)
class Pair:
    """One operator on both: microseconds and calls in a step (in all, where steps are not known)."""

    name: str
    shapes: str
    how: str = SHAPE
    gpu: float = 0.0
    npu: float = 0.0
    gpu_calls: float = 0.0
    npu_calls: float = 0.0
    ai_cpu: bool = False


@dataclass(slots=True)
class Against:
    """What two profiles say beside each other; `of` is what their times are."""

    gpu: Profile
    npu: Profile
    of: str
    per_step: bool
    pairs: list[Pair]
    parts: list[tuple[str, float, float]]
    remarks: list[str] = field(default_factory=list)

    def matched(self, side: str) -> float:
        """The share of the time of `gpu` or `npu` that was matched."""
        whole = sum(getattr(each, side) for each in self.pairs)
        return sum(getattr(each, side) for each in self.pairs if each.how in _MATCHED) / whole if whole else 0.0


def read_against(path: str, profiles: list[Profile]) -> Against:
    """The profile of the GPU at a path, beside the slowest of these. UnreadableProfile, OSError."""
    npu, gpu = slowest(profiles), Profile(os.path.basename(path))
    with open_regular(path) as file:
        gpu_calls = read_calls(Path(path), file, gpu)
    gpu.read.append(gpu.name)
    npu_calls, remarks = _npu_calls(npu, on_card=bool(gpu.card)), []
    on_card = all(any(each.card.us for each in side.of.values()) for side in (gpu_calls, npu_calls))
    if not on_card:
        remarks.append("not both have times of kernels: the times are those of operators on the host")
    if not all(any(shapes for _, shapes in side.of) for side in (gpu_calls, npu_calls)):
        gpu_calls, npu_calls = _without_shapes(gpu_calls), _without_shapes(npu_calls)
        remarks.append("one of them has no shapes (record_shapes=True): operators are matched by name")
    per_step = bool(gpu_calls.steps and npu_calls.steps)
    if not per_step:
        remarks.append("steps are not known on both sides: the times are those of the whole profiles")
    steps = (gpu_calls.steps, npu_calls.steps) if per_step else (1, 1)
    aicpu = {operator_of(name) for each in npu.operators.values() if each.kind == "AI CPU"
             for name in (each.type, *each.called)}  # fmt: skip
    parts = [
        (name, ours / steps[0], theirs / steps[1])
        for (name, ours), (_, theirs) in zip(parts_of(gpu.steps), parts_of(npu.steps), strict=True)
    ]
    return Against(
        gpu, npu, "on the card" if on_card else "on the host", per_step,
        _pairs(_timed(gpu_calls, on_card=on_card), _timed(npu_calls, on_card=on_card), steps, aicpu),
        parts if gpu.whole and npu.whole else [], remarks,
    )  # fmt: skip


def _npu_calls(npu: Profile, *, on_card: bool) -> Calls:
    """The calls of PyTorch in a profile of an NPU: times from its table of operators, callers from its trace; kernels
    by the function that launches them where only these have times."""
    calls = Calls(steps=len({step.step for step in npu.steps if step.step}))
    for trace in npu.traces:
        with open_regular(trace) as file:
            found = read_calls(trace, file, Profile(trace.name))
        calls.of |= found.of
        calls.steps = calls.steps or found.steps
    if npu.calls:
        for each in calls.of.values():
            each.host.us, each.host.count = 0.0, 0
    for (name, shapes), (host, card) in npu.calls.items():
        call = calls.add(name, shapes)
        call.host.add(host.us, host.count)
        if card.us:
            call.card.add(card.us, card.count)
    timed = any(call.card.us for call in calls.of.values())
    for operator in npu.operators.values() if on_card else ():
        if operator.kind == COMMUNICATION:
            calls.collective(operator.type, operator.total.us, operator.total.count)
        elif not timed:
            name = min(operator.called, default=operator.type)
            calls.add(name, "").card.add(operator.total.us, operator.total.count)
    return calls


def _without_shapes(calls: Calls) -> Calls:
    bare = Calls(steps=calls.steps)
    for call in calls.of.values():
        found = bare.add(call.name, "", tuple((name, "") for name, _ in call.inside))
        found.host.add(call.host.us, call.host.count)
        found.card.add(call.card.us, call.card.count)
    return bare


def _timed(calls: Calls, *, on_card: bool) -> dict[Key, tuple[Called, float, int]]:
    times = ((key, call, call.card if on_card else call.host) for key, call in calls.of.items())
    return {key: (call, total.us, total.count) for key, call, total in times if total.us}


def _pairs(
    gpu: dict[Key, tuple[Called, float, int]], npu: dict[Key, tuple[Called, float, int]], steps: tuple[int, int],
    aicpu: set[str],
) -> list[Pair]:  # fmt: skip
    """All calls, by what they are brought together at, the dearest loss of the NPU first."""
    both = _reached(gpu) & _reached(npu)
    found: dict[Key, Pair] = {}
    for side, calls, number in (("gpu", gpu, steps[0]), ("npu", npu, steps[1])):
        for key, (call, us, count) in calls.items():
            at = next((each for each in _places(key, call) if each in both), key)
            pair = found.setdefault(at, Pair(call.name if at == key else at[0], at[1]))
            if at == key:
                pair.name = call.name
            else:
                pair.how = CALLER
            setattr(pair, side, getattr(pair, side) + us / number)
            setattr(pair, f"{side}_calls", getattr(pair, f"{side}_calls") + count / number)
            pair.ai_cpu = pair.ai_cpu or (side == "npu" and key[0] in aicpu)
    # Of what has no partner: whether only its shapes have none.
    alone = {at: pair for at, pair in found.items() if not (pair.gpu and pair.npu)}
    sides = {side: {name for (name, _), pair in alone.items() if getattr(pair, side)} for side in ("gpu", "npu")}
    for (name, _), pair in alone.items():
        pair.how = OTHER_SHAPES if name in sides["gpu"] & sides["npu"] else GPU_ONLY if pair.gpu else NPU_ONLY
    return sorted(found.values(), key=lambda pair: (pair.gpu - pair.npu, pair.name, pair.shapes))


def _reached(calls: dict[Key, tuple[Called, float, int]]) -> set[Key]:
    return {each for key, (call, _, _) in calls.items() for each in _places(key, call)}


def _places(key: Key, call: Called) -> Iterator[Key]:
    """Where a call may be brought together with others: a caller without shapes would hide that theirs differ, except
    for the step of an optimizer, whose operators take lists, or one parameter each."""
    yield key
    yield from (each for each in call.inside if each[1] or not key[1] or each[0].startswith("optimizer."))


def headline(found: Against) -> str:
    """What stands beside what, and what the times are."""
    scale = "a step" if found.per_step else "in all"
    return f"Beside {cut(found.gpu.name)} on a GPU (times {found.of}, {scale})"


def sections(found: Against) -> Iterator[tuple[str, list[tuple[str, str, str, str, str]]]]:
    """Tables of (what, GPU, NPU, how much more, how it was matched): the parts, what is matched, what is not."""
    yield "Parts of the time", [_row(name, gpu, npu, "") for name, gpu, npu in found.parts]
    shares = " and ".join(f"{percent(found.matched(side))} of the {side.upper()}'s" for side in ("gpu", "npu"))
    for title, hows in (
        (f"Matched, where the NPU loses most first ({shares} time)", _MATCHED),
        ("Not matched: the same name with other shapes", (OTHER_SHAPES,)),
        ("Not matched: on one side only", (GPU_ONLY, NPU_ONLY)),
    ):
        pairs = [each for each in found.pairs if each.how in hows]
        if hows != _MATCHED:
            pairs.sort(key=lambda each: -each.gpu - each.npu)
        shown = f"; {_MOST_ROWS} of {len(pairs)}, the JSON has all" if len(pairs) > _MOST_ROWS else ""
        yield title + shown, [
            _row(f"{each.name.rpartition(': ')[2]} {each.shapes}", each.gpu, each.npu,
                 f"{each.how}, AI CPU" if each.ai_cpu else each.how)
            for each in pairs[:_MOST_ROWS]
        ]  # fmt: skip


def _row(what: str, gpu: float, npu: float, how: str) -> tuple[str, str, str, str, str]:
    return cut(what), ms(gpu), ms(npu), ("+" if npu > gpu else "-") + ms(abs(npu - gpu)), how


def against_text(found: Against) -> Iterator[str]:
    """For people: the parts of a step, where the NPU loses, and what has no partner."""
    yield headline(found)
    for remark in remarks_of(found):
        yield f"note: {remark}"
    for title, rows in sections(found):
        if rows:
            yield from ("", title, f"   {'':<52}{'GPU':>10}{'NPU':>10}{'more':>10}")
        for what, gpu, npu, more, how in rows:
            yield f"   {cut(what, 51):<52}{gpu:>10}{npu:>10}{more:>10}  {how}".rstrip()


def remarks_of(found: Against) -> list[str]:
    """What to know about the comparison."""
    return [cut(each) for each in (*found.gpu.remarks[:5], *found.remarks)]


def against_json(found: Against) -> dict[str, Any]:
    """All of it, times in microseconds."""
    return {
        "gpu": visible(found.gpu.name), "npu": visible(found.npu.name), "times": found.of, "per_step": found.per_step,
        "remarks": remarks_of(found),
        "matched": {side: round(found.matched(side), 4) for side in ("gpu", "npu")},
        "parts": [{"name": name, "gpu_us": round(gpu, 3), "npu_us": round(npu, 3)} for name, gpu, npu in found.parts],
        "operators": [
            {"name": cut(each.name), "shapes": cut(each.shapes, _MOST_SHAPES), "how": each.how,
             "gpu_us": round(each.gpu, 3), "npu_us": round(each.npu, 3), "gpu_calls": round(each.gpu_calls, 2),
             "npu_calls": round(each.npu_calls, 2), "ai_cpu": each.ai_cpu}
            for each in found.pairs
        ],
    }  # fmt: skip
