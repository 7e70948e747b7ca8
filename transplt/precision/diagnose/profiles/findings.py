"""What in a profile is worth an hour of somebody's time: findings with their cost, the dearest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from transplt.base.render.cell import many
from transplt.precision.diagnose.profiles.names import meaning_of
from transplt.precision.diagnose.profiles.op_info import OpInfo
from transplt.precision.diagnose.profiles.profile import LineTime, Operator, Profile
from transplt.precision.diagnose.profiles.units import ms
from transplt.rules.profiles import Remedy, kind_of, remedies

_MOST_LINES, _MOST_SHOWN = 5, 5
#: Where the card has less to wait for, what the host waits for costs nothing.
_IDLE = 0.05


@dataclass(slots=True)
class Found:
    """A finding: microseconds that it costs, their share (None where the whole is not known), and what was seen."""

    remedy: Remedy
    us: float
    share: float | None
    seen: list[str]
    operators: list[Operator] = field(default_factory=list)
    lines: list[LineTime] = field(default_factory=list)


def findings_of(profile: Profile) -> list[Found]:
    """The findings of a profile, the dearest first; what is only worth knowing last."""
    found = []
    for name, look in _LOOKS.items():
        remedy = remedies()[name]
        for each in look(profile, remedy):
            if each.us and (each.share is None or each.share * 100 >= remedy.least):
                each.lines = lines_of(profile, remedy, each.operators)
                found.append(each)
    return sorted(found, key=lambda each: (each.remedy.info, -each.us, each.remedy.name))


def findings_of_logs(logs: OpInfo) -> list[Found]:
    """The findings of the operators in host logs; they have no times."""
    found = []
    again = [each for each in logs.operators.values() if each.later or each.compiled_later]
    if again:
        again.sort(key=lambda each: (-each.later - each.compiled_later, each.type))
        seen = [
            f"{each.type}: {many(each.later, 'new form')} in the second half of a log, {len(each.forms)} in all"
            + (f", compiled there {many(each.compiled_later, 'time')}" if each.compiled_later else "")
            for each in again[:_MOST_SHOWN]
        ]
        found.append(Found(remedies()["op-compiled-again"], 0.0, None, seen))
    if logs.conversions:
        seen = [f"{way}: {many(times, 'time')}" for way, times in logs.conversions.most_common(_MOST_SHOWN)]
        found.append(Found(remedies()["op-conversions"], 0.0, None, seen))
    return found


def lines_of(profile: Profile, remedy: Remedy, operators: list[Operator]) -> list[LineTime]:
    """The user's lines that call what a finding is about, the dearest first."""
    meanings = {meaning_of(name) for each in operators for name in (each.type, *each.called)}
    chosen = []
    for line in profile.lines.values():
        if line.operator.rpartition("::")[2] in remedy.aten or meaning_of(line.operator) in meanings:
            chosen.append(line)
    on_card = remedy.of == "card"
    chosen.sort(key=lambda each: (-(each.device if on_card else each.host), -each.host, each.frame.path))
    return chosen[:_MOST_LINES]


def _of_kind(profile: Profile, remedy: Remedy) -> Iterator[Found]:
    operators = [each for each in profile.dearest() if each.kind == remedy.kind]
    us = sum(each.total.us for each in operators)
    if us and profile.card:
        kernels = many(sum(each.total.count for each in operators), profile.counted)
        seen = [f"{kernels}: " + ", ".join(_operator_names(operators))]
        yield Found(remedy, us, us / profile.card, seen, operators[:_MOST_SHOWN])


def _top_operator(profile: Profile, remedy: Remedy) -> Iterator[Found]:
    plain = ("matrix unit", "vector unit", "other")
    dear = [each for each in profile.dearest()[:3] if each.kind in plain and profile.card]
    dear = [each for each in dear if each.total.us * 100 / profile.card >= remedy.least]
    if dear:
        us = sum(each.total.us for each in dear)
        yield Found(remedy, us, us / profile.card, [", ".join(_operator_names(dear))], dear)


def _host_gaps(profile: Profile, remedy: Remedy) -> Iterator[Found]:
    free = sum(step.free for step in profile.steps)
    if not free or not profile.whole:
        return
    seen = []
    for gap in profile.longest_gaps()[:_MOST_SHOWN]:
        times = f", {many(gap.times, 'time')}, {ms(gap.total)} in all" if gap.times > 1 else ""
        seen.append(f"{ms(gap.us)} before {gap.before}, after {gap.after}{times}")
    yield Found(remedy, free, free / profile.whole, seen)


def _preparing(profile: Profile, remedy: Remedy) -> Iterator[Found]:
    us = sum(step.preparing for step in profile.steps)
    if profile.whole:
        longest = max((step.preparing for step in profile.steps), default=0.0)
        yield Found(remedy, us, us / profile.whole, [f"{ms(longest)} in the slowest step"])


def _communication(profile: Profile, remedy: Remedy) -> Iterator[Found]:
    us, every = (sum(getattr(step, name) for step in profile.steps) for name in ("not_hidden", "communication"))
    if profile.whole and every:
        yield Found(remedy, us, us / profile.whole, [f"of {ms(every)} of communication"])


def _waiting(profile: Profile, remedy: Remedy) -> Iterator[Found]:
    every = sum(each.total.us for each in profile.collectives.values())
    us = sum(each.waited for each in profile.collectives.values())
    if every:
        dear = sorted(profile.collectives.items(), key=lambda item: -item[1].waited)[:_MOST_SHOWN]
        seen = [
            f"{name}: {ms(each.waited)} of {ms(each.total.us)} in {many(each.total.count, 'call')}"
            for name, each in dear
        ]
        yield Found(remedy, us, us / every, seen)


def _new_shapes(profile: Profile, remedy: Remedy) -> Iterator[Found]:
    operators = sorted(
        (each for each in profile.operators.values() if each.new_shapes.count), key=lambda each: -each.new_shapes.us
    )
    us = sum(each.new_shapes.us for each in operators)
    if us and profile.card:
        seen = [f"{each.type}: {many(each.new_shapes.count, 'new shape')}" for each in operators[:_MOST_SHOWN]]
        yield Found(remedy, us, us / profile.card, seen, operators[:_MOST_SHOWN])


def _synchronizations(profile: Profile, remedy: Remedy) -> Iterator[Found]:
    if profile.whole and sum(step.free for step in profile.steps) / profile.whole < _IDLE:
        return
    yield from _apis(profile, remedy, "waits")


def _apis(profile: Profile, remedy: Remedy, kind: str) -> Iterator[Found]:
    """The dearest function of a kind: the others are called by it, or call it."""
    for name, total in profile.apis_that(kind):
        whole = profile.whole
        seen = [f"{name}: {many(total.count, 'call')}, {ms(total.most)} the longest"]
        yield Found(remedy, total.us, min(total.us / whole, 1.0) if whole else None, seen)
        return
    if kind == "waits" and not profile.apis:
        waits = {name: total for name, total in profile.host.items() if kind_of(name) == "host waits for the card"}
        every = sum(total.us for total in profile.host.values())
        us = max((total.us for total in waits.values()), default=0.0)
        if us:
            seen = [f"{name}: {many(total.count, 'call')}" for name, total in waits.items()]
            yield Found(remedy, us, us / every, seen)


def _garbage(profile: Profile, remedy: Remedy) -> Iterator[Found]:
    total = profile.garbage
    if total.count:
        share = total.us / profile.whole if profile.whole else None
        yield Found(remedy, total.us, share, [many(total.count, "collection")])


def _operator_names(operators: list[Operator]) -> list[str]:
    names = []
    for each in operators[:_MOST_SHOWN]:
        takes = f" of {' or '.join(sorted(each.takes)[:3])}" if each.kind == "AI CPU" and each.takes else ""
        names.append(f"{each.type}{takes} {ms(each.total.us)}")
    return names + (["..."] if operators[_MOST_SHOWN:] else [])


_LOOKS: dict[str, Callable[[Profile, Remedy], Iterator[Found]]] = {
    "ai-cpu": _of_kind, "format-conversion": _of_kind, "copies": _of_kind, "transpositions": _of_kind,
    "casts": _of_kind, "top-operator": _top_operator, "host-gaps": _host_gaps, "preparing": _preparing,
    "communication": _communication, "waiting-ranks": _waiting, "compiles": partial(_apis, kind="compiles"),
    "dynamic-shapes": _new_shapes, "synchronizations": _synchronizations, "garbage": _garbage,
}  # fmt: skip
