"""The analysis of one file: its findings, without those that an edit has taken care of, and the APIs it uses."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

from transplt.base.finding import FileResult, FileSupport, Finding, Level
from transplt.base.settings import Settings
from transplt.base.text.source import Source
from transplt.edits.edit import Note
from transplt.edits.ignores import Ignores
from transplt.edits.notes import finding_of
from transplt.edits.work import Work
from transplt.engine.analysis import advice, affinity, verdicts
from transplt.engine.analysis.api_uses import api_uses, chains
from transplt.engine.analysis.extensions import owner_of
from transplt.engine.analysis.receivers import Receivers
from transplt.engine.analysis.scanned_file import ScannedFile
from transplt.engine.other_makers import leave_other_cards
from transplt.flow.facts import ProjectFacts
from transplt.flow.support import SupportProject
from transplt.program.star_imports import names_in
from transplt.rules.kernel_functions import SAID
from transplt.rules.kernels import kernels_among, replacement
from transplt.rules.packages import packages
from transplt.rules.rule_set import RuleSet
from transplt.syntax.modules import module_name
from transplt.syntax.scan import Scan

FALLS = "NPU556"
#: Faster forms, float64, masks of -inf, limits of an API: what they say is about one place.
_OF_PLACES = ("NPU701", "NPU710", "NPU711", "NPU726", "NPU727", "NPU521", "NPU522", "NPU523", "NPU524")
_TUNINGS = ("NPU760", "NPU761", "NPU762", "NPU763", "NPU764", "NPU765", "NPU768", "NPU769", "NPU770", "NPU771")
_ROTARY = "NPU762"
#: They replace the name that is called; what they write elsewhere is beside the point.
_OPTIMIZERS = ("NPU750", "NPU751")
_LOADERS = ("NPU756", "NPU757")
CODE = "NPU513"
_MESSAGES = {
    "native": "works on NPU",
    "works": "needs no change for NPUs",
    "cpu": "runs on the CPU as before, and does not use the NPU",
}


def analyse(
    source: Source,
    scan: Scan,
    rules: RuleSet,
    settings: Settings,
    project: ProjectFacts,
    found: tuple[Finding, ...] = (),
) -> tuple[list[Finding], FileSupport]:
    """The findings of the analysis, without those at places that `found` speaks of already as work to do."""
    support, names = project.analysis, names_in(scan, project.once(_leading))
    receivers = Receivers(scan, names, support.bases)
    found_chains = list(chains(scan, names))
    target = settings.torch_version, settings.hardware
    file = ScannedFile(source, scan, names, receivers, found_chains, *target, project.portable)
    uses = api_uses(scan, found_chains, receivers)
    notes = [
        *verdicts.notes_of(file, uses, rules),
        *affinity.notes_of(file, uses),
        *advice.notes_of(file, uses),
        *package_notes(file, project),
        *_falling(file, support),
    ]
    notes = still_there(notes, found)
    if settings.tune:
        notes = left_over(notes, found, source, scan)
    work = Work(source, scan, names, rules, settings, project)
    work.notes = notes
    leave_other_cards(work)
    ignores = Ignores(work)
    taken = {finding.span.start for finding in found if finding.level is not Level.INFO}
    findings = [
        ignores.mark(finding_of(work.source, work.scan.path, note))
        for note in work.notes
        if note.level is Level.INFO or note.extent[0] not in taken
    ]
    fallen = tuple(
        (name, extension) for name, extension in support.saved if name.startswith(f"{module_name(scan.path)}.")
    )
    return findings, FileSupport(tuple(sorted(Counter(use.api for use in uses).items())), fallen)


def prepare(project: ProjectFacts) -> None:
    """Work out what every file asks of its project, for processes that share it."""
    project.once(_leading)


def _leading(project: ProjectFacts) -> dict[str, str]:
    """What names of the project lead to, what it passes on of torch above all."""
    return {**project.analysis.exports, **project.reexports}


def add_to(result: FileResult, findings: list[Finding], support: FileSupport) -> FileResult:
    """A file's result with the findings of the analysis in it."""
    from dataclasses import replace

    every = tuple(sorted([*result.findings, *findings], key=Finding.sort_key))
    return replace(result, findings=every, support=support)


def _falling(file: ScannedFile, support: SupportProject) -> list[Note]:
    """Functions and classes of this file that fall with an extension."""
    if not support.fallen:
        return []
    module = module_name(file.scan.path)
    cache: dict[object, str] = {}
    notes = []
    for node in [*file.scan.functions, *file.scan.classes]:
        name = f"{owner_of(file.scan, module, node, cache)}.{node.name}".strip(".")  # type: ignore[arg-type]
        why = support.fallen.get(name)
        if why is None:
            continue
        start = file.extent(node)[0]
        way = f", through {' -> '.join(why.way)}" if why.way else ""
        verb = "needs" if why.certain else "needs in one of its branches"
        kind = "class" if node in file.scan.scopes and file.scan.scopes[node].kind == "class" else "function"
        # What takes the place of the operator that one of the names tells, the nearest first.
        rows = kernels_among(each.rpartition(".")[2] for each in (node.name, *why.way, why.extension))
        notes.append(
            Note(
                (start, start),
                FALLS,
                Level.INFO,
                f"the {kind} {node.name} {verb} the compiled extension {why.extension}{way}",
                name,
                replacement(rows[0]) if rows else "it runs on NPU once the extension has a replacement",
            )
        )
    return notes


def still_there(notes: Iterable[Note], found: Iterable[Finding]) -> list[Note]:
    """The notes that do not speak of the build or the import of an extension that is gone."""
    gone = [(each.span.start, each.span.end) for each in found if each.applied and each.code == SAID]
    return [note for note in notes if not any(a <= note.extent[0] and note.extent[1] <= b for a, b in gone)]


def left_over(notes: Iterable[Note], found: Iterable[Finding], source: Source, scan: Scan) -> list[Note]:
    """The notes at places that no tuning has written anew."""
    applied = [each for each in found if each.applied and each.code in (*_TUNINGS, *_OPTIMIZERS, *_LOADERS)]
    if not applied:
        return list(notes)
    tuned = _Tuned(applied, source, scan)
    return [note for note in notes if not (tuned.took(note) if note.code in _OF_PLACES else tuned.gave(note))]


class _Tuned:
    """What tunings have written in a file."""

    def __init__(self, applied: list[Finding], source: Source, scan: Scan) -> None:
        self.spans = [(finding.span.start, finding.span.end) for finding in applied if finding.code in _TUNINGS]
        self.starts = {finding.span.start for finding in applied if finding.code in _OPTIMIZERS}
        self.loaders = [finding for finding in applied if finding.code in _LOADERS]
        self.classes = dict(map(source.extent, scan.classes))
        turned = any(finding.code == _ROTARY for finding in applied)
        self.helpers = {source.extent(node)[0] for node in scan.functions if turned}

    def took(self, note: Note) -> bool:
        """True where the place that a note speaks of is no longer as it was."""
        start, end = note.extent
        if note.code == "NPU701":
            if start == end and start in self.helpers:
                return True
            end = max(end, self.classes.get(start, end))
        if note.detail("also"):
            return False  # it speaks of other places too
        if start in self.starts and note.api.startswith(("torch.optim.", "torch.nn.utils.")):
            return True
        return any((a < end and start < b) or a == b == start for a, b in self.spans)

    def gave(self, note: Note) -> bool:
        """True for `without drop_last=True` and the like where the call has got it."""
        missing = note.detail("missing")
        return bool(missing) and any(
            note.extent[0] < finding.span.start < note.extent[1]
            and missing in (finding.edit.after if finding.edit else "")
            for finding in self.loaders
        )


@cache
def _packages() -> dict[str, Any]:
    return {name: row for row in packages() if row["status"] in _MESSAGES for name in row["import"]}


def package_notes(file: ScannedFile, project: ProjectFacts) -> list[Note]:
    """One finding a package that works on NPU, at its first import in the file; none for what the project has under
    that name, nor for what is bound to CUDA: the rules report that.
    """
    found: dict[str, Note] = {}
    known = _packages()
    for node in sorted(file.scan.imports, key=lambda each: each.lineno):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            modules = [node.module]
        for module in modules:
            name = _known_head(module)
            own = module.partition(".")[0] in project.packages
            own = own or project.imports_own(module, file.scan.path, file.source.utf8)
            if name and name not in found and not own:
                found[name] = _package_note(file, node, name, known[name])
    return list(found.values())


@cache
def _known_head(module: str) -> str:
    """The package that a module is or belongs to, by the longest name that is known; empty for another's."""
    parts = module.split(".")
    heads = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((head for head in heads if head in _packages()), "")


def _package_note(file: ScannedFile, node: ast.Import | ast.ImportFrom, name: str, row: dict[str, Any]) -> Note:
    since = f" since {row['since']}" if row.get("since") else ""
    confidence = row.get("confidence", "low")
    probably = "probably " if confidence == "low" else ""
    message = f"the package {name} {probably}{_MESSAGES[row['status']]}{since}"
    help_text = "; ".join(part for part in (row.get("note", ""), f"confidence: {confidence}") if part)
    return Note(file.extent(node), CODE, Level.INFO, message, name, help_text)
