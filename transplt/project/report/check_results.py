"""What a check found: the records that the formats render."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from transplt.base.finding import NO_TOKENS, Finding, Level, TokenCount
from transplt.base.settings import TorchTarget


@dataclass(frozen=True, slots=True)
class CheckedFinding:
    """One finding of a check, with its path as it is shown.

    `fingerprint` is the same wherever the project lies and whatever stands above or below the line; `known`:
    the baseline holds it. `lines` are (number, text) of the source around it.
    """

    finding: Finding
    fingerprint: str
    lines: tuple[tuple[int, str], ...] = ()
    known: bool = False

    @property
    def fix(self) -> str:
        """How the finding can be mended: `safe` or `unsafe` by an edit, empty by a person only."""
        if self.finding.level is Level.UNSAFE:
            return "unsafe"
        return "safe" if self.finding.edit is not None else ""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that `--fix` changes: where it lies, what it held, what it will hold, and how many edits that takes."""

    file: Path
    path: str
    before: bytes
    data: bytes
    edits: int
    made: tuple[tuple[int, int], ...] = ()  # their byte ranges in `before`


@dataclass(frozen=True, slots=True)
class NumberedEdit:
    """An edit that `--fix` would make; its number is its place in `CheckResult.edits`, from 1.

    `root` is the project, `inner` the file in it; the finding has its path as it is shown.
    """

    root: Path
    inner: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found: `items` are open findings, `info` those that are only worth knowing, both by place."""

    items: tuple[CheckedFinding, ...] = ()
    info: tuple[CheckedFinding, ...] = ()
    files: int = 0
    changes: tuple[ChangedFile, ...] = ()
    patch: bytes = b""
    #: The CUDA-bound tokens of all files as they were; converted are those that an edit takes away.
    tokens: TokenCount = NO_TOKENS
    #: Folders of the projects that were looked at, for the state of their repositories.
    roots: tuple[Path, ...] = field(default=())
    #: The torch of each project that was looked at.
    torch: tuple[TorchTarget, ...] = ()
    #: What the reader of the summary should know besides: settings that switch findings off.
    notes: tuple[str, ...] = ()
    #: What could be edited, in the order of projects, paths and places.
    edits: tuple[NumberedEdit, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The open findings, without those that the baseline holds."""
        return tuple(item.finding for item in self.new)

    @property
    def new(self) -> tuple[CheckedFinding, ...]:
        return tuple(item for item in self.items if not item.known)

    @property
    def fixed(self) -> int:
        """Edits that `--fix` makes."""
        return sum(change.edits for change in self.changes)

    @property
    def exit_code(self) -> int:
        """0: nothing is left; 1: something is."""
        return int(bool(self.new))
