"""The first line that computed something else, from runs in which every line told its results."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from transplt.prove.found import Difference
from transplt.prove.training import Event, Training

#: Moves between devices: a port changes them.
_MOVES = frozenset("to cuda npu cpu detach contiguous numpy pin_memory type _to_copy".split())
#: Their memory holds whatever was there.
_UNSET = frozenset("empty empty_like empty_strided new_empty new_empty_strided empty_permuted".split())
_ROUNDING = {"float64": 1e-12, "float16": 5e-3, "bfloat16": 4e-2}


def first_other_result(one: Training, other: Training) -> Difference | None:
    """The first call of torch whose result differs, or that only one of them makes; where all agree, the first that
    only one of them cuts from its gradient; else None."""
    return _first_apart(_calls(one), _calls(other)) or _first_cut(one, other)


def _first_cut(one: Training, other: Training) -> Difference | None:
    """The first call whose result has a gradient in one program alone; equal values are no reason to look further."""
    left, right = (
        [event for event in each.of("op") if event.fields["name"] not in _MOVES - {"detach"} | _UNSET]
        for each in (one, other)
    )
    matcher = difflib.SequenceMatcher(None, [_graph(e) for e in left], [_graph(e) for e in right], autojunk=False)
    for tag, a, _b, c, d in matcher.get_opcodes():
        if tag == "equal":
            continue
        mine = left[a] if a < len(left) else None
        theirs = right[c] if c < d else None
        if theirs is not None and not theirs.fields.get("grad"):
            what = f"{theirs.fields['name'].strip('_')} gives a result without a gradient here"
            return Difference(what, theirs.place, mine.place if mine else None)
        if mine is not None and not mine.fields.get("grad"):
            here = theirs or (right[c] if c < len(right) else None)
            what = f"{mine.fields['name'].strip('_')} of the original's line gives a result without a gradient"
            return Difference(what, here.place if here else None, mine.place)
    return None


def _graph(event: Event) -> tuple[str, bool]:
    return event.fields["name"], bool(event.fields.get("grad"))


def _first_apart(left: list[Event], right: list[Event]) -> Difference | None:
    matcher = difflib.SequenceMatcher(None, [_key(e) for e in left], [_key(e) for e in right], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            for mine, theirs in zip(left[a:b], right[c:d], strict=True):
                if _apart(mine, theirs):
                    name = theirs.fields["name"].strip("_")
                    return Difference(f"{name} gives another result here", theirs.place, mine.place)
        elif right[c:d]:
            name = right[c].fields["name"].strip("_")
            known = left[a].place if a < len(left) else None
            return Difference(f"{name} is called here otherwise than in the original", right[c].place, known)
        else:
            name = left[a].fields["name"].strip("_")
            here = right[c].place if c < len(right) else right[-1].place if right else None
            return Difference(f"{name} of the original's line is not called", here, left[a].place)
    return None


def _calls(training: Training) -> list[Event]:
    return [event for event in training.of("op") if event.fields["name"] not in _MOVES | _UNSET]


def _key(event: Event) -> tuple[str, tuple[int, ...]]:
    return event.fields["name"], tuple(event.fields["shape"])


def _apart(mine: Event, theirs: Event) -> bool:
    before: Sequence[float] = mine.fields["p"]
    after: Sequence[float] = theirs.fields["p"]
    if before == after:
        return False
    bound = max(_ROUNDING.get(each.fields["dtype"], 1e-5) for each in (mine, theirs))
    gap = max(abs(a - b) for a, b in zip(before[:3], after[:3], strict=True))
    return not gap <= bound * max(before[0], after[0], 1e-12)
