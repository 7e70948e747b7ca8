"""The first line that computed something else, from runs in which every line recorded its results."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import filterfalse, pairwise

from transplt.proof.prove.found import Difference
from transplt.proof.prove.training import Event, Place, Training
from transplt.rules.torch_callables import TENSOR, last_names, names_of

#: Moves between devices: a port changes them.
_MOVES = names_of(TENSOR, "ports")
_ROUNDING = {"float64": 1e-12, "float16": 5e-3, "bfloat16": 4e-2}


def first_other_result(
    one: Training, other: Training, inserted: Mapping[str, Collection[int]] | None = None
) -> Difference | None:
    """The first call of torch whose result differs, or that only one of the two makes, or that only one of them cuts
    from its gradient; None where all agree. `inserted` are the lines, by path, that only the program of `other` has:
    what seeds, wraps or exchanges there is the bookkeeping of a port, and causes nothing, as what its helper does."""
    beside = _bookkeeping(other, inserted or {})
    own = (event for event in other.events if event.place not in beside and not event.fields.get("helper"))
    kept = replace(other, events=tuple(own))
    found = [each for each in (_first_apart(one, kept), _first_cut(one, kept)) if each is not None]
    return min(found, key=lambda each: each[0])[1] if found else _given_otherwise(one, kept)


def first_other_share(one: Sequence[Training], ranks: Sequence[Training], step: int) -> Difference | None:
    """The first call of a rank whose result has the shape that it has in one process with the data of all, and other
    values: what a line makes of a share has another shape. What other ranks than the first draw for parameters is
    overwritten by its own; behind steps that agree, single numbers are those of a share, as losses are; and what is the
    sum or the mean of what the ranks have is no fault of theirs."""
    known, far = dict(_numbered(one[0])) if one else {}, 1e-4 if step == 1 else 1e-2  # roundings add up
    found: list[tuple[int, Difference]] = []
    ends = [max((each.index for each in rank.steps if each.number < step), default=len(rank.events)) for rank in ranks]
    every = [dict(_numbered(rank.until(end))) for rank, end in zip(ranks, ends, strict=True)]
    for rank, numbered in zip(ranks, every, strict=True):
        for key, event in numbered.items():
            mine, fields = known.get(key), event.fields
            counts = rank is ranks[0] or (fields["grad"] and not fields["name"].endswith("_"))
            counts = counts and (step == 1 or math.prod(fields["shape"]) > 1)
            if mine is None or not counts or mine.fields["shape"] != fields["shape"] or not _apart(mine, event, far):
                continue
            if not _shared(mine, [each.get(key) for each in every], far):
                what = f"{_name(event)} gives a different result than with one process"
                found.append((mine.index, Difference(what, event.place, callers=fields["by"])))
                break
    return min(found, key=lambda each: each[0])[1] if found else None


def _shared(mine: Event, ranks: Sequence[Event | None], far: float) -> bool:
    """Whether the ranks have shares of a result, which is the sum or the mean of theirs."""
    whole, parts = mine.fields["p"], [each.fields["p"] for each in ranks if each is not None]
    sums = [(at, math.fsum(each[at] for each in parts)) for at in (1, 2)]
    near = ([abs(total / by - whole[at]) <= far * max(whole[0], 1e-12) for at, total in sums] for by in (1, len(ranks)))
    return len(parts) == len(ranks) and any(map(all, near))


def _numbered(training: Training) -> Iterator[tuple[Hashable, Event]]:
    """The calls, by their lines and how often those were made before, but for those in which a loader reads samples,
    and for evaluations, of which each rank may have its share: from eval() to train()."""
    counts: Counter[Hashable] = Counter()
    loaded = {event.place for event in training.of("loader")}
    turns = pairwise(training.of("mode", "backward"))
    apart = [range(a.index, b.index) for a, b in turns if a.fields.get("train") is False and b.fields.get("train")]
    for event in _calls(training, _MOVES):
        if not loaded.isdisjoint((event.place, *event.fields["by"])) or any(event.index in each for each in apart):
            continue
        line = event.place, event.fields["by"], event.fields["name"]
        counts[line] += 1
        yield (line, counts[line]), event


def _bookkeeping(training: Training, inserted: Mapping[str, Collection[int]]) -> set[Place]:
    """The inserted lines that stand in one run with a collective, a seed, a wrapper, the choice of a card, or a call of
    the helper of a port."""
    found: set[Place] = set()
    for event in training.events:
        if event.kind not in ("coll", "seed", "wrap", "group", "card") and not event.fields.get("helper"):
            continue
        lines = inserted.get(event.place.path, ()) if event.place is not None else ()
        if event.place is None or event.place.line not in lines:
            continue
        first = last = event.place.line
        while first - 1 in lines:
            first -= 1
        while last + 1 in lines:
            last += 1
        found |= {Place(event.place.path, line) for line in range(first, last + 1)}
    return found


def _given_otherwise(one: Training, other: Training) -> Difference | None:
    """The first call that gives the same result for other numbers, such as a batch norm with another momentum."""
    for mine, theirs in zip(_calls(one, _MOVES), _calls(other, _MOVES), strict=False):
        if mine.fields.get("given") != theirs.fields.get("given"):
            what = f"{_name(theirs)} gets different values here"
            return Difference(what, theirs.place, mine.place, callers=theirs.fields["by"])
    return None


def _first_apart(one: Training, other: Training) -> tuple[int, Difference] | None:
    left, right = _calls(one, _MOVES), _calls(other, _MOVES)
    matcher = difflib.SequenceMatcher(None, [_key(e) for e in left], [_key(e) for e in right], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            for mine, theirs in zip(left[a:b], right[c:d], strict=True):
                if _apart(mine, theirs):
                    what = f"{_name(theirs)} gives a different result here"
                    return theirs.index, Difference(what, theirs.place, mine.place, callers=theirs.fields["by"])
            continue
        c = next((place for place in range(c, d) if left[a:b] or not _only_tells(right[place])), d)
        if not left[a:b] and c == d:
            continue
        before = left[a].place if a < len(left) else None
        after = right[c] if c < len(right) else right[-1] if right else None
        index = after.index if after is not None else len(other.events)
        if right[c:d]:
            what = f"{_name(right[c])} is called differently than in the original"
        else:
            what = f"{_name(left[a])} of the original's line is not called"
        callers = after.fields["by"] if after is not None else ()
        return index, Difference(what, after.place if after is not None else None, before, callers=callers)
    return None


def _first_cut(one: Training, other: Training) -> tuple[int, Difference] | None:
    """The first call whose result has a gradient in the original and none in the other program, whatever its value. A
    wrapper cuts what it keeps for itself."""
    wrapped = {event.place for event in other.of("wrap")}
    left, right = (_calls(each, _MOVES - {"detach"}) for each in (one, other))
    right = [event for event in right if event.fields["name"] != "detach" or event.place not in wrapped]
    matcher = difflib.SequenceMatcher(None, [_graph(e) for e in left], [_graph(e) for e in right], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        gained = right[c:d] if left[a:b] else [*filterfalse(_only_tells, right[c:d])]
        cut = next((event for event in gained if not event.fields.get("grad")), None)
        if tag != "equal" and cut is not None:
            mine = left[a].place if a < b else None
            what = f"{_name(cut)} gives a result without a gradient here"
            return cut.index, Difference(what, cut.place, mine, callers=cut.fields["by"])
    return None


def _only_tells(gained: Event) -> bool:
    """Whether what is added is one number without gradient, as of a loss that is summed up on the card to be printed,
    where the original asks for its number."""
    return not gained.fields["shape"] and not gained.fields.get("grad")


def _name(event: Event) -> str:
    return str(event.fields["name"]).strip("_")


def _graph(event: Event) -> tuple[str, bool]:
    return event.fields["name"], bool(event.fields.get("grad"))


def _calls(training: Training, moves: frozenset[str]) -> list[Event]:
    return [event for event in training.of("op") if event.fields["name"] not in moves | last_names("unwritten")]


def _key(event: Event) -> tuple[str, tuple[int, ...]]:
    return event.fields["name"], tuple(event.fields["shape"])


def _apart(mine: Event, theirs: Event, far: float = 1e-5) -> bool:
    before: Sequence[float] = mine.fields["p"]
    after: Sequence[float] = theirs.fields["p"]
    if before == after:
        return False
    bound = max(_ROUNDING.get(each.fields["dtype"], far) for each in (mine, theirs))
    gap = max(abs(a - b) for a, b in zip(before[:3], after[:3], strict=True))
    return not gap <= bound * max(before[0], after[0], 1e-12)
