"""From planned changes to new bytes: rewrite, insert, splice, verify, and account for it.

The result must compile wherever the input did, and the built-in rules, planned on it again, must change nothing. If
not, changes are taken back until that holds.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from transplt.apply import account
from transplt.apply.plan import plan
from transplt.codemods import specify_device
from transplt.edits.groups import THEMES, Theme
from transplt.edits.ignores import Ignores
from transplt.edits.insertions import (
    Deletion,
    Insertion,
    constants_insertion,
    import_insertions,
    joined,
    line_insertion,
    needs_torch_npu,
)
from transplt.edits.rewrite import Change, Failure, Site, SiteEdit, build_sites, findings_of, rewrite_site
from transplt.edits.work import Addition, Note, Work, finding_of
from transplt.finding import Edit, Effort, FileResult, Finding, Level, Operation, Status
from transplt.rules.rule_set import RuleSet, compile_rules
from transplt.settings import Settings
from transplt.syntax.scan import parent, scan
from transplt.text.source import Source, UnreadableSource, parse, read_source, splice

#: What a new line holds when it needs torch_npu.
_NPU_NAME = re.compile(r"\.npu\.|\btorch_npu\.|autocast\(\"npu\"")


def mentions_literal(data: bytes, rules: RuleSet) -> bool:
    """The prefilter: whether the bytes hold a literal of the rules in force, in any case."""
    lowered = data.lower()
    return any(word in lowered for word in rules.literals)


@dataclass(slots=True)
class Outcome:
    """The new bytes of a file, and what made them; `spliced` are the edits as (start, end, new bytes)."""

    data: bytes
    edits: list[SiteEdit]
    insertions: list[Insertion]
    failures: list[Failure]
    spliced: list[tuple[int, int, bytes]]


def carry_out(data: bytes, work: Work) -> FileResult:
    """Rewrite the planned sites of a file whose bytes are `data`, verify the result, and say what was done."""
    ignores = Ignores(work)
    changes = [change for change in work.changes if not ignores.drop(change)]
    wanted = [change for change in changes if _applies(change, work.settings)]
    offered = [change for change in changes if not _applies(change, work.settings)]
    work.additions = [addition for addition in work.additions if not ignores.drop_addition(addition)]
    outcome = _apply(work, build_sites(work.source, wanted))
    notes = [*work.notes, *ignores.dropped]
    for theme in THEMES if work.settings.adds_code else ():
        if _wrote(work, wanted, theme) and (why := _broken(work, outcome, wanted)):
            wanted = _without(work, wanted, theme, why)
            outcome = _apply(work, build_sites(work.source, wanted))
            notes = [*work.notes, *ignores.dropped]
    if outcome.spliced and _broken(work, outcome, wanted):
        outcome, taken_back = _take_back(work, wanted)
        notes += taken_back
    for failure in outcome.failures:
        notes.append(
            Note(
                (failure.site.start, failure.site.end),
                "NPU990",
                Level.MANUAL,
                f"could not be rewritten: {failure.reason}",
                help="; ".join(change.message for change in failure.site.changes),
                effort=Effort.LOW,
            )
        )
    for change in offered:
        notes.append(_offer(work, change))
    findings = [ignores.mark(finding_of(work, note)) for note in notes]
    account_ = account.settle(work, outcome.spliced, findings, ignores.reason)
    findings += [ignores.mark(finding_of(work, note)) for note in account_.unknown]
    findings += findings_of(work.source, work.scan.path, outcome.edits)
    findings += [_inserted(work, insertion) for insertion in outcome.insertions]
    findings += [_deleted(work, deletion) for deletion in work.deletions]
    if work.settings.annotate:
        _annotate(work, outcome, findings)
    findings.sort(key=Finding.sort_key)
    return FileResult(
        work.scan.path,
        outcome.data,
        tuple(findings),
        account_.tokens,
        Status.OK,
        changed=outcome.data != data,
        reasons=account_.reasons,
    )


def _annotate(work: Work, outcome: Outcome, findings: list[Finding]) -> None:
    """Put markers into the output, unless that would break it."""
    from transplt.apply.annotate import markers

    marks = markers(work.source, findings, outcome.spliced)
    spliced = outcome.spliced + [(mark.offset, mark.offset, mark.text.encode()) for mark in marks]
    spliced.sort(key=lambda item: (item[0], item[1]))
    utf8 = splice(work.source.utf8, spliced)
    try:
        compile(utf8.decode(), "<source>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    outcome.data = work.source.encode(utf8)
    findings += [_inserted(work, mark) for mark in marks]


def _applies(change: Change, settings: Settings) -> bool:
    if change.level is Level.SAFE:
        return True
    return change.level is Level.UNSAFE and (settings.unsafe_fixes or change.asked)


def _offer(work: Work, change: Change) -> Note:
    """A change that was not asked for, as a finding."""
    return Note(
        work.source.extent(change.node),
        change.code,
        change.level,
        change.message,
        change.api,
        change.help or "applied with --unsafe-fixes",
        change.effort or Effort.LOW,
    )


def _apply(work: Work, sites: list[Site]) -> Outcome:
    source = work.source
    edits: list[SiteEdit] = []
    failures: list[Failure] = []
    for site in sites:
        _, site_edits, site_failures = rewrite_site(source, site)
        edits += site_edits
        failures += site_failures
    modules: list[str] = []
    if needs_torch_npu(work, edits) or any(_NPU_NAME.search(item.text) for item in work.insertions):
        modules.append("torch_npu")
    for edit in edits:
        for change in edit.changes:
            modules += [module for module in change.imports if module not in modules]
    moved = {id(_top_statement(e.site.node)) for e in edits if any(c.writes_npu for c in e.changes)}
    insertions = import_insertions(source, work.scan, modules, moved) if modules else []
    additions = list(work.additions)
    lines = list(dict.fromkeys(line for edit in edits for change in edit.changes for line in change.lines))
    if work.settings.specify_device and "torch_npu" in modules:
        lines, additions = specify_device.select_card(work, edits, lines, additions)
        if lines and not any("import os" in item.text for item in insertions):
            modules = ["os"]
            insertions += import_insertions(source, work.scan, modules, moved)
    if lines:
        insertions.append(constants_insertion(source, work.scan, lines, specify_device.CODE))
    insertions += [line_insertion(source, addition) for addition in additions]
    deletions = work.deletions
    for item in work.insertions:
        inside = any(
            gone.start < item.offset < gone.end or (gone.start == item.offset and not item.text.strip(" \t"))
            for gone in deletions
        )
        insertions += [] if inside else [item]
    insertions = joined(insertions)
    if deletions:
        edits = [edit for edit in edits if not any(item.start <= edit.start < item.end for item in deletions)]
    spliced = [(edit.start, edit.end, edit.after.encode()) for edit in edits]
    spliced += [(item.start, item.end, item.text.encode()) for item in deletions]
    spliced += [(item.offset, item.offset, item.text.encode()) for item in insertions]
    spliced.sort(key=lambda item: (item[0], item[1]))
    data = source.encode(splice(source.utf8, spliced)) if spliced else source.encode(source.utf8)
    return Outcome(data, edits, insertions, failures, spliced)


def _top_statement(node: ast.AST) -> ast.AST:
    while not isinstance(parent(node), ast.Module):
        node = parent(node)
    return node


def _broken(work: Work, outcome: Outcome, applied: list[Change]) -> str:
    """Why the output of a file must not be written, empty when it may be. `applied` are the changes it holds."""
    rules = compile_rules(replace(work.settings, user_rules=()))
    try:
        source = read_source(outcome.data)
        if not mentions_literal(outcome.data, rules) and not _refused(source, None):
            return ""  # nothing is left for a rule to act on
        tree = parse(source)
    except UnreadableSource as error:
        return error.reason
    if (reason := _refused(source, tree)) and not _refused(work.source, work.scan.tree):
        return reason
    settings = replace(work.settings.without_themes(), user_rules=())
    again = plan(source, scan(source, tree, work.scan.path), rules, settings, work.project)
    left_out = _left_out(work, outcome, applied)
    again.changes = [
        change
        for change in again.changes
        if _applies(change, settings) and (change.code, source.extent(change.node)[0]) not in left_out
    ]
    if not again.changes:
        return ""
    second = _apply(again, build_sites(source, again.changes))
    if second.data == outcome.data:
        return ""
    return f"a second run would change it again: {again.changes[0].message}"


def _left_out(work: Work, outcome: Outcome, applied: list[Change]) -> set[tuple[str, int]]:
    """Codes and places in the output of the changes that were switched off or taken back: they would come again."""
    failed = [failure.site for failure in outcome.failures]
    for site in failed:
        failed += site.children
    done = {id(change) for change in applied} - {id(change) for site in failed for change in site.changes}
    places = sorted(
        (work.source.extent(change.node)[0], change.code) for change in work.changes if id(change) not in done
    )
    found: set[tuple[str, int]] = set()
    shift = index = 0
    for start, code in places:
        while index < len(outcome.spliced) and outcome.spliced[index][1] <= start:
            before, end, new = outcome.spliced[index]
            shift += len(new) - (end - before)
            index += 1
        found.add((code, start + shift))
    return found


def _refused(source: Source, tree: ast.Module | None) -> str:
    """Why Python does not compile a file, empty when it does; `tree` is what it parsed to, if that is known."""
    try:
        compile(tree or source.text, "<source>", "exec", dont_inherit=True)
    except RecursionError:
        # A tree of Python objects is walked recursively; from the text the limit is higher.
        try:
            compile(source.text, "<source>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return f"{type(error).__name__}: {error}"
    except (SyntaxError, ValueError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _take_back(work: Work, changes: list[Change]) -> tuple[Outcome, list[Note]]:
    """Keep as many changes as hold together, by halving; report the others."""
    why = _broken_by_lines(work)
    lines = [_line_taken_back(work, addition, why) for addition in work.additions] if why else []
    if why:
        work.additions = []
    by_node: dict[int, list[Change]] = {}
    for change in changes:
        by_node.setdefault(id(change.node), []).append(change)
    kept: list[Change] = []
    notes: list[Note] = []

    def settle(groups: list[list[Change]]) -> None:
        trial = [change for group in groups for change in group]
        wanted = [*kept, *trial]
        why = _broken(work, _apply(work, build_sites(work.source, wanted)), wanted)
        if not why:
            kept.extend(trial)
        elif len(groups) == 1:
            notes.extend(_taken_back(work, change, why) for change in trial)
        else:
            half = len(groups) // 2
            settle(groups[:half])
            settle(groups[half:])

    if by_node:
        settle(list(by_node.values()))
    return _apply(work, build_sites(work.source, kept)), [*lines, *notes]


def _wrote(work: Work, changes: list[Change], theme: Theme) -> bool:
    codes = {item.code for group in (changes, work.insertions, work.deletions) for item in group}
    return any(map(theme.has, codes))


def _without(work: Work, changes: list[Change], theme: Theme, why: str) -> list[Change]:
    """The changes without those of a theme, which only hold together."""
    work.insertions = [item for item in work.insertions if not theme.has(item.code)]
    work.deletions = [item for item in work.deletions if not theme.has(item.code)]
    start = work.source.extent(work.scan.tree.body[0])[0]
    work.notes.append(
        Note(
            (start, start),
            "NPU992",
            Level.MANUAL,
            f"taken back: everything that {theme.what} ({why})",
            help=f"{theme.instead}, and report it as a defect of transplt",
            effort=Effort.HIGH,
        )
    )
    return [change for change in changes if not theme.has(change.code)]


def _broken_by_lines(work: Work) -> str:
    """Why the file breaks by the lines that go in alone, empty when it does not."""
    if not work.additions:
        return ""
    try:
        source = read_source(_apply(work, []).data)
    except UnreadableSource as error:
        return error.reason
    reason = _refused(source, None)
    return reason if reason and not _refused(work.source, work.scan.tree) else ""


def _line_taken_back(work: Work, addition: Addition, why: str) -> Note:
    start = work.source.extent(addition.beside)[0]
    return Note(
        (start, start),
        "NPU992",
        Level.MANUAL,
        f"taken back: {addition.message} ({why})",
        help=f"write `{addition.text}` by hand, and report it as a defect of transplt",
        effort=Effort.LOW,
    )


def _taken_back(work: Work, change: Change, why: str) -> Note:
    return Note(
        work.source.extent(change.node),
        "NPU992",
        Level.MANUAL,
        f"taken back: {change.message} ({why})",
        change.api,
        "make this change by hand, and report it as a defect of transplt",
        Effort.LOW,
    )


def _deleted(work: Work, deletion: Deletion) -> Finding:
    before = work.source.slice(deletion.start, deletion.end)
    operation = Operation.MODIFY if deletion.text else Operation.DELETE
    return Finding(
        path=work.scan.path,
        span=work.source.span(deletion.start, deletion.end),
        code=deletion.code,
        level=deletion.level,
        message=deletion.message,
        edit=Edit(operation, before, deletion.text),
        applied=True,
    )


def _inserted(work: Work, insertion: Insertion) -> Finding:
    return Finding(
        path=work.scan.path,
        span=work.source.span(insertion.offset, insertion.offset),
        code=insertion.code,
        level=insertion.level,
        message=insertion.message,
        edit=Edit(Operation.INSERT, "", insertion.text),
        applied=True,
    )
