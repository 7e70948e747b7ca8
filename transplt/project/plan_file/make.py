"""What is to be decided in a project before it is edited: from runs over it that write nothing."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from transplt.base.finding import Finding, Level
from transplt.base.plan_decisions import APPLY, IN_QUESTION
from transplt.base.render.cell import visible
from transplt.base.text.lexer import one_plain_literal
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.base.text.source import read_source
from transplt.fixers.tunings.table import tunings
from transplt.flow.entry_text import entry_of
from transplt.project.options import Options, Plan, make_plan
from transplt.project.plan_file.places import Lines, lines_of
from transplt.project.report.migration_record import Progress, RunResult
from transplt.project.tree import analyse_tree, diff_tree
from transplt.syntax.modules import named_aside

#: Codes of what mixed precision writes.
_AMP = "NPU74"


@dataclass(frozen=True, slots=True)
class Offer:
    """A place that somebody decides: the finding, what it can be made (`npu`, `hccl` or `apply`), the mark and the text
    of its line, and what the edit would take out and put there, as far as that is known.
    """

    finding: Finding
    makes: str
    mark: str
    text: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class ToDecide:
    """What a plan is written from: the plan of the run, what the run did, the places, the edits that each tuning
    and mixed precision would make, and the scripts that somebody may start, those that train first.
    """

    plan: Plan
    result: RunResult
    offers: tuple[Offer, ...]
    tunings: tuple[tuple[str, int], ...]
    amp: int
    scripts: tuple[str, ...]


def to_decide(options: Options, progress: Progress = lambda done, total: None) -> ToDecide:
    """Looks through the project three times at most; nothing is written. UsageError as for a migration."""
    plan = make_plan(replace(options, analysis=True))
    careful = replace(options, analysis=True, unsafe_fixes=False)
    result = diff_tree(make_plan(careful), progress)
    offered = [each for each in result.findings if each.level is Level.UNSAFE and each.open]
    made: list[Finding] = []
    if offered:
        made = diff_tree(make_plan(replace(careful, analysis=False, unsafe_fixes=True)), progress).edits
    offers = tuple(_offers(plan, result, made))
    counts = Counter[str]()
    if plan.settings.style != "portable":
        more = replace(careful, analysis=False, tune="all", amp="native", amp_dtype=None, opt_level=None)
        more = replace(more, loss_scale=None, combine_ddp=False, amp_flag=False)
        counts.update(each.code for each in analyse_tree(make_plan(more), progress).findings if each.applied)
    ours = tuple((name, counts[each.code]) for name, each in tunings().items() if counts[each.code])
    amp = sum(count for code, count in counts.items() if code.startswith(_AMP))
    return ToDecide(plan, result, offers, ours, amp, _scripts(plan, result))


def _scripts(plan: Plan, result: RunResult) -> tuple[str, ...]:
    found = []
    for record in result.python_files:
        if named_aside(record.path) or not _is_plain(record.path):
            continue
        with contextlib.suppress(OSError):
            entry = entry_of(read_regular(plan.folder / record.path, SOURCE, follow=plan.single), record.path)
            named = "train" in record.path.rpartition("/")[2].lower()
            rank = (not named, not entry.trains, record.path.count("/"))  # a module may train to test itself
            found += [(rank, record.path)] if entry.starts else []
    return tuple(path for _, path in sorted(found))


def _offers(plan: Plan, result: RunResult, made: Sequence[Finding]) -> Iterator[Offer]:
    """The places in Python files that can be decided one by one."""
    lines: dict[str, Lines | str] = {}
    for each in result.findings:
        if not each.open or each.within or not each.path.endswith(".py") or not _is_plain(each.path):
            continue
        edit = next((one for one in made if _inside(one, each)), None) if each.level is Level.UNSAFE else None
        if edit is None and not (each.code in IN_QUESTION and each.detail("in question")):
            continue
        if each.path not in lines:
            lines[each.path] = lines_of(plan.folder, each.path)
        its = lines[each.path]
        if isinstance(its, Lines) and (edit is not None or _one_literal(plan, each)):
            new = edit.edit if edit is not None else None
            mark, text = its.mark(each.span.line, each.span.column), its.texts[each.span.line - 1].strip()
            change = (new.before, new.after) if new is not None else ()
            yield Offer(each, IN_QUESTION.get(each.code, APPLY), mark, text, *change)


def _inside(edit: Finding, finding: Finding) -> bool:
    """True for the edit that a finding offers."""
    if (edit.path, edit.code, edit.level) != (finding.path, finding.code, Level.UNSAFE):
        return False
    return finding.span.start <= edit.span.start and edit.span.end <= finding.span.end


def _one_literal(plan: Plan, finding: Finding) -> bool:
    """Whether the string at a finding can be edited."""
    source = read_source(read_regular(plan.folder / finding.path, SOURCE, follow=False))
    word = "cuda" if finding.code == "NPU203" else "nccl"
    return one_plain_literal(source.slice(finding.span.start, finding.span.end), [word])


def _is_plain(path: str) -> bool:
    """True for a path that a line of a plan can hold as it is."""
    return visible(path) == path and path == path.strip() and "\\" not in path
