"""What a migration would find in a file, without working out its edits: for `transplt analyze`."""

from __future__ import annotations

from transplt.edits.ignores import Ignores
from transplt.edits.rewrite import Change
from transplt.edits.work import Work, finding_of
from transplt.finding import Effort, FileResult, Finding, Level


def survey(data: bytes, work: Work) -> FileResult:
    """The findings of a planned file. One whose edit would be made counts as applied; tokens are not counted."""
    ignores = Ignores(work)
    changes = [change for change in work.changes if not ignores.drop(change)]
    findings = [ignores.mark(finding_of(work, note)) for note in [*work.notes, *ignores.dropped]]
    findings += [ignores.mark(_finding(work, change)) for change in changes]
    findings.sort(key=Finding.sort_key)
    return FileResult(work.scan.path, data, tuple(findings), changed=any(each.applied for each in findings))


def _finding(work: Work, change: Change) -> Finding:
    made = change.level is Level.SAFE or (change.level is Level.UNSAFE and (work.settings.unsafe_fixes or change.asked))
    return Finding(
        path=work.scan.path,
        span=work.source.span(*work.source.extent(change.node)),
        code=change.code,
        level=change.level,
        message=change.message,
        api=change.api,
        effort=None if made else change.effort or Effort.LOW,
        help=change.help if made or change.help else "applied with --unsafe-fixes",
        applied=made,
    )
