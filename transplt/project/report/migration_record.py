"""What a migration did: the one record that every report of a run renders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from transplt.base.disk.walk import LeftOut
from transplt.base.finding import (
    APEX_LEVEL,
    NO_LEDGER,
    NO_TOKENS,
    FileSupport,
    Finding,
    HelperUse,
    Ledger,
    Status,
    TokenCount,
    TokenVerdict,
)
from transplt.base.language import Sentence, marked
from transplt.base.settings import Settings, TorchTarget
from transplt.project.project_findings import OLD_PINS
from transplt.rules.reasons import words_of

if TYPE_CHECKING:
    from transplt.flow.facts import ProjectFacts  # what `check` knows by the words alone loads none

#: Called with what is done and what there is to do, in files; a Python file counts twice (read, then migrated).
Progress = Callable[[int, int], None]
#: What is said of a program that `without_card` holds of, and of one with pins that it would stop at on an NPU.
_WITHOUT_CARD = marked(
    "nothing in this project asks for a card: it runs on the CPU, as before; to use an NPU, move the model and its "
    "batches there with .to('npu')"
)
_FIRST_THE_PINS = marked("{said}; before that, raise the pins that are too old for torch_npu: {names}")
#: The kind of a file that is in no input: functions that the migrated files call.
HELPER = "helper"
#: Reasons of tokens in Python that only people read.
_PROSE = frozenset({"text", "docstring"})


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One file of the output. `lines` are (number, text) of the lines with open findings, where a report asks for them.

    `path` is relative to the output folder, with forward slashes (bytes that are not UTF-8 as lone surrogates).
    `edited_lines` are the lines of the output file, counted from 1, that hold an edit. `prose` counts tokens in
    text that nothing runs (README, LICENSE); they are part of `tokens.ignored`. `patch` is the unified diff of a
    changed file, where something asks for it; `support` what a Python file uses of torch, likewise.
    `ledger` holds the tokens one by one, `token_lines` are (number, text) of the lines of those that stay for a
    doubtful reason, where a report asks for them. `data` are its bytes in the output where the run has to look again.
    `helper` is what it calls of a file that is of the kind `HELPER`, and that the run writes. `completed`: names of the
    accelerator's module that this one has now, since it chooses the device of the project already.
    """

    path: str
    kind: str
    sha256: str
    findings: tuple[Finding, ...] = ()
    tokens: TokenCount = NO_TOKENS
    status: Status = Status.OK
    changed: bool = False
    edited_lines: tuple[int, ...] = ()
    prose: int = 0
    patch: bytes = b""
    lines: tuple[tuple[int, str], ...] = ()
    support: FileSupport | None = None
    ledger: Ledger = NO_LEDGER
    token_lines: tuple[tuple[int, str], ...] = ()
    data: bytes = b""
    helper: HelperUse | None = None
    completed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunResult:
    """A finished migration, of which `written` is what went to the output: `all`, `reports` or `nothing`.

    `files` and `left_out` are sorted by path; `unread` are findings about what could not be opened at all, `large` the
    left out files over the size limit, `kept` files of the output before that a user had changed. `planned` are
    sentences on a plan: what was done as it says, and what was not. `notes` are sentences for the summary alone: they
    may name places outside. `portable`: the project chooses between CUDA and the NPU by itself; `bare`: none of its
    findings and files asks for a card; `facts` are what was read of it as a whole.
    """

    name: str
    source: Path
    output: Path
    settings: Settings
    target: TorchTarget
    files: tuple[FileRecord, ...] = ()
    links: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    large: tuple[LeftOut, ...] = ()
    kept: tuple[str, ...] = ()
    unread: tuple[Finding, ...] = ()
    reports: dict[str, str] = field(default_factory=dict)
    written: str = "all"
    planned: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    portable: bool = False
    bare: bool = False
    facts: ProjectFacts | None = field(default=None, repr=False)

    @property
    def findings(self) -> list[Finding]:
        """All findings, sorted by path and place."""
        found = [finding for record in self.files for finding in record.findings]
        return sorted([*found, *self.unread], key=Finding.sort_key)

    @property
    def whole(self) -> bool:
        """True where ranks train with data that is neither divided nor drawn by each of them."""
        return any(each.code == "NPU340" and not each.detail("NPU340") for each in self.findings)

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """Why the ignored tokens of the Python files stay, the commonest reason first."""
        found: Counter[str] = Counter()
        for record in self.python_files:
            for cause, count in record.ledger.counts().items():
                if cause.verdict is TokenVerdict.IGNORED:
                    found[words_of(cause)] += count
        return sorted(found.items(), key=lambda item: (-item[1], item[0]))

    @property
    def tokens(self) -> TokenCount:
        return sum((record.tokens for record in self.files), NO_TOKENS)

    @property
    def prose(self) -> int:
        """Tokens in text that nothing runs: files of prose, and text for people in Python."""
        python = (record.ledger.counts().items() for record in self.python_files)
        texts = sum(count for counts in python for cause, count in counts if cause.reason in _PROSE)
        return texts + sum(record.prose for record in self.files)

    @property
    def python_files(self) -> list[FileRecord]:
        return [record for record in self.files if record.kind == "python"]

    @property
    def changed(self) -> list[FileRecord]:
        """The files of the input that are changed in the output."""
        return [record for record in self.files if record.changed and record.kind != HELPER]

    @property
    def helpers(self) -> list[FileRecord]:
        """The files that no input has."""
        return [record for record in self.files if record.kind == HELPER]

    @property
    def without_card(self) -> bool:
        """Whether it uses torch, and nothing in it asks for a card."""
        uses = any(record.support is not None and record.support.uses for record in self.python_files)
        return self.bare and uses and self.complete and not self.tokens.found

    @property
    def said_without_card(self) -> str:
        """What is said of a project where `without_card` holds, and of the pins that only an NPU needs newer."""
        pins = sorted((each.code, each.api) for each in self.findings if each.code in OLD_PINS and not each.open)
        names = ", ".join(dict.fromkeys(api for _, api in pins))
        return Sentence(_FIRST_THE_PINS, said=Sentence(_WITHOUT_CARD), names=names) if names else _WITHOUT_CARD

    @property
    def failed(self) -> list[FileRecord]:
        """Files that were copied as they are because they could not be read or a defect of ours got in the way."""
        return [record for record in self.files if record.status is not Status.OK]

    @property
    def open_findings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.open]

    @property
    def edits(self) -> list[Finding]:
        """The applied edits, a new file for the port among them: one record each, sorted by path and place."""
        return [finding for finding in self.findings if finding.applied and finding.edit is not None]

    @property
    def apex_levels(self) -> list[Finding]:
        """Which level each program got under apex, and why, where none was asked for."""
        return [finding for finding in self.findings if finding.code == APEX_LEVEL]

    @property
    def residue(self) -> int:
        """Tokens that a person still has to look at."""
        tokens = self.tokens
        return tokens.manual + tokens.unknown

    @property
    def complete(self) -> bool:
        """True when every file was read, so that the residue is the whole residue."""
        return not self.failed and not self.unread

    @property
    def exit_code(self) -> int:
        """0: nothing left to do; 1: something is left for a person."""
        return int(bool(self.open_findings or self.residue or not self.complete))

    def counts_by_code(self) -> dict[str, Counter[str]]:
        """How many findings each code has: `done` (edits), `left` for a person, `ignored`, and mere `remarks`."""
        counts = {name: Counter[str]() for name in ("done", "left", "remarks", "ignored")}
        counts["done"].update(finding.code for finding in self.edits)
        for finding in self.findings:
            if not finding.applied:
                kept = "ignored" if finding.ignored else "remarks"
                counts["left" if finding.open else kept][finding.code] += 1
        return counts
