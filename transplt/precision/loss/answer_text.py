"""What was found of two curves, as text and as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from transplt.base.render.cell import figure, first_of, many, visible
from transplt.precision.loss.course import rises
from transplt.precision.loss.pairing import Pair, Paired
from transplt.precision.loss.verdict import FirstFifth, Judged, Limits, Stretch

FORMAT = 1
#: A curve that lies so often on one side of the other is reported.
_ONE_SIDE = 0.95


@dataclass(frozen=True, slots=True)
class Answer:
    """Two logs by their names, what of them was compared, and what came out."""

    names: tuple[str, str]
    found: Paired
    judged: Judged
    fifth: FirstFifth | None


def share(value: float) -> str:
    """A share as per cent."""
    return f"{figure(100 * value, 3)} %" if math.isfinite(value) else "more than all"


def values_at(pair: Pair) -> str:
    """`step 120 (A 2.31, B 2.25)`."""
    return f"{pair.place} (A {figure(pair.a)}, B {figure(pair.b)})"


def sentence(answer: Answer) -> str:
    """The verdict, in one sentence."""
    judged, pairs = answer.judged, answer.found.pairs
    whole = judged.whole
    if judged.same:
        end = "" if judged.first is None else (
            f"; {many(judged.beyond, 'single value')} beyond that, the first at {values_at(judged.first)}"
        )  # fmt: skip
        return f"same: {_mean(whole)} over {many(len(pairs), 'value')}{end}"
    odd, first = judged.not_finite, judged.first
    if odd is not None and (first is None or first.number >= odd.number):
        return f"different: {_not_finite(odd)}; the same up to there"
    later = "" if odd is None else f"; {_not_finite(odd)}"
    return f"{_different(answer)}{later}"


def _not_finite(pair: Pair) -> str:
    """`A is nan from step 4 on (B 0.59)`."""
    (odd, value), (other, finite) = sorted((("A", pair.a), ("B", pair.b)), key=lambda side: math.isfinite(side[1]))
    return f"{odd} is {figure(value)} from {pair.place} on ({other} {figure(finite)})"


def _different(answer: Answer) -> str:
    judged, first, whole = answer.judged, answer.judged.first, answer.judged.whole
    if judged.ratio is not None:
        return f"different: A is {figure(judged.ratio, 5)} times B at every value"
    if first is not None and first.number == 1:
        return f"different from the first value on: {values_at(first)}"
    if judged.stays is not None and first is not None:
        again = "" if judged.stays == first else f"; apart on average from {judged.stays.place} to the end"
        return f"different: first divergence at {values_at(first)}{again}"
    where = f"; first divergence at {values_at(first)}" if first is not None else ""
    return f"different: {_mean(whole)}{where}"


def advice(answer: Answer) -> list[str]:
    """What the form of the difference points to, and what to do next."""
    judged, pairs = answer.judged, answer.found.pairs
    if judged.same:
        return []
    first, narrow = judged.first, Limits(judged.limits.absolute, judged.limits.share / 10)
    hints = []
    if judged.not_finite is not None and judged.not_finite == first:
        hints.append("one side overflows: record the steps before that, find the first overflow, check the loss scale")
    elif judged.ratio is not None:
        hints.append(
            "a constant factor comes from the reduction, not the result: sum instead of mean, number of processes, "
            "steps of accumulation"
        )
    elif first is not None and first.number == 1:
        hints.append(
            "the first value is computed before any update: check weights, data and their order, dropout, seed and "
            "hyperparameters, then the operators of the forward pass"
        )
    elif first is not None and first.number <= max(3, len(pairs) // 50):
        hints.append("they differ after few updates: check the backward pass, the optimizer and the learning rate")
    elif first is not None and all(narrow.holds(abs(p.a - p.b), abs(p.b)) for p in pairs[: first.number - 1]):
        hints.append("they differ after many equal values: rounding errors that add up, an overflow, or different "
                     "data from there on")
    elif first is not None:
        hints.append("the values before the first divergence are close but not equal: another order of the data, other "
                     "seeds or random numbers (dropout, augmentation); make both runs deterministic first")
    if rises(pair.a for pair in pairs) and not rises(pair.b for pair in pairs):
        hints.append(
            "A rises again after its lowest and B does not: compare the learning rates of both step by step (schedule, "
            "warm-up, scaling by the number of cards)"
        )
    if first is not None:
        hints.append(f"record both sides around {first.place} and compare the dumps: docs/precision.md says how")
    return hints


def facts(answer: Answer) -> list[tuple[str, str]]:
    """What was compared, by which limits, and how the difference goes on: labels and texts."""
    found, judged = answer.found, answer.judged
    limits, (own, other) = judged.limits, found.names
    names = f"`{own}`" if own == other else f"`{own}` and `{other}`"
    extent = "in the order of the logs" if found.by_order else f"{found.pairs[0].place} to {found.pairs[-1].place}"
    odd = "" if judged.not_finite is None else f"; {judged.not_finite.number - 1} before one side is nan or inf"
    rows = [
        ("A", f"{answer.names[0]}: {many(found.counts[0], 'value')}"),
        ("B", f"{answer.names[1]}: {many(found.counts[1], 'value')}"),
        ("compared", f"{many(len(found.pairs), 'value')} of {names}, {extent}{odd}"),
        ("limits", f"mean |A - B| up to {figure(limits.absolute)}, or up to {share(limits.share)} of the loss of B"),
    ]  # fmt: skip
    if len(judged.parts) > 1:
        rows.append(("drift", drift(judged)))
    return rows if answer.fifth is None else [*rows, ("first fifth", fifth_text(answer.fifth))]


def loss_text(answer: Answer) -> str:
    """The answer as lines."""
    parts = answer.judged.parts
    rows = facts(answer)
    rows[4:4] = [(f"part {n} of {len(parts)}", _part(part, answer)) for n, part in enumerate(parts, 1)]
    rows += [("look for" if n == 0 else "next", text) for n, text in enumerate(advice(answer))]
    rows += [("note", remark) for remark in remarks(answer)]
    lines = [f"transplt loss: {sentence(answer)}", "", *(f"  {label:<12}{visible(text)}" for label, text in rows)]
    return "\n".join(lines) + "\n"


def remarks(answer: Answer) -> list[str]:
    """What is worth knowing beside the verdict."""
    lines, pairs = list(answer.found.remarks), answer.found.pairs
    if answer.judged.both_not_finite:
        lines.append(f"{many(answer.judged.both_not_finite, 'value')} are nan or inf on both sides")
    if len(answer.found.pairs) != max(answer.found.counts) and not lines:
        lines.append("values in only one log are not compared")
    if answer.found.others:
        lines.append(f"also there: {first_of([f'`{name}`' for name in answer.found.others], 8)} (--name)")
    if rises(pair.a for pair in pairs) and rises(pair.b for pair in pairs):
        lines.append("both rise again after their lowest value, usually because the learning rate is too large there")
    return lines + answer.found.hints


def drift(judged: Judged) -> str:
    """How the difference goes on from the first part to the last."""
    first, last = judged.parts[0], judged.parts[-1]
    side = ""
    if judged.above >= _ONE_SIDE or (judged.above <= 1 - _ONE_SIDE and judged.beyond):
        side = f"; A is {'above' if judged.above >= _ONE_SIDE else 'below'} B almost everywhere"
    if judged.whole.mean == 0:
        return "none" + side
    if last.share > 2 * first.share and not judged.limits.holds(last.mean, last.loss):
        how = "grows"
    elif first.share > 2 * last.share and not judged.limits.holds(first.mean, first.loss):
        how = "shrinks"
    else:
        return "none that matters" + side
    shares = f"{share(first.share)} of the loss in the first part, {share(last.share)} in the last"
    return f"the difference {how}: {shares}{side}"


def fifth_text(fifth: FirstFifth) -> str:
    """How the first fifth stands, in words."""
    whole = f"{figure(fifth.whole)} {fifth.unit}s"
    state = "aligned" if fifth.aligned else "not aligned"
    if not fifth.planned:
        return f"{state}, of the {whole} compared (--total says how long the whole training is)"
    if fifth.reached < fifth.end:
        return f"{state} so far, up to {fifth.unit} {figure(fifth.reached)}; it ends at {figure(fifth.end)} of {whole}"
    return f"{state}: up to {fifth.unit} {figure(fifth.end)} of {whole}" + (
        "; now compare the accuracy at the end of training" if fifth.aligned else "; make it agree before training on"
    )


def _mean(whole: Stretch) -> str:
    return f"mean difference {figure(whole.mean, 4)}, {share(whole.share)} of the loss"


def _part(part: Stretch, answer: Answer) -> str:
    fine = answer.judged.limits.holds(part.mean, part.loss)
    where = part.first.place if part.first is part.last else f"{part.first.place} to {part.last.place}"
    mean = f"mean |A - B| {figure(part.mean, 4)}, {share(part.share)} of the loss"
    return f"{'fine ' if fine else 'apart'}  {mean}; {where}"


def loss_json(answer: Answer) -> dict[str, Any]:
    """The answer as one object. Numbers that JSON does not have are null; `points` are [epoch, step, A, B]."""
    found, judged = answer.found, answer.judged
    return {
        "format": FORMAT,
        "same": judged.same,
        "sentence": visible(sentence(answer)),
        "a": {"log": visible(answer.names[0]), "name": visible(found.names[0]), "values": found.counts[0]},
        "b": {"log": visible(answer.names[1]), "name": visible(found.names[1]), "values": found.counts[1]},
        "by_order": found.by_order,
        "compared": len(found.pairs),
        "limits": {"absolute": judged.limits.absolute, "share": judged.limits.share},
        "mean_difference": _number(judged.whole.mean),
        "mean_share": _number(judged.whole.share),
        "beyond": judged.beyond,
        "first_divergence": _place(judged.first),
        "apart_for_good": _place(judged.stays),
        "not_finite": _place(judged.not_finite),
        "ratio": judged.ratio,
        "drift": drift(judged) if len(judged.parts) > 1 else None,
        "parts": [
            {"first": _place(part.first), "last": _place(part.last), "mean_difference": _number(part.mean),
             "mean_share": _number(part.share), "fine": judged.limits.holds(part.mean, part.loss)}
            for part in judged.parts
        ],
        "first_fifth": None if answer.fifth is None else {
            "unit": answer.fifth.unit, "whole": answer.fifth.whole, "end": answer.fifth.end,
            "planned": answer.fifth.planned, "reached": answer.fifth.reached, "aligned": answer.fifth.aligned,
        },
        "advice": advice(answer),
        "remarks": [visible(remark) for remark in remarks(answer)],
        "points": [[pair.epoch, pair.step, _number(pair.a), _number(pair.b)] for pair in found.pairs],
    }  # fmt: skip


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _place(pair: Pair | None) -> dict[str, Any] | None:
    if pair is None:
        return None
    values = {"a": _number(pair.a), "b": _number(pair.b)}
    return {"number": pair.number, "epoch": pair.epoch, "step": pair.step, **values}
