"""The way of one file: bytes -> scan -> plan -> rewrite -> verify -> findings. Nothing here touches the file system."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from transplt.base.finding import Cause, Effort, FileResult, Finding, Level, Span, Status, Verdict
from transplt.base.settings import Settings
from transplt.base.text.old_names import may_hold_old_names
from transplt.base.text.source import Source, UnreadableSource, read_source
from transplt.base.text.token_rows import ledger_of
from transplt.edits.groups import MANY_CARDS
from transplt.edits.ignores import speaks_of_ignores
from transplt.edits.work import Work
from transplt.engine.analysis.project import add_support, concerns, support_facts
from transplt.engine.carry_out import carry_out
from transplt.engine.changed_lines import leave_other_lines
from transplt.engine.old_code import readable, told_of_the_old
from transplt.engine.plan import plan
from transplt.engine.prefilter import worth_a_look
from transplt.engine.survey import survey
from transplt.flow.definition_facts import Use
from transplt.flow.definition_uses import definition_uses
from transplt.flow.facts import ModuleFacts, ProjectFacts
from transplt.flow.key_reads import reads_in_text
from transplt.flow.links import linked_slots, unlinked_slots
from transplt.flow.module_facts import code_facts, empty_facts, facts_of, leads_to_code, tells_others
from transplt.flow.saved_files import saved_files
from transplt.flow.slots import Slots
from transplt.flow.vendored import copy_of
from transplt.program.files import read_file
from transplt.rules.rule_set import compile_rules
from transplt.syntax.asks import has_main_guard
from transplt.syntax.modules import imported_names
from transplt.syntax.names import Names
from transplt.syntax.parse import parse
from transplt.syntax.scan import Scan, scan

#: A scanned file, with its slots where they were worked out.
_Parsed = tuple[Source, Scan, Slots | None]
#: Files parsed by `index_source`, kept for `migrate_source` in the same process; bounded by bytes of source.
_PARSED: dict[str, tuple[bytes, _Parsed]] = {}
_PARSED_LIMIT = 64_000_000
_parsed_bytes = 0
#: Hashes of files in which `index_source` found no literal of a rule.
_SILENT: dict[str, int] = {}

__all__ = ["ModuleFacts", "ProjectFacts", "index_source", "migrate_source", "survey_source"]


def index_source(data: bytes, path: str, settings: Settings) -> ModuleFacts:
    """What a file tells its project. Never raises for the content: an unreadable file tells nothing."""
    facts, copy = _told(data, path, settings), copy_of(path, data)
    renames = tuple((rule.old, rule.new) for rule in compile_rules(settings).user.definitions.values())
    if renames:
        facts = replace(facts, renames=renames, uses=_uses(data, path, settings, renames))
    return facts if copy is None else replace(facts, copy=copy)


def _uses(data: bytes, path: str, settings: Settings, renames: tuple[tuple[str, str], ...]) -> tuple[Use, ...]:
    """What a file says of the names that rules rename with their definitions."""
    try:
        found = _scanned(data, path)[1]
    except UnreadableSource as error:
        names = {old.rpartition(".")[2] for old, _ in renames}
        return tuple(Use(name, "unread", "", path, error.line) for name in sorted(names) if name.encode() in data)
    ignored = speaks_of_ignores(data) or bool(settings.ignored_codes(path))
    return tuple(use for use, _ in definition_uses(found, renames, ignored))


def _told(data: bytes, path: str, settings: Settings) -> ModuleFacts:
    mentions_cuda = worth_a_look(data, settings)
    if not mentions_cuda:
        _SILENT[path] = hash(data)
    told, analysed = tells_others(data, mentions_cuda), settings.analysis and concerns(data, path)
    leads = told or leads_to_code(data, path)
    if not leads and not analysed and not settings.adds_code:
        return replace(empty_facts(path), saved=saved_files(data), reads=reads_in_text(data))
    try:
        source, found = _scanned(data, path, kept=settings.adds_code)
    except UnreadableSource:
        old = readable(data)
        return empty_facts(path) if old is None else index_source(old[0], path, settings)
    facts, slots, names = empty_facts(path), None, Names(found)
    if told:
        slots = linked_slots(found, names, ProjectFacts(), alone=False)
        facts = facts_of(slots, compile_rules(settings))
    elif leads:
        facts = code_facts(unlinked_slots(found, names, ProjectFacts()), compile_rules(settings))
    if not told:
        facts = replace(facts, reads=reads_in_text(data))
    if mentions_cuda or analysed or settings.adds_code:
        _remember(path, data, (source, found, slots))
    if settings.adds_code:
        imported, guarded = imported_names(path, found.imports), has_main_guard(found.tree)
        facts = replace(facts, text=data, imported=imported, guarded=guarded)
    facts = replace(facts, saved=saved_files(data))
    return replace(facts, analysis=support_facts(found, names)) if analysed else facts


def join_facts(facts: Iterable[ModuleFacts], settings: Settings) -> ProjectFacts:
    """The sum of what all files say, in any order."""
    every = sorted(facts, key=lambda fact: fact.path)
    project = ProjectFacts.join(every)
    add_support(project, every, dict(settings.library))
    return project


def _remember(path: str, data: bytes, parsed: _Parsed) -> None:
    global _parsed_bytes
    if _parsed_bytes + len(data) <= _PARSED_LIMIT and path not in _PARSED:
        _PARSED[path] = (data, parsed)
        _parsed_bytes += len(data)


def forget() -> None:
    """Drops what `index_source` has kept in this process."""
    global _parsed_bytes
    _PARSED.clear()
    _SILENT.clear()
    _parsed_bytes = 0


def _recall(path: str, data: bytes) -> _Parsed | None:
    global _parsed_bytes
    kept = _PARSED.pop(path, None)
    if kept is None:
        return None
    _parsed_bytes -= len(kept[0])
    return kept[1] if kept[0] == data else None


def migrate_source(data: bytes, path: str, settings: Settings, project: ProjectFacts | None = None) -> FileResult:
    """Rewrite one file. Without `project` only what needs no other file is edited."""
    return _finished(data, path, settings, project or ProjectFacts(), carry_out)


def survey_source(data: bytes, path: str, settings: Settings, project: ProjectFacts | None = None) -> FileResult:
    """What `migrate_source` would find, without working out the edits: their findings say where they would be."""
    result = _finished(data, path, settings, project or ProjectFacts(), survey)
    if result.support is None and result.status is Status.OK and concerns(data, path):
        # A file without CUDA words that cannot be parsed: a migration copies it, an analysis has to say so.
        try:
            _scanned(data, path)
        except UnreadableSource as error:
            return unreadable_result(data, path, error)
    return result


def _finished(
    data: bytes, path: str, settings: Settings, project: ProjectFacts, finish: Callable[[bytes, Work], FileResult]
) -> FileResult:
    rules = compile_rules(settings)
    recalled = _recall(path, data)
    silent = _SILENT.pop(path, None) == hash(data) or (recalled is None and not worth_a_look(data, settings))
    silent = silent and not project.reach.names_built(data)
    silent = silent and not any(name.encode() in data for name in project.given)
    if silent and not settings.adds_code and not may_hold_old_names(data):
        if (error := _readable(data, alone=not project.known)) is not None:
            return unreadable_result(data, path, error)
        return _analysed(FileResult(path, data), data, recalled, settings, project)
    try:
        kept = settings.adds_code and project.sources.get(path) == data
        source, found, slots = recalled or (*_scanned(data, path, kept=kept), None)
    except UnreadableSource as error:
        old = readable(data)
        if old is None:
            return unreadable_result(data, path, error)
        return told_of_the_old(*old[1:], _finished(old[0], path, settings, project, finish))
    work = plan(source, found, rules, settings, project, slots)
    if settings.only_lines is not None:
        leave_other_lines(work, dict(settings.only_lines).get(path, ()))
    result = finish(data, work)
    taken_back = next((each for each in result.findings if MANY_CARDS.why_taken_back(each.message)), None)
    if taken_back is not None:
        # What it claimed before the others looked is theirs again.
        alone = plan(source, found, rules, replace(settings, entry=""), project, slots)
        result = finish(data, alone)
        result = replace(result, findings=tuple(sorted((*result.findings, taken_back), key=Finding.sort_key)))
    return _analysed(result, data, (source, found, slots), settings, project)


def _analysed(
    result: FileResult,
    data: bytes,
    recalled: _Parsed | None,
    settings: Settings,
    project: ProjectFacts,
) -> FileResult:
    """The result with the findings of the analysis, where the settings ask for it; `result.data` is not touched."""
    if not settings.analysis or not concerns(data, result.path):
        return result
    from transplt.engine.analysis.analysis import add_to, analyse

    try:
        source, found = recalled[:2] if recalled is not None else _scanned(data, result.path)
    except UnreadableSource:
        return result
    findings, support = analyse(source, found, compile_rules(settings), settings, project, result.findings)
    if settings.in_place:  # a check says what is left, and no remarks
        findings = [each for each in findings if each.open]
    return add_to(result, findings, support)


def _scanned(data: bytes, path: str, *, kept: bool = False) -> tuple[Source, Scan]:
    """A file, scanned; `kept` for those who read programs, so that they see the same nodes."""
    if kept and (file := read_file(path, data)) is not None:
        return file.source, file.scan
    source = read_source(data)
    return source, scan(source, parse(source), path)


def _readable(data: bytes, *, alone: bool) -> UnreadableSource | None:
    """Why Python does not read a file without a literal. Of a project it is not parsed, only its bytes are looked at;
    of a file that is given alone somebody wants to know.
    """
    try:
        if alone:
            parse(read_source(data))
        elif not data.isascii() or b"\0" in data or b"coding" in data[:1000]:
            read_source(data)
    except UnreadableSource as error:
        return error
    return None


def unreadable_result(data: bytes, path: str, error: UnreadableSource) -> FileResult:
    """A file that is copied as it is, with the reason; its tokens are unknown."""
    span = Span(error.line, 1, error.line, 1, 0, 0)
    finding = Finding(
        path,
        span,
        error.code,
        Level.MANUAL,
        error.reason,
        effort=Effort.MEDIUM,
        help=error.help or "the file was copied as it is; mend it and run transplt again",
    )
    ledger, count = ledger_of(data, Cause(Verdict.MANUAL, error.code))
    return FileResult(path, data, (finding,), count, Status.UNREADABLE, ledger=ledger)
