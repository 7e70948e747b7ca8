"""Static checks of what `distributed` wrote: what would hang or fail on several cards is not handed out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from transplt.fixers.distributed.program.module_reads import modules_of_unwrapped
from transplt.fixers.distributed.program.process_groups import Walk, begins_group, needs_group
from transplt.flow.facts import ProjectFacts
from transplt.program.imports import imports_of
from transplt.program.optimizers import find_optimizers, find_steps
from transplt.program.program import File, Program, Variable
from transplt.program.programs import programs_of
from transplt.program.ranks import divided, helper_call
from transplt.program.variable_values import origins
from transplt.program.whole_models import handed_on
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import FUNCTIONS, statement

_TRAINING = ("backward", "step")


@dataclass(frozen=True, slots=True)
class Problem:
    """A place in an output that does not hold, and why."""

    path: str
    line: int
    sentence: str


def problems(outputs: Mapping[str, bytes], entry: str, project: ProjectFacts) -> list[Problem]:
    """What does not hold in the program of the main file `entry`, whose `outputs` are the files of the project by path.

    Nothing on which processes wait for each other, and no step, stands under a condition on the rank; nothing asks
    for a rank before the process group is there, in other scripts that share the code neither; `.module` is asked of
    what is wrapped; there is one process group; what an optimizer trains is exchanged.
    """
    program = programs_of(replace(project, sources=dict(outputs))).program(entry)
    if not program.files or program.files[0].path != entry:
        return [Problem(entry, 1, "the main file cannot be read")]
    found = [*_on_paths(program), *_other_scripts(program), *_apart(program)]
    for each in divided(program, training=True):
        kind = "a training step" if each.what in _TRAINING else "a collective"
        found.append(Problem(each.file.path, each.call.lineno, f"some ranks do not reach this {kind}: {each.what}()"))
    for file, node in modules_of_unwrapped(program):
        name = last_name(node.value)
        found.append(Problem(file.path, node.lineno, f"{name}.module, and nothing wraps {name}"))
    return sorted(set(found), key=lambda each: (each.path, each.line, each.sentence))


def _on_paths(program: Program) -> Iterator[Problem]:
    walk = Walk(program)
    walk.main()
    for file, call, what in walk.early:
        yield Problem(file.path, call.lineno, f"{what} before the process group exists")
    for file, call in walk.second:
        yield Problem(file.path, call.lineno, "a second process group on one path")
    if not any(begins_group(file, call) for file in program.files for call in file.scan.calls):
        yield Problem(program.files[0].path, 1, "no process group is created")


def _other_scripts(program: Program) -> Iterator[Problem]:
    """Other main files of the project that run the same code and make no process group."""
    project = program.project
    shared = {file.path for file in program.files if any(_alone(file, call) for call in file.scan.calls)}
    others = {path for each in shared for path in imports_of(project).entries(each)} - {program.files[0].path}
    for path in sorted(others):
        walk = Walk(programs_of(project).program(path))
        walk.main()
        for at, call, what in walk.early:
            if at.path in shared and _alone(at, call):
                yield Problem(at.path, call.lineno, f"{what} without a process group when {path} runs this")


def _alone(file: File, call: ast.Call) -> bool:
    """True for what stops without a process group; the helper file's functions do not."""
    return bool(needs_group(file, call)) and not helper_call(file, call)


# --- gradients --------------------------------------------------------------------------------------------------------


def _apart(program: Program) -> Iterator[Problem]:
    """Steps with gradients of one rank: no wrapper around the model, and no mean over the ranks."""
    steps = program.once(find_steps)
    calls = [(file, call) for file in program.files for call in file.scan.calls]
    if not steps or any(_averages(program, file, call) for file, call in calls):
        return
    wrapped: set[Variable] = set()
    wraps = [(file, call) for file, call in calls
             if last_name(call.func) == "DistributedDataParallel" or helper_call(file, call) == "wrap"]  # fmt: skip
    for file, call in wraps:
        stored = statement(call)
        held = [*call.args[:1], *(stored.targets if isinstance(stored, ast.Assign) else ())]
        for slot in filter(None, (program.slot(file, each) for each in held)):
            wrapped.update((slot, *origins(program, slot, handed_on)))
    if not wraps:
        yield Problem(steps[0].file.path, steps[0].call.lineno, "an optimizer step that uses the gradients of one rank")
        return
    for one in find_optimizers(program):
        same = {each: (each, *origins(program, each, handed_on)) for each in one.given.origins}
        apart = sorted(each[2] for each in same if wrapped.isdisjoint(same[each]))
        if one.given.complete and apart:
            why = f"an optimizer of {apart[0]}, whose gradients no rank exchanges"
            yield Problem(one.file.path, one.call.lineno, why)


def _averages(program: Program, file: File, call: ast.Call) -> bool:
    """True where the ranks exchange gradients."""
    if helper_call(file, call) == "average":
        return True
    function = program.definition(file, call.func)
    about = (ast.get_docstring(function) if isinstance(function, FUNCTIONS) else None) or ""
    if about.startswith("The gradients of these optimizers become their mean over the ranks"):
        return True  # the helper's function where it stands in the file that calls it
    gathers = last_name(call.func) == "all_reduce"
    return gathers and any(getattr(each, "attr", "") == "grad" for each in ast.walk(call))
