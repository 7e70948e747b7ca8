"""From planned edits to the result of a file: apply what is wanted, verify, and account for all of it."""

from __future__ import annotations

import ast

from transplt.base.finding import ON_REQUEST, Effort, FileResult, Finding, Level, Operation, Replacement, Status
from transplt.base.text.source import splice
from transplt.edits.edit import Note
from transplt.edits.ignores import Ignores
from transplt.edits.lines import Placed
from transplt.edits.notes import finding_of
from transplt.edits.rewrite import Failure, findings_of
from transplt.edits.work import Work
from transplt.engine.account import settle
from transplt.engine.edit_outcome import Outcome
from transplt.engine.ignore_findings import unused_findings, word_findings
from transplt.engine.verify import applies, what_holds


def carry_out(data: bytes, work: Work) -> FileResult:
    """Rewrite the planned sites of a file whose bytes are `data`, verify the result, and say what was done."""
    ignores = Ignores(work)
    edits = [edit for edit in work.edits if not ignores.drop(edit)]
    wanted = [edit for edit in edits if applies(edit, work.settings) or not edit.rewrites]
    outcome, taken_back = what_holds(work, wanted)
    notes = [*work.notes, *ignores.dropped, *taken_back]
    notes += [_failed(failure) for failure in outcome.failures]
    notes += [
        Note(work.source.extent(edit.node), edit.code, edit.level, edit.message, edit.api, edit.help or ON_REQUEST,
             edit.effort or Effort.LOW)
        for edit in edits if edit.rewrites and not applies(edit, work.settings)
    ]  # fmt: skip
    findings = [ignores.mark(finding_of(work.source, work.scan.path, note)) for note in notes]
    done = findings_of(work.source, work.scan.path, outcome.pieces)
    done += [_line(work, item) for item in outcome.lines]
    account = settle(work, outcome.spliced, done, findings, ignores.reason)
    findings += [ignores.mark(finding_of(work.source, work.scan.path, note)) for note in account.unknown]
    findings += done
    if ignores.lines:
        _look_at_comments(work, ignores, outcome, findings)
    if work.settings.annotate or work.settings.annotate_edits:
        _annotate(work, outcome, findings)
    findings.sort(key=Finding.sort_key)
    return FileResult(
        work.scan.path,
        outcome.data,
        tuple(findings),
        account.tokens,
        Status.OK,
        changed=outcome.data != data,
        ledger=account.ledger,
    )


def _look_at_comments(work: Work, ignores: Ignores, outcome: Outcome, findings: list[Finding]) -> None:
    """Say what is wrong with comments that ignore findings, and take out those that ignore none."""
    findings += word_findings(work, ignores)
    unused, gone = unused_findings(work, ignores, outcome.spliced)
    findings += unused
    if gone:
        outcome.spliced = sorted([*outcome.spliced, *gone])
        outcome.data = work.source.encode(splice(work.source.utf8, outcome.spliced))


def _annotate(work: Work, outcome: Outcome, findings: list[Finding]) -> None:
    """Put markers and marks into the output, unless that would break it."""
    above: list[Placed] = []
    below: list[Placed] = []
    open_ones: list[Placed] = []
    if work.settings.annotate_edits:
        from transplt.engine.edit_marks import edit_marks

        edited = [(piece.start, piece.end, [edit.code for edit in piece.edits]) for piece in outcome.pieces]
        edited += [(item.start, item.end, [item.code]) for item in outcome.lines]
        above, below = edit_marks(work.source, sorted(edited))
    if work.settings.annotate:
        from transplt.engine.annotate import markers

        open_ones = markers(work.source, findings, outcome.spliced)
    begins, ends = {mark.start for mark in above}, {mark.start for mark in below}
    # At one place: what ends, then a marker of the line below, what begins, then lines that go in.
    over = [mark for mark in open_ones if mark.start in begins - ends]
    behind = [mark for mark in open_ones if mark.start in ends]
    inside = [mark for mark in open_ones if mark not in over and mark not in behind]
    first, last = [*over, *above], [*inside, *below, *behind]
    spliced = [*map(_spliced, first), *outcome.spliced, *map(_spliced, last)]
    spliced.sort(key=lambda item: (item[0], item[1]))
    utf8 = splice(work.source.utf8, spliced)
    if not _is_the_same(splice(work.source.utf8, outcome.spliced), utf8):
        return
    outcome.data = work.source.encode(utf8)
    findings[:] = [*(_line(work, mark) for mark in first), *findings, *(_line(work, mark) for mark in last)]


def _spliced(item: Placed) -> tuple[int, int, bytes]:
    return item.start, item.end, item.text.encode()


def _is_the_same(before: bytes, after: bytes) -> bool:
    """Whether two texts are one program for Python."""
    try:
        return ast.dump(ast.parse(before.decode())) == ast.dump(ast.parse(after.decode()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _failed(failure: Failure) -> Note:
    site = failure.site
    return Note(
        (site.start, site.end),
        "NPU990",
        Level.MANUAL,
        f"could not be rewritten: {failure.reason}",
        help="; ".join(edit.message for edit in site.edits),
        effort=Effort.LOW,
    )


def _line(work: Work, item: Placed) -> Finding:
    """The record of lines that went in or out."""
    before = work.source.slice(item.start, item.end)
    operation = Operation.INSERT if not before else Operation.MODIFY if item.text else Operation.DELETE
    return Finding(
        path=work.scan.path,
        span=work.source.span(item.start, item.end),
        code=item.code,
        level=item.level,
        message=item.message,
        edit=Replacement(operation, before, item.text),
        applied=True,
        places=0,
    )
