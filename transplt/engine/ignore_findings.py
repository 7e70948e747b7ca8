"""Findings about ignore comments themselves: a form or a code that nobody knows, and a comment that ignores nothing.

A comment ignores nothing when no finding of this run stands in its line, nor one of a run for another torch version or
in the other style. There are none for codes that this run does not give: those of themes, of the analysis, of users'
rules, and what the settings switch off.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from transplt.base.finding import Effort, Finding, Level, Operation, Replacement
from transplt.base.settings import STYLES, TORCH_VERSIONS, Settings
from transplt.base.text.ignore_comments import IgnoreComment
from transplt.base.text.source import splice
from transplt.edits.edit import Note
from transplt.edits.ignores import ON_REQUEST, UNUSED, Ignores, codes_in_vain, words_of
from transplt.edits.notes import finding_of
from transplt.edits.work import Work
from transplt.engine.plan import plan
from transplt.rules.rule_set import compile_rules

#: A larger file is not looked at again for other versions.
_LARGEST = 1_000_000
#: Statements in whose lines a theme may have something to say, whatever the line holds.
_THEMES_ACT_ON = (
    ast.Call, ast.Attribute, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.FunctionDef,
    ast.AsyncFunctionDef, ast.ClassDef, ast.Return, ast.Import, ast.ImportFrom, ast.If, ast.Try, ast.AugAssign,
)  # fmt: skip


def word_findings(work: Work, ignores: Ignores) -> list[Finding]:
    """What is wrong with the words of the ignore comments of a file."""
    return [
        _marked(work, ignores, line, Note((each.start, each.end), code, Level.MANUAL, message, "", help_, Effort.LOW))
        for line, each in ignores.comments()
        for code, message, help_ in words_of(each)
        if not ignores.file_wide(code)
    ]


def unused_findings(
    work: Work, ignores: Ignores, spliced: Sequence[tuple[int, int, bytes]]
) -> tuple[list[Finding], list[tuple[int, int, bytes]]]:
    """The ignore comments of a file that ignore nothing, and (start, end, new bytes) of what goes of them.

    Called when `ignores` was asked about all other findings. Something goes where files are edited in place, unless one
    of the edits in `spliced` is there or Python would not read the file any more.
    """
    findings: list[Finding] = []
    if ignores.file_wide(UNUSED) or not work.project.known:
        return findings, []
    removals: list[tuple[int, tuple[int, int, bytes]]] = []
    for comment, codes in _in_vain(work, ignores).items():
        line = work.source.position(comment.start)[0]
        finding, gone = _unused(work, ignores, line, comment, codes)
        if gone is None and not work.settings.in_place:
            continue  # a theme of this run may have asked about it
        if gone is not None and not finding.ignored and work.settings.in_place:
            start, end, _ = gone
            free = not any((at < end and start < to) or start == at == to for at, to, _ in spliced)
            if free and work.settings.picks(work.scan.path, start, end):
                removals.append((len(findings), gone))
            finding = replace(finding, level=Level.MANUAL, effort=Effort.LOW)
        findings.append(finding)
    removed = [gone for _, gone in removals]
    if not removed or not _parses(splice(work.source.utf8, removed)):
        return findings, []
    for index, gone in removals:
        start, end, new = gone
        operation = Operation.MODIFY if new else Operation.DELETE
        edit = Replacement(operation, work.source.slice(start, end), new.decode())
        findings[index] = replace(
            findings[index], level=Level.SAFE, effort=None, span=work.source.span(start, end), edit=edit, applied=True
        )
    return findings, removed


def _marked(work: Work, ignores: Ignores, line: int, note: Note) -> Finding:
    """The record of a note about a comment; a comment that names the code of the note switches it off, no other."""
    named = any(each.codes and each.holds_for(note.code) for each in ignores.lines.get(line, ()))
    return replace(finding_of(work.source, work.scan.path, note), ignored="ignored by a comment" if named else "")


def _unused(
    work: Work, ignores: Ignores, line: int, comment: IgnoreComment, codes: tuple[str, ...]
) -> tuple[Finding, tuple[int, int, bytes] | None]:
    """The finding for a comment that is in vain, for `codes` or for all; and what goes, None where that is not sure."""
    what = f"this line has no finding with {', '.join(codes)}" if codes else "this line has no findings"
    sure = bool(codes) or line not in _lines_of_themes(work)
    help_ = "remove it: it would hide later findings" if sure else "name the codes that it is meant for"
    note = Note((comment.start, comment.end), UNUSED, Level.INFO, f"this comment ignores nothing: {what}", "", help_)
    if codes and comment.codes is not None and len(codes) < len(comment.codes):
        note.message = f"this comment ignores codes without a finding: {what}"
        note.help = "remove the code"
    return _marked(work, ignores, line, note), _gone(work, comment, codes) if sure else None


# --- which comments are in vain --------------------------------------------------------------------------------------


def _in_vain(work: Work, ignores: Ignores) -> dict[IgnoreComment, tuple[str, ...]]:
    """Comments that ignore nothing, with the codes that do not; no codes for a comment without any."""
    left = _left(work, ignores, ignores.used)
    if not left or len(work.source.utf8) > _LARGEST:
        return {}
    used = set(ignores.used)
    for settings in _others(work.settings):
        again = plan(work.source, work.scan, compile_rules(settings), settings, work.project)
        asked = Ignores(again)
        for edit in again.edits:
            asked.drop(edit)
        for note in again.notes:
            asked.mark(finding_of(again.source, again.scan.path, note))
        used |= asked.used
        left = _left(work, ignores, used)
        if not left:
            break
    return left


def _left(
    work: Work, ignores: Ignores, used: Set[tuple[IgnoreComment, str]]
) -> dict[IgnoreComment, tuple[str, ...]]:
    off = (*ON_REQUEST, *ignores.file)
    found: dict[IgnoreComment, tuple[str, ...]] = {}
    hits: dict[IgnoreComment, set[str]] = {}
    for comment, code in used:
        hits.setdefault(comment, set()).add(code)
    for _, comment in ignores.comments():
        codes = codes_in_vain(comment, hits.get(comment, ()), off)
        if codes or (codes is not None and not ignores.file):
            found[comment] = codes
    return found


def _others(settings: Settings) -> Iterator[Settings]:
    """Settings of a migration of the same project for whatever it may be made for."""
    plain = replace(settings.without_themes(), style="npu")
    yield from (replace(plain, torch_version=version) for version in TORCH_VERSIONS)
    yield replace(plain, specify_device=True, similar=True)
    yield from (replace(plain, style=style) for style in STYLES if style != "npu")


def _lines_of_themes(work: Work) -> set[int]:
    """Lines in which a theme may have something to say."""
    found: set[int] = set()
    for node in ast.walk(work.scan.tree):
        if isinstance(node, _THEMES_ACT_ON):
            found.update((node.lineno, node.end_lineno or node.lineno))
    return found


# --- what goes -------------------------------------------------------------------------------------------------------


def _gone(work: Work, comment: IgnoreComment, codes: tuple[str, ...]) -> tuple[int, int, bytes]:
    """What goes of a comment, and the new bytes: the unused codes; all of it where none is left.

    Words behind it stay as a comment, as do the marks of other tools. A line that holds nothing else goes as a whole,
    but for the first two: the encoding of a file is declared there.
    """
    source, utf8 = work.source, work.source.utf8
    if comment.codes is not None and (kept := [code for code in comment.codes if code not in codes]):
        return comment.places[0][0], comment.places[-1][1], ", ".join(kept).encode()
    line = source.position(comment.start)[0]
    first = source.line_starts[line - 1]
    last = source.line_starts[line] if line < len(source.line_starts) else len(utf8)
    end = first + len(utf8[first:last].rstrip(b"\r\n"))
    behind = utf8[comment.end : end]
    words = behind.lstrip()
    if words:
        return comment.start, end - len(words), b"" if words.startswith(b"#") else b"# "
    before = utf8[first : comment.start].rstrip(b" \t\f")
    if not before and line > 2 and not utf8[:first].rstrip(b"\r\n").endswith(b"\\"):
        return first, last, b""
    return first + len(before), end, b""


def _parses(utf8: bytes) -> bool:
    try:
        ast.parse(utf8)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
