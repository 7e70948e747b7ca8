"""What the user has switched off: comments `# transplt: ignore[CODE]` and per-file ignores of the settings."""

from __future__ import annotations

import re
from dataclasses import replace

from transplt.edits.rewrite import Change
from transplt.edits.work import Addition, Note, Work
from transplt.finding import Finding, Level
from transplt.text.cuda_words import literal_areas

_IGNORE = re.compile(rb"#\s*transplt:\s*ignore(?:\[([A-Za-z0-9,\s]*)\])?")


class Ignores:
    """Comments `# transplt: ignore[CODE]` and per-file ignores of one file."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.lines: dict[int, tuple[str, ...]] = {}
        self.dropped: list[Note] = []
        utf8 = work.source.utf8
        if b"transplt:" in utf8:
            for start, end, kind in literal_areas(utf8):
                if kind != "comment" or not (found := _IGNORE.search(utf8, start, end)):
                    continue
                codes = (found.group(1) or b"").decode().replace(",", " ").split()
                self.lines[work.source.position(start)[0]] = tuple(codes)
        self.file = work.settings.ignored_codes(work.scan.path)

    def reason(self, code: str, line: int, end_line: int) -> str:
        if self.file and code.startswith(self.file):
            return "ignored for this file by the settings"
        for at in (line, end_line):
            codes = self.lines.get(at)
            if codes is not None and (not codes or code.startswith(codes)):
                return "ignored by a comment"
        return ""

    def drop(self, change: Change) -> bool:
        """True for a change that is switched off: a finding says so, and its words count as ignored."""
        if not self.lines and not self.file:
            return False
        node = change.node
        reason = self.reason(change.code, node.lineno, node.end_lineno or node.lineno)
        if reason:
            extent = self.work.source.extent(node)
            self.dropped.append(Note(extent, change.code, change.level, change.message, change.api, ignored=reason))
        return bool(reason)

    def drop_addition(self, addition: Addition) -> bool:
        """True for a line that is not to go in; a finding says so."""
        node = addition.beside
        reason = self.reason(addition.code, node.lineno, node.end_lineno or node.lineno)
        if reason:
            extent = self.work.source.extent(node)
            place = (extent[0], extent[0])
            self.dropped.append(Note(place, addition.code, Level.SAFE, addition.message, ignored=reason))
        return bool(reason)

    def mark(self, finding: Finding) -> Finding:
        reason = finding.ignored or self.reason(finding.code, finding.span.line, finding.span.end_line)
        return replace(finding, ignored=reason) if reason else finding
