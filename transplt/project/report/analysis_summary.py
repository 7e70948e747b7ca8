"""The analysis of a whole project, from the result of a run: what every report of `transplt analyze` renders."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from transplt.base.finding import Finding
from transplt.engine.actions.action import Action
from transplt.engine.actions.actions import actions_of, total_hours
from transplt.engine.actions.effort import FileEffort, effort_of, total
from transplt.engine.analysis.sheets import SHEETS, analysis_sheet
from transplt.engine.analysis.verdicts import judged
from transplt.engine.analysis.version_advice import VersionAdvice, advise
from transplt.project.report.migration_record import RunResult
from transplt.rules import support_tables as tables
from transplt.rules.rule_set import compile_rules
from transplt.rules.weighing import Status, weigh


@dataclass(frozen=True, slots=True)
class ApiUse:
    """One API of torch that the project uses: how often, and what comes of it."""

    api: str
    uses: int
    status: str  # of `weighing.Status`, or host, or converted
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """What `transplt analyze` finds of a project."""

    result: RunResult
    apis: tuple[ApiUse, ...]
    files: tuple[FileEffort, ...]
    effort: FileEffort
    actions: tuple[Action, ...]
    versions: VersionAdvice
    fallen: dict[str, str]

    @property
    def statuses(self) -> Counter[str]:
        """Number of APIs by status."""
        return Counter(use.status for use in self.apis)

    def rows(self, sheet: str) -> list[Finding]:
        """The findings of one sheet, open ones and info; ignored ones are in none."""
        return [
            finding for finding in self.result.findings if not finding.ignored and sheet_in_analysis(finding) == sheet
        ]

    @property
    def counts(self) -> dict[str, int]:
        """Findings by sheet."""
        found = Counter(sheet_in_analysis(finding) for finding in self.result.findings if not finding.ignored)
        return {sheet: found[sheet] for sheet in ("unsupported", "third-party", "check by hand", "unreadable", *SHEETS)}


def sheet_in_analysis(finding: Finding) -> str:
    """The sheet of a finding, empty for an edit and for a remark of the migration."""
    found = analysis_sheet(finding)
    if found or not finding.open:
        return found
    from transplt.project.report.unsupported_op import sheet_of

    return sheet_of(finding)


def summarize(result: RunResult) -> Summary:
    """Everything about a project that was analysed."""
    uses: Counter[str] = Counter()
    fallen: dict[str, str] = {}
    for record in result.files:
        if record.support is not None:
            uses.update(dict(record.support.uses))
            fallen.update(record.support.fallen)
    version = result.target.version
    apis = tuple(
        sorted((_api(api, count, result) for api, count in uses.items()), key=lambda use: (-use.uses, use.api))
    )
    files = tuple(
        sorted(
            (effort_of(record.path, record.findings) for record in result.files),
            key=lambda each: (-each.hours, -each.left, -each.automatic, each.path),
        )
    )
    assert version
    actions = actions_of(result.findings, result.settings.style)
    effort = total(files, {record.path for record in result.python_files}, total_hours(actions))
    return Summary(result, apis, files, effort, actions, advise(uses), dict(sorted(fallen.items())))


def _api(api: str, count: int, result: RunResult) -> ApiUse:
    version = result.target.version
    if not judged(api, compile_rules(result.settings)):
        return ApiUse(api, count, "converted")
    weighed = weigh(api, version)
    status = weighed.status.value
    if weighed.status is Status.WORKS and weighed.row is None and tables.runs_on_host(api):
        status = "host"
    return ApiUse(api, count, status, weighed.row.limit if weighed.row is not None else "")
