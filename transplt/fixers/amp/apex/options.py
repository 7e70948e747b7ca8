"""What only the options of a run make impossible under apex."""

from __future__ import annotations

import ast

from transplt.base.settings import Settings
from transplt.fixers.amp.apex.combined import combine_refused
from transplt.fixers.amp.apex.place import Problem
from transplt.fixers.amp.apex.program import Apex
from transplt.fixers.amp.flag import follow
from transplt.program.existing_process_groups import setups
from transplt.program.models import find_models
from transplt.program.program import enclosing_function
from transplt.program.programs import programs_of
from transplt.program.training import find_training
from transplt.program.wrapper_places import find_wrap
from transplt.syntax.files import File


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
