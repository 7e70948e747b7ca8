"""Which differences a run decides: those whose lines it came to, and whose effect was compared."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from transplt.base.finding import Finding
from transplt.project.judging.otherwise import Otherwise
from transplt.project.judging.statements import Statement
from transplt.project.judging.values import last_line
from transplt.proof.prove.proof import Proof

#: What is kept to be told, and no part of the data.
_KEPT = re.compile(r"(?<!buffer)(?<!memory)(?<!replay)(?<!batch)(?<!data)\.append\(|\.item\(\)|\bprint\(")
#: Differences of which one run says nothing: the machine, its files and its clock decide about them.
_BY_CHANCE = re.compile(r"environ|getenv|is_?file\(|exists\(|\btime\(|perf_counter|emulat")
#: Functions that do something with what was learnt.
_MEASURES = re.compile(r"(?:vali\w*|test|eval\w*|predict|infer\w*|save\w*|accuracy|metric\w*|score|m?iou)$", re.I)
#: What nobody comes to who is alone.
_OF_RANKS = re.compile(r"world|\brank|get_rank|ampler|set_epoch|all_reduce|all_gather|distribut|barrier|broadcast")
#: What changes a value in some rounds only: an extreme that takes the place of a value, and a count that is asked.
_AT_TIMES = re.compile(
    r"(?:(?<![.\w])|(?:np|numpy|torch)\.)(?:max|min)\(|\b(?:clamp\w*|clip|minimum|maximum|best\w*)\b"
    r"|\b(?:epoch\w*|\w*steps?|\w*iter\w*|i|it|idx|round|count\w*) *(?:[<>%]|[!=]=)|[<>] *\w*(?:epoch|step|iter)"
)
#: Numbers that are more than a place in a list.
_NUMBER = re.compile(r"(?<![\w.])(?:[3-9]|\d{2,}|\d+\.\d+|\d+(?:\.\d+)?e-?\d+)\b")
_IS_SCHEDULE = re.compile(r"^learning rate: |sched\w*\.step\(")
_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try)
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


_Key = tuple[str, int, str]


class Way(NamedTuple):
    """Lines of a file, from `first` to `last`, of which one has to run; `side`: 0 in the original, 1 in the port."""

    side: int
    path: str
    first: int
    last: int


@dataclass(slots=True)
class Reached:
    """What is told of statements, by where and how it is told, and the lines that a run has to come to before it says
    something of that."""

    told: dict[_Key, Otherwise] = field(default_factory=dict)
    ways: dict[_Key, tuple[Way, ...]] = field(default_factory=dict)

    def add(self, found: Finding, told: Otherwise, origin: Mapping[str, str]) -> None:
        """Note the statements of a difference; `origin`: the names that files of the port have in the original."""
        one, other, ways = told.before, told.after, list[Way]()
        if one is not None:
            ways += _ways(0, origin.get(one.path, one.path), one, whole=other is None)
        if other is not None:
            ways += _ways(1, other.path, other, whole=one is None)
        self.told[_key(found)], self.ways[_key(found)] = told, (*ways,)

    def watched(self) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """The lines to watch in the original and in the port, by path."""
        found: tuple[dict[str, set[int]], dict[str, set[int]]] = defaultdict(set), defaultdict(set)
        for way in (way for ways in self.ways.values() for way in ways):
            found[way.side][way.path].update(range(way.first, way.last + 1))
        first, second = ({path: sorted(lines) for path, lines in side.items()} for side in found)
        return first, second

    def lines_of(self, found: Finding) -> tuple[tuple[int, str], ...]:
        """The lines of a difference in both programs."""
        told = self.told.get(_key(found))
        return told.lines if told is not None else ()

    def settles(self, found: Finding, proof: Proof) -> bool:
        """Whether equal steps decide a difference: the runs came to it, and what it may change was compared."""
        told, ways = self.told.get(_key(found)), self.ways.get(_key(found), ())
        if _IS_SCHEDULE.search(found.message) and not any(each.findings.scheduled for each in proof.parts):
            return False  # it did nothing yet
        printed, saved = (sum(getattr(each.findings, name) for each in proof.parts) for name in ("printed", "saved"))
        ran = (
            any(way.first <= line <= way.last for line in proof.ran[way.side].get(way.path, ())) for way in ways
        )
        return all(ran) and is_compared(found, told, printed, saved)

    def needs_ranks(self, found: Finding) -> bool:
        """Whether only several processes come to it."""
        told = self.told.get(_key(found))
        both = (told.before, told.after) if told is not None else ()
        return any(_OF_RANKS.search(" ".join([each.text, *each.guards])) for each in both if each is not None)


def _key(found: Finding) -> _Key:
    return found.path, found.span.line, found.message


def _ways(side: int, path: str, each: Statement, *, whole: bool) -> Iterator[Way]:
    """A statement and its branches; of a `whole` block that only one side has those of what is in it, too."""
    node, is_block = each.node, isinstance(each.node, _BLOCKS)
    if not isinstance(node, (*_DEFINES, ast.Try, ast.While)):  # these run no line of their own, or run it anyway
        yield Way(side, path, each.line, max(each.line, last_line(each)))
    inside = isinstance(node, _DEFINES) or (is_block and not whole)
    for one in [node] if inside else ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            held = getattr(one, name, None)
            first = held[0] if isinstance(held, list) and held else held
            line = getattr(first, "lineno", each.line)  # what was put together has none
            if line != each.line:
                yield Way(side, path, line, getattr(first, "end_lineno", None) or line)


def _goes_another_way(told: Otherwise | None) -> bool:
    """Whether a port has another number in a line of both, or something that shows in some rounds alone."""
    if told is None or told.after is None:
        return False
    old, new = told.before.shown if told.before else "", told.after.shown
    number = bool(old) and bool({*_NUMBER.findall(new)} - {*_NUMBER.findall(old)})
    return number or bool({*_AT_TIMES.findall(new)} - {*_AT_TIMES.findall(old)})


def is_compared(found: Finding, told: Otherwise | None, printed: int, saved: int) -> bool:
    """Whether what a difference may change was compared: steps by themselves say nothing of results."""
    both = (told.before, told.after) if told is not None else ()
    text = " ".join([found.message.partition(" (original")[0], *(each.shown for each in both if each is not None)])
    if found.api == "settings" or _BY_CHANCE.search(text) or _goes_another_way(told):
        return False
    if found.api == "checkpoint":
        return bool(saved)
    kept = found.api == "metric" or _KEPT.search(text)
    return bool(printed) or not (kept or (told is not None and _MEASURES.search(told.at.scope)))
