"""What is automatic, what is left, what it costs, and what blocks first: for each file and for the whole project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from transplt.base.finding import Effort, Finding
from transplt.engine.actions.groups import Groups
from transplt.rules.pages import BLOCKS
from transplt.rules.support_tables import canonical

#: Hours that a finding stands for in sums: minutes, an hour or two, a day (see `Effort`).
HOURS = {Effort.LOW: 0.25, Effort.MEDIUM: 1.5, Effort.HIGH: 8.0}
#: Codes of findings about lines of files that are not Python.
_LINES = "NPU80"
#: What newer packages refuse, and files that may come from a GPU: work, but no place that is bound to CUDA.
_UNBOUND = ("NPU152", "NPU293")
_ORDER = {Effort.HIGH: 0, Effort.MEDIUM: 1, Effort.LOW: 2, None: 3}


@dataclass(frozen=True, slots=True)
class FileEffort:
    """One file, or all of them: edits that are made, and findings that are left, by effort.

    `automatic` are edits that leave nothing to do: none of a line that still has a finding, and none of a line that
    another edit needs, such as `import torch_npu`. `hours` is a rough sum for a person who knows the code. What comes
    again in a file costs little more: the same code counts in full once, then as low; lines of CUDA sources are one
    port a file. `counted` are the places bound to CUDA that `share` is a part of, and `done` those of them that are
    automatic: for all files those of Python, because hardly an edit is made in C or YAML.
    """

    path: str
    automatic: int
    low: int
    medium: int
    high: int
    hours: float
    counted: int = 0
    done: int = 0

    @property
    def left(self) -> int:
        return self.low + self.medium + self.high

    @property
    def share(self) -> float:
        """The automatic part of the places that count, from 0 to 1; 1 where there is nothing to do."""
        return self.done / self.counted if self.counted else 1.0


@dataclass(frozen=True, slots=True)
class Blocker:
    """One reason why the project does not run yet: a code and what it is about, with its places."""

    code: str
    api: str
    effort: Effort | None
    message: str
    count: int
    path: str
    line: int


def percent(share: float, whole: float = 1) -> str:
    """A share from 0 to 1 of a `whole` for a reader, rounded down: 100% only where nothing is left, `-` of nothing."""
    return f"{round(share * 1000) // 10}%" if whole else "-"


def effort_of(path: str, findings: Sequence[Finding]) -> FileEffort:
    """The sums of one file."""
    done = bound = 0
    left: Counter[Effort] = Counter()
    hours: dict[str, float] = {}
    lines = {finding.span.line for finding in findings if finding.open}
    for finding in findings:
        if finding.applied:
            done += finding.places * (finding.span.line not in lines)
        elif finding.open:
            effort = finding.effort or Effort.LOW
            left[effort] += 1
            bound += finding.code not in _UNBOUND
            before = hours.get(finding.code)
            if before is None:
                hours[finding.code] = HOURS[effort]
            elif not finding.code.startswith(_LINES):
                hours[finding.code] = before + HOURS[Effort.LOW]
    return FileEffort(
        path, done, left[Effort.LOW], left[Effort.MEDIUM], left[Effort.HIGH], sum(hours.values()),
        done + bound, done,
    )  # fmt: skip


def total(files: Iterable[FileEffort], python: Collection[str], hours: float, name: str = "all files") -> FileEffort:
    """The sum over files, of which `python` are the paths of Python files.

    `hours` are those of the actions: what is the same in many files is done once, which no sum over files says.
    """
    every = list(files)
    return FileEffort(
        name,
        sum(each.automatic for each in every),
        sum(each.low for each in every),
        sum(each.medium for each in every),
        sum(each.high for each in every),
        hours,
        sum(each.counted for each in every if each.path in python),
        sum(each.done for each in every if each.path in python),
    )


def blockers(findings: Iterable[Finding]) -> list[Blocker]:
    """Open findings, the same code and API together, by what their actions block: what stops at import first, then by
    effort and the number of places.
    """
    every = list(findings)
    groups = Groups(every)
    by_subject: dict[tuple[str, str], list[Finding]] = {}
    for finding in every:
        if finding.open:
            about = "" if finding.code.startswith(_LINES) else canonical(finding.api)
            by_subject.setdefault((finding.code, about), []).append(finding)
    found: list[tuple[int, Blocker]] = []
    for (code, api), same in by_subject.items():
        first = min(same, key=Finding.sort_key)
        hardest = min((finding.effort for finding in same), key=lambda effort: _ORDER[effort])
        blocks = min(BLOCKS.index(groups.of(finding).blocks) for finding in same)
        found.append((blocks, Blocker(code, api, hardest, first.message, len(same), first.path, first.span.line)))
    found.sort(key=lambda row: (row[0], _ORDER[row[1].effort], -row[1].count, row[1].code, row[1].api))
    return [blocker for _, blocker in found]
