"""Findings that an adaptor or a tuning answers: withdrawn where it was asked for; else with the adaptor's name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from transplt.base.finding import Finding, Level, Span
from transplt.edits.edit import Note
from transplt.edits.fixer import fixers_of
from transplt.edits.work import Work
from transplt.rules.adaptors import adaptors_for
from transplt.rules.kernel_functions import SAID, modules_said


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
    names = adaptors_for(codes) if codes and settings.style != "portable" and work.scan.path.endswith(".py") else ()
    if not names:
        return
    asked = replace(settings, adapt=tuple((name, "") for name in names))
    slots = work.known_slots
    other = Work(work.source, work.scan, work.names, work.rules, asked, work.project, known_slots=slots)
    for fixer in fixers_of("transplt.fixers.adaptors"):
        if asked.asks_for(fixer.theme) and fixer.holds(settings.torch_version) and not fixer.on_request:
            fixer.look(other)
    for note in work.notes if other.answers else ():
        note.adaptor = _adaptor(other, note)


def kernels_said(path: str, names: Collection[str]) -> tuple[Finding, ...]:
    """Remarks on a file with functions of a port: of which compiled modules they are."""
    message = "functions of the compiled module {} are here"
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
