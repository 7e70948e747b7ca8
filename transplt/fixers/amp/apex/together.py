"""Which programs get apex, and at which level: those that share training code get it together, at one level, or not.

Without `--opt-level` the level is O2, the default of the porting guide, where it can be right for all of them, else O1
where that can. What is decided of a program is kept as text, since each file of it asks with nodes of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from transplt.base.settings import Settings
from transplt.fixers.amp.apex.combined import combine_refused
from transplt.fixers.amp.apex.place import Problem
from transplt.fixers.amp.apex.program import Apex, read_apex
from transplt.fixers.amp.flag import follow
from transplt.flow.facts import ProjectFacts
from transplt.program.existing_process_groups import setups
from transplt.program.imports import imports_of
from transplt.program.models import find_models
from transplt.program.program import Program, enclosing_function
from transplt.program.programs import programs_of
from transplt.program.training import find_training
from transplt.program.wrapper_places import find_wrap
from transplt.syntax.files import File

#: The levels, that of the porting guide first.
LEVELS = ("O2", "O1")
#: A backward pass by path, line and column, and how it is scaled: (optimizers, number of the loss).
_Passes = dict[tuple[str, int, int], tuple[str, int | None]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why programs get nothing: `why` and what to `do`, with the place; `node` where that is in the file that asks."""

    why: str
    do: str
    path: str
    line: int
    node: ast.expr | ast.stmt | None = None

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(slots=True)
class Together:
    """What the programs around a file come to: `plans` to write, and why others of them get nothing.

    `without` are the programs that run the file without apex.
    """

    plans: list[Apex] = field(default_factory=list)
    without: list[Program] = field(default_factory=list)
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What was read of a program at one level. `touched` are the files of which it needs a part that is written."""

    trains: bool = False
    touched: frozenset[str] = frozenset()
    passes: _Passes = field(default_factory=dict)
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class _Decision:
    """The level of some programs (empty: they get nothing), and what speaks against O2, or against any."""

    level: str
    refusal: Refusal | None


def read_together(project: ProjectFacts, settings: Settings, own: File) -> Together:
    """The programs that run a file, at the level that they share with all that they share training code with."""
    asked = _Asked(project, settings, own)
    found = Together()
    for entry in dict.fromkeys((own.path, *imports_of(project).entries(own.path))):
        plan = asked.plan(entry)
        if isinstance(plan, Apex):
            found.plans.append(plan)
            continue
        found.without.append(programs_of(project).program(entry, own))
        found.refusal = found.refusal or plan
    return found


def read_program(program: Program, settings: Settings, own: File) -> Apex | None:
    """How one program gets apex, None where it gets none."""
    plan = _Asked(program.project, settings, own).plan(program.files[0].path)
    return plan if isinstance(plan, Apex) else None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked in the name of a file of a project."""

    project: ProjectFacts
    settings: Settings
    own: File

    def plan(self, entry: str) -> Apex | Refusal | None:
        """How the program of a main file gets apex; None for one that reaches no training."""
        if not self.verdict(entry, self.levels[0]).trains:
            return None
        decision = self.decide(self.together(entry))
        refusal = decision.refusal
        if decision.level:
            apex = self.read(entry, decision.level)
            assert isinstance(apex, Apex)
            apex.only = refusal is not None
            if not self.settings.opt_level:
                apex.decided = _CHOSEN if refusal is None else self.second(entry, refusal)
            return apex
        assert refusal is not None
        if refusal.path == self.own.path:
            again = (self.read(entry, level) for level in self.levels)
            node = next((each.node for each in again if isinstance(each, Problem) and each.why == refusal.why), None)
            refusal = replace(refusal, node=node)
        return refusal

    def second(self, entry: str, refusal: Refusal) -> str:
        """Why it is O1, for the program of a main file."""
        other = self.verdict(entry, LEVELS[0]).refusal is None
        place = f"{refusal.place}, a program that trains with the same code" if other else refusal.place
        return f"level O1 of apex, not O2: {refusal.why} ({place})"

    @property
    def levels(self) -> tuple[str, ...]:
        return (self.settings.opt_level,) if self.settings.opt_level else LEVELS

    def together(self, entry: str) -> list[str]:
        """The main files of the programs that share training code with that of `entry`, that first."""
        found, pending = {entry: None}, [entry]
        for each in pending:
            paths = self.touched(each)
            near = (other for path in sorted(paths) for other in (path, *imports_of(self.project).entries(path)))
            for other in near:
                if other not in found and self.touched(other) & paths:
                    found[other] = None
                    pending.append(other)
        return [entry, *sorted(found.keys() - {entry})]

    def touched(self, entry: str) -> frozenset[str]:
        return frozenset().union(*(self.verdict(entry, level).touched for level in self.levels))

    def decide(self, entries: list[str]) -> _Decision:
        """One level for all of some programs, the first that can be right."""
        refused: list[Refusal] = []
        for level in self.levels:
            refusal = self.refusal(entries, level)
            if refusal is None:
                return _Decision(level, next(iter(refused), None))
            refused.append(refusal)
        last = refused[-1]
        if self.settings.opt_level:
            other = next(level for level in LEVELS if level != self.settings.opt_level)
            if self.refusal(entries, other) is None:
                last = replace(last, do=f"{last.do}, or run transplt with --opt-level {other}")
        return _Decision("", last)

    def refusal(self, entries: list[str], level: str) -> Refusal | None:
        """Why these programs cannot have a level together."""
        verdicts = [self.verdict(entry, level) for entry in entries]
        refused = next((each.refusal for each in verdicts if each.refusal is not None), None)
        return refused or _unlike(each.passes for each in verdicts)

    def verdict(self, entry: str, level: str) -> _Verdict:
        known = self.project.once(_verdicts, self.settings)
        if (entry, level) not in known:
            known[entry, level] = _verdict_of(self.read(entry, level))
        return known[entry, level]

    def read(self, entry: str, level: str) -> Apex | Problem | None:
        """How a program gets apex at a level, as far as the options of the run go with it, too."""
        found = read_apex(programs_of(self.project).program(entry, self.own), level)
        if not isinstance(found, Apex):
            return found
        if self.settings.style == "portable":
            found.loose = "NVIDIA's apex has no combine_grad"
        problem = trouble(found, self.settings)
        return replace(problem, trains=tuple(_touched(found))) if problem is not None else found


def _verdicts(project: ProjectFacts, settings: Settings) -> dict[tuple[str, str], _Verdict]:
    """What was read of the programs of a project, by entry and level; filled as it is asked for."""
    return {}


_CHOSEN = "level O2 of apex: nothing found in the program prevents it"


def _unlike(every: Iterable[_Passes]) -> Refusal | None:
    """A backward pass that two programs run with another number of losses."""
    seen: _Passes = {}
    for passes in every:
        for place, scaled in sorted(passes.items()):
            if seen.setdefault(place, scaled) != scaled:
                why = "two programs run this backward pass, with different numbers of losses"
                return Refusal(why, "give each program its own training code, or write apex by hand", *place[:2])
    return None


def _verdict_of(found: Apex | Problem | None) -> _Verdict:
    if found is None:
        return _Verdict()
    if isinstance(found, Problem):
        refusal = Refusal(found.why, found.do, found.file.path, getattr(found.node, "lineno", 1))
        return _Verdict(True, frozenset(found.trains), refusal=refusal)
    passes = {(one.file.path, one.call.lineno, one.call.col_offset): (one.owner, one.loss_id) for one in found.passes}
    return _Verdict(True, _touched(found), passes)


def _touched(apex: Apex) -> frozenset[str]:
    floats = apex.floats
    files = [apex.place.file, *(one.file for one in apex.passes), *(clip.file for clip in apex.clips)]
    files += [file for file, _ in (*floats.sigmoids, *floats.targets, *floats.penalties)]
    return frozenset(file.path for file in files)


def trouble(apex: Apex, settings: Settings) -> Problem | None:
    """Why the options of the run do not go with a program; None where they do."""
    place = apex.place
    if (refused := _switched_off(apex, settings)) is not None:
        return refused
    if _is_made_distributed(apex, settings) and (refused := _many_refused(apex, settings)) is not None:
        return refused
    if place.inside and (settings.combine_ddp or settings.style == "portable"):
        why = "DataParallel wraps the model before the optimizer is created, and it works on one NPU only"
        return Problem(place.file, place.after, why, "create the optimizer first, and wrap the model after it")
    if settings.combine_ddp and (refused := combine_refused(apex, settings)) is not None:
        return refused
    if settings.amp_flag and apex.floats.penalties:
        file, penalty = apex.floats.penalties[0]
        why = "amp.disable_casts(), which gradient penalties need, fails if amp is turned off"
        return Problem(file, penalty.stmt, why, "remove --amp-flag, or keep this training in float32")
    if settings.amp_flag:
        value, why = follow(apex.program.project, place.file)(place.after)
        if value is None:
            do = "pass the options to this code, or do not use --amp-flag"
            return Problem(place.file, place.after, why, do)
    return None


#: The codes of mixed precision as such, and of what stands beside the training.
_PARTS = ("NPU740", "NPU741", "NPU746", "NPU747")


def _switched_off(apex: Apex, settings: Settings) -> Problem | None:
    """A part that a comment or the settings switch off: the others would not work without it."""
    parts: list[tuple[File, ast.expr | ast.stmt]] = [(apex.place.file, apex.place.after)]
    parts += [(one.file, one.call) for one in apex.passes]
    parts += [(clip.file, clip.call) for clip in apex.clips]
    for file in apex.program.files:
        parts += [(file, node) for node in file.scan.attributes.get("zero_grad", ())]
    for file, node in parts:
        off = settings.ignored_codes(file.path)
        last = (node.end_lineno or node.lineno) + 1
        marked = any("transplt:" in file.source.line_text(line) for line in range(node.lineno, last))
        if marked or any(code.startswith(off or ("-",)) for code in _PARTS):
            why = "a part of it is turned off here, by a comment or by the settings"
            return Problem(file, node, why, "turn on all of it, or run transplt without --amp apex")
    return None


def _is_made_distributed(apex: Apex, settings: Settings) -> bool:
    """Whether `distributed` may write where amp.initialize goes: nothing in a program that runs in several processes
    already, nor in files that its main file does not reach."""
    if not settings.entry or settings.refusal:
        return False
    program = programs_of(apex.program.project).program(settings.entry, apex.place.file)
    return apex.place.file in program.files and not setups(program)


def _many_refused(apex: Apex, settings: Settings) -> Problem | None:
    """`distributed` wraps the models behind amp.initialize, which has to stand in the same function."""
    place, program = apex.place, apex.program
    if settings.combine_ddp or place.moved or place.deferred or place.alone:
        why = "combine_ddp replaces DistributedDataParallel, which `distributed` writes"
        if place.moved or place.deferred or place.alone:
            why = "`distributed` changes the wrapper of the model, and amp.initialize must come before the wrapper"
        return Problem(place.file, place.after, why, "use one of the two, and write the other by hand")
    models = find_models(program, program.once(find_training), settings.targets)
    for origin in models.origins:
        wrap = find_wrap(models, origin)
        if (
            wrap is None
            or wrap.in_place
            or wrap.file is not place.file
            or wrap.name not in place.models
            or enclosing_function(wrap.after) is not enclosing_function(place.after)
        ):
            why = "the model is wrapped for several cards at a place that amp.initialize cannot use"
            return Problem(
                place.file, place.after, why, "create model and optimizer in one function, or write it by hand"
            )
    return None
