"""The way of one file: bytes -> scan -> plan -> rewrite -> verify -> findings. Nothing here touches the file system."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatch

from transplt import account, portable
from transplt.codemods import (
    amp,
    arguments,
    bare_devices,
    cuda_paths,
    data_loader,
    device_slices,
    device_tables,
    distributed,
    environment,
    error_text,
    extensions,
    gates,
    help_text,
    imports,
    libraries,
    methods,
    nvidia_tools,
    own_methods,
    probes,
    profiler,
    references,
    specify_device,
    streams,
    strings,
    tensor_types,
    type_strings,
)
from transplt.finding import Edit, Effort, FileResult, Finding, Level, Operation, Span, Status
from transplt.flow import build_flow
from transplt.index import empty_facts, facts_of, tells_others
from transplt.insertions import Insertion, constants_insertion, import_insertions, line_insertion, needs_torch_npu
from transplt.names import Names
from transplt.project import ModuleFacts, ProjectFacts
from transplt.rewrite import Change, Failure, Site, SiteEdit, build_sites, findings_of, rewrite_site
from transplt.ruleset import RuleSet, compile_rules
from transplt.scan import FUNCTIONS, Scan, parent, scan
from transplt.settings import Settings
from transplt.source import Source, UnreadableSource, parse, read_source, splice
from transplt.work import Addition, Note, Work, finding_of

#: Files parsed by `index_source`, kept for `migrate_source` in the same process; bounded by bytes of source.
_PARSED: dict[str, tuple[bytes, Source, Scan]] = {}
_PARSED_LIMIT = 64_000_000
_parsed_bytes = 0
#: Hashes of files in which `index_source` found no literal of a rule.
_SILENT: dict[str, int] = {}

__all__ = ["ModuleFacts", "ProjectFacts", "index_source", "migrate_source"]


def index_source(data: bytes, path: str, settings: Settings) -> ModuleFacts:
    """What a file tells its project. Never raises for the content: an unreadable file tells nothing."""
    mentions_cuda = _mentions(data, compile_rules(settings))
    if not mentions_cuda:
        _SILENT[path] = hash(data)
    if not tells_others(data, mentions_cuda):
        return empty_facts(path)
    try:
        source = read_source(data)
        found = scan(source, parse(source), path)
    except UnreadableSource:
        return empty_facts(path)
    if mentions_cuda:
        _remember(path, data, source, found)
    flow = build_flow(found, Names(found), ProjectFacts())
    return facts_of(found, flow)


def _mentions(data: bytes, rules: RuleSet) -> bool:
    """The prefilter: whether the bytes hold a literal of the rules in force, in any case."""
    lowered = data.lower()
    return any(word in lowered for word in rules.literals)


def _remember(path: str, data: bytes, source: Source, found: Scan) -> None:
    global _parsed_bytes
    if _parsed_bytes + len(data) <= _PARSED_LIMIT and path not in _PARSED:
        _PARSED[path] = (data, source, found)
        _parsed_bytes += len(data)


def _recall(path: str, data: bytes) -> tuple[Source, Scan] | None:
    global _parsed_bytes
    kept = _PARSED.pop(path, None)
    if kept is None:
        return None
    _parsed_bytes -= len(kept[0])
    return (kept[1], kept[2]) if kept[0] == data else None


def migrate_source(
    data: bytes, path: str, settings: Settings, project: ProjectFacts | None = None
) -> FileResult:
    """Rewrite one file. Without `project` only what needs no other file is edited."""
    rules = compile_rules(settings)
    if _SILENT.pop(path, None) == hash(data) or not _mentions(data, rules):
        return FileResult(path, data) if _readable(data) is None else _unreadable(data, path)
    project = project or ProjectFacts()
    try:
        recalled = _recall(path, data)
        if recalled is None:
            source = read_source(data)
            found = scan(source, parse(source), path)
        else:
            source, found = recalled
    except UnreadableSource as error:
        return unreadable_result(data, path, error)
    work = plan(source, found, rules, settings, project)
    return _carry_out(data, work)


def _readable(data: bytes) -> UnreadableSource | None:
    """Files without a literal are not parsed; their bytes are looked at all the same."""
    try:
        if not data.isascii() or b"\0" in data:
            read_source(data)
    except UnreadableSource as error:
        return error
    return None


def _unreadable(data: bytes, path: str) -> FileResult:
    error = _readable(data)
    assert error is not None
    return unreadable_result(data, path, error)


def unreadable_result(data: bytes, path: str, error: UnreadableSource) -> FileResult:
    """A file that is copied as it is, with the reason; its tokens are unknown."""
    from transplt.finding import TokenCount
    from transplt.tokens import find_tokens

    tokens = find_tokens(data)
    live = sum(token.where != "comment" for token in tokens)
    span = Span(error.line, 1, error.line, 1, 0, 0)
    finding = Finding(
        path, span, error.code, Level.MANUAL, error.reason, effort=Effort.MEDIUM,
        help="the file was copied as it is; mend it and run transplt again",
    )
    count = TokenCount(live, manual=live, comments=len(tokens) - live)
    return FileResult(path, data, (finding,), count, Status.UNREADABLE)


#: In order of rank: the first to claim a node (`Work.take`) has it. User rules, structure, renames, then values.
PLANS: tuple[Callable[[Work], None], ...] = (
    profiler.plan,
    imports.plan,
    extensions.plan,
    references.calls_by_last_name,
    arguments.plan,
    device_tables.plan,
    specify_device.plan,
    device_slices.plan,
    type_strings.plan,
    amp.plan,
    data_loader.plan,
    tensor_types.plan,
    gates.plan,
    streams.plan,
    distributed.plan,
    libraries.plan,
    probes.plan,
    references.plan,
    methods.plan,
    bare_devices.plan,
    own_methods.plan,
    probes.objects,
    nvidia_tools.plan,
    environment.plan,
    error_text.plan,
    help_text.plan,
    strings.plan,
    cuda_paths.plan,
)


def plan(source: Source, found: Scan, rules: RuleSet, settings: Settings, project: ProjectFacts) -> Work:
    """Let the codemods look at a file: the user's rules first, then structure, then renames."""
    names = Names(found, project.reexports)
    work = Work(source, found, names, rules, settings, project)
    for codemod in PLANS:
        codemod(work)
    _leave_npu_code(work)
    if settings.style == "portable":
        portable.adapt(work)
    return work


# --- code that handles the NPU already -----------------------------------------------------------------------------

_NPU = re.compile(rb"(?<![A-Za-z0-9])npu(?![A-Za-z0-9])|torch_npu|_npu_|(?<![A-Za-z0-9])hccl(?![A-Za-z0-9])", re.I)


def _leave_npu_code(work: Work) -> None:
    """A function (or a statement of a module or class) that mentions the NPU is left as it is."""
    utf8 = work.source.utf8
    if not _NPU.search(utf8):
        return
    from transplt.tokens import literal_areas

    comments = [(start, end) for start, end, kind in literal_areas(utf8) if kind == "comment"]
    places = [
        match.start()
        for match in _NPU.finditer(utf8)
        if not any(start <= match.start() < end for start, end in comments)
    ]
    regions = [region for region in _regions(work) if any(region[0] <= at < region[1] for at in places)]
    if not regions:
        return
    stays: list[Change] = []
    for change in work.changes:
        extent = work.source.extent(change.node)
        if any(start <= extent[0] and extent[1] <= end for start, end in regions):
            work.kept.append((*extent, "stands beside code for the NPU"))
        else:
            stays.append(change)
    work.changes = stays
    work.notes = [
        note
        for note in work.notes
        if not any(start <= note.extent[0] and note.extent[1] <= end for start, end in regions)
    ]
    work.kept += [(start, end, "stands beside code for the NPU") for start, end in regions]


def _regions(work: Work) -> list[tuple[int, int]]:
    """Innermost functions, and simple or conditional statements outside of functions."""
    regions = []
    stack: list[ast.stmt] = list(work.scan.tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ClassDef):
            stack += node.body
        elif isinstance(node, FUNCTIONS):
            inner = [item for item in node.body if isinstance(item, (*FUNCTIONS, ast.ClassDef))]
            stack += inner
            regions.append(work.source.extent(node))
        elif not isinstance(node, (ast.Import, ast.ImportFrom)):
            regions.append(work.source.extent(node))
    return regions


# --- carrying it out -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Outcome:
    data: bytes
    edits: list[SiteEdit]
    insertions: list[Insertion]
    failures: list[Failure]
    spliced: list[tuple[int, int, bytes]]


def _carry_out(data: bytes, work: Work) -> FileResult:
    ignores = _Ignores(work)
    changes = [change for change in work.changes if not ignores.drop(change)]
    wanted = [change for change in changes if _applies(change, work.settings)]
    offered = [change for change in changes if not _applies(change, work.settings)]
    work.additions = [addition for addition in work.additions if not ignores.drop_addition(addition)]
    outcome = _apply(work, build_sites(work.source, wanted))
    notes = [*work.notes, *ignores.dropped]
    if outcome.spliced and (reason := _broken(work, outcome)):
        outcome, taken_back = _take_back(work, wanted, reason)
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
    if work.settings.annotate:
        _annotate(work, outcome, findings)
    findings.sort(key=Finding.sort_key)
    return FileResult(
        work.scan.path, outcome.data, tuple(findings), account_.tokens, Status.OK,
        changed=outcome.data != data, reasons=account_.reasons,
    )


def _annotate(work: Work, outcome: _Outcome, findings: list[Finding]) -> None:
    """Put markers into the output, unless that would break it."""
    from transplt.annotate import markers

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
        work.source.extent(change.node), change.code, Level.MANUAL, change.message, change.api,
        change.help or "applied with --unsafe-fixes", change.effort or Effort.LOW,
    )


def _apply(work: Work, sites: list[Site]) -> _Outcome:
    source = work.source
    edits: list[SiteEdit] = []
    failures: list[Failure] = []
    for site in sites:
        _, site_edits, site_failures = rewrite_site(source, site)
        edits += site_edits
        failures += site_failures
    modules: list[str] = []
    if needs_torch_npu(work, edits):
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
    spliced = [(edit.start, edit.end, edit.after.encode()) for edit in edits]
    spliced += [(item.offset, item.offset, item.text.encode()) for item in insertions]
    spliced.sort(key=lambda item: (item[0], item[1]))
    data = source.encode(splice(source.utf8, spliced)) if spliced else source.encode(source.utf8)
    return _Outcome(data, edits, insertions, failures, spliced)


def _top_statement(node: ast.AST) -> ast.AST:
    while not isinstance(parent(node), ast.Module):
        node = parent(node)
    return node


def _broken(work: Work, outcome: _Outcome) -> str:
    """Why the output of a file must not be written, empty when it may be."""
    rules = compile_rules(replace(work.settings, user_rules=()))
    try:
        source = read_source(outcome.data)
        if not _mentions(outcome.data, rules) and not _refused(source, None):
            return ""  # nothing is left for a rule to act on
        tree = parse(source)
    except UnreadableSource as error:
        return error.reason
    if (reason := _refused(source, tree)) and not _refused(work.source, work.scan.tree):
        return reason
    settings = replace(work.settings, user_rules=())
    again = plan(source, scan(source, tree, work.scan.path), rules, settings, work.project)
    again.changes = [change for change in again.changes if _applies(change, settings)]
    if not again.changes:
        return ""
    second = _apply(again, build_sites(source, again.changes))
    if second.data == outcome.data:
        return ""
    return f"a second run would change it again: {again.changes[0].message}"


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


def _take_back(work: Work, changes: list[Change], reason: str) -> tuple[_Outcome, list[Note]]:
    """Keep as many changes as hold together; report the others."""
    groups: dict[int, list[Change]] = {}
    for change in changes:
        groups.setdefault(id(change.node), []).append(change)
    kept: list[Change] = []
    notes: list[Note] = []
    pending = list(groups.values())
    while pending:
        trial = [*kept, *(change for group in pending for change in group)]
        outcome = _apply(work, build_sites(work.source, trial))
        why = _broken(work, outcome) if outcome.spliced else ""
        if not why:
            return outcome, notes
        if len(pending) == 1:
            notes += [_taken_back(work, change, why) for change in pending[0]]
            pending = []
            continue
        half = len(pending) // 2
        first = [change for group in pending[:half] for change in group]
        outcome = _apply(work, build_sites(work.source, [*kept, *first]))
        if not (outcome.spliced and _broken(work, outcome)):
            kept += first
            pending = pending[half:]
        elif half == 1:
            notes += [_taken_back(work, change, why) for change in first]
            pending = pending[1:]
        else:
            pending = [*pending[:half], *pending[half:]]
            # The fault lies in the first half: settle it alone before the rest is looked at.
            settled, more = _settle(work, kept, pending[:half])
            kept += settled
            notes += more
            pending = pending[half:]
    outcome = _apply(work, build_sites(work.source, kept))
    if outcome.spliced and (why := _broken(work, outcome)):
        notes += [_taken_back(work, change, why) for change in kept]
        outcome = _Outcome(work.source.encode(work.source.utf8), [], [], [], [])
    return outcome, notes


def _settle(work: Work, kept: list[Change], groups: list[list[Change]]) -> tuple[list[Change], list[Note]]:
    good: list[Change] = []
    notes: list[Note] = []
    for group in groups:
        outcome = _apply(work, build_sites(work.source, [*kept, *good, *group]))
        why = _broken(work, outcome) if outcome.spliced else ""
        if why:
            notes += [_taken_back(work, change, why) for change in group]
        else:
            good += group
    return good, notes


def _taken_back(work: Work, change: Change, why: str) -> Note:
    return Note(
        work.source.extent(change.node), "NPU992", Level.MANUAL, f"taken back: {change.message} ({why})",
        change.api, "make this change by hand, and report it as a defect of transplt", Effort.LOW,
    )


def _inserted(work: Work, insertion: Insertion) -> Finding:
    return Finding(
        path=work.scan.path,
        span=work.source.span(insertion.offset, insertion.offset),
        code=insertion.code,
        level=Level.SAFE,
        message=insertion.message,
        edit=Edit(Operation.INSERT, "", insertion.text),
        applied=True,
    )


# --- switched off ----------------------------------------------------------------------------------------------------

_IGNORE = re.compile(rb"#\s*transplt:\s*ignore(?:\[([A-Za-z0-9,\s]*)\])?")


class _Ignores:
    """Comments `# transplt: ignore[CODE]` and per-file ignores of one file."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.lines: dict[int, tuple[str, ...]] = {}
        self.dropped: list[Note] = []
        utf8 = work.source.utf8
        if b"transplt:" in utf8:
            for match in _IGNORE.finditer(utf8):
                codes = (match.group(1) or b"").decode().replace(",", " ").split()
                self.lines[work.source.position(match.start())[0]] = tuple(codes)
        self.file = tuple(
            code
            for pattern, codes in work.settings.per_file_ignores
            if fnmatch(work.scan.path, pattern)
            for code in (codes or ("NPU",))
        )

    def reason(self, code: str, line: int, end_line: int) -> str:
        if self.file and code.startswith(self.file):
            return "ignored for this file by the settings"
        for at in (line, end_line):
            codes = self.lines.get(at)
            if codes is not None and (not codes or code.startswith(codes)):
                return "ignored by a comment"
        return ""

    def drop(self, change: Change) -> bool:
        """True for a change that is switched off: a finding says so, and its words count as ignored."""
        if not self.lines and not self.file:
            return False
        node = change.node
        reason = self.reason(change.code, node.lineno, node.end_lineno or node.lineno)
        if reason:
            extent = self.work.source.extent(node)
            self.dropped.append(Note(extent, change.code, change.level, change.message, change.api, ignored=reason))
        return bool(reason)

    def drop_addition(self, addition: Addition) -> bool:
        """True for a line that is not to go in; a finding says so."""
        node = addition.beside
        reason = self.reason(addition.code, node.lineno, node.end_lineno or node.lineno)
        if reason:
            extent = self.work.source.extent(node)
            place = (extent[0], extent[0])
            self.dropped.append(Note(place, addition.code, Level.SAFE, addition.message, ignored=reason))
        return bool(reason)

    def mark(self, finding: Finding) -> Finding:
        reason = finding.ignored or self.reason(finding.code, finding.span.line, finding.span.end_line)
        return replace(finding, ignored=reason) if reason else finding

