"""Ignore comments in files that are not Python: what is wrong with their words, and those that ignore nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from transplt.base.finding import Effort, Finding, Level, Span
from transplt.base.text.ignore_comments import ignore_comments
from transplt.edits.ignores import ON_REQUEST, UNUSED, codes_in_vain, words_of
from transplt.engine.files.kind import FileKind
from transplt.engine.files.tokens import MAX_FINDINGS, comment_start

_MENTIONED = re.compile(rb"[^\n]*transplt[^\n]*", re.IGNORECASE)
_SILENT = frozenset({FileKind.BINARY, FileKind.PROSE})
_WITHOUT_COMMENTS = (".json", ".ipynb")


def ignore_line_findings(
    data: bytes, path: str, kind: FileKind, found: Sequence[Finding], ignored_codes: tuple[str, ...], in_place: bool
) -> list[Finding]:
    """Findings about the ignore comments of a file; `found` are its other findings.

    A comment in vain is work where the file stays (`in_place`), a remark in a migration; nothing is edited.
    """
    if kind in _SILENT or path.lower().endswith(_WITHOUT_COMMENTS) or b"transplt" not in data.lower():
        return []
    codes: dict[int, set[str]] = {}
    for finding in found:
        codes.setdefault(finding.span.line, set()).add(finding.code)
    reported: list[Finding] = []
    number, counted = 1, 0
    for match in _MENTIONED.finditer(data):
        number += data.count(b"\n", counted, match.start())
        counted = match.start()
        line = match.group()
        for comment in ignore_comments(line, comment_start(line, kind)):
            notes = [(code, Level.MANUAL, message, help_) for code, message, help_ in words_of(comment)]
            vain = codes_in_vain(comment, codes.get(number, ()), (*ON_REQUEST, *ignored_codes))
            if vain is not None and len(found) < MAX_FINDINGS and (vain or not ignored_codes):
                what = f"this line has no finding with {', '.join(vain)}" if vain else "this line has no findings"
                level = Level.MANUAL if in_place else Level.INFO
                notes.append((UNUSED, level, f"this comment ignores nothing: {what}", "remove it"))
            first, last = (len(line[:at].decode("utf-8", "replace")) + 1 for at in (comment.start, comment.end))
            span = Span(number, first, number, last, match.start() + comment.start, match.start() + comment.end)
            for code, level, message, help_ in notes:
                if not code.startswith(ignored_codes):
                    effort = Effort.LOW if level is Level.MANUAL else None
                    reported.append(Finding(path, span, code, level, message, effort=effort, help=help_))
    return reported
