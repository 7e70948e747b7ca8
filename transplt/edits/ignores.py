"""What the user has switched off: comments `# transplt: ignore[CODE]` and per-file ignores of the settings."""

from __future__ import annotations

import re
from dataclasses import replace

from transplt.edits.edit import Beside, Edit, Note
from transplt.edits.work import Work
from transplt.finding import Finding, Level
from transplt.text.lexer import lex

_IGNORE = re.compile(rb"#\s*transplt:\s*ignore(?:\[([A-Za-z0-9,\s]*)\])?")


class Ignores:
    """Comments `# transplt: ignore[CODE]` and per-file ignores of one file."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.lines: dict[int, tuple[str, ...]] = {}
        self.dropped: list[Note] = []
        utf8 = work.source.utf8
        if b"transplt:" in utf8:
            for each in lex(utf8):
                if not each.is_comment or not (found := _IGNORE.search(utf8, each.start, each.end)):
                    continue
                codes = (found.group(1) or b"").decode().replace(",", " ").split()
                self.lines[work.source.position(each.start)[0]] = tuple(codes)
        self.file = work.settings.ignored_codes(work.scan.path)

    def reason(self, code: str, line: int, end_line: int) -> str:
        if self.file and code.startswith(self.file):
            return "ignored for this file by the settings"
        for at in (line, end_line):
            codes = self.lines.get(at)
            if codes is not None and (not codes or code.startswith(codes)):
                return "ignored by a comment"
        return ""

    def drop(self, edit: Edit) -> bool:
        """True for an edit that is switched off: a finding says so, and its words count as ignored.

        Lines that a theme asked for, and edits apart, hold together with its other edits, and stay.
        """
        if not self.lines and not self.file:
            return False
        if edit.rewrites and not edit.apart:
            node, level, api = edit.node, edit.level, edit.api
        elif isinstance(edit.where, Beside) and not edit.group:
            node, level, api = edit.where.node, Level.SAFE, ""
        else:
            return False
        reason = self.reason(edit.code, node.lineno, node.end_lineno or node.lineno)
        if reason:
            start, end = self.work.source.extent(node)
            extent = (start, end) if edit.rewrites else (start, start)
            self.dropped.append(Note(extent, edit.code, level, edit.message, api, ignored=reason))
        return bool(reason)

    def mark(self, finding: Finding) -> Finding:
        reason = finding.ignored or self.reason(finding.code, finding.span.line, finding.span.end_line)
        return replace(finding, ignored=reason) if reason else finding
