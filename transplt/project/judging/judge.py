"""`transplt judge`: a port that somebody made, held against its original; what is said of it, and why."""

from __future__ import annotations

import ast
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from transplt.base.disk.git_index import find_repository
from transplt.base.finding import Finding, Level
from transplt.base.render.cell import many
from transplt.base.render.verdict import Word
from transplt.engine.actions.action import BLOCKING, BLOCKS_TEXT
from transplt.engine.actions.actions import actions_of
from transplt.engine.actions.groups import aside as is_aside
from transplt.project.checking.check_run import check_paths, fingerprint
from transplt.project.checking.compiled import with_compiled
from transplt.project.judging.differences import GETS_ROUND, REWRITTEN, TRAINS_OTHERWISE, differences
from transplt.project.judging.orders import Order, Sides, orders_of, what_is_left
from transplt.project.judging.sides import Side, copy_to_check, folder_of, read_side
from transplt.project.judging.statements import TABLE
from transplt.project.judging.tricks import TAKEN
from transplt.project.options import Options
from transplt.project.proving import run_of
from transplt.project.report.check_results import CheckedFinding, CheckResult
from transplt.proof.compiler.compiling import Compiler
from transplt.proof.compiler.launches import REFUSED
from transplt.proof.launch.options import RunOptions
from transplt.proof.launch.options import UsageError as CannotRun
from transplt.proof.launch.warm import Warm
from transplt.proof.prove.command import for_output
from transplt.proof.prove.projects import find_project
from transplt.proof.prove.proof import between
from transplt.rules.card_limits import card_named
from transplt.rules.pages import BLOCKS, load
from transplt.rules.tables import read_table
from transplt.syntax.nodes import last_name

_REDIRECTS = b"transfer_to_npu"
#: Codes of what the releases of torch and of packages ask for, and no use of CUDA.
_OF_RELEASES = ("NPU154", "NPU29", "NPU313", "NPU403", "NPU511", "NPU512", "NPU514", "NPU515", "NPU84")
#: A device in a file of settings: the program that reads it is redirected, too.
_CONFIG = "NPU820"
_NAMES_CARD = re.compile(rb"npu|ascend|accelerator", re.IGNORECASE)
_ONLY_A_RUN = "only --prove can tell whether the port computes the same"


class Mark(str, Enum):
    """What one part of a judgement says of the port."""

    GOOD = "good"
    AGAINST = "against"
    OPEN = "not judged"


@dataclass(frozen=True, slots=True)
class Part:
    """One question about a port: what the answer is, in a sentence, and what it rests on."""

    title: str
    mark: Mark
    sentence: str
    findings: tuple[CheckedFinding, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(slots=True)
class Judgement:
    """What is said of a port: `parts` by question, what is `also` changed without speaking against it, and what is
    `unknown`. `drift`: why it cannot be held against this original; `orders`: what is left to do, and `action` the one
    of them that alone was asked for."""

    original: str
    port: str
    action: str = ""
    drift: str = ""
    orders: tuple[Order, ...] = ()
    parts: list[Part] = field(default_factory=list)
    also: tuple[CheckedFinding, ...] = ()
    unknown: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        """Whether nothing speaks against the port, and reading or a run has decided all of it."""
        return not self.drift and not self.undecided and all(part.mark is not Mark.AGAINST for part in self.parts)

    @property
    def undecided(self) -> str:
        """What neither reading nor a run has decided."""
        left = (part.sentence for part in self.parts if part.mark is Mark.OPEN and part.findings)
        return "" if self.parts[-1].mark is Mark.GOOD else next(left, "")

    @property
    def sentence(self) -> str:
        """What it comes to."""
        against = [part for part in self.parts if part.mark is Mark.AGAINST]
        if self.action:
            return f"{'not done' if against else 'done'}: {self.action}: {self.parts[0].sentence}"
        if self.drift and not against:
            return f"not judged: {self.drift}"
        if against:
            trains = [] if self.drift else [CHANGED]
            read = [*in_order(against), *(part for part in self.parts if part.title in trains and part not in against)]
            told = [part.sentence if part.findings else f"{part.title}: {part.sentence}" for part in read]
            told += [f"the rest is not judged: {self.drift}"] if self.drift else []
            return f"not accepted: {'; '.join(told)}"
        if self.undecided:
            return self.undecided
        last = self.parts[-1]
        as_read = "accepted as read: nothing speaks against it"
        return f"accepted: {last.sentence}" if last.mark is Mark.GOOD else f"{as_read}; {last.sentence}"

    @property
    def result(self) -> CheckResult:
        """All of its findings, as a check has them."""
        found = [each for part in self.parts for each in part.findings]
        info = tuple(each for each in (*found, *self.also) if not each.finding.open)
        return CheckResult(tuple(each for each in found if each.finding.open), info)


def in_order(parts: Iterable[Part]) -> list[Part]:
    """The parts as a reader needs them: what the port changed, then what is left of CUDA."""
    return sorted(parts, key=lambda part: part.title not in (CHANGED, ROUND))


LEFT, CHANGED, ROUND = "uses of CUDA", "changes beyond the device", "attempts to mislead the check"
KERNELS, TRAINS = "Triton kernels", "run and training"


def judge(
    original: str,
    port: str,
    command: str,
    progress: Callable[[str], None],
    *,
    stubs: tuple[str, ...] = (),
    data: tuple[str, ...] = (),
    python: str = "",
    torch_version: str | None = None,
    worlds: tuple[int, ...] = (1,),
    allowed: Collection[str] = (),
    action: str = "",
) -> Judgement:
    """Judge `port`, a folder or a commit of the repository of `original`. With a `command` (`train.py --epochs 1`) both
    are run; without one nothing of them is. What the port changes in the themes that are `allowed` does not speak
    against it. With an `action` only that is judged: whether it is done.

    UsageError where one of them is not there, or nothing can be run.
    """
    with tempfile.TemporaryDirectory(prefix="transplt-judge-") as name:
        scratch = Path(name)
        first = folder_of(original, scratch / "original", ".")
        second = folder_of(port, scratch / "port", original if find_repository(first) is not None else ".")
        progress("reading both programs")
        sides = read_side(first), read_side(second)
        found = differences(*sides)
        done = Judgement(original, port, action, "" if action else found.drift)
        every = [*found.against, *found.open]
        told = {each.path for each in (*every, *found.also)} & {*sides[1].files}
        lines = {path: sides[1].files[path].splitlines() for path in told}
        meant = [each for each in every if each.code == TRAINS_OTHERWISE and each.api in allowed]
        against = _checked([each for each in every if each not in meant], lines)
        done.also = _checked([*(replace(each, level=Level.INFO) for each in meant), *found.also], lines)
        progress("looking for what is left of CUDA")
        copy = scratch / "checked"
        copy_to_check(sides[1], copy)
        left, kernels = _left(sides, copy, Options(isolated=True, torch_version=torch_version), progress)
        changed = _of(CHANGED, TRAINS_OTHERWISE, against, found.drift, "nothing that decides how it trains")
        partly = " in what could be compared" * bool(found.open)
        hidden = _of(ROUND, GETS_ROUND, against, "", f"none found{partly}")
        done.parts = [left, changed, hidden, kernels]
        done.orders = orders_of([each for part in done.parts for each in part.findings], Sides(*sides, found))
        if action:
            reason, rest, remarks = what_is_left(action, done.orders, done.also, Sides(*sides, found))
            mark = Mark.AGAINST if reason else Mark.GOOD
            done.parts, done.also = [Part("the action", mark, reason or "nothing of it is left", rest, remarks)], ()
            return done
        ran = None
        if command:
            run = run_of(command, stubs, python, first, progress)
            ran = _run(first, second, found.successors, run, worlds, progress, data)
        if ran is not None and ran.mark is not Mark.OPEN:
            answer = "the run computed the same" if ran.mark is Mark.GOOD else "the run is told below"
            done.parts[:] = [replace(part, sentence=part.sentence.replace(_ONLY_A_RUN, answer)) for part in done.parts]
        done.parts.append(ran or Part(TRAINS, Mark.OPEN, "nothing was run (--prove COMMAND runs both)"))
        done.unknown += _unknown(found.unread, sides, ran)
    return done


def _checked(findings: Iterable[Finding], lines: dict[str, list[bytes]]) -> tuple[CheckedFinding, ...]:
    """Findings with the lines that they are about; the same text twice in a file counts apart."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for each in findings:
        number = each.span.line
        text = b"".join(lines.get(each.path, [])[number - 1 : number]).decode("utf-8", "replace")
        seen[key := (each.path, each.code, text)] += 1
        known = fingerprint(each, text, seen[key])
        found.append(CheckedFinding(each, known, ((number, text),) if text else ()))
    return tuple(found)


def _of(title: str, code: str, against: Sequence[CheckedFinding], drift: str, well: str) -> Part:
    ordered = sorted(against, key=lambda each: not each.finding.open)
    both = tuple(each for each in ordered if each.finding.code == code)
    mine = tuple(each for each in both if each.finding.open)
    themes = Counter(each.finding.api for each in mine)
    told = f"{many(len(mine), 'line')} that may hide an error, skip work or make up a result"
    if code == TRAINS_OTHERWISE:
        listed = ", ".join(f"{theme} {count}" if count > 1 else theme for theme, count in themes.most_common())
        told = f"{many(len(mine), 'change')} beyond the device ({listed})"
    rest = {(each.finding.path, each.finding.message.partition(REWRITTEN)[0]) for each in both if each not in mine}
    anew = {(path, message.partition(": ")[2]) for path, message in rest}
    were = f"{many(len(anew), 'function')} {'was' if len(anew) == 1 else 'were'} rewritten"
    left = [f"not decided: {were}; {_ONLY_A_RUN}"] if anew else []
    left = [drift] if drift else left
    mark = Mark.AGAINST if mine else Mark.OPEN if left else Mark.GOOD
    return Part(title, mark, "; ".join([*([told] if mine else []), *left]) or well, both)


def _left(sides: tuple[Side, Side], copy: Path, options: Options, progress: Callable[[str], None]) -> tuple[Part, Part]:
    """What a check finds in the copy of a port that stops it or computes something else, and what the compiler says of
    its kernels. Settings, comments and baselines of the port say nothing here."""
    port, known = sides[1], b"\n".join(sides[0].files.values())
    result, kernels = _compiled(check_paths([copy], options), port, copy, progress)
    items, info = ([_in_port(each, copy) for each in found] for found in (result.items, result.info))
    redirects = any(_REDIRECTS in port.files[path] for path in port.python)
    aside: dict[str, list[CheckedFinding]] = defaultdict(list)
    places = {id(each): _place_and_host(each.finding, port) for each in items}
    mended = {place for place, on_host in places.values() if on_host}
    for each in items:
        line = port.files[each.finding.path].splitlines()[each.finding.span.line - 1].strip()
        place, on_host = places[id(each)]
        beside = "beside a branch that does it on the CPU" * (place in mended and line in known)
        why = "on the CPU, where it works" if on_host else beside
        aside[why or _aside(each, redirects=redirects, old=line in known)].append(each)
    kept = aside.pop("", [])
    blocks, lines = _stopping(kept, info)
    against = tuple(each for each in kept if id(each.finding) in blocks)
    if more := len(kept) - len(against):
        lines.append(f"{many(more, 'place')} more, without effect on training")
    for why, found in aside.items():
        first = found[0].finding
        lines.append(f"{why}: {many(len(found), 'place')}, first {first.path}:{first.span.line}: {first.text}")
    counted = Counter(blocks[id(each.finding)] for each in against)
    told = ", ".join(f"{BLOCKS_TEXT[what]}: {counted[what]}" for what in BLOCKS if counted[what])
    old = sum(each.finding.api.startswith("numpy") for each in against)
    wrong = f"CUDA is left at {many(len(against) - old, 'place')}" if len(against) > old else ""
    wrong += f"{' and ' * bool(wrong)}{many(old, 'name')} of NumPy that it has no more" if old else ""
    wrong += f" ({told})" * bool(against)
    if not wrong and not any(map(_NAMES_CARD.search, port.files.values())):
        wrong = "no file of the port names an NPU"
    well, mark = "nothing that stops it or computes something else", Mark.AGAINST if wrong else Mark.GOOD
    return Part(LEFT, mark, wrong or well, against, (*lines,)), kernels


def _place_and_host(found: Finding, port: Side) -> tuple[tuple[str, str, str], bool]:
    """The function around a finding with what is called there, and whether that is given what is on the CPU."""
    told = [each for each in port.statements(found.path) if each.line <= found.span.line]
    here = told[-1].place if told else (found.path, "")
    above = (each for each in told[:-1] if each.place == here and isinstance(each.node, ast.Assign))
    taken = {ast.unparse(each.parts[0]): bool(TAKEN.match(each.raw)) for each in above}
    calls = (node for each in told[-1:] for node in ast.walk(each.node) if isinstance(node, ast.Call))
    asked = (call for call in calls if last_name(call.func) == found.api.rpartition(".")[2])
    given = [ast.unparse(arg) for call in asked for arg in call.args]
    return (*here, found.api), bool(given) and all(taken.get(name) or name.endswith(".cpu()") for name in given)


def _stopping(kept: list[CheckedFinding], info: list[CheckedFinding]) -> tuple[dict[int, str], list[str]]:
    """What the findings stop that stop a training or change its numbers, by their ids; and lines on what is to do."""
    actions = actions_of(each.finding for each in (*kept, *info))
    stops = [each for each in actions if each.stops]
    blocks = {id(finding): action.blocks for action in stops for finding in action.findings if finding.edit is None}
    for finding in (each.finding for each in kept if each.finding.edit is not None):
        own = load(finding.code).blocks  # all edits are one action, whatever each of them mends
        if own in BLOCKING and not is_aside(finding):
            blocks[id(finding)] = own
    wanted = [each for each in stops if any(id(finding) in blocks for finding in each.findings)]
    return blocks, [f"{each.title} ({BLOCKS_TEXT[each.blocks]}, {each.first})" for each in wanted]


def _aside(each: CheckedFinding, *, redirects: bool, old: bool) -> str:
    """Why an open finding does not speak against a port; empty where it may. `old`: the original has the line, too."""
    if each.finding.code.startswith(_OF_RELEASES) or "npu" in each.finding.api:
        return "about what is installed, not about the code"
    if each.finding.option:
        return "only with an option"
    if each.finding.api in read_table(TABLE)["harmless"]:
        return "without effect where there is no CUDA"
    if old and each.finding.api.startswith("numpy"):
        return "the original has it, too"
    if redirects and (each.finding.code == _CONFIG or (each.fix == "safe" and each.finding.code[3] in "123")):
        return "redirected by transfer_to_npu"
    return ""


def _compiled(result: CheckResult, port: Side, copy: Path, progress: Callable[[str], None]) -> tuple[CheckResult, Part]:
    """The result with what the compiler of the card says of kernels, and the part that it makes."""
    if not any(b"triton.jit" in data for data in port.files.values()):
        return result, Part(KERNELS, Mark.GOOD, "none")
    try:
        compiler = Compiler.of(card_named("910B"))
    except CannotRun as error:
        return result, Part(KERNELS, Mark.OPEN, str(error))
    result, lines = with_compiled(result, [str(copy / path) for path in port.python], compiler, progress)
    refused = any(each.finding.code == REFUSED for each in result.items)
    mark = Mark.AGAINST if refused else Mark.GOOD if lines else Mark.OPEN
    return result, Part(KERNELS, mark, lines[0] if lines else "no launch has its sizes in the text", (), (*lines[1:],))


def _in_port(each: CheckedFinding, copy: Path) -> CheckedFinding:
    """A finding of the copy, with its path in the port."""
    path = each.finding.path.partition(f"{copy.parent.name}/{copy.name}/")[2] or each.finding.path
    return replace(each, finding=replace(each.finding, path=path))


def _run(
    original: Path, port: Path, successors: dict[str, str], run: RunOptions, worlds: tuple[int, ...],
    progress: Callable[[str], None], data: tuple[str, ...],
) -> Part:  # fmt: skip
    try:
        options, _ = for_output(run, port, original)
        before = find_project(original, run.script, data)
        after = replace(find_project(port, successors.get(run.script, run.script), data), elsewhere=original)
        with Warm() as warm:
            proof = between(before, after, options, progress, warm).prove(worlds)
    except CannotRun as error:
        return Part(TRAINS, Mark.AGAINST, str(error))
    theirs, mine = proof.operators
    steps = sum(part.findings.steps for part in proof.parts)
    lines = (
        f"{many(steps, 'step')} compared",
        f"operators on the card: {mine} of the port"
        + (f"; {theirs} of the original, where each part of a fused one counts" if theirs else ""),
        *(f"{part.title}: {part.verdict}" for part in proof.parts),
        *proof.advice,
    )
    doubts = [proof.caught.removeprefix("; ")] * bool(proof.caught)
    good = proof.verdict.word is Word.EQUAL and not doubts
    mark = Mark.OPEN if proof.idle else Mark.GOOD if good else Mark.AGAINST
    return Part(TRAINS, mark, "; ".join([*doubts, str(proof.verdict)]), lines=lines)


def _unknown(unread: dict[str, str], sides: tuple[Side, Side], ran: Part | None) -> list[str]:
    """What this judgement cannot know."""
    some = [f"{path}: not read: {why}" for path, why in sorted(unread.items())]
    notebooks = sum(path.endswith(".ipynb") for path in sides[1].files)
    others = sum(path.endswith((".cpp", ".cc", ".cu", ".h", ".cuh")) for path in sides[1].files)
    some += [f"{many(notebooks, 'notebook')}: checked, not held against the original"] if notebooks else []
    some += [f"{many(others, 'source')} in C++: checked, not held against the original"] if others else []
    some.append("values that only a run decides: what data hold, what an option is given on the command line")
    if ran is None:
        return [*some, "whether it runs, and whether it trains the same"]
    return [*some, "the numbers and the speed of a card; lines that did not run; steps that were not compared"]
