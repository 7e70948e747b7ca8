"""The numbers of edits: `check --diff` prints them, `check --fix --pick 1,3-5` makes these edits and no others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from transplt.base.errors import UsageError, shown
from transplt.base.finding import Finding
from transplt.base.render.cell import visible
from transplt.project.checking.checked_file import CheckedFile
from transplt.project.checking.inputs import CheckedProject
from transplt.project.report.check_results import CheckResult, NumberedEdit

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def numbered(files: Sequence[CheckedFile], project: CheckedProject, before: int) -> tuple[list[NumberedEdit], bytes]:
    """The edits of some files of a project, and their patch, in which a line above each file names the edits.

    `git apply` and `patch` pass by what stands above `diff --git`. `before` edits have their numbers already.
    """
    edits: list[NumberedEdit] = []
    patch: list[bytes] = []
    for file in files:
        found = sorted((each for each in file.findings if each.edit and not each.ignored), key=Finding.sort_key)
        path, first = project.shown(file.path), before + len(edits) + 1
        if file.patch:
            lines = [
                f"# {number}: {visible(path)}:{each.span.line}:{each.span.column} {each.code} {visible(each.text)}\n"
                for number, each in enumerate(found, first)
            ]
            patch += ["".join(lines).encode("utf-8", "backslashreplace"), file.patch]
        edits += [NumberedEdit(project.root, file.path, each) for each in found]
    return edits, b"".join(patch)


def picked_edits(text: str, edits: Sequence[NumberedEdit]) -> list[NumberedEdit]:
    """The edits whose numbers a text such as `1,3-5` names. UsageError for anything else, and for a number of none."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise UsageError(
                f"--pick takes the numbers that `check --diff` prints, such as 1,3-5, not {shown(part)}"
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= len(edits):
            there = f"there are edits 1 to {len(edits)}" if edits else "there is nothing to edit"
            raise UsageError(f"--pick: there is no edit {part.strip()}; {there}, as numbered by `check --diff`")
        numbers.update(range(first, last + 1))
    return [edits[number - 1] for number in sorted(numbers)]


def places_of(picked: Sequence[NumberedEdit], root: Path) -> tuple[tuple[str, tuple[tuple[int, int], ...]], ...]:
    """The byte ranges of picked edits of a project by file, as `Settings.picked` has them."""
    found: dict[str, list[tuple[int, int]]] = {}
    for each in picked:
        if each.root == root:
            found.setdefault(each.inner, []).append((each.finding.span.start, each.finding.span.end))
    return tuple((path, tuple(places)) for path, places in sorted(found.items()))


def said_of(picked: Sequence[NumberedEdit], edits: Sequence[NumberedEdit], result: CheckResult) -> list[str]:
    """What was made besides the picked edits, because one of them needs it, and what could not be made."""
    made = {(change.file, place) for change in result.changes for place in change.made}
    wanted = {id(each) for each in picked}
    more, lost = [], []
    for number, each in enumerate(edits, 1):
        there = (each.root / each.inner, (each.finding.span.start, each.finding.span.end)) in made
        if there and id(each) not in wanted:
            more.append(number)
        elif not there and id(each) in wanted:
            lost.append(number)
    said = [f"also made, because a picked edit needs it: {_with_commas(more)}"] if more else []
    return said + ([f"not made, because it needs another edit: {_with_commas(lost)}"] if lost else [])


def _with_commas(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
