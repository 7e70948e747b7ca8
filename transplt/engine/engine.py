"""The way of one file: bytes -> scan -> plan -> rewrite -> verify -> findings. Nothing here touches the file system."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from transplt.base import stages
from transplt.base.finding import ON_REQUEST, Cause, Effort, FileResult, Finding, TokenVerdict
from transplt.base.settings import Settings
from transplt.base.text.given_values import names_given
from transplt.base.text.old_names import may_hold_old_names
from transplt.base.text.source import UnreadableSource
from transplt.base.text.token_rows import ledger_of
from transplt.edits.device_choosers import chooses_npus, names_of_chooser
from transplt.edits.edit import Edit
from transplt.edits.groups import MANY_CARDS
from transplt.edits.helper_file import defined_in, is_helper
from transplt.edits.ignores import Ignores, speaks_of_ignores
from transplt.edits.notes import finding_of
from transplt.edits.work import Work
from transplt.engine.account import settle
from transplt.engine.adaptor_findings import kernels_said
from transplt.engine.analysis.project import join, support_facts
from transplt.engine.carry_out import carry_out
from transplt.engine.changed_lines import leave_other_lines
from transplt.engine.ignore_findings import word_findings
from transplt.engine.old_code import readable, result_for_old
from transplt.engine.option_guards import mark_options
from transplt.engine.picked_edits import all_or_none, leave_unpicked
from transplt.engine.plan import plan
from transplt.engine.prefilter import worth_a_look
from transplt.engine.silent import concerns, unreadable_result, untouched
from transplt.engine.verify import applies
from transplt.flow.definition_facts import NameUse
from transplt.flow.definition_uses import definition_uses
from transplt.flow.entry_text import entry_of
from transplt.flow.facts import ModuleFacts, ProjectFacts
from transplt.flow.import_text import Placing, placing_of
from transplt.flow.key_reads import reads_in_text
from transplt.flow.module_facts import code_facts, empty_facts, facts_of, leads_to_code, others_need, parameters_in_text
from transplt.flow.own_packages import tabled_names
from transplt.flow.program_switches import switches_of
from transplt.flow.saved_files import loaded_files, loads_strictly, saved_files
from transplt.flow.slot_links import linked_slots, unlinked_slots
from transplt.flow.slots import Slots
from transplt.flow.vendored import copy_of
from transplt.program.compiled_modules import given_up
from transplt.program.numpy_values import gives_scores, numpy_results
from transplt.rules.rule_set import compile_rules
from transplt.rules.versions import loads_itself
from transplt.syntax.configurations import is_configuration
from transplt.syntax.files import File, Files
from transplt.syntax.modules import absolute, imported_names
from transplt.syntax.nodes import has_main_guard

__all__ = ["ModuleFacts", "ProjectFacts", "index_source", "migrate_source", "survey_source"]


def index_source(data: bytes, path: str, settings: Settings, files: Files | None = None) -> ModuleFacts:
    """What a file tells its project. Never raises for the content: an unreadable file tells nothing.

    What is parsed for it is kept in `files`, for `migrate_source` in the same process (`ProjectFacts.files`).
    """
    files = files or Files()
    if settings.codemods:
        from transplt.engine.users_codemods import after_codemods, takes_part

        if takes_part(path, settings) and not is_helper(path, data):
            data = after_codemods(data, path, settings)
        settings = replace(settings, codemods=())
    if is_helper(path, data):
        return replace(empty_facts(path), placing=Placing(ours=defined_in(data)))
    facts, copy = _facts(data, path, settings, files), copy_of(path, data)
    if settings.helper_file or settings.style == "portable":
        both = settings.style == "portable"
        left = not both or settings.leaves(path) or settings.ignored_codes(path)
        own = None if left else names_of_chooser(path, data)
        placing = placing_of(data, path)._replace(own=own, for_npus=both and chooses_npus(data))
        full = (absolute(path, len(each) - len(name), name) for each in placing.imported if (name := each.lstrip(".")))
        facts = replace(facts, placing=placing, used_from=facts.used_from or tuple(full))  # of what is not parsed
    renames = tuple((rule.old, rule.new) for rule in compile_rules(settings).user.definitions.values())
    if renames:
        facts = replace(facts, renames=renames, uses=_uses(data, path, settings, renames))
    tabled = tabled_names(data, path, settings.torch_version, settings.similar)
    entry = entry_of(data, path, settings.torch_version) if path.endswith(".py") else None
    return replace(facts, copy=copy, tabled=tabled, entry=entry)


def _uses(data: bytes, path: str, settings: Settings, renames: tuple[tuple[str, str], ...]) -> tuple[NameUse, ...]:
    """What a file says of the names that rules rename with their definitions."""
    try:
        found = File.of(path, data).scan
    except UnreadableSource as error:
        names = {old.rpartition(".")[2] for old, _ in renames}
        return tuple(NameUse(name, "unread", "", path, error.line) for name in sorted(names) if name.encode() in data)
    ignored = speaks_of_ignores(data) or bool(settings.ignored_codes(path))
    return tuple(use for use, _ in definition_uses(found, renames, ignored))


def _facts(data: bytes, path: str, settings: Settings, files: Files) -> ModuleFacts:
    mentions_cuda = worth_a_look(data, settings)
    if not mentions_cuda:
        files.silent[path] = hash(data)
    has_facts, analysed = others_need(data, mentions_cuda), settings.analysis and concerns(data, path)
    leads, scores = has_facts or leads_to_code(data, path), gives_scores(data)
    if not any((leads, analysed, scores, settings.adds_code)):
        return _of_checkpoints(_read_in_text(empty_facts(path), data, path), data)
    stages.enter(stages.PARSED)
    try:
        file = files.parse(path, data) if settings.adds_code else File.of(path, data)
    except UnreadableSource:
        old = readable(data)
        return empty_facts(path) if old is None else index_source(old[0], path, settings, files)
    facts, found, names = empty_facts(path), file.scan, file.names
    stages.enter(stages.FOLLOWED)
    if has_facts:
        facts = _followed(file, data, settings)
    elif leads:
        facts = code_facts(unlinked_slots(found, names, ProjectFacts()), compile_rules(settings))
    if not has_facts:
        facts = _read_in_text(facts, data, path)
    if mentions_cuda or analysed or settings.adds_code:
        files.put_by(data, file)
    if settings.adds_code:
        imported, guarded = imported_names(path, found.imports), has_main_guard(found.tree)
        facts = replace(facts, text=data, imported=imported, guarded=guarded)
    elif b"triton" in data and b"jit" in data:
        facts = replace(facts, text=data)  # for the files that launch its kernels
    facts = _of_checkpoints(facts, data)
    if scores:
        facts = replace(facts, numpy_results=tuple(numpy_results(file)))
    return replace(facts, analysis=support_facts(found, names)) if analysed else facts


def _followed(file: File, data: bytes, settings: Settings) -> ModuleFacts:
    """What a file says to others of its values, which are followed for this."""
    slots = linked_slots(file.scan, file.names, ProjectFacts(), alone=False)
    file.once(_linked)[:] = [slots]
    facts = facts_of(slots, compile_rules(settings))
    if not loads_itself(settings.torch_version) and is_configuration(file.scan.tree):
        return replace(facts, gives=names_given(data))  # it imports no torch_npu: who reads it does
    return facts


def _read_in_text(facts: ModuleFacts, data: bytes, path: str) -> ModuleFacts:
    """What a file that is not followed says to others in its text."""
    return replace(facts, reads=reads_in_text(data, path), parameters=parameters_in_text(data, path))


def _of_checkpoints(facts: ModuleFacts, data: bytes) -> ModuleFacts:
    loads, switches = loads_strictly(data), switches_of(data)
    return replace(
        facts, saved=saved_files(data), loaded=loaded_files(data), loads=loads, switches=switches,
    )  # fmt: skip


def join_facts(facts: Iterable[ModuleFacts], settings: Settings, files: Files | None = None) -> ProjectFacts:
    """The sum of what all files say, in any order; `files` are those of them that this process has parsed."""
    every = sorted(facts, key=lambda fact: fact.path)

    def said(project: ProjectFacts) -> Collection[str]:
        project.files = files or project.files
        return project.once(given_up)

    project = ProjectFacts.join(every, said if settings.asks_for("adapt:kernels") else None)
    if supported := [fact.analysis for fact in every if fact.analysis is not None]:
        project.analysis = join(supported, dict(settings.library))
    project.files = files or project.files
    return project


def _linked(file: File) -> list[Slots]:
    """The slots of a file where they were worked out before its project was known: one, or none."""
    return []


def migrate_source(data: bytes, path: str, settings: Settings, project: ProjectFacts | None = None) -> FileResult:
    """Rewrite one file. Without `project` only what needs no other file is edited."""
    project = project or ProjectFacts()
    if not settings.codemods:
        return _finished(data, path, settings, project, carry_out)
    from transplt.engine.users_codemods import takes_part, with_codemods

    if not takes_part(path, settings) or is_helper(path, data) or settings.leaves(path):
        return _finished(data, path, replace(settings, codemods=()), project, carry_out)
    every = replace(settings, picked=None)
    result = with_codemods(data, path, every, lambda made, rest: _finished(made, path, rest, project, carry_out))
    return result if settings.picked is None else all_or_none(result, data, settings)


def survey_source(data: bytes, path: str, settings: Settings, project: ProjectFacts | None = None) -> FileResult:
    """What `migrate_source` would find, without working out the edits: their findings say where they would be."""
    return _finished(data, path, settings, project or ProjectFacts(), survey)


def _finished(
    data: bytes, path: str, settings: Settings, project: ProjectFacts, finish: Callable[[bytes, Work], FileResult]
) -> FileResult:
    if (result := _left_alone(data, path, settings)) is not None:
        return result
    recalled = project.files.take(path, data)
    if _says_nothing(data, path, settings, project, recalled):
        found = untouched(data, path, whole=settings.analysis or not project.known)
        return _analysed(found, data, recalled, settings, project)
    try:
        stages.enter(stages.PARSED)
        kept = settings.adds_code and project.sources.get(path) == data
        file = recalled or (project.files.parse(path, data) if kept else File.of(path, data))
    except UnreadableSource as error:
        old = readable(data)
        if old is None:
            # No code is added to what no training reaches: a migration alone does not read it, and copies it.
            apart = path != settings.entry and (project.aside.holds(path) or project.aside.late(path) == "other")
            silent = settings.adds_code and apart and not worth_a_look(data, settings.without_themes())
            return FileResult(path, data) if silent else unreadable_result(data, path, error)
        every = replace(settings, picked=None)
        result = result_for_old(*old[1:], _finished(old[0], path, every, project, finish))
        return result if settings.picked is None else all_or_none(result, data, settings)
    rules, linked = compile_rules(settings), file.once(_linked)
    slots = linked.pop() if linked else None
    stages.enter(stages.SEARCHED)
    work = plan(file.source, file.scan, rules, settings, project, slots)
    if settings.only_lines is not None:
        leave_other_lines(work, dict(settings.only_lines).get(path, ()))
    leave_unpicked(work)
    stages.enter(stages.EDITED)
    result = finish(data, work)
    taken_back = next((each for each in result.findings if MANY_CARDS.why_taken_back(each)), None)
    if taken_back is not None:
        # What it claimed before the others looked is theirs again.
        alone = plan(file.source, file.scan, rules, replace(settings, entry=""), project, slots)
        result = finish(data, alone)
        result = replace(result, findings=tuple(sorted((*result.findings, taken_back), key=Finding.sort_key)))
    return _analysed(result, data, file, settings, project)


def _left_alone(data: bytes, path: str, settings: Settings) -> FileResult | None:
    """The result of a file that stays as it is, whatever it holds: our own `npu_port.py`, and what a plan leaves."""
    if not (helper := is_helper(path, data)) and not settings.leaves(path):
        return None
    ledger, count = ledger_of(data, Cause(TokenVerdict.IGNORED, "", "helper-file" if helper else "left-by-plan"))
    return FileResult(path, data, kernels_said(path, defined_in(data)) if helper else (), count, ledger=ledger)


def _says_nothing(data: bytes, path: str, settings: Settings, project: ProjectFacts, recalled: File | None) -> bool:
    """True for a file in which no fixer finds anything, by its bytes and by what its project says of it."""
    known_silent = project.files.silent.pop(path, None) == hash(data)
    return (
        (known_silent or (recalled is None and not worth_a_look(data, settings)))
        and not settings.adds_code
        and not project.reach.names_built(data)
        and not any(name.encode() in data for name in project.given)
        and not may_hold_old_names(data)
    )


def _analysed(
    result: FileResult, data: bytes, file: File | None, settings: Settings, project: ProjectFacts
) -> FileResult:
    """The result with the findings of the analysis, where the settings ask for it, and the options that its findings
    stand behind; `result.data` is not touched.
    """
    if settings.analysis and concerns(data, result.path):
        from transplt.engine.analysis.analysis import add_to, analyse

        stages.enter(stages.ANALYSED)
        try:
            file = file or File.of(result.path, data)
        except UnreadableSource:
            return result
        findings, support = analyse(file.source, file.scan, compile_rules(settings), settings, project, result.findings)
        if settings.in_place:  # a check says what is left, and no remarks
            findings = [each for each in findings if each.open]
        result = add_to(result, findings, support)
    if file is None:
        return result
    return replace(result, findings=mark_options(file, result.findings, project, settings.torch_version))


def survey(data: bytes, work: Work) -> FileResult:
    """The findings of a planned file. One whose edit would be made counts as applied, and takes the tokens in
    its place away."""
    ignores = Ignores(work)
    edits = [edit for edit in work.rewrites if not ignores.drop(edit)]
    findings = [ignores.mark(finding_of(work.source, work.scan.path, note)) for note in [*work.notes, *ignores.dropped]]
    made = [_finding(work, edit) for edit in edits]
    gone = sorted((each.span.start, each.span.end, b"") for each in made if each.applied)
    done, offered = [each for each in made if each.applied], [each for each in made if not each.applied]
    findings += map(ignores.mark, offered)  # one that is offered accounts for its tokens as a finding does
    account = settle(work, gone, done, findings, ignores.reason)
    findings += map(ignores.mark, done)
    findings += [ignores.mark(finding_of(work.source, work.scan.path, note)) for note in account.unknown]
    findings += word_findings(work, ignores)
    findings.sort(key=Finding.sort_key)
    return FileResult(work.scan.path, data, tuple(findings), changed=any(each.applied for each in findings))


def _finding(work: Work, edit: Edit) -> Finding:
    made = applies(edit, work.settings)
    return Finding(
        path=work.scan.path,
        span=work.source.span(*work.source.extent(edit.node)),
        code=edit.code,
        level=edit.level,
        message=edit.message,
        api=edit.api,
        effort=None if made else edit.effort or Effort.LOW,
        help=edit.help if made or edit.help else ON_REQUEST,
        applied=made,
    )
