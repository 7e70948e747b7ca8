"""The analysis of one file: its findings, and the APIs it uses."""

from __future__ import annotations

from collections import Counter

from transplt.base.finding import FileResult, FileSupport, Finding, Level
from transplt.base.settings import Settings
from transplt.base.text.source import Source
from transplt.edits.edit import Note
from transplt.edits.ignores import Ignores
from transplt.edits.notes import finding_of
from transplt.edits.work import Work
from transplt.engine.analysis import advice, affinity, packages, verdicts
from transplt.engine.analysis.api_uses import api_uses, chains
from transplt.engine.analysis.extensions import owner_of
from transplt.engine.analysis.receivers import Receivers
from transplt.engine.analysis.scanned_file import ScannedFile
from transplt.engine.analysis.written import left_over, still_there
from transplt.engine.other_makers import leave_other_cards
from transplt.flow.facts import ProjectFacts
from transplt.flow.support import SupportProject
from transplt.program.star_imports import names_in
from transplt.rules.kernels import kernels_among, replacement
from transplt.rules.rule_set import RuleSet
from transplt.syntax.modules import module_name
from transplt.syntax.scan import Scan

FALLS = "NPU556"


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
        *packages.notes_of(file, project),
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
