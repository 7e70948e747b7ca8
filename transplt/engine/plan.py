"""The fixers in force, and what they find in a file; nothing is rewritten yet."""

from __future__ import annotations

from functools import lru_cache

from transplt.base.finding import Level
from transplt.base.plan_decisions import APPLY
from transplt.base.settings import Settings
from transplt.base.text.source import Source
from transplt.edits.edit import Kept
from transplt.edits.fixer import Fixer, fixers_of
from transplt.edits.helper import load_at_entry
from transplt.edits.work import Work
from transplt.engine.adaptor_findings import answer, offer, refuse
from transplt.engine.npu_ready_code import leave_npu_code
from transplt.engine.other_makers import leave_other_cards
from transplt.engine.prefilter import CODEMODS, KERNELS, OF_KERNELS
from transplt.fixers.tunings.table import TUNINGS
from transplt.flow.facts import ProjectFacts
from transplt.flow.own_packages import beside_own_packages
from transplt.flow.slots import Slots
from transplt.flow.vendored import around
from transplt.program.star_imports import names_in
from transplt.rules.rule_set import RuleSet
from transplt.syntax.nodes import is_unbound
from transplt.syntax.scan import Scan

_OF_COPIES = ("NPU0", "NPU28")


def plan(
    source: Source,
    found: Scan,
    rules: RuleSet,
    settings: Settings,
    project: ProjectFacts,
    slots: Slots | None = None,
    *,
    edits_alone: bool = False,
) -> Work:
    """What fixers find in a file. `slots`: where its values go, as far as that is known without its project.

    `edits_alone`: nobody reads the findings, so fixers that only report do not look.
    """
    rules = rules.beside(project.packages)
    rules = beside_own_packages(rules, project, found.path, settings.torch_version, settings.similar)
    names = names_in(found, project.reexports)
    work = Work(source, found, names, rules, settings, project, known_slots=slots, edits_alone=edits_alone)
    themes = _themes(settings) if settings.adds_code else ()
    if themes and is_unbound(found, "torch"):  # an import of it would change what else the file reads
        themes = tuple(fixer for fixer in themes if not fixer.theme.startswith(("tune", "adapt")))
    for fixer in themes:
        if fixer.rank < 0:
            fixer.look(work)
    work.claimed_first = frozenset(work.taken)
    for fixer in in_force(settings.torch_version, settings.fixers, kernels=OF_KERNELS.in_(source.utf8)):
        if fixer.edits or not edits_alone:
            fixer.look(work)
    if work.edits or (work.notes and not edits_alone):
        leave_npu_code(work)
        leave_other_cards(work)
    leave_copies(work)
    for fixer in themes:
        if fixer.rank >= 0:
            fixer.look(work)
    answer(work)
    if not settings.adapt and not edits_alone:
        offer(work)
    if settings.style == "portable":
        refuse(work)
        from transplt.engine import portable

        portable.adapt(work)
        load_at_entry(work)
    if settings.decided is not None:
        _ask(work, settings.decided.plan)
    return work


def _ask(work: Work, name: str) -> None:
    """The edits on offer that a plan asks for; `name` is that of its file."""
    for edit in work.rewrites:
        if edit.level is Level.UNSAFE and not edit.asked and work.choice(edit.code, edit.node) == APPLY:
            edit.asked, edit.message = True, f"{edit.message}, as {name} says"


@lru_cache(maxsize=32)
def in_force(torch_version: str, added: tuple[tuple[str, str, str, str], ...], *, kernels: bool) -> tuple[Fixer, ...]:
    """The fixers of every migration that hold for the torch version, in the order in which they look, with those that
    are `added`; those for kernels in Triton are imported where a file may hold some.
    """
    fixers = fixers_of(CODEMODS, *([KERNELS] if kernels else []))
    if added:
        from transplt.edits.added_fixers import Added, added_fixers

        others = added_fixers([Added(*each) for each in added])
        fixers = tuple(sorted((*fixers, *others), key=lambda fixer: (fixer.rank, fixer.name)))
    return tuple(fixer for fixer in fixers if fixer.holds(torch_version))


def _themes(settings: Settings) -> tuple[Fixer, ...]:
    """The fixers of what was asked for on top; each package is imported when it is. Those of a rank below 0 look
    first.
    """
    asked_for = (
        (("transplt.fixers.adaptors",), bool(settings.adapt)),
        (("transplt.fixers.distributed",), bool(settings.entry)),
        (("transplt.fixers.amp",), settings.amp != "off"),
        (TUNINGS, bool(settings.tune)),
    )
    found = [fixer for packages, asked in asked_for if asked for fixer in fixers_of(*packages)]
    return tuple(fixer for fixer in found if settings.asks_for(fixer.theme))


def leave_copies(work: Work) -> None:
    """Take back what was planned in a copy of a package that handles NPUs itself, but for the user's own rules."""
    copy = around(work.project.copies, work.scan.path)
    if copy is None or not copy.handles_npu:
        return
    work.withdraw_edits(lambda edit: not edit.user)
    work.withdraw_notes(lambda note: not note.code.startswith(_OF_COPIES))
    work.kept = [Kept((0, len(work.source.utf8)), "copied-package", f"{copy.package} {copy.version}")]
