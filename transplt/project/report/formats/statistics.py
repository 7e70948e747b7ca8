"""How many findings of a check each code has."""

from __future__ import annotations

from dataclasses import dataclass

from transplt.base.grouped import grouped
from transplt.project.report.check_results import CheckResult
from transplt.project.report.titles import title


@dataclass(frozen=True, slots=True)
class CodeCount:
    """A code with its title, the number of its findings, and of those that an edit can mend."""

    code: str
    title: str
    count: int
    fixable: int


def statistics(result: CheckResult) -> list[CodeCount]:
    """The codes of the findings that are new, the commonest first."""
    items = grouped((item.finding.code, item) for item in result.new)
    counted = [
        CodeCount(code, title(code), len(found), sum(bool(item.fix) for item in found))
        for code, found in items.items()
    ]
    return sorted(counted, key=lambda row: (-row.count, row.code))
