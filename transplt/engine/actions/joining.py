"""Many actions made few: what is decided together stands together, and keeps its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from transplt.base.finding import Effort
from transplt.base.language import Sentence, marked
from transplt.engine.actions.action import Action
from transplt.rules.pages import BLOCKS
from transplt.rules.tables import read_table

#: A person is shown so many actions at most.
MOST = 10
#: Up to so many hours an action is of low effort, and of medium.
_LOW_HOURS, _MEDIUM_HOURS = 1.0, 5.0
_Family = Callable[[Action], bool]


def level_of(hours: float) -> Effort:
    """The effort that so many hours are."""
    return Effort.LOW if hours <= _LOW_HOURS else Effort.MEDIUM if hours <= _MEDIUM_HOURS else Effort.HIGH


def at_most(actions: Sequence[Action]) -> list[Action]:
    """At most `MOST` actions: what matters least is joined first, and what is one decision before what is not.

    An action of several keeps them as its `parts`; each of their findings is in it.
    """
    left = list(actions)
    for apart in (True, False):  # what blocks as much alone, and only where that does not do, what blocks less with it
        for title, belongs, whole in _families():
            same = [action for action in left if belongs(action)]
            headings = dict.fromkeys(action.heading for action in same) if apart else ("",)
            for one in [[each for each in same if heading in ("", each.heading)] for heading in headings]:
                if not whole:  # the first of them stay, as many as there is room for
                    one = one[max(min(MOST - 1 - (len(left) - len(one)), len(one) - 2), 0) :]
                joined = _joined(title, one) if len(one) > 1 and len(left) > MOST else None
                if joined is not None and joined.title not in {action.title for action in left}:
                    left = [*(action for action in left if action not in one), joined]
    return left


def _families() -> Iterator[tuple[str, _Family, bool]]:
    """Titles, what belongs to them, and whether that is one decision, in the order in which they are joined."""
    yield marked("Check tests, tools and old code: {count} actions"), (lambda action: action.aside), True
    yield marked("Make containers and jobs request NPUs: {count} actions"), (lambda action: action.contained), True
    beside = marked("Port other programs of the project: {count} actions")
    yield beside, (lambda action: action.stands == "beside"), True
    for row in read_table("support/substitutions.json")["families"]:
        if "blocks" in row:
            yield row["title"], _blocking(row["blocks"]), False
        else:
            yield row["title"], _blocking(["import", "first step"], row["codes"]), True
    yield marked("Fix what else stops the first step: {count} actions"), _blocking(["first step"]), False
    yield marked("Fix what else stops the import: {count} actions"), _blocking(["import"]), False


def _blocking(blocks: Sequence[str], codes: Sequence[str] = ()) -> _Family:
    """What blocks so, and has one of these codes most often, in a part at least; what blocks less: its own family."""
    return lambda action: action.stands in blocks and (
        not codes or action.codes[0] in codes)  # fmt: skip


def _joined(title: str, same: Sequence[Action]) -> Action:
    parts = [part for action in same for part in (action.parts or (action,))]
    codes = Counter(finding.code for action in same for finding in action.findings)
    hours = round(sum(action.hours for action in same), 2)
    findings = tuple(finding for action in same for finding in action.findings)
    return Action(
        title=Sentence(title, count=len(parts)),
        blocks=min((action.blocks for action in same), key=BLOCKS.index),
        effort=level_of(hours),
        hours=hours,
        how=Sentence("{count} actions, each listed below", count=len(parts)),
        codes=tuple(code for code, _ in sorted(codes.items(), key=lambda item: (-item[1], item[0]))),
        places=tuple(place for part in parts for place in part.places),
        findings=tuple(sorted(findings, key=lambda each: (*each.sort_key(), each.code))),
        aside=all(action.aside for action in same),
        contained=all(action.contained for action in same),
        beside=tuple(sorted({each for action in same for each in action.beside})) if all(
            action.beside for action in same) else (),
        parts=tuple(parts),
    )
