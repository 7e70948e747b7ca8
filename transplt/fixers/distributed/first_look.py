"""`transplt distributed` on one file, before the codemods see it: whether it is written to, and what it claims."""

from __future__ import annotations

import ast

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.distributed.current_program import LEFT, hand_over, put_on_bench
from transplt.fixers.distributed.devices import claim
from transplt.fixers.distributed.program.process_group_start import Start, find_start
from transplt.fixers.distributed.verdict import Refusal, Verdict, judge
from transplt.fixers.distributed.wrapper_questions import claim_asked
from transplt.fixers.distributed.wrapping import claim_data_parallel
from transplt.program.existing_process_groups import Setup, option_needed, setups
from transplt.program.models import Models, find_models
from transplt.program.program import Program, Variable, text_of
from transplt.program.programs import programs_of
from transplt.program.ranks import divided
from transplt.program.training import Training, find_training
from transplt.program.wrapper_places import Wrap, find_wrap
from transplt.syntax.files import File

_WITHOUT = "without this option the program creates no process group; arguments after the script's name follow it"
_OTHER = "pass the script that trains to -m; where it is this one, create the process group and wrap the model by hand"
_REFUSED = "this script was not made distributed"
fixer = Fixer(__name__, code="NPU330", rank=-1, theme="distributed")


@fixer.on(ast.Module)
def first_look(work: Work, tree: ast.Module) -> Finds:
    """Take the file on the bench, if the main file reaches it."""
    programs = programs_of(work.project)
    own = programs.own(work.file)
    if why := work.settings.refusal:
        if own.path == work.settings.entry and tree.body:
            yield _left_whole(work, tree, why)
        return
    program = programs.program(work.settings.entry, own)
    if own not in program.files:
        return
    if found := setups(program):
        yield from _explained(work, [setup for setup in found if setup.file is own])
        needed = option_needed(program, found)
        if needed is not None and needed[0] is own:
            yield work.note(
                needed[1], fixer.code, f"the launch script passes {needed[2]}", level=Level.INFO, help=_WITHOUT,
                details=(("option", needed[2]),),
            )  # fmt: skip
        yield from _divided(work, program, own)
        return
    read = program.once(_read, work.settings.targets)
    if isinstance(read, Training):
        if own is program.files[0] and tree.body:
            lost = "its training code" if read.backwards else "a backward pass"
            yield _left_whole(work, tree, f"transplt could not follow the main file to {lost}", _OTHER)
        return
    start, models, wraps, verdict = read
    if verdict.refusals:
        yield from _refused(work, own, program, verdict.refusals)
        return
    bench = put_on_bench(work, own, start, models, {} if verdict.averaging else wraps, verdict)
    claim(bench)
    claim_data_parallel(bench)
    if not verdict.averaging:  # nothing is wrapped then
        claim_asked(bench)
    yield from hand_over(bench)


_Read = tuple[Start, Models, dict[Variable, Wrap], Verdict]


def _read(program: Program, targets: tuple[str, ...]) -> _Read | Training:
    """What is known of a program, and the verdict on it; only what trains where that is nothing to work with."""
    start, training = find_start(program), program.once(find_training)
    if start is None or not training.backwards:
        return training
    models = find_models(program, training, targets)
    wraps = {origin: wrap for origin in models.origins if (wrap := find_wrap(models, origin)) is not None}
    return start, models, wraps, judge(models, wraps, targets)


def _explained(work: Work, found: list[Setup]) -> Finds:
    for setup in found:
        yield work.note(
            setup.node,
            "NPU331" if setup.spawns else fixer.code,
            f"this program already runs in several processes ({setup.what}): nothing is added to it",
            level=Level.INFO,
            help="the launch script starts it once, and it starts its processes"
            if setup.spawns
            else "torchrun gives RANK, LOCAL_RANK and WORLD_SIZE in the environment, and no --local_rank argument",
        )


def _divided(work: Work, program: Program, own: File) -> Finds:
    """Collectives of the user's own that not every rank reaches."""
    for each in divided(program):
        if each.file is own:
            why = f"some ranks do not reach this collective: {each.what}, under `{text_of(own, each.test)}`"
            yield work.note(
                each.call, "NPU350", why, effort=Effort.MEDIUM,
                help="call it on all ranks, and put only the use of the result under the condition",
            )  # fmt: skip


def _refused(work: Work, own: File, program: Program, refusals: list[Refusal]) -> Finds:
    """Say in each file what stands in the way there, and in the main file that something does."""
    main = program.files[0]
    for refusal in refusals:
        if refusal.file is own:
            yield work.note(refusal.node, refusal.code, f"{_REFUSED}: {refusal.why}", help=refusal.help)
    if own is main and not any(refusal.file is own for refusal in refusals):
        first = refusals[0]
        why = f"{first.why} ({first.file.path}, line {first.node.lineno})"
        yield _left_whole(work, main.scan.tree, why, first.help)


def _left_whole(work: Work, tree: ast.Module, why: str, do: str = "make the script distributed by hand") -> Note:
    return work.note(tree.body[-1], LEFT, f"{_REFUSED}: {why}", help=do)
