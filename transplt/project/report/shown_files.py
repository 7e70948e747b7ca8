"""The files of report.html: findings, quoted lines and diffs within bounds, and which diffs get a page of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from transplt.base.finding import Finding
from transplt.base.render.cell import visible
from transplt.project.report.migration_record import FileRecord, RunResult

#: So many findings are on the page, those that are left first; a row is some fifty bytes.
_MOST_FINDINGS = 20_000
#: A diff of more characters has a page of its own; so has every diff where they are more in all.
_LARGE_DIFF = 10_000
_MOST_IN_PAGE = 100_000
#: A longer diff is cut, also in a page of its own; the files themselves hold the rest.
_MOST_PATCH = 200_000
#: So many characters of diffs, and of source lines, are shown in all; files with work left come first.
_MOST_PATCHES = 6_000_000
_MOST_LINES = 3_000_000
#: A longer source line (a notebook's output) is cut, too.
_MOST_LINE = 400
_MOST_NAME = 60
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ShownFile:
    """One file with findings or a diff. `patch` are the hunks of its diff, `lines` (number, text) of the input.

    `cut`: the diff is longer than what is shown. `page`: the file's own page, relative to report.html, empty where the
    diff stands in report.html itself.
    """

    path: str
    findings: tuple[Finding, ...]
    patch: str = ""
    lines: tuple[tuple[int, str], ...] = ()
    cut: bool = False
    page: str = ""

    @property
    def left(self) -> int:
        return sum(finding.open for finding in self.findings)

    @property
    def done(self) -> int:
        return sum(finding.applied for finding in self.findings)

    @property
    def anchor(self) -> str:
        """The id under which report.html has the file: it stays the same from one run to the next."""
        return f"f-{_mark(self.path)}"

    def place(self, line: int) -> str:
        """The address of a line of the input, from report.html."""
        return f"{self.page}#L{line}" if self.page else f"#{self.anchor}-{line}"


def shown_files(result: RunResult, folder: str) -> list[ShownFile]:
    """The files in their order, and behind them what could not be read; `folder` is that of the pages."""
    every = [finding for record in result.files for finding in record.findings]
    every.sort(key=lambda finding: not finding.open)
    kept = {id(finding) for finding in every[:_MOST_FINDINGS]}  # what is left before what is done
    files = [
        _file(record, tuple(finding for finding in record.findings if id(finding) in kept))
        for record in result.files
        if record.findings or record.patch
    ]
    files = _bounded(files)
    # A file whose diff is large has a page of its own; all that have a diff, where they are large together.
    most = 0 if sum(len(file.patch) for file in files) > _MOST_IN_PAGE else _LARGE_DIFF
    for place, file in enumerate(files):
        if len(file.patch) > most:
            # Its name as it can stand in an address and on every disk.
            name = _UNUSUAL.sub("_", file.path.rpartition("/")[2])[-_MOST_NAME:].lstrip(".") or "file"
            files[place] = replace(file, page=f"{folder}/{name}-{_mark(file.path)}.html")
    return [*files, *(ShownFile(visible(finding.path), (finding,)) for finding in result.unread)]


def _file(record: FileRecord, findings: tuple[Finding, ...]) -> ShownFile:
    patch = record.patch
    cut = len(patch) > _MOST_PATCH
    if cut:
        patch = patch[: patch.rfind(b"\n", 0, _MOST_PATCH) + 1]
    shown = patch[max(patch.find(b"\n@@ "), 0) :].decode("utf-8", "replace").lstrip("\n")
    shown = shown.replace("\r\n", "\n").replace("\r", "\\r")  # a page has no other ends of lines
    lines = [(line, source[:_MOST_LINE] + "..." * (len(source) > _MOST_LINE)) for line, source in record.lines]
    return ShownFile(visible(record.path), findings, shown, tuple(lines), cut)


def _bounded(files: Sequence[ShownFile]) -> list[ShownFile]:
    """Files without diff or lines where those before them have used up what is shown."""
    made = list(files)
    patches, lines = _MOST_PATCHES, _MOST_LINES
    for at in sorted(range(len(made)), key=lambda at: not made[at].left):
        patches -= len(made[at].patch)
        lines -= sum(len(line) for _, line in made[at].lines)
        if patches < 0:
            made[at] = replace(made[at], patch="", cut=True)
        if lines < 0:
            made[at] = replace(made[at], lines=())
    return made


def _mark(path: str) -> str:
    return sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]
