"""Two engines on the same tokens: does the trainer give them the probabilities that the rollout drew them with?

The bars of the whole are published ones, and named; those of a part, and of the hints, are a choice of this program.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import correlation, fmean, pstdev
from typing import Any, NamedTuple

from transplt.base.grouped import grouped
from transplt.base.render.cell import figure, many
from transplt.precision.token_logprobs import Sample

_FAQ, _HEALTH = "verl, docs/faq/faq.rst", "verl, docs/algo/rollout_corr.md"
#: What ratios of tokens are cut at, and by whom.
_CUTS = (
    (0.5, 2.0, "verl rollout_is_threshold, ms-swift"), (0.0, 3.0, "trl vllm_importance_sampling_clip_max"),
    (0.5, 5.0, "OpenRLHF is_correction_threshold"),
)  # fmt: skip
#: A part of the tokens lies apart from this mean |difference| on, in nats, where it is so many times that of the
#: others; a token counts that comes so often.
_APART, _TIMES, _OFTEN = 0.2, 10, 5
#: Moved by a token, a difference that is a move is at most this share of what it was.
_MOVED = 0.1
#: Log-probabilities that correlate so well, and differ in their spread by more than this share of what does not
#: correlate, differ by a temperature: other weights make them no steeper. Below the last it is no other model either.
_ALIKE, _STEEPER, _UNLIKE = 0.9, 0.5, 0.6
#: A log-probability below this beside one of exactly 0 is that of a token that the other side masks.
_MASKED, _PARTS, _OTHER = -0.5, 5, "another token"


class _Token(NamedTuple):
    """A token of which both have a number, by sample and place; `part` is the fifth of the sample it lies in."""

    sample: int
    place: int
    part: int
    token: Any
    trainer: float
    rollout: float
    apart: float


class _Measure(NamedTuple):
    """A figure of all tokens with its bar: beyond it is a fault; what is no fault yet may be in doubt."""

    name: str
    value: float
    bar: str
    source: str
    fault: bool
    doubt: bool = False


class Engines:
    """The trainer's samples beside those of the rollout."""

    def __init__(self, trainer: Sequence[Sample], rollout: Sequence[Sample]) -> None:
        self.samples = min(len(trainer), len(rollout))
        self.tokens: list[_Token] = []
        self._moved: dict[int, list[float]] = defaultdict(list)
        both = enumerate(_paired(trainer, rollout), 1)
        read = ((number, found) for number, (a, b) in both for found in self._read(number, a, b))
        faults = grouped((fault, f"sample {number}{where}") for number, (fault, where) in read)
        self.structure = [f"{fault} in {many(len(at), 'place')}, first {at[0]}" for fault, at in faults.items()]
        if len(trainer) != len(rollout):
            self.structure.append(f"a different number of samples ({len(trainer)} and {len(rollout)})")
        self.measures = list(_measures(self.tokens)) if self.tokens else []
        groups: dict[tuple[str, Any], list[float]] = defaultdict(list)
        for each in self.tokens:
            groups[f"part {each.part + 1} of {_PARTS} of the samples", None].append(each.apart)
            if each.token is not None:
                groups["token", each.token].append(each.apart)
        total = sum(each.apart for each in self.tokens)
        self.apart = [
            name if token is None else f"{name} {token!r} ({len(held)} times)"
            for (name, token), held in groups.items()
            if len(held) >= _OFTEN and _lie_apart(held, total, len(self.tokens))
        ]
        apart = self.structure or self.apart or any(each.fault for each in self.measures)
        self.verdict = "different" if apart else "in doubt" if any(each.doubt for each in self.measures) else "same"

    def _read(self, number: int, a: Sample, b: Sample) -> Iterator[tuple[str, str]]:
        """Keep the tokens that count; yield what of masks, lengths, ids and numbers does not agree, and where."""
        if a.mask and b.mask and a.mask != b.mask:
            yield "other masks", ""
        ours, theirs = _counted(a, b), _counted(b, a)
        if len(ours) != len(theirs):
            yield f"a different number of tokens ({len(ours)} and {len(theirs)})", ""
        both = list(zip(ours, theirs, strict=False))
        while len(both) > 1 and not both[-1][0][1] and not both[-1][1][1]:  # padding of both
            both.pop()
        for at, ((token, x), (other, y)) in enumerate(both):
            if fault := _fault(token, other, x, y):
                yield fault, f", token {at + 1}"
            if fault in ("", _OTHER):
                part = at * _PARTS // len(both)
                self.tokens.append(_Token(number, at + 1, part, other if token is None else token, x, y, abs(x - y)))
        for move in (-1, 0, 1):
            moved = zip((x for _, x in ours[1:-1]), (y for _, y in theirs[1 + move :]), strict=False)
            self._moved[move] += [abs(x - y) for x, y in moved if math.isfinite(x - y)]

    def hint(self) -> str:
        """What the form of the difference suggests; empty where there is none."""
        means = {move: fmean(held) for move, held in self._moved.items() if held}
        best = min(means, key=lambda move: means[move], default=0)
        if best and means[0] > _APART and means[best] < _MOVED * means[0]:
            word = "behind" if best < 0 else "ahead of"
            return f"the trainer's numbers are one token {word} the rollout's: compare logits[:-1] with tokens[1:]"
        if any("mask" in each or "number of tokens" in each for each in self.structure):
            return "the two count different tokens: compare the masks of prompt, tools, padding and end of text"
        if self.verdict == "same" or len(self.tokens) < _OFTEN:
            return ""
        x, y = [each.rollout for each in self.tokens], [each.trainer for each in self.tokens]
        moving = pstdev(x) > 0 < pstdev(y)
        alike, slope = (correlation(x, y), pstdev(y) / pstdev(x)) if moving else (0.0, 1.0)
        if alike > _ALIKE and abs(math.log(slope)) > _STEEPER * math.sqrt(max(0.0, 1 - alike * alike)):
            sharper = "trainer" if slope > 1 else "rollout"
            mode = "vLLM: logprobs_mode=processed_logprobs"
            return f"the same curve, steeper for the {sharper}: one side does not apply a temperature ({mode})"
        if self.apart:
            return "what these tokens share: positions, caches, special tokens, the mask"
        if alike < _UNLIKE:
            return ("nothing agrees: logits of a different position (logits[:-1] match tokens[1:]), or a different "
                    "prompt")
        return "a different model: weights not transferred, another dtype or another kernel"


def _lie_apart(part: Sequence[float], total: float, count: int) -> bool:
    own, others = sum(part), count - len(part)
    return own > _APART * len(part) and bool(others) and own / len(part) > _TIMES * (total - own) / others


def _paired(trainer: Sequence[Sample], rollout: Sequence[Sample]) -> Iterator[tuple[Sample, Sample]]:
    """Samples of the same tokens, whatever their order; the others as they come."""
    by_tokens = grouped((tuple(each.tokens), number) for number, each in enumerate(rollout))
    found = [by_tokens[tuple(each.tokens)].pop(0) if by_tokens.get(tuple(each.tokens)) else None for each in trainer]
    left = iter(sorted({*range(len(rollout))} - {*found}))
    pairs = ((each, next(left, None) if at is None else at) for each, at in zip(trainer, found, strict=True))
    yield from ((each, rollout[at]) for each, at in pairs if at is not None)


def _counted(sample: Sample, other: Sample) -> list[tuple[Any, float]]:
    """(id, number) of the tokens that the mask counts, its own or else the other's; without one, all but padding."""
    known = len(sample.tokens) == len(sample.values)
    held = list(zip(sample.tokens if known else [None] * len(sample.values), sample.values, strict=True))
    mask = sample.mask or (other.mask if len(held) == len(other.mask) else [])
    if mask:
        return [each for each, counts in zip(held, mask, strict=False) if counts]
    while len(held) > len(other.values) and held[-1][1] == 0 and not other.mask:
        held.pop()
    return held


def _fault(token: Any, other: Any, x: float, y: float) -> str:
    """What is wrong with a token at a place, whatever the distance."""
    if not math.isfinite(x - y) or max(x, y) > 0.01:
        return "no logarithm of a probability"
    if type(token) is type(other) and token != other:
        return _OTHER
    return "masked (0.0) on one side only" if 0 in (x, y) and min(x, y) < _MASKED else ""


def _measures(tokens: Sequence[_Token]) -> Iterator[_Measure]:
    gap = fmean(abs(math.exp(each.trainer) - math.exp(each.rollout)) for each in tokens)
    logs = [each.trainer - each.rollout for each in tokens]
    ratios = [math.exp(max(-20.0, min(20.0, each))) for each in logs]  # verl bounds them so
    divergence, mean, spread = -fmean(logs), fmean(ratios), pstdev(ratios)
    share = mean * mean / fmean(each * each for each in ratios)
    yield _Measure("mean |p - p'|", gap, "below 0.005; an error from 0.01 on", _FAQ, gap > 0.01, gap > 0.005)
    yield _Measure("KL", divergence, "at most 0.1", _HEALTH, abs(divergence) > 0.1)
    yield _Measure("mean ratio", mean, "0.5 to 2", _HEALTH, not 0.5 <= mean <= 2)
    yield _Measure("spread of ratios", spread, "at most 1", _HEALTH, spread > 1)
    yield _Measure("effective share", share, "at least 0.3", _HEALTH, share < 0.3)


def engines_text(found: Engines) -> str:
    """The page: the verdict, each figure with its bar and source, by position, by token, and what to look for."""
    verdict, tokens = found.verdict, found.tokens
    bad = [each.name for each in found.measures if each.fault or (each.doubt and verdict == "in doubt")]
    why = "; ".join([*found.structure, *found.apart, *bad]) or "no difference beyond rounding"
    rows = [("tokens", f"{len(tokens)} compared, of {many(found.samples, 'sample')}")]
    rows += [(each.name, f"{figure(each.value, 3)} ({each.bar}: {each.source})") for each in found.measures]
    ratios = [math.exp(min(each.trainer - each.rollout, 20.0)) for each in tokens]
    for low, high, source in _CUTS if tokens else ():
        beyond = figure(100 * fmean(not low <= each <= high for each in ratios), 2)
        rows.append(("ratio beyond", f"{beyond} % of the tokens outside {low:g} to {high:g} ({source})"))
    parts = [[each.apart for each in tokens if each.part == part] for part in range(_PARTS)]
    means = ", ".join(figure(fmean(part), 2) if part else "-" for part in parts)
    rows.append(("by position", f"mean |difference| in nats, each fifth of the samples: {means}"))
    for each in sorted(tokens, key=lambda token: -token.apart)[:3]:
        what = "" if each.token is None else f" ({each.token!r})"
        said = f"trainer {figure(each.trainer, 4)}, rollout {figure(each.rollout, 4)}"
        rows.append(("worst", f"sample {each.sample}, token {each.place}{what}: {said}"))
    rows += [("look for", hint)] if (hint := found.hint()) else []
    return "\n".join([f"transplt compare --logprobs: {verdict}: {why}", *(f"  {a:<17}{b}" for a, b in rows)]) + "\n"
