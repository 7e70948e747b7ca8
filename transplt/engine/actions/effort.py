"""What is automatic, what is left, and what it costs: for each file and for the whole project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from transplt.base.finding import Effort, Finding

#: Hours that a finding stands for in sums: minutes, an hour or two, a day (see `Effort`).
HOURS = {Effort.LOW: 0.25, Effort.MEDIUM: 1.5, Effort.HIGH: 8.0}
#: Codes of findings about lines of files that are not Python.
_LINES = "NPU80"
#: What newer releases of packages, or of Python, reject or rename, whatever the device.
OF_ANY_DEVICE = frozenset({"NPU153", "NPU154", "NPU159", "NPU293", "NPU313", "NPU514", "NPU901"})
#: These, files that may come from a GPU, and requirements: work, but no place bound to CUDA.
_UNBOUND = (*OF_ANY_DEVICE, "NPU152", "NPU290", "NPU291", "NPU298", "NPU84")


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


def percent(share: float, whole: float = 1) -> str:
    """A share from 0 to 1 of a `whole` for a reader, rounded down: 100% only where nothing is left, `-` of nothing."""
    return f"{round(share * 1000) // 10}%" if whole else "-"


def effort_of(path: str, findings: Sequence[Finding]) -> FileEffort:
    """The sums of one file."""
    made = done = bound = 0
    left: Counter[Effort] = Counter()
    hours: dict[str, float] = {}
    lines = {finding.span.line for finding in findings if finding.open}
    for finding in findings:
        of_cuda = not finding.code.startswith(_UNBOUND)
        if finding.applied:
            places = finding.places * (finding.span.line not in lines)
            made, done = made + places, done + places * of_cuda
        elif finding.open:
            effort = finding.effort or Effort.LOW
            left[effort] += 1
            bound += of_cuda
            before = hours.get(finding.code)
            if before is None:
                hours[finding.code] = HOURS[effort]
            elif not finding.code.startswith(_LINES):
                hours[finding.code] = before + HOURS[Effort.LOW]
    return FileEffort(
        path, made, left[Effort.LOW], left[Effort.MEDIUM], left[Effort.HIGH], sum(hours.values()), done + bound, done,
    )  # fmt: skip


def total(files: Iterable[FileEffort], python: Collection[str], hours: float) -> FileEffort:
    """The sum over files, of which `python` are the paths of Python files.

    `hours` are those of the actions: what is the same in many files is done once, which no sum over files says.
    """
    every = list(files)
    of_python = [each for each in every if each.path in python]
    sums = {name: sum(getattr(each, name) for each in every) for name in ("automatic", "low", "medium", "high")}
    sums |= {name: sum(getattr(each, name) for each in of_python) for name in ("counted", "done")}
    return FileEffort("all files", hours=hours, **sums)
