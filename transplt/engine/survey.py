"""What a migration would find in a file, without working out its edits: for `transplt analyze`."""

from __future__ import annotations

from transplt.base.finding import ON_REQUEST, Effort, FileResult, Finding
from transplt.edits.edit import Edit
from transplt.edits.ignores import Ignores
from transplt.edits.notes import finding_of
from transplt.edits.work import Work
from transplt.engine.account import settle
from transplt.engine.ignore_findings import word_findings
from transplt.engine.verify import applies


def survey(data: bytes, work: Work) -> FileResult:
    """The findings of a planned file. One whose edit would be made counts as applied, and takes the tokens in
    its place away."""
    ignores = Ignores(work)
    edits = [edit for edit in work.rewrites if not ignores.drop(edit)]
    findings = [ignores.mark(finding_of(work.source, work.scan.path, note)) for note in [*work.notes, *ignores.dropped]]
    made = [_finding(work, edit) for edit in edits]
    gone = sorted((each.span.start, each.span.end, b"") for each in made if each.applied)
    done, offered = [each for each in made if each.applied], [each for each in made if not each.applied]
    findings += map(ignores.mark, offered)  # one that is offered accounts for its tokens as a finding does
    account = settle(work, gone, done, findings, ignores.reason)
    findings += map(ignores.mark, done)
    findings += [ignores.mark(finding_of(work.source, work.scan.path, note)) for note in account.unknown]
    findings += word_findings(work, ignores)
    findings.sort(key=Finding.sort_key)
    return FileResult(work.scan.path, data, tuple(findings), changed=any(each.applied for each in findings))


def _finding(work: Work, edit: Edit) -> Finding:
    made = applies(edit, work.settings)
    return Finding(
        path=work.scan.path,
        span=work.source.span(*work.source.extent(edit.node)),
        code=edit.code,
        level=edit.level,
        message=edit.message,
        api=edit.api,
        effort=None if made else edit.effort or Effort.LOW,
        help=edit.help if made or edit.help else ON_REQUEST,
        applied=made,
    )
