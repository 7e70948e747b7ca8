"""The files of a project after each decision, from the edits that a migration has recorded."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from transplt.base.finding import Finding
from transplt.base.text.source import Source, UnreadableSource, read_source, splice
from transplt.engine.files.document import text_of
from transplt.project.port.decisions import Decision, by_decision


@dataclass(frozen=True, slots=True)
class Changed:
    """A file that a migration changes: its content before and after, and the recorded edits in their order there."""

    path: str
    before: bytes
    after: bytes
    edits: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class PortStep:
    """A decision, its edits, and the new content of the files that it changes."""

    decision: Decision
    edits: tuple[Finding, ...]
    files: Mapping[str, bytes]


def steps_of(files: Sequence[Changed], left_out: Iterable[str] = ()) -> Iterator[PortStep]:
    """The decisions one after another, without those of the names `left_out`. The last files are the migration's.

    An edit after which a file would not compile waits for the next decision of that file.
    """
    out = frozenset(left_out)
    every = {file.path: file for file in files}
    texts = {file.path: _read(file) for file in files}
    sound = {file.path: _compiles(file.path, file.before) for file in files}
    now = {file.path: file.before for file in files}
    done: set[int] = set()  # ids of the edits that are made
    groups = by_decision(edit for file in files for edit in file.edits)
    wanted = {decision: edits for decision, edits in groups.items() if decision.name not in out}
    for number, (decision, edits) in enumerate(wanted.items(), 1):
        changed: dict[str, bytes] = {}
        done |= {id(edit) for edit in edits}
        for path in {edit.path for edit in edits} | ({*now} if number == len(wanted) else set()):
            new = _with(texts[path], [edit for edit in every[path].edits if id(edit) in done])
            if new != now[path] and (not sound[path] or number == len(wanted) or _compiles(path, new)):
                changed[path] = now[path] = new
        if changed:
            yield PortStep(decision, tuple(edits), dict(sorted(changed.items())))


def replays(file: Changed) -> bool:
    """Whether the recorded edits are the whole difference."""
    return _with(_read(file), file.edits) == file.after


def _read(file: Changed) -> Source:
    if file.path.endswith(".py"):
        try:
            return read_source(file.before)
        except UnreadableSource:
            pass
    source = text_of(file.before)
    assert source is not None, "edited files were read as text"
    return source


def _with(source: Source, edits: Iterable[Finding]) -> bytes:
    pieces = [(edit.span.start, edit.span.end, edit.edit.after.encode()) for edit in edits if edit.edit is not None]
    return source.encode(splice(source.utf8, pieces))


def _compiles(path: str, data: bytes) -> bool:
    if not path.endswith(".py"):
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
