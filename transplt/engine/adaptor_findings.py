"""Findings that an adaptor or a tuning answers: withdrawn where it was asked for; else with the adaptor's name."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import replace

from transplt.base.finding import Finding, Level, Span
from transplt.base.npus_alone import FOR_NPUS_ALONE
from transplt.base.settings import Settings
from transplt.edits.edit import Beside, Note
from transplt.edits.fixer import fixers_of
from transplt.edits.work import Work
from transplt.fixers.tunings.table import TUNINGS
from transplt.rules.adaptors import adaptors_for
from transplt.rules.kernel_functions import SAID, modules_said

_HELP = "write it under a test of the module's DEVICE_TYPE, or migrate with --style npu"


def answer(work: Work) -> None:
    """Withdraw the findings that adaptors and tunings took over; they come back where its edits do not hold."""
    if work.answers:
        work.answered += [(name, note) for note in work.notes if (name := _adaptor(work, note))]
        work.withdraw_notes(lambda note: bool(_adaptor(work, note)))


def offer(work: Work) -> None:
    """Say of findings which adaptor would write what is missing: those that could look, and nothing of theirs is kept.
    """
    settings = work.settings
    codes = {note.code for note in work.notes if note.level in (Level.MANUAL, Level.UNKNOWN)}
    names = adaptors_for(codes) if codes and work.scan.path.endswith(".py") else ()
    asked = replace(settings, adapt=tuple((name, "") for name in names))
    themes = [f"adapt:{name}" for name in names if asked.asks_for(f"adapt:{name}")]
    if not themes:
        return
    other = _apart(work, asked, themes)
    for note in work.notes if other.answers else ():
        note.adaptor = _adaptor(other, note)


def refuse(work: Work) -> None:
    """Say in the portable style what adaptors and tunings that were asked for do not write, and why: at the findings
    that stay, and at the places that a tuning would change.
    """
    named = {theme for theme in FOR_NPUS_ALONE if replace(work.settings, style="npu").asks_for(theme)}
    if not named:
        return
    other = _apart(work, replace(work.settings, style="npu"), named)
    for note in work.notes:
        if why := FOR_NPUS_ALONE.get(f"adapt:{_adaptor(other, note)}"):
            note.message += f"; --adapt does not write it for both: {why}"
    said = set()
    for edit in other.edits:
        node = edit.where.node if isinstance(edit.where, Beside) else edit.where
        if edit.theme.startswith("tune:") and isinstance(node, (ast.expr, ast.stmt)):
            if (at := (edit.code, node.lineno)) not in said:
                message = f"not written for both: {edit.message}: {FOR_NPUS_ALONE[edit.theme]}"
                work.add(work.note(node, edit.code, message, level=Level.INFO, help=_HELP))
            said.add(at)


def _apart(work: Work, settings: Settings, themes: Collection[str]) -> Work:
    """What the fixers of some themes say of a file, on a sheet of its own."""
    slots = work.known_slots
    other = Work(work.source, work.scan, work.names, work.rules, settings, work.project, known_slots=slots)
    for fixer in fixers_of("transplt.fixers.adaptors", *(TUNINGS if "tune:" in "".join(themes) else ())):
        if fixer.theme in themes and fixer.holds(settings.torch_version):
            before = len(other.edits)
            fixer.look(other)
            for edit in other.edits[before:]:
                edit.theme = fixer.theme
    return other


def kernels_said(path: str, names: Collection[str]) -> tuple[Finding, ...]:
    """Remarks on a file with functions of a port: of which compiled modules they are."""
    message = "functions of the compiled module {} are defined here"
    span = Span(1, 1, 1, 1, 0, 0)
    modules = modules_said(names) if names else ()
    return tuple(Finding(path, span, SAID, Level.INFO, message.format(each), each) for each in modules)


def _adaptor(work: Work, note: Note) -> str:
    """The adaptor (or `tune:` and a tuning) that answers a finding, empty where none does."""
    start, end = note.extent
    for name, (at, to), codes in work.answers:
        if note.code in codes and at <= start and end <= to:
            return name
    return ""
