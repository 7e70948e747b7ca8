"""What the user has switched off: comments `# transplt: ignore[CODE]`, per-file ignores of the settings, a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from transplt.base.finding import Finding, Level
from transplt.base.plan_decisions import LEAVE, PLAN_LEAVES
from transplt.base.text.ignore_comments import FORM, IgnoreComment, ignore_comments, switched_off
from transplt.base.text.lexer import lex
from transplt.edits.edit import Beside, Edit, Note
from transplt.edits.groups import MANY_CARDS
from transplt.edits.work import Work
from transplt.rules.pages import is_prefix, nearest_code

MISSPELT, UNKNOWN, UNUSED = "NPU610", "NPU611", "NPU612"
#: Prefixes of codes that come from a theme, an analysis, a user's rule or the sum of a project's files, or speak of us:
#: a run without them cannot say that a comment is in vain. `tests/test_ignore_comments.py` holds this against the
#: sources.
ON_REQUEST = (
    "NPU0", "NPU33", "NPU34", "NPU35", "NPU407", "NPU513", "NPU52", "NPU556", "NPU557", "NPU580", "NPU61", "NPU7",
    "NPU846", "NPU87", "NPU88", "NPU99",
)  # fmt: skip


class Ignores:
    """Comments `# transplt: ignore[CODE]` and per-file ignores of one file.

    `used` are the comments that a finding was asked about, each with the code of it.
    """

    def __init__(self, work: Work) -> None:
        self.work = work
        self.lines: dict[int, list[IgnoreComment]] = {}
        self.dropped: list[Note] = []
        self.used: set[tuple[IgnoreComment, str]] = set()
        utf8 = work.source.utf8
        if speaks_of_ignores(utf8):
            for each in lex(utf8):
                if each.is_comment and (found := [*ignore_comments(utf8, each.start, each.end)]):
                    self.lines[work.source.position(each.start)[0]] = found
        self.file = work.settings.ignored_codes(work.scan.path)
        decided, path = work.settings.decided, work.scan.path
        self.by_plan = decided.codes_off(path) if decided is not None else ()
        #: Code, line and column of what a plan leaves.
        self.left = {each[:3] for each in decided.at(path) if each.choice == LEAVE} if decided is not None else set()

    def comments(self) -> Iterator[tuple[int, IgnoreComment]]:
        """The comments with their lines, in order."""
        return ((line, each) for line, found in sorted(self.lines.items()) for each in found)

    def file_wide(self, code: str) -> bool:
        """True for a code that the settings switch off for the whole file."""
        return bool(self.file) and code.startswith(self.file)

    def reason(self, code: str, line: int, end_line: int) -> str:
        """Why a finding with `code` from one line to another is not wanted; empty when it is."""
        holding = [each for at in {line, end_line} for each in self.lines.get(at, ()) if each.holds_for(code)]
        self.used.update((each, code) for each in holding)
        if self.by_plan and code.startswith(self.by_plan):
            return PLAN_LEAVES
        return switched_off(code, self.file, holding)

    def drop(self, edit: Edit) -> bool:
        """True for an edit that is switched off: a finding says so, and its words count as ignored.

        Lines that a theme asked for, and edits apart, hold together with its other edits, and stay; a line for many
        cards goes, and all others of them with it.
        """
        if not self.lines and not self.file and not self.left:
            return False
        if edit.rewrites and not edit.apart:
            node, level, api = edit.node, edit.level, edit.api
        elif isinstance(edit.where, Beside) and edit.group in ("", MANY_CARDS.name):
            node, level, api = edit.where.node, Level.SAFE, ""
        else:
            return False
        reason = self.reason(edit.code, node.lineno, node.end_lineno or node.lineno)
        if edit.rewrites and not reason and self.left:
            place = self.work.source.position(self.work.source.extent(node)[0])
            reason = PLAN_LEAVES if (edit.code, *place) in self.left else ""
        if reason:
            start, end = self.work.source.extent(node)
            extent = (start, end) if edit.rewrites else (start, start)
            self.dropped.append(Note(extent, edit.code, level, edit.message, api, ignored=reason))
        return bool(reason)

    def mark(self, finding: Finding) -> Finding:
        reason = finding.ignored or self.reason(finding.code, finding.span.line, finding.span.end_line)
        if not reason and self.left and (finding.code, finding.span.line, finding.span.column) in self.left:
            reason = PLAN_LEAVES
        return replace(finding, ignored=reason) if reason else finding


def speaks_of_ignores(data: bytes) -> bool:
    """Whether a file may hold a comment that ignores something, or was meant to."""
    lowered = data.lower()
    return b"transplt" in lowered or b"[npu" in lowered


def words_of(comment: IgnoreComment) -> Iterator[tuple[str, str, str]]:
    """(code, message, help) of what is wrong with the words of a comment, whatever the file holds."""
    if comment.problem:
        yield MISSPELT, f"this ignore comment is not recognised: {comment.problem}", FORM
    for code in comment.codes or ():
        if not is_prefix(code):
            hint = f"did you mean {near}? " if (near := nearest_code(code)) else ""
            yield UNKNOWN, f"{code[:40]} is not a code of transplt", f"{hint}`transplt rules` lists them all"


def codes_in_vain(comment: IgnoreComment, hits: Collection[str], off: tuple[str, ...]) -> tuple[str, ...] | None:
    """The codes for which a comment ignores nothing, none for a comment without codes; None where it does its work.

    `hits` are the codes of the findings that it ignores. Codes that begin with one of `off`, or hold it, are passed by.
    """
    if comment.problem:
        return None
    if comment.codes is None:
        return None if hits else ()
    codes = tuple(
        code
        for code in dict.fromkeys(comment.codes)
        if is_prefix(code)
        and not code.startswith(off)
        and not any(each.startswith(code) for each in off)
        and not any(hit.startswith(code) for hit in hits)
    )
    return codes or None
