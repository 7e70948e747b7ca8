"""Work orders: what is left to do in one function of a port, so that somebody can take it, and whether it is done."""

from __future__ import annotations

import ast
import json
import re
import shlex
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from transplt.base.errors import UsageError, shown
from transplt.base.finding import Effort
from transplt.base.render.cell import visible
from transplt.engine.actions.action import BLOCKS_TEXT
from transplt.project.judging.differences import ALSO, GETS_ROUND, Differences
from transplt.project.judging.sides import IGNORES, Side
from transplt.project.judging.statements import does_nothing
from transplt.project.judging.unexplained import target
from transplt.project.report.check_results import CheckedFinding
from transplt.project.report.formats.json_document import finding_table
from transplt.rules.pages import DiagnosticError, load

FORMAT = 1
#: Lines of code above and below a place, and the longest function that is shown as a whole.
_AROUND, _WHOLE = 8, 80
_NOT_ACCEPTED = """\
- The function is taken out, or emptied, and what called it has nothing in its place.
- Errors of every kind are caught around it.
- A comment, a setting or a baseline that switches the finding off.
- The work is done on the CPU, or under a condition that is never met."""
_CAUGHT = "errors of every kind are caught"
_CHECKED = "It exits with 0 when this is done, with 1 and the reason when it is not. Nothing of the program is run."


class Sides(NamedTuple):
    """Both programs, and what is different in them."""

    original: Side
    port: Side
    found: Differences


@dataclass(frozen=True, slots=True)
class Order:
    """What the findings of one `code` ask for in one function (`scope`; empty for a module) of a file of the port.
    `code_here` and `code_before` are that function in the port and in the original, with numbers of lines."""

    code: str
    path: str
    scope: str
    origin: str
    findings: tuple[CheckedFinding, ...]
    code_here: str = field(repr=False)
    code_before: str = field(repr=False)

    @property
    def id(self) -> str:
        """Its name, whatever else is left to do or done."""
        return ":".join(filter(None, (self.code, self.path, self.scope)))

    @property
    def file(self) -> str:
        """The name of its file, as any file system takes it."""
        return f"{self.code}{re.sub(r'[^A-Za-z0-9._-]+', '-', self.id.removeprefix(self.code))[-200:]}.md"


def orders_of(findings: Iterable[CheckedFinding], sides: Sides) -> tuple[Order, ...]:
    """The work orders for what speaks against a port, in the order of the findings."""
    every = [*findings]
    ports = {path: _Source(sides.port, path) for path in {each.finding.path for each in every}}
    groups: dict[tuple[str, str, str], list[CheckedFinding]] = defaultdict(list)
    for each in every:
        path, line = each.finding.path, each.finding.span.line
        groups[each.finding.code, path, ports[path].scope_of(line)].append(each)
    originals = {path: _Source(sides.original, sides.found.origin.get(path, path)) for path in ports}
    orders = []
    for (code, path, scope), same in groups.items():
        here = ports[path].shown(scope, {each.finding.span.line for each in same})
        named = [re.search(r"\(original: .*:(\d+)\)$", each.finding.message) for each in same]
        there = originals[path].shown(scope, {int(found[1]) for found in named if found})
        orders.append(Order(code, path, scope, originals[path].path, (*same,), here, there))
    return (*orders,)


class _Source:
    """A file: its lines, where its statements begin, in which functions, and from where to where these are."""

    def __init__(self, side: Side, path: str) -> None:
        self.path = path
        self.lines = side.files.get(path, b"").decode("utf-8", "replace").splitlines()
        self.starts = sorted((each.line, each.scope) for each in side.statements(path))
        self.extents: dict[str, tuple[int, int]] = {}
        for each in side.statements(path):
            last, scope = getattr(each.node, "end_lineno", 0) or each.line, each.scope
            while scope:
                top, end = self.extents.get(scope, (each.line, last))
                self.extents[scope] = min(top, each.line), max(end, last)
                scope = scope.rpartition(".")[0]

    def scope_of(self, line: int) -> str:
        """The function that a line is in; empty for the module."""
        above = bisect_right(self.starts, (line, "\uffff"))
        return self.starts[above - 1][1] if above else ""

    def shown(self, scope: str, places: set[int]) -> str:
        """The function where it is short, else the lines around the places; these are marked."""
        first, last = self.extents.get(scope, (0, _WHOLE))
        if last - first < _WHOLE:
            wanted = {*range(first - 1, last + 1)}
        else:
            wanted = {line for place in places for line in range(place - _AROUND, place + _AROUND + 1)}
        numbers = sorted(wanted & {*range(1, len(self.lines) + 1)})
        return "\n".join(
            f"{'>' if each in places else ' '} {each:4} {visible(self.lines[each - 1])}" for each in numbers
        )


def what_is_left(
    action: str, orders: Iterable[Order], also: Iterable[CheckedFinding], sides: Sides
) -> tuple[str, tuple[CheckedFinding, ...], tuple[str, ...]]:
    """Why an action is not done (empty where it is), the findings that say so, and remarks.

    UsageError for what is no action of these programs."""
    code, path, scope = _read(action, sides)
    caught = orders_of((each for each in also if _CAUGHT in each.finding.message), sides)
    left: dict[str, list[CheckedFinding]] = defaultdict(list)
    for each in (each for each in (*orders, *caught) if each.path == path):
        if (each.code, each.scope) == (code, scope):
            left["still there"] += each.findings
        elif each.code in (GETS_ROUND, ALSO) and each.code != code and each.scope in (scope, ""):
            left["it misleads the check"] += each.findings
    reasons = [*left, *filter(None, [_gone(path, scope, sides)])]
    lines = sides.port.files.get(path, b"").splitlines()
    ignored = [number for number, line in enumerate(lines, 1) if IGNORES.search(line.partition(b"#")[2])]
    remarks = [f"{visible(path)}:{each}: this comment switches nothing off" for each in ignored]
    return "; ".join(reasons), (*(each for found in left.values() for each in found),), (*remarks,)


def _read(action: str, sides: Sides) -> tuple[str, str, str]:
    """The code, the path in the port and the function of an action."""
    code, _, rest = action.partition(":")
    try:
        load(code)
    except DiagnosticError as error:
        raise UsageError(f"--action {shown(action)}: {error}") from error
    every = {*sides.original.files, *sides.port.files}
    path, scope = (rest, "") if rest in every else rest.rpartition(":")[::2]
    if path not in every:
        raise UsageError(f"--action {shown(action)} names no file of ORIGINAL or PORT; actions are CODE:FILE:FUNCTION")
    path = sides.found.successors.get(path, path)
    both = (*sides.original.statements(sides.found.origin.get(path, path)), *sides.port.statements(path))
    if scope and scope not in {each.scope for each in both}:
        raise UsageError(f"--action {shown(action)} names no function of {shown(path)}, in ORIGINAL or in PORT")
    return code, path, scope


def _gone(path: str, scope: str, sides: Sides) -> str:
    """What became of the place itself, where it is not there any more and nothing stands for it."""
    if path not in sides.port.files:
        return f"{visible(path)} is gone"
    apart, mine = sides.found.apart, [each for each in sides.port.statements(path) if each.scope == scope]
    theirs, kept = (
        sum(each.place == (path, scope) for each in side)
        for side in (apart.gone, [one for one, _ in apart.alike])
    )
    if not scope or kept >= theirs:
        return ""
    if mine:
        empty = all(isinstance(each.node, ast.Raise) or does_nothing(each.node) for each in mine)
        return f"{scope} no longer does anything" if empty else ""
    # All that called it may have something else there.
    called = re.compile(rf"\b{re.escape(scope.rpartition('.')[2])}\(")
    callers = [each for each in apart.gone if each.scope != scope and called.search(each.text)]
    after, before = ({(each.path, each.scope, target(each)) for each in side} for side in (apart.new, callers))
    return "" if callers and before <= after else f"{scope} is gone, and nothing replaces it"


def written(order: Order, original: str, port: str) -> bytes:
    """A work order as a file: Markdown for people, with a block of JSON for programs."""
    page, found = load(order.code), [each.finding for each in order.findings]
    effort = max((each.effort or Effort.LOW for each in found), key=[*Effort].index)
    place = f"`{visible(order.path)}`" + (f", `{order.scope}`" if order.scope else "")
    told = dict.fromkeys(f"- line {each.span.line}: {visible(each.text)}" for each in found)
    by_us = dict.fromkeys(visible(each.text) for each in found if each.edit is not None)
    forms = [f"- {each}, as `transplt check --fix` writes it" for each in by_us]
    forms += dict.fromkeys(f"- {visible(each.help)}" for each in found if each.help and each.edit is None)
    if any(each.edit is None for each in found):
        forms += ["", page.sections.get("What to do", "")]
    check = ["transplt", "judge", original, port, "--action", order.id]
    table = {
        "tool": "transplt", "format": FORMAT, "action": order.id, "code": order.code, "path": visible(order.path),
        "function": order.scope or None, "original_path": visible(order.origin),
        "findings": [finding_table(each) for each in order.findings], "check": check,
    }  # fmt: skip
    parts = {
        "Place": f"{place}; in the original `{visible(order.origin)}`\n\n" + "\n".join(told),
        "The code around it": _fenced(order.code_here),
        "The original": _fenced(order.code_before) if order.code_before else "",
        "Why": page.sections.get("Why", page.title),
        "What is accepted": "\n".join(forms).strip(),
        "What is not": _NOT_ACCEPTED,
        "How it is checked": f"    {shlex.join(check)}\n\n{_CHECKED}",
        "For programs": _fenced(json.dumps(table, indent=1), "json"),
    }
    text = f"# {visible(order.id)}\n\n{page.title}. {BLOCKS_TEXT[page.blocks].capitalize()}; effort: {effort.value}.\n"
    text += "".join(f"\n## {title}\n\n{part}\n" for title, part in parts.items() if part)
    return text.encode("utf-8", "backslashreplace")


def _fenced(text: str, language: str = "text") -> str:
    """A block of code, in a fence that is longer than any in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"
