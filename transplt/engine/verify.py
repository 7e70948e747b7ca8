"""Whether an output holds: it compiles where the input did, and the built-in rules change nothing in it again."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from transplt.base.finding import Effort, Level
from transplt.base.grouped import grouped
from transplt.base.settings import Settings
from transplt.base.text.source import Source, UnreadableSource, read_source
from transplt.edits.edit import Around, Beside, Edit, Note
from transplt.edits.groups import ADAPTORS, GROUPS, MANY_CARDS, MIXED_PRECISION, TUNED, TUNINGS, Group
from transplt.edits.lines import alone
from transplt.edits.rewrite import rendered
from transplt.edits.shared_lines import indent_of
from transplt.edits.work import Work
from transplt.engine.edit_outcome import Outcome, apply_edits
from transplt.engine.plan import plan
from transplt.engine.prefilter import worth_a_look
from transplt.rules.rule_set import compile_rules
from transplt.syntax.parse import parse
from transplt.syntax.scan import scan


def applies(edit: Edit, settings: Settings) -> bool:
    """True for an edit that is made; the others are offered."""
    if edit.level is Level.SAFE:
        return True
    return edit.level is Level.UNSAFE and (settings.unsafe_fixes or edit.asked)


def what_holds(work: Work, wanted: list[Edit]) -> tuple[Outcome, list[Note]]:
    """The outcome of as many edits as hold together, and the findings for those that were taken back."""
    wanted, notes = _readable(work, wanted)
    outcome = apply_edits(work, wanted)
    for group in GROUPS if work.settings.adds_code else ():
        lost = _lost(work, group, wanted) or _over_a_rule(work, group, wanted)
        if not lost and not any(edit.group == group.name for edit in wanted):
            continue
        failed = lost or _failed(outcome, group)
        unsound = "" if failed else _unsound(work, group, outcome)
        if why := failed or unsound or _broken(work, outcome, wanted):
            wanted = _without(wanted, group)
            notes.append(_group_taken_back(work, group, why, group.code if unsound else "NPU992", defect=not lost))
            if group in (ADAPTORS, TUNINGS):  # what its edits would have answered is open
                notes += [note for name, note in work.answered if name.startswith(TUNED) is (group is TUNINGS)]
            outcome = apply_edits(work, wanted)
    if outcome.spliced and _broken(work, outcome, wanted):
        outcome, taken_back = _by_halving(work, wanted)
        notes += taken_back
    return outcome, notes


def _failed(outcome: Outcome, group: Group) -> str:
    """Why an edit of a group could not be made, empty when all were."""
    why = (each.reason for each in outcome.failures if any(edit.group == group.name for edit in each.site.edits))
    return next(why, "")


def refused(source: Source, tree: ast.Module | None) -> str:
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


def _broken(work: Work, outcome: Outcome, applied: Sequence[Edit]) -> str:
    """Why the output of a file must not be written, empty when it may be. `applied` are the edits it holds."""
    settings = replace(work.settings, user_rules=())
    try:
        source = read_source(outcome.data)
        if not worth_a_look(outcome.data, settings, ported=False) and not refused(source, None):
            return ""  # nothing is left for a rule to act on
        tree = parse(source)
    except UnreadableSource as error:
        return error.reason
    if (reason := refused(source, tree)) and not refused(work.source, work.scan.tree):
        return reason
    if not work.settings.whole:
        return ""  # other lines are as they were: of these a second run has much to say
    settings = replace(work.settings.without_themes(), user_rules=())
    rules, found = compile_rules(settings), scan(source, tree, work.scan.path)
    again = plan(source, found, rules, settings, work.project, edits_alone=True)
    more = [edit for edit in again.rewrites if applies(edit, settings)]
    left_out = _left_out(work, outcome, applied) if more else set()
    more = [edit for edit in more if (edit.code, source.extent(edit.node)[0]) not in left_out]
    if not more:
        return ""
    beside = [edit for edit in again.edits if not edit.rewrites]
    if apply_edits(again, [*more, *beside]).data == outcome.data:
        return ""
    return f"a second run would change it again: {more[0].message}"


def _left_out(work: Work, outcome: Outcome, applied: Sequence[Edit]) -> set[tuple[str, int]]:
    """Codes and places in the output of the edits that were switched off or taken back: they would come again."""
    failed = [failure.site for failure in outcome.failures]
    for site in failed:
        failed += site.children
    done = {id(edit) for edit in applied} - {id(edit) for site in failed for edit in site.edits}
    places = sorted((work.source.extent(edit.node)[0], edit.code) for edit in work.rewrites if id(edit) not in done)
    found: set[tuple[str, int]] = set()
    shift = index = 0
    for start, code in places:
        while index < len(outcome.spliced) and outcome.spliced[index][1] <= start:
            before, end, new = outcome.spliced[index]
            shift += len(new) - (end - before)
            index += 1
        found.add((code, start + shift))
    return found


def _unsound(work: Work, group: Group, outcome: Outcome) -> str:
    """Why what a theme wrote does not hold by its own rules, empty when it does."""
    if group is not MIXED_PRECISION:
        return ""
    from transplt.fixers.amp.output_checks import unsound
    from transplt.fixers.amp.unbound import unbound_amp

    unbound = {ast.unparse(node.value) for node in unbound_amp(work.file)}
    return unsound(work.scan.path, outcome.data, unbound)


# --- taking back -----------------------------------------------------------------------------------------------------


def _readable(work: Work, edits: list[Edit]) -> tuple[list[Edit], list[Note]]:
    """The edits without lines that Python does not read; they never go in, nor does what belongs to them."""
    notes: list[Note] = []
    for edit in edits:
        if edit.rewrites or not (why := _unreadable(work, edit)):
            continue
        group = next((each for each in GROUPS if each.name == edit.group), None)
        if group is None:
            notes.append(_taken_back(work, edit, why))
            edits = [each for each in edits if each is not edit]
        elif any(each.group == group.name for each in edits):
            notes.append(_group_taken_back(work, group, why))
            edits = _without(edits, group)
    return edits, notes


def _unreadable(work: Work, edit: Edit) -> str:
    """Why Python does not read the lines of an edit; empty when it does."""
    text = str(edit.new)
    if isinstance(edit.where, Around):
        text = "\n    ".join((text, *edit.where.begins, "pass"))
        text = f"if True:\n    pass\n{text}" if text.startswith("else:") else text
    if isinstance(edit.where, Beside) and edit.where.verbatim_from >= 0 and indent_of(work.source, edit.where.node):
        text = f"if True:\n{alone(work.source, edit).text}"
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _lost(work: Work, group: Group, wanted: Sequence[Edit]) -> str:
    """Which edit of a group is not among those that are wanted, and why, empty when all are.

    Each tuning and adaptor looks by itself at what is switched off.
    """
    if group is MANY_CARDS and work.overruled:
        return work.overruled
    there = {id(edit) for edit in wanted}
    planned = {id(edit) for edit in work.edits}
    for edit in work.grouped:
        off = id(edit) in planned
        node = edit.where.node if isinstance(edit.where, Beside) else edit.where
        by_itself = off and group in (TUNINGS, ADAPTORS)
        if edit.group != group.name or id(edit) in there or not isinstance(node, ast.AST) or by_itself:
            continue
        if edit.rewrites or (off and group is MANY_CARDS):
            why = "it is turned off there" if off else "another edit changes the same code"
            return f"{edit.message}, in line {node.lineno}: {why}"
    return ""


def _over_a_rule(work: Work, group: Group, wanted: Sequence[Edit]) -> str:
    """Which edit of a group leaves nothing of an edit that a rule of the user's makes there, empty when none does."""
    rewriting = [edit for edit in wanted if edit.rewrites]
    theirs = [(edit, *work.source.extent(edit.node)) for edit in rewriting if edit.user]
    for edit in rewriting if theirs else ():
        if edit.group != group.name:
            continue
        start, end = work.source.extent(edit.node)
        for user in (user for user, at, to in theirs if start <= at and to <= end):
            others = [each for each in rewriting if each is not user]
            if rendered(work.source, edit.node, rewriting) == rendered(work.source, edit.node, others):
                return f"{edit.message}, in line {edit.node.lineno}: a rule of yours contradicts this ({user.message})"
    return ""


def _without(edits: Sequence[Edit], group: Group) -> list[Edit]:
    return [edit for edit in edits if edit.group != group.name]


def _by_halving(work: Work, edits: Sequence[Edit]) -> tuple[Outcome, list[Note]]:
    """Keep as many edits as hold together, by halving; report the others."""
    single = [edit for edit in edits if isinstance(edit.where, Beside) and not edit.group]
    rest = [edit for edit in edits if not edit.rewrites]
    notes: list[Note] = []
    if single and (why := _broken_by_lines(work, rest)):
        notes += [_taken_back(work, edit, why) for edit in single]
        rest = [edit for edit in rest if edit not in single]
    by_node = grouped((id(edit.node), edit) for edit in edits if edit.rewrites)
    kept: list[Edit] = []

    def settle(groups: list[list[Edit]]) -> None:
        trial = [edit for group in groups for edit in group]
        wanted = [*kept, *trial, *rest]
        why = _broken(work, apply_edits(work, wanted), wanted)
        if not why:
            kept.extend(trial)
        elif len(groups) == 1:
            notes.extend(_taken_back(work, edit, why) for edit in trial)
        else:
            half = len(groups) // 2
            settle(groups[:half])
            settle(groups[half:])

    if by_node:
        settle(list(by_node.values()))
    return apply_edits(work, [*kept, *rest]), notes


def _broken_by_lines(work: Work, lines: Sequence[Edit]) -> str:
    """Why the file breaks by the lines that go in alone, empty when it does not."""
    try:
        source = read_source(apply_edits(work, lines).data)
    except UnreadableSource as error:
        return error.reason
    reason = refused(source, None)
    return reason if reason and not refused(work.source, work.scan.tree) else ""


def _group_taken_back(work: Work, group: Group, why: str, code: str = "NPU992", *, defect: bool = True) -> Note:
    start = work.source.extent(work.scan.tree.body[0])[0]
    report = "report it as a defect of transplt" if defect else "fix the cause and migrate again"
    help_ = f"{group.instead}, {'and' if defect else 'or'} {report}"
    return Note(
        (start, start), code, Level.MANUAL, group.taken_back(why), help=help_, effort=Effort.HIGH,
        details=((f"undone: {group.name}", why),),
    )  # fmt: skip


def _taken_back(work: Work, edit: Edit, why: str) -> Note:
    if edit.rewrites:
        extent, instead = work.source.extent(edit.node), "make this change by hand"
    else:
        assert isinstance(edit.where, Beside)
        start = work.source.extent(edit.where.node)[0]
        extent, instead = (start, start), f"write `{edit.new}` by hand"
    return Note(
        extent,
        "NPU992",
        Level.MANUAL,
        f"undone: {edit.message} ({why})",
        edit.api,
        f"{instead}, and report it as a defect of transplt",
        Effort.LOW,
    )
