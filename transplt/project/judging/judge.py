"""`transplt judge`: a port that somebody made, held against its original; what is said of it, and why."""

from __future__ import annotations

import ast
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from transplt.project.judging.differences import GETS_ROUND, TRAINS_OTHERWISE, Differences, differences
from transplt.project.judging.orders import Order, Sides, orders_of, what_is_left
from transplt.project.judging.settled import Reached
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
from transplt.proof.prove.proof import Proof, between
from transplt.rules.card_limits import card_named
from transplt.rules.pages import BLOCKS, load
from transplt.rules.tables import read_table
from transplt.syntax.nodes import last_name

_REDIRECTS = b"transfer_to_npu"
#: Codes of what the releases of torch and of packages ask for, and no use of CUDA.
_OF_RELEASES = ("NPU154", "NPU29", "NPU313", "NPU403", "NPU511", "NPU512", "NPU514", "NPU515", "NPU84")
#: What an NPU refuses whatever is installed, though the original does it.
_REFUSED_FORM = "NPU297"
#: A device in a file of settings: the program that reads it is redirected, too.
_CONFIG = "NPU820"
#: CUDA in a file that also supports NPUs, which is a branch as a rule.
_BESIDE_NPU = "NPU200"
_NAMES_CARD = re.compile(rb"npu|ascend|accelerator", re.IGNORECASE)
_PLACE = re.compile(r"([\w./-]+\.py):(\d+)")
#: So many lines from the one that computed something else a difference is near to it.
_NEAR = 20
_ONLY_A_RUN = "only --prove can tell whether the port computes the same"
#: So many lines are said in the sentence on top.
_SAID = 3


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
    `unknown`. `unproved`: why a run decided nothing; `for_ranks`: only several processes come to some of it; `drift`:
    why it cannot be held against this original; `orders`: what is left to do, and `action` the one of them that alone
    was asked for."""

    original: str
    port: str
    action: str = ""
    drift: str = ""
    unproved: str = ""
    for_ranks: bool = False
    orders: tuple[Order, ...] = ()
    parts: list[Part] = field(default_factory=list)
    also: tuple[CheckedFinding, ...] = ()
    unknown: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        """Whether nothing speaks against the port, and reading or a run has decided all of it."""
        return self.word == "accepted"

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        against = any(part.mark is Mark.AGAINST for part in self.parts)
        if self.drift and not against:
            return "not judged"
        return "refused" if against else "not decided" if self.undecided else "accepted"

    @property
    def undecided(self) -> str:
        """What neither reading nor a run has decided."""
        left = [each for part in in_order(self.parts) for each in part.findings if not each.finding.open]
        if not left or self.unproved:
            return self.unproved
        counted = many(len(left), "difference")
        if self.parts[-1].title == TRAINS and self.parts[-1].mark is Mark.GOOD:
            alone = "; --nproc 2 may reach what only several processes do" * self.for_ranks
            return f"{self.parts[-1].sentence}; {counted} that it does not settle: {_said(left)}{alone}"
        return f"{counted} to look at, {_ONLY_A_RUN}: {_said(left)}"

    @property
    def sentence(self) -> str:
        """What it comes to: the word, then the lines that matter most."""
        against = [part for part in self.parts if part.mark is Mark.AGAINST]
        if self.action:
            return f"{'not done' if against else 'done'}: {self.action}: {self.parts[0].sentence}"
        if self.word == "not judged":
            return f"not judged: {self.drift}"
        if against:
            told = [part.sentence if part.findings else f"{part.title}: {part.sentence}" for part in in_order(against)]
            told += [f"the rest is not judged: {self.drift}"] if self.drift else []
            return f"refused: {'; '.join(told)}"
        if self.undecided:
            return f"not decided: {self.undecided}"
        last = self.parts[-1]
        as_read = "accepted as read: nothing speaks against it"
        return f"accepted: {last.sentence}" if last.mark is Mark.GOOD else f"{as_read}; {last.sentence}"

    @property
    def result(self) -> CheckResult:
        """All of its findings, as a check has them."""
        found = [each for part in self.parts for each in part.findings]
        info = tuple(each for each in (*found, *self.also) if not each.finding.open)
        return CheckResult(tuple(each for each in found if each.finding.open), info)


def _said(findings: Sequence[CheckedFinding]) -> str:
    """The first of some findings in a few words, each with its place."""
    shown = [each.finding for each in findings[:_SAID]]
    told = (f"{each.path}:{each.span.line} {each.message.partition(' (original')[0]}" for each in shown)
    more = len(findings) - _SAID
    return "; ".join(told) + (f"; and {more} more" if more > 0 else "")


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
        against = _checked([each for each in every if each not in meant], lines, found.reached)
        meant = [replace(each, level=Level.INFO) for each in meant]
        done.also = _checked([*meant, *found.also], lines, found.reached)
        progress("looking for what is left of CUDA")
        copy = scratch / "checked"
        copy_to_check(sides[1], copy)
        left, kernels = _left(sides, copy, Options(isolated=True, torch_version=torch_version), progress)
        changed = _of(CHANGED, TRAINS_OTHERWISE, against, found.drift, "nothing that decides how it trains")
        hidden = _of(ROUND, GETS_ROUND, against, "", "none found")
        done.parts = [left, changed, hidden, kernels]
        done.orders = orders_of([each for part in done.parts for each in part.findings], Sides(*sides, found))
        if action:
            reason, rest, remarks = what_is_left(action, done.orders, done.also, Sides(*sides, found))
            mark = Mark.AGAINST if reason else Mark.GOOD
            done.parts, done.also = [Part("the action", mark, reason or "nothing of it is left", rest, remarks)], ()
            return done
        ran, asked = None, done.parts
        as_read = "nothing was run" + " (--prove COMMAND runs both)" * (not command)
        done.parts = [*asked, Part(TRAINS, Mark.OPEN, as_read)]
        if command:
            progress(f"as read, before anything is run: {done.sentence}")
            run = run_of(command, stubs, python, first, progress)
            ran, proof = _run(first, second, found, run, worlds, progress, data)
            done.parts = asked
            ran = _told_by(done, ran, proof, sides, found.reached)
            done.parts.append(ran)
        done.unknown += _unknown(found.unread, sides, ran)
    return done


def _told_by(done: Judgement, ran: Part, proof: Proof | None, sides: tuple[Side, Side], reached: Reached) -> Part:
    """The part of a run: what it settles leaves the other parts, and what it refuses names what is behind it."""
    if proof is None:
        return ran
    if ran.mark is Mark.OPEN and not proof.idle:
        done.unproved = ran.sentence
    if ran.mark is Mark.GOOD:
        before = [each for part in done.parts for each in part.findings]
        done.parts[:] = [_settled(part, proof, reached) for part in done.parts]
        kept = {id(each) for part in done.parts for each in part.findings}
        done.also = (*done.also, *(each for each in before if id(each) not in kept))
        done.for_ranks = any(reached.needs_ranks(each.finding) for part in done.parts for each in part.findings)
    if proof.verdict.word is Word.STOPS:
        behind = _kept_stop(proof.verdict.sentence, sides) or [*_behind(proof, done.parts, nearest=True)]
    else:
        behind = [*_behind(proof, done.parts)] if ran.mark is Mark.AGAINST else []
    return replace(ran, sentence="; ".join([ran.sentence, *behind]))


def _kept_stop(sentence: str, sides: tuple[Side, Side]) -> list[str]:
    """That a port stops at a line which it has of its original."""
    for path, line in _PLACE.findall(sentence):
        texts = sides[1].files.get(path, b"").splitlines()[int(line) - 1 : int(line)]
        if any(text.strip() in data for text in texts for data in sides[0].files.values()):
            return ["the original has this line, too: what it does there does not work on an NPU"]
    return []


def _checked(
    findings: Iterable[Finding], lines: dict[str, list[bytes]], reached: Reached
) -> tuple[CheckedFinding, ...]:  # fmt: skip
    """Findings with the lines that they are about, those of both programs where they differ; the same text twice in a
    file counts apart."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for each in findings:
        number = each.span.line
        text = b"".join(lines.get(each.path, [])[number - 1 : number]).decode("utf-8", "replace")
        seen[key := (each.path, each.code, text)] += 1
        known = fingerprint(each, text, seen[key])
        found.append(CheckedFinding(each, known, reached.lines_of(each) or (((number, text),) if text else ())))
    return tuple(found)


def _of(title: str, code: str, against: Sequence[CheckedFinding], drift: str, well: str) -> Part:
    ordered = sorted(against, key=lambda each: not each.finding.open)
    both = tuple(each for each in ordered if each.finding.code == code)
    mine = tuple(each for each in both if each.finding.open)
    told = f"{many(len(mine), 'line')} that may hide an error, skip work or make up a result"
    if code == TRAINS_OTHERWISE:
        told = f"{many(len(mine), 'change')} beyond the device"
    rest = len(both) - len(mine)
    left = [drift] if drift else [f"{many(rest, 'difference')} to look at"] * bool(rest)
    mark = Mark.AGAINST if mine else Mark.OPEN if left else Mark.GOOD
    return Part(title, mark, "; ".join([*([f"{told}: {_said(mine)}"] if mine else []), *left]) or well, both)


def _left(sides: tuple[Side, Side], copy: Path, options: Options, progress: Callable[[str], None]) -> tuple[Part, Part]:
    """What a check finds in the copy of a port that stops it or computes something else, and what the compiler says of
    its kernels. Settings, comments and baselines of the port say nothing here."""
    port, known = sides[1], b"\n".join(sides[0].files.values())
    result, kernels = _compiled(check_paths([copy], options), port, copy, progress)
    items, info = ([_in_port(each, copy) for each in found] for found in (result.items, result.info))
    redirects = b"".join(port.files[path] for path in port.python).count(_REDIRECTS) > 0
    aside = _by_reason(items, port, known, redirects)
    kept = aside.pop("", [])
    blocks, lines = _stopping(kept, info)
    both = [each for each in kept if id(each.finding) in blocks]
    fixed = [each for each in both if not redirects or each.finding.code == _REFUSED_FORM]
    sure = [each for each in fixed if _stops(each.finding, sides)]
    unsure = (replace(each, finding=replace(each.finding, level=Level.INFO)) for each in both if each not in sure)
    against = (*sure, *unsure)
    if more := len(kept) - len(against):
        lines.append(f"{many(more, 'place')} more, without effect on training")
    lines += map(_first_of, aside.items())
    no_card = "no file of the port names an NPU" * (not any(map(_NAMES_CARD.search, port.files.values())))
    wrong = _said_of_cuda([each.finding for each in sure], blocks) or no_card
    to_look_at = f"{many(len(against), 'place')} to look at, which may stop it"
    well = to_look_at if against else "nothing that stops it or computes something else"
    mark = Mark.AGAINST if wrong else Mark.OPEN if against else Mark.GOOD
    return Part(LEFT, mark, wrong or well, against, (*lines,)), kernels


def _first_of(aside: tuple[str, list[CheckedFinding]]) -> str:
    why, found = aside
    at = found[0].finding
    return f"{why}: {many(len(found), 'place')}, first {at.path}:{at.span.line}: {at.text}"


def _by_reason(
    items: Sequence[CheckedFinding], port: Side, known: bytes, redirects: bool
) -> dict[str, list[CheckedFinding]]:  # fmt: skip
    """Findings by why they do not speak against a port, an empty text where they may; `known`: the original's lines."""
    aside: dict[str, list[CheckedFinding]] = defaultdict(list)
    places = {id(each): _place_and_host(each.finding, port) for each in items}
    mended = {place for place, on_host in places.values() if on_host}
    for each in items:
        old = port.files[each.finding.path].splitlines()[each.finding.span.line - 1].strip() in known
        place, on_host = places[id(each)]
        beside = "beside a branch that does it on the CPU" * (place in mended and old)
        why = "on the CPU, where it works" if on_host else beside
        aside[why or _aside(each, redirects=redirects, old=old)].append(each)
    return aside


def _said_of_cuda(sure: Sequence[Finding], blocks: Mapping[int, str]) -> str:
    """What is left of CUDA, and of NumPy's old names, in one sentence; empty where nothing is."""
    if not sure:
        return ""
    counted = Counter(blocks[id(each)] for each in sure)
    told = ", ".join(f"{BLOCKS_TEXT[what]}: {counted[what]}" for what in BLOCKS if counted[what])
    old = sum(each.api.startswith("numpy") for each in sure)
    forms = [each for each in sure if each.code == _REFUSED_FORM]
    of_cuda = len(sure) - old - len(forms)
    said = [f"CUDA is left at {many(of_cuda, 'place')}"] * bool(of_cuda)
    said += [f"{many(old, 'name')} of NumPy that it has no more"] * bool(old)
    said += [f"{each.path}:{each.span.line}: {each.message} (as in the original)" for each in forms[:1]]
    return f"{'; '.join(said)} ({told})"


def _stops(found: Finding, sides: tuple[Side, Side]) -> bool:
    """Whether a use of CUDA certainly stops a port: in code of the original, and no branch beside that of NPUs."""
    line = sides[1].files[found.path].splitlines()[found.span.line - 1].strip()
    old = any(line in data for path, data in sides[0].files.items() if path.endswith(".py"))
    return found.path.endswith(".py") and found.code != _BESIDE_NPU and old


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
    of_releases = each.finding.code.startswith(_OF_RELEASES) and each.finding.code != _REFUSED_FORM
    if of_releases or "npu" in each.finding.api:
        return "about what is installed, not about the code"
    if each.finding.option:
        return "only with an option"
    if each.finding.api in read_table(TABLE)["harmless"]:
        return "without effect where there is no CUDA"
    if each.finding.path.endswith((".md", ".rst")):
        return "in a document"
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
    original: Path, port: Path, found: Differences, run: RunOptions, worlds: tuple[int, ...],
    progress: Callable[[str], None], data: tuple[str, ...],
) -> tuple[Part, Proof | None]:  # fmt: skip
    try:
        options, _ = for_output(run, port, original)
        before = find_project(original, run.script, data)
        after = replace(find_project(port, found.successors.get(run.script, run.script), data), elsewhere=original)
        with Warm() as warm:
            proof = between(before, after, options, progress, warm, watched=found.reached.watched()).prove(worlds)
    except CannotRun as error:
        return Part(TRAINS, Mark.AGAINST, str(error)), None
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
    runs = proof.verdict.word is Word.RUNS and not doubts  # and nothing that was compared differs
    mark = Mark.OPEN if proof.idle or runs else Mark.GOOD if good else Mark.AGAINST
    return Part(TRAINS, mark, "; ".join([*doubts, str(proof.verdict)]), lines=lines), proof


def _settled(part: Part, proof: Proof, reached: Reached) -> Part:
    """A part without the differences that equal steps decide."""
    left = [each for each in part.findings if each.finding.open or not reached.settles(each.finding, proof)]
    settled = len(part.findings) - len(left)
    lines = (*part.lines, *[f"{many(settled, 'difference')} settled by the run"] * bool(settled))
    if part.mark is not Mark.OPEN or left:
        return replace(part, findings=(*left,), lines=lines)
    return replace(part, mark=Mark.GOOD, sentence="the run decided what differs", findings=(), lines=lines)


def _behind(proof: Proof, parts: Iterable[Part], *, nearest: bool = False) -> Iterator[str]:
    """The differences that are nearest to the first line that computed something else, and to those that led to it;
    where none is near, the one that matters most, unless only the `nearest` are meant."""
    every = [each.finding for part in parts for each in part.findings if each.finding.code == TRAINS_OTHERWISE]
    first = next((each for part in proof.parts for each in part.findings.differences), None)
    way = [each for each in (first.place, *first.callers) if each is not None] if first is not None else []
    near = [
        min(((abs(each.span.line - place.line), at) for at, each in enumerate(every) if each.path == place.path),
            default=(_NEAR, 0)) for place in way
    ]  # fmt: skip
    found = [*dict.fromkeys(at for far, at in near if far < _NEAR)]
    for at in (found[:2] or [0][nearest:]) if every else ():
        yield f"what differs {'there' if found else 'most'}: {every[at].path}:{every[at].span.line} {every[at].message}"


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
