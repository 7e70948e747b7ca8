"""The work on one file of a tree: read, index, migrate, write. It runs in the processes of the pool."""

from __future__ import annotations

import importlib
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol, cast

from transplt.apply.edited_lines import edited_lines
from transplt.apply.patch import unified_diff
from transplt.disk.mirror import WHOLE_FILE_BYTES, copy_large_file, read_file, write_file
from transplt.disk.records import FileRecord
from transplt.disk.walk import LARGE_FILE_BYTES, Entry
from transplt.errors import reason
from transplt.files.kind import FileKind, kind_of
from transplt.finding import Effort, FileResult, Finding, Level, Span, Status, TokenCount
from transplt.settings import Settings, TorchTarget
from transplt.text.cuda_words import find_tokens
from transplt.text.frames import decoded, frames

if TYPE_CHECKING:
    from transplt.files.tokens import OtherFile

TOP = Span(1, 1, 1, 1, 0, 0)


class Engine(Protocol):
    """What a tree needs of `transplt.apply.engine`."""

    index_source: Callable[[bytes, str, Settings], Any]
    migrate_source: Callable[[bytes, str, Settings, Any], FileResult]
    survey_source: Callable[[bytes, str, Settings, Any], FileResult]


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that could not be opened, so that the output does not hold it."""

    path: str
    why: str


@dataclass(slots=True)
class FileWorker:
    """State of one worker process: where files come from and go to, and what the project says.

    `out` is empty when nothing is written. With `patches` the record of a changed file holds its unified diff.
    With `survey` the edits are not worked out: findings say where they would be.
    """

    root: str
    out: str
    settings: Settings
    target: TorchTarget
    engine: str = "transplt.apply.engine"
    project: Any = None
    patches: bool = False
    survey: bool = False
    _read: dict[str, bytes] = field(default_factory=dict)

    def load(self) -> Engine:
        """The engine; imported once, before the processes part, so that they share it."""
        return cast(Engine, importlib.import_module(self.engine))

    def index(self, entry: Entry) -> Any:
        """What a Python file says to its project; None when it cannot be read."""
        try:
            data = self._read[entry.path] = read_file(f"{self.root}/{entry.path}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.load().index_source(data, entry.path, self.settings)
        except Exception:
            # Whatever is wrong with the file is said when it is migrated.
            return None

    def finish(self, entry: Entry) -> FileRecord | Unread:
        """Brings one file into the output. WriteError when that cannot be written."""
        try:
            return self._python(entry) if entry.is_python else self._other(entry)
        except OSError as error:
            return Unread(entry.path, reason(error))

    def copy(self, entry: Entry, why: str) -> FileRecord | Unread:
        """Brings a Python file into the output as it is, because of a defect of ours."""
        try:
            data = read_file(f"{self.root}/{entry.path}")
        except OSError as error:
            return Unread(entry.path, reason(error))
        if not entry.is_python:
            digest = self._store(entry, data)
            finding = internal_finding(entry.path, why)
            return FileRecord(entry.path, FileKind.BINARY.value, digest, (finding,), status=Status.INTERNAL)
        return self._write(entry, data, internal_result(entry.path, data, why))

    def _python(self, entry: Entry) -> FileRecord:
        data = self._read.pop(entry.path, None)
        if data is None:
            data = read_file(f"{self.root}/{entry.path}")
        return self._write(entry, data, self.migrate(entry.path, data))

    def migrate(self, path: str, data: bytes) -> FileResult:
        """What the engine makes of a Python file; a finding says so when it fails."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                engine = self.load()
                work = engine.survey_source if self.survey else engine.migrate_source
                return work(data, path, self.settings, self.project)
        except Exception as error:
            return internal_result(path, data, f"it ended with {_where(error)}")

    def _store(self, entry: Entry, data: bytes) -> str:
        return write_file(self.out, entry.path, data, entry.mode) if self.out else ""

    def _write(self, entry: Entry, data: bytes, result: FileResult) -> FileRecord:
        digest = self._store(entry, result.data)
        return FileRecord(
            path=entry.path,
            kind=FileKind.PYTHON.value,
            sha256=digest,
            findings=result.findings,
            tokens=result.tokens,
            reasons=result.reasons,
            status=result.status,
            changed=result.changed,
            edited_lines=edited_lines(result.findings),
            support=result.support,
            patch=unified_diff(entry.path, data, result.data, result.findings) if self.patches else b"",
            lines=self._lines(data, result.findings),
        )

    def _other(self, entry: Entry) -> FileRecord:
        source = f"{self.root}/{entry.path}"
        if entry.size > WHOLE_FILE_BYTES:
            digest = copy_large_file(source, self.out, entry.path, entry.mode) if self.out else ""
            return FileRecord(entry.path, FileKind.BINARY.value, digest)
        data = read_file(source)
        digest = self._store(entry, data)
        kind, other = self.scan_other(entry.path, data)
        return FileRecord(
            path=entry.path,
            kind=kind.value,
            sha256=digest,
            findings=other.findings,
            tokens=other.tokens,
            prose=other.prose,
            lines=self._lines(data, other.findings),
        )

    def _lines(self, data: bytes, findings: tuple[Finding, ...]) -> tuple[tuple[int, str], ...]:
        left = [finding for finding in findings if finding.open] if self.patches else []
        return frames(decoded(data), left) if left else ()

    def scan_other(self, path: str, data: bytes) -> tuple[FileKind, OtherFile]:
        """What a file that is not Python holds."""
        kind = FileKind.BINARY if len(data) > LARGE_FILE_BYTES else kind_of(path, data)
        from transplt.files.tokens import scan_other_file

        other = scan_other_file(data, path, kind, self.target, self.settings.ignored_codes(path))
        if self.settings.analysis and kind is FileKind.NATIVE:
            from transplt.analysis.native import findings_of

            skipped = tuple(self.settings.ignored_codes(path))
            found = tuple(each for each in findings_of(data, path) if not each.code.startswith(skipped))
            other = replace(other, findings=(*other.findings, *found))
        return kind, other


def unread_finding(path: str, why: str) -> Finding:
    """The finding for what could not be opened."""
    return Finding(
        path=path,
        span=TOP,
        code="NPU909",
        level=Level.MANUAL,
        message=f"this cannot be opened, so the output does not hold it: {why}",
        effort=Effort.LOW,
        help=why,
    )


def internal_finding(path: str, why: str) -> Finding:
    """The finding for a file on which transplt itself failed."""
    return Finding(
        path=path,
        span=TOP,
        code="NPU991",
        level=Level.MANUAL,
        message=f"transplt could not work on this file and copied it as it is: {why}",
        effort=Effort.MEDIUM,
        help="migrate this file by hand, and report the defect with the file",
    )


def internal_result(path: str, data: bytes, why: str) -> FileResult:
    """A file copied as it is; its tokens are counted, and nobody has looked at them."""
    tokens = find_tokens(data)
    comments = sum(token.where == "comment" for token in tokens)
    found = len(tokens) - comments
    count = TokenCount(found=found, unknown=found, comments=comments)
    return FileResult(path, data, (internal_finding(path, why),), count, Status.INTERNAL)


def _where(error: Exception) -> str:
    """The kind of an error and the line of ours that it came from; no text of the error, which may hold paths."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
