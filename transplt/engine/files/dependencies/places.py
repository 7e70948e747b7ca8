"""Where a requirement goes in beside another, and what has to go with one that goes: by the form of the file.

Characters count from 0. Nothing but the lines, or the elements, of the requirements themselves changes.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from transplt.base.text.requirement import Requirement

#: (start, end, new text)
Change = tuple[int, int, str]
#: Tables of a name and a version on each row, by a name without a dot.
_TABLES = ("packages", "dev-packages", "dependencies", "pypi-dependencies")
#: What may stand before a requirement that has its line for itself: the dash of YAML, a channel of conda.
_BEFORE = re.compile(r"[ \t]*(?:-[ \t]+[\"']?(?:[\w./-]+::)?)?")
_ITEM = re.compile(r"[ \t]*-[ \t]+[\"']")


def newline_of(text: str) -> str:
    """The line end of a file."""
    return "\r\n" if "\r\n" in text else "\n"


def line_of(text: str, start: int, end: int | None = None) -> tuple[int, int]:
    """From where to where the line, or the lines, of a place stand, without the last line end."""
    last = text.find("\n", start if end is None else end)
    last = len(text) if last < 0 else last
    return text.rfind("\n", 0, start) + 1, last - (text[last - 1 : last] == "\r" and last > start)


def is_row(requirement: Requirement) -> bool:
    """True for a requirement that is a row of a table, where it is no element of a list."""
    return "." in requirement.section or requirement.section in _TABLES


def is_element(text: str, requirement: Requirement) -> bool:
    """True for an element of a list in TOML; false for a row `name = "version"`, and for an item of YAML."""
    at = requirement.whole[0]
    return text[at - 1 : at] in ('"', "'") and _ITEM.fullmatch(text, line_of(text, at)[0], at) is None


def beside_line(text: str, requirement: Requirement, new: str) -> list[Change]:
    """A line below that of a requirement, with its indentation and its dash."""
    start, end = _continued(text, requirement)
    before = text[start : requirement.whole[0]]
    alone = _BEFORE.fullmatch(before) is not None
    # Below `install_requires = torch` everything is indented.
    prefix = re.sub(r"[\"']?(?:[\w./-]+::)?$", "", before) if alone else "    "
    return [(end, end, f"{newline_of(text)}{prefix}{new}")]


def beside_element(text: str, requirement: Requirement, new: str) -> list[Change]:
    """An element behind another: on a line of its own where that has one."""
    quote = text[requirement.whole[0] - 1]
    start, end = requirement.whole[0] - 1, text.index(quote, requirement.whole[1]) + 1
    first, last = line_of(text, start, end)
    indent, rest = text[first:start], text[end:last]
    literal = f"{quote}{new}{quote}"
    if indent.strip() or (re.fullmatch(r"[ \t]*,?[ \t]*(?:#.*)?", rest) is None):
        return [(end, end, f", {literal}")]
    line = f"{newline_of(text)}{indent}{literal}"
    if rest.lstrip().startswith(","):
        return [(last, last, f"{line},")]
    return [(end, last, f",{rest}{line}")]


def beside_row(text: str, requirement: Requirement, new: str, version: str) -> list[Change]:
    """A row below another in a table of names and versions; `version` may be a table itself."""
    first, last = line_of(text, *requirement.whole)
    indent = text[first : requirement.whole[0]]
    equals = re.match(r"[\"']?[ \t]*=[ \t]*", text[requirement.end :])
    quote = "'" if text[requirement.whole[1] - 1] == "'" else '"'
    sign = equals.group().strip("\"'") if equals is not None else " = "
    value = version if version.startswith("{") else f"{quote}{version}{quote}"
    return [(last, last, f"{newline_of(text)}{indent}{new}{sign}{value}")]


def without(text: str, requirement: Requirement, going: Collection[int]) -> Change | None:
    """The element, row or line of a requirement; None where it holds more. `going` are the ends of all that go."""
    if is_element(text, requirement):
        return without_element(text, requirement, going)
    return without_row(text, requirement) if is_row(requirement) else without_line(text, requirement)


def without_line(text: str, requirement: Requirement) -> Change | None:
    """The line of a requirement, with its line end; None where it shares the line."""
    start, end = _continued(text, requirement)
    if _BEFORE.fullmatch(text, start, requirement.whole[0]) is None:
        return None
    return without_lines(text, start, end)


def without_lines(text: str, start: int, end: int) -> Change:
    """Whole lines, with the line end behind them, or before them at the end of the file."""
    behind = re.compile(r"\r?\n").match(text, end)
    if behind is not None:
        return start, behind.end(), ""
    before = re.search(r"\r?\n\Z", text[:start])
    return (before.start() if before else start), end, ""


def without_element(text: str, requirement: Requirement, going: Collection[int]) -> Change:
    """An element with its comma; its line where it has one."""
    quote = text[requirement.whole[0] - 1]
    start, end = requirement.whole[0] - 1, text.index(quote, requirement.whole[1]) + 1
    first, last = line_of(text, start, end)
    if not text[first:start].strip() and re.fullmatch(r"[ \t]*,?[ \t]*(?:#.*)?", text[end:last]):
        return without_lines(text, first, last)
    behind = re.compile(r"[ \t]*,[ \t]*").match(text, end)
    if behind is not None:
        return start, behind.end(), ""
    before = re.search(r"[ \t]*,[ \t]*\Z", text[first:start])
    if before is None or first + before.start() - 1 in going:
        return start, end, ""
    return first + before.start(), end, ""


def without_row(text: str, requirement: Requirement) -> Change | None:
    """The lines of a row."""
    start, end = requirement.whole
    first, last = line_of(text, start, end)
    if text[first:start].strip() or re.fullmatch(r"[ \t]*(?:#.*)?", text[end:last]) is None:
        return None
    return without_lines(text, first, last)


def _continued(text: str, requirement: Requirement) -> tuple[int, int]:
    """The line of a requirement with those that go on behind a backslash."""
    start, end = line_of(text, *requirement.whole)
    while text[start:end].endswith("\\") and end < len(text):
        end = line_of(text, min(end + 2, len(text)))[1]
    return start, end
