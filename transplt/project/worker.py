"""The work on one file of a tree: read, index, migrate, hand on. It runs in the processes of the pool."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from transplt.base import stages
from transplt.base.budget import Budget
from transplt.base.disk.walk import LARGE_FILE_BYTES, SMALL_SCRIPT_BYTES, Entry
from transplt.base.errors import reason
from transplt.base.finding import Cause, Effort, FileResult, Finding, HelperUse, Ledger, Level, Status, TokenVerdict
from transplt.base.settings import Settings, TorchTarget
from transplt.base.text.regular_file import read_regular
from transplt.base.text.token_rows import ledger_of
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.prefilter import worth_a_look
from transplt.engine.silent import silent_result
from transplt.project.garbage_collection import collect_often, collect_some
from transplt.project.unread_files import TOP, Died, Unread
from transplt.syntax.files import Files

if TYPE_CHECKING:
    from transplt.flow.facts import ModuleFacts  # what looks into files is imported for one that is worth it

_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True)
class MigratedFile:
    """A file as it was read, and what was found in it; `result.data` are its bytes in the output.

    A `large` file is not Python, and nobody reads it whole: `data` is empty. `prose` counts tokens in text that nothing
    runs. `helper` is what the output calls of a file that is still to be written.
    """

    entry: Entry
    kind: FileKind
    data: bytes
    result: FileResult
    prose: int = 0
    large: bool = False
    helper: HelperUse | None = None


@dataclass(slots=True)
class FileWorker(Generic[_Record]):
    """State of one worker process: where files come from, the facts of the project, and what is made of a file.

    `keep` is called with `root` and each file, here in the process that worked on it; what it returns goes back. With
    `survey` the edits are not worked out: findings show where they would be. `known` holds what was read before, and
    `files` what was parsed. `budget` is what each pass over a file may cost, for whoever watches the process. `follow`:
    the file was named, and may be a link; what a walk finds is none. Of a `large` tree nothing is kept from the first
    pass but packed facts: each file is read again.
    """

    root: str
    settings: Settings
    target: TorchTarget
    keep: Callable[[str, MigratedFile], _Record]
    project: Any = None
    survey: bool = False
    follow: bool = False
    budget: Budget = field(default_factory=Budget)
    known: dict[str, bytes] = field(default_factory=dict)
    files: Files = field(default_factory=Files)
    large: bool = False

    def prepare(self) -> None:
        """Reads the rules, imports the fixers, the editors of other files, and the analysis where it is asked for.

        LibCST waits for the first edit: its import costs more than many a file costs to migrate. Where several
        processes share what this one knows, some file has one.
        """
        from transplt.edits.fixer import fixers_of
        from transplt.edits.trees.lazy import load

        if not self.survey and (not self.large or self.project is not None):
            load()
        worth_a_look(b"", self.settings)
        fixers_of("transplt.fixers.adaptors")
        import transplt.engine.files.other_file  # noqa: F401
        from transplt.engine.files.editors import EDITORS

        for editor in EDITORS:
            import_module(editor.module)
        if self.settings.analysis:
            from transplt.engine.analysis import analysis

            if self.project is not None:
                analysis.prepare(self.project)

    def read(self, entry: Entry) -> bytes:
        """The bytes of a file. OSError when it cannot be opened or is not what the walk has seen."""
        return read_regular(f"{self.root}/{entry.path}", entry.limit, follow=self.follow)

    def index(self, entry: Entry) -> ModuleFacts | Died | None:
        """The facts of the Python of a file; None when there is none, or the file cannot be opened."""
        from transplt.engine import engine
        from transplt.engine.files.python_in import other_facts
        from transplt.flow.packed_facts import packed

        try:
            stages.enter(stages.READ)
            data = self.known[entry.path] if entry.path in self.known else self.read(entry)
            small = entry.is_python or entry.size < SMALL_SCRIPT_BYTES  # pictures of notebooks are not kept
            if small and not self.large:
                self.known[entry.path] = data
            files = Files(room=0) if self.large else self.files
            if self.large:
                collect_often()
            elif files.many:
                collect_some()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                facts: ModuleFacts | None
                if entry.is_python:
                    facts = engine.index_source(data, entry.path, self.settings, files)
                else:
                    facts = other_facts(data, entry.path, self.settings, files)
            return packed(facts) if self.large and facts is not None else facts
        except OSError:
            return None
        except Exception as error:
            return Died(f"it ended with {_where(error)}")  # without its facts others would be migrated in another way

    def finish(self, entry: Entry) -> _Record | Unread:
        """Reads and migrates one file, and keeps what comes of it. WriteError when that cannot be written."""
        try:
            stages.enter(stages.READ)
            file = read_and_migrate(self, entry)
            if self.project is not None and file.result.findings:
                from transplt.flow.import_layout import placed

                found = placed(file.result.findings, entry.path, file.data, self.project)
                file = replace(file, result=replace(file.result, findings=found))
            stages.enter(stages.KEPT)
            return self.keep(self.root, file)
        except OSError as error:
            return Unread(entry.path, reason(error))

    def copy(self, entry: Entry, why: str, over: bool = False) -> _Record | Unread:
        """Keeps a file as it is, because of a defect of ours, or because it is `over` its budget."""
        try:
            data = self.known[entry.path] if entry.path in self.known else self.read(entry)
        except OSError as error:
            return Unread(entry.path, reason(error))
        kind = FileKind.PYTHON if entry.is_python else _kind_of_other(entry.path, data)
        return self.keep(self.root, MigratedFile(entry, kind, data, internal_result(entry.path, data, why, over)))


def read_and_migrate(worker: FileWorker[Any], entry: Entry) -> MigratedFile:
    """One file of the tree, read and migrated. OSError when it cannot be read."""
    if not entry.is_python and entry.size > entry.limit.size:
        return MigratedFile(entry, FileKind.BINARY, b"", FileResult(entry.path, b""), large=True)
    if worker.project is not None:
        worker.project.files = worker.files
    data = worker.known.pop(entry.path, None)
    if data is None:
        data = worker.read(entry)
    if entry.is_python:
        result, helper = _migrated(worker, entry.path, data), None
        if worker.project is not None:
            from transplt.edits.helper_used import used_of_helper

            helper = used_of_helper(result.data, entry.path, worker.settings, worker.project, before=data)
        return MigratedFile(entry, FileKind.PYTHON, data, result, helper=helper)
    return _looked_through(worker, entry, data)


def _migrated(worker: FileWorker[Any], path: str, data: bytes) -> FileResult:
    """What the engine makes of a Python file; a finding reports it when it fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if worker.project is None and (silent := silent_result(data, path, worker.settings)) is not None:
                return silent
            from transplt.engine import engine

            work = engine.survey_source if worker.survey else engine.migrate_source
            return work(data, path, worker.settings, worker.project)
    except Exception as error:
        return internal_result(path, data, f"it ended with {_where(error)}")


def _looked_through(worker: FileWorker[Any], entry: Entry, data: bytes) -> MigratedFile:
    """What is made of a file that is not Python; a finding reports it when it fails."""
    path = entry.path
    kind = _kind_of_other(path, data)
    from transplt.engine.files.other_file import migrate_other

    try:
        result, prose = migrate_other(data, path, kind, worker.settings, worker.target, worker.project, worker.root)
    except Exception as error:
        result, prose = internal_result(path, data, f"it ended with {_where(error)}"), 0
    helper = None
    if kind is FileKind.NOTEBOOK and result.changed:
        from transplt.edits.helper_used import used_of_helper
        from transplt.engine.files.python_in import python_of_cells

        if (before := python_of_cells(data)) is not None:
            after = python_of_cells(result.data) or b""
            helper = used_of_helper(after, path, worker.settings, worker.project, before=before)
    return MigratedFile(entry, kind, data, result, prose, helper=helper)


def _kind_of_other(path: str, data: bytes) -> FileKind:
    """The kind of a file that is not Python; nobody looks into what is large, but for notebooks."""
    kind = kind_of(path, data)
    return FileKind.BINARY if len(data) > LARGE_FILE_BYTES and kind is not FileKind.NOTEBOOK else kind


def internal_result(path: str, data: bytes, why: str, over: bool = False) -> FileResult:
    """A file on which transplt itself failed, or which was `over` its budget: it is copied as it is, and nobody has
    looked at its tokens.
    """
    rest = "allow files more (`file-budget` in your own settings)" if over else "report the defect with the file"
    message = f"transplt could not process this file and left it unchanged: {why}"
    help_ = f"migrate this file by hand, {'or' if over else 'and'} {rest}"
    finding = Finding(path, TOP, "NPU991", Level.MANUAL, message, effort=Effort.MEDIUM, help=help_)
    cause = Cause(TokenVerdict.UNKNOWN, finding.code)
    if not path.endswith(".py"):
        from transplt.engine.files.tokens import tokens_of_one_cause

        binary = _kind_of_other(path, data) is FileKind.BINARY
        ledger = Ledger() if binary else tokens_of_one_cause(data, cause)
        return FileResult(path, data, (finding,), ledger.total(), Status.INTERNAL, ledger=ledger)
    ledger, count = ledger_of(data, cause)
    return FileResult(path, data, (finding,), count, Status.INTERNAL, ledger=ledger)


def _where(error: Exception) -> str:
    """The kind of an error and the line of ours that it came from; no text of the error, which may hold paths."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
