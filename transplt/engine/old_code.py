"""Files that no Python since 3.7 reads for `async` as a name: renamed, migrated as usual, reported in old places."""

from __future__ import annotations

from dataclasses import replace

from transplt.base.finding import FileResult, Finding, Level, Operation, Replacement, Status
from transplt.base.text.old_names import NEW, OLD, Renamed, may_hold_old_names, renamed
from transplt.base.text.source import Source, UnreadableSource, read_source
from transplt.syntax.parse import parse

CODE = "NPU155"


def readable(data: bytes) -> tuple[bytes, Source, Renamed] | None:
    """The bytes of a file with `async` renamed, where Python reads it only so; with what it was."""
    if not may_hold_old_names(data):
        return None
    try:
        source = read_source(data)
        new = renamed(source)
        if new is None:
            return None
        mended = source.encode(new.utf8)
        parse(read_source(mended))
    except UnreadableSource:
        return None
    return mended, source, new


def result_for_old(old: Source, new: Renamed, result: FileResult) -> FileResult:
    """The result of the renamed file as one of the file that was given: places, texts, and a record of each name."""
    if result.status is not Status.OK:
        return result
    findings = [_placed(old, new, finding) for finding in result.findings]
    edited = [(each.span.start, each.span.end) for each in findings if each.applied and each.edit is not None]
    for place in new.places:
        end = place + len(OLD)
        if not any(start <= place and end <= stop for start, stop in edited):
            findings.append(
                Finding(
                    result.path,
                    old.span(place, end),
                    CODE,
                    Level.SAFE,
                    "async -> non_blocking: renamed in torch 0.4, since async is a keyword from Python 3.7 on",
                    edit=Replacement(Operation.MODIFY, OLD.decode(), NEW.decode()),
                    applied=True,
                )
            )
    return replace(result, findings=tuple(sorted(findings, key=Finding.sort_key)), changed=True)


def _placed(old: Source, new: Renamed, finding: Finding) -> Finding:
    start = new.old_offset(finding.span.start)
    end = max(start, new.old_offset(finding.span.end, end=True))
    edit = finding.edit
    if edit is not None and edit.before:
        edit = replace(edit, before=old.slice(start, end))
    return replace(finding, span=old.span(start, end), edit=edit)
