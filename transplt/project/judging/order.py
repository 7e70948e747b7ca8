"""The order of what both programs do: steps of a training, and what is read after it changed."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from transplt.project.judging.otherwise import Otherwise
from transplt.project.judging.reading import Scope, sets_of
from transplt.project.judging.statements import Statement

_Pair = tuple[Statement, Statement]
_Step = tuple[str, Statement, Statement]
_DRAW = "draw of random numbers"
#: Steps of a training of which the order counts, and which of them may not change places.
_STEPS = {
    "zero_grad": r"\.zero_grad\(", "backward": r"\.backward\(", "clip": r"clip_grad", "unscale": r"\.unscale_\(",
    "ema": r"ema\w*\.update\(|update_ema", "scale": r"scaler\.update\(", "schedule": r"sched\w*\.step\(",
    "step": r"\.step\(|\.data\.\w+_\(|\btrain\w*\(\w", "seed": r"manual_seed|seed_everything|set_seed|\.seed\(",
    _DRAW: r"\b(?:rand\w*|normal_?|uniform_?|multinomial|bernoulli_?|sample|choice|shuffle)\(|\.apply\(|"
    r"nn\.(?:Linear|Conv\w*|Embedding|LSTM|GRU|RNN|MultiheadAttention|Transformer\w*)\(",
}  # fmt: skip
_ORDER = frozenset({
    ("seed", _DRAW), (_DRAW, "seed"), (_DRAW, _DRAW),
    ("backward", "step"), ("backward", "clip"), ("backward", "unscale"), ("unscale", "clip"), ("unscale", "step"),
    ("clip", "step"), ("step", "ema"), ("step", "scale"),
    *(pair for other in ("backward", "clip", "step") for pair in (("schedule", other), (other, "schedule"))),
})  # fmt: skip
_BAR = re.compile(r"Expr \w*bar\.")


def disordered(alike: Iterable[_Pair], places: dict[Scope, Scope], modules: set[str]) -> Iterator[Otherwise]:
    """Steps of a training that come in another order, or once for each round of another loop."""
    there: dict[Scope, list[_Step]] = defaultdict(list)
    made = "|".join(sorted(modules))  # what gives parameters their first values
    steps = _STEPS | {_DRAW: rf"{_STEPS[_DRAW]}|\b(?:{made})\(" if made else _STEPS[_DRAW]}
    for one, other in alike:
        if places.get(one.place) != other.place or one.said:
            continue
        if one.conditions != other.conditions and _excludes(one, other):
            yield Otherwise(one, other, "under the opposite condition now")
        if one.loop != other.loop and not _BAR.match(one.text) and isinstance(one.node, (ast.Expr, ast.AugAssign)):
            yield Otherwise(one, other, "moved out of a loop" if other.loop < one.loop else "moved into a loop")
        kind = next((kind for kind, form in steps.items() if re.search(form, one.text)), "")
        if kind and isinstance(one.node, (ast.Expr, ast.Assign)):
            there[other.place].append((kind, one, other))
    for each in there.values():
        each.sort(key=lambda step: step[1].line)
        for number, step in enumerate(each):
            yield from _overtaken(step, each[number + 1 :])


def outdated(
    alike: Iterable[_Pair], places: dict[Scope, Scope], names: Mapping[Scope, AbstractSet[str]]
) -> Iterator[Otherwise]:
    """What is read before something is added to it, where it was read after that, and the other way; also attributes
    that methods read, of which `names` has all that they ask for."""
    there: dict[Scope, list[_Pair]] = defaultdict(list)
    for one, other in alike:
        if places.get(one.place) == other.place and one.scope and not one.said:
            there[other.place].append((one, other))
    for pairs in there.values():
        pairs.sort(key=lambda pair: pair[0].line)
        lines = [other.line for _, other in pairs]
        for one, other in pairs if lines != sorted(lines) else ():
            sets = sets_of(other) if isinstance(other.node, (ast.Expr, ast.AugAssign)) else ()
            for before, after in pairs if sets else ():
                turned = (before.line - one.line) * (after.line - other.line) < 0 and not _excludes(other, after)
                if turned and not _read_in(after, names).isdisjoint(sets):
                    yield Otherwise(one, other, f"changed places with `{after.shown}`, which reads what it changes")


def _read_in(each: Statement, names: Mapping[Scope, AbstractSet[str]]) -> set[str]:
    """The variables that a statement reads, and the attributes that the methods of its class read for it."""
    asked = (node.attr for node in each.inside() if isinstance(node, ast.Attribute))
    methods = ((each.path, f"{each.scope.rpartition('.')[0]}.{name}") for name in asked)
    reads = {node.id for node in each.inside() if isinstance(node, ast.Name)} - sets_of(each)
    return reads | {f"self.{name}" for method in methods for name in names.get(method, ())}


def _overtaken(step: _Step, later: list[_Step]) -> Iterator[Otherwise]:
    """The first step that came after another one, and comes before it now where that counts."""
    kind, _, place = step
    later = [each for each in later if not _excludes(place, each[2])]
    stepped = any(each == "step" and after.line > place.line for each, _, after in later)
    between = set[str]()
    for each, before, after in later:
        between.add(each)
        kept = (kind, each) == ("backward", "zero_grad") and "step" not in between
        lost = (kind, each) == ("zero_grad", "backward") and stepped
        if after.line < place.line and (lost or kept or (kind, each) in _ORDER):
            yield Otherwise(before, after, f"the {each} comes before the {kind} now")
            return


def _excludes(one: Statement, other: Statement) -> bool:
    """Whether two statements are in different branches of one condition."""
    sides = one.conditions, other.conditions
    return any(f"not ({each})" in there for here, there in (sides, sides[::-1]) for each in here)
