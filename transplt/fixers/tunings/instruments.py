"""What the tunings that only measure share: the loop over batches of a program, and lines at its places."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from transplt.base.grouped import grouped
from transplt.edits.shared_lines import indent_unit
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.around import program_around
from transplt.program.cards import on_card
from transplt.program.loaders import is_loader
from transplt.program.loops import Loop, loops_around
from transplt.program.optimizers import OptimizerStep, find_steps
from transplt.program.program import File, Program, enclosing_function, text_of
from transplt.program.steps import steps_by_itself
from transplt.program.training import Training, find_training, loaders_of
from transplt.syntax.nodes import inner_nodes, last_name
from transplt.syntax.scan import FUNCTIONS, chain, statement

_HANDS_ON = frozenset({"enumerate", "tqdm", "iter"})


@dataclass(slots=True)
class MeasuredLoop:
    """A loop over batches of the file on the bench, `around` are the loops that train around it, the outermost last.

    `apart` is true where the loops around are those of the caller, `function` is the one that holds the loop then.
    """

    batches: Batches
    loop: Loop
    around: list[Loop]
    apart: bool

    @property
    def outermost(self) -> ast.stmt:
        return (self.around or [self.loop])[-1]

    @property
    def function(self) -> ast.AST | None:
        return enclosing_function(self.loop)


def measured_loops(writer: Writer, code: str, what: str) -> list[MeasuredLoop]:
    """The loops to write at; a finding where no loop is in sight or the lines do not fit. None of a CPU's program."""
    work = writer.work
    program = program_around(work)
    if program is None or not on_card(program):
        return []
    found, lost = batch_loops(work)
    if lost is not None:
        writer.left(lost, f"{what}: the training loop was not found", "add it by hand", code)
    result = []
    for batches in found:
        loops = [batches.loop, *batches.around, *(batches.calls or ())]
        if not writer.fits(*loops, *(loop.body[0] for loop in loops)):
            why = "the first statement of the loop cannot be put on a separate line"
            writer.left(loops[0], f"{what}: {why}", "write each on a separate line", code)
            continue
        result.append(MeasuredLoop(batches, loops[0], loops[1:], bool(batches.calls)))
    return result


def only_one(writer: Writer, code: str, what: str) -> MeasuredLoop | None:
    """The loop of the program's training, all of whose passes this file sees; else findings."""
    found = measured_loops(writer, code, what)
    for place in found:
        if len(found) > 1:
            why = "several loops train here"
        elif place.batches.calls is None:
            why = "the function of this loop is called from another file, or from several places"
        else:
            return place
        writer.left(place.loop, f"{what}: {why}", "add it by hand, before the first pass over the data", code)
    return None


def lines(writer: Writer, *texts: str) -> list[str]:
    """Lines of code in the indentation of the file."""
    unit = indent_unit(writer.work.source, writer.work.scan.tree)
    found = []
    for text in texts:
        bare = text.lstrip(" ")
        found.append(unit * ((len(text) - len(bare)) // 4) + bare)
    return found


def global_lines(place: MeasuredLoop, name: str) -> Sequence[str]:
    """`global name` for a function that gives a variable its value which another one reads."""
    holder = enclosing_function(place.outermost)
    return [f"global {name}"] if place.apart and holder is not None else []


def first_statement(function: ast.AST) -> ast.stmt:
    """The first statement of a function below its docstring."""
    assert isinstance(function, FUNCTIONS)
    first = function.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)
    return function.body[1] if is_text and len(function.body) > 1 else first


def above(writer: Writer, node: ast.stmt, texts: Sequence[str], code: str, message: str) -> None:
    """Lines above a statement and its comments."""
    writer.before(node, texts, code, message, above_comments=True)


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """A loop over batches with the loops that train around it in its function, the outermost last.

    `calls` are the loops of the same file around the only call of that function, with their function; None when the
    function is called from elsewhere, or from several places. `loader` is the text of what `batch_size` is asked of.
    """

    file: File
    loop: Loop
    around: tuple[Loop, ...]
    calls: tuple[Loop, ...] | None
    loader: str
    steps: tuple[ast.stmt, ...]

    @property
    def outermost(self) -> Loop:
        """The loop in which all training happens, as far as the file knows."""
        return (self.loop, *self.around, *(self.calls or ()))[-1]


def batch_loops(work: Work) -> tuple[list[Batches], ast.stmt | None]:
    """The loops over batches in this file; the first backward pass of the file where it has none that can be seen."""
    program = program_around(work)
    if program is None:
        return [], None
    found, training = program.once(_find), program.once(find_training)
    here = [batches for batches in found if batches.file.path == work.scan.path]
    lost = None
    if not here:
        for file, call in training.backwards:  # in, or called from, a loop over batches of the program
            held = found and (enclosing_function(call) or any(batches.loop in chain(call) for batches in found))
            if file.path == work.scan.path and lost is None and not held:
                lost = statement(call)
    return here, lost


def _find(program: Program) -> list[Batches]:
    training, taken = program.once(find_training), program.once(find_steps)
    reading, regions = {id(loop) for _, loop, _ in training.loops}, training.regions
    reads = {id(loop): id(loop) in reading for _, loop in regions}
    with_loops = {id(enclosing_function(loop)) for _, loop in regions if enclosing_function(loop) is not None}
    known = {id(loop) for _, loop in regions}
    above = {id(loop): [outer for outer in loops_around(loop) if id(outer) in known] for _, loop in regions}
    steps = {id(loop): bool(_within(loop, taken)) for _, loop in regions}
    within = grouped((id(outer), loop) for _, loop in regions for outer in above[id(loop)])
    found = []
    for file, loop in regions:
        inside = [inner for inner in within.get(id(loop), []) if steps[id(inner)] or not steps[id(loop)]]
        inside = [inner for inner in inside if reads[id(inner)] or not reads[id(loop)]]
        if inside or any(has[id(outer)] > has[id(loop)] for outer in above[id(loop)] for has in (steps, reads)):
            continue  # it gathers the gradients of one step, or goes over what a loop over batches read
        if not _calls_loops(training, file, loop, with_loops) and _makes_steps(program, taken, file, loop):
            found.append(_batches(program, training, taken, file, loop))
    return found


def _makes_steps(program: Program, taken: list[OptimizerStep], file: File, loop: Loop) -> bool:
    """True when an optimizer is stepped in a loop, or in a function of the program that it calls."""
    if _within(loop, taken):
        return True
    calls = [*inner_nodes(loop, ast.Call)]
    callees = (callee for call in calls if (callee := program.callee(file, call)) is not None)
    return any(steps_by_itself(file, call) for call in calls) or any(_within(callee, taken) for callee in callees)


def _calls_loops(training: Training, file: File, loop: Loop, with_loops: set[int]) -> bool:
    """True for a loop over epochs: what it calls has the loop over batches."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and training.trains(file, node):
            callee = training.program.callee(file, node)
            if id(callee) in with_loops or callee is None:
                return True
    return False


def _batches(program: Program, training: Training, taken: list[OptimizerStep], file: File, loop: Loop) -> Batches:
    regions = {id(region) for at, region in training.regions if at is file}
    around = tuple(above for above in loops_around(loop) if id(above) in regions)
    calls = _loops_of_call(program, file, loop)
    return Batches(file, loop, around, calls, _loader(program, file, loop), _within(loop, taken))


def _loops_of_call(program: Program, file: File, loop: Loop) -> tuple[Loop, ...] | None:
    """The loops around the only call of the function of a loop, see `Batches.calls`."""
    function = enclosing_function(loop)
    if function is None:
        return ()
    sites = program.call_sites.get(function, [])
    if not sites:  # where it is a method of an object its calls cannot be resolved
        return None if any(each.scan.attributes.get(function.name) for each in program.files) else ()
    if len(sites) > 1 or sites[0][0] is not file:
        return None
    calls, holder = tuple(loops_around(sites[0][1])), enclosing_function(sites[0][1])
    callers = program.call_sites.get(holder, []) if holder is not None and not calls else []
    return None if any(loops_around(call) or at is not file for at, call in callers) else calls


def _loader(program: Program, file: File, loop: Loop) -> str:
    """The text of a loader whose `batch_size` is a number; empty when that is not certain."""
    if isinstance(loop, ast.While):
        return ""
    source = loop.iter
    while isinstance(source, ast.Call) and source.args and last_name(source.func) in _HANDS_ON:
        source = source.args[0]
    if not isinstance(source, (ast.Name, ast.Attribute)):
        return ""
    loaders = loaders_of(program, file, source)
    named = [{keyword.arg for keyword in loader.call.keywords} for loader in loaders]
    sized = not any(names & {"batch_sampler", None} for names in named)
    given = all(
        len(loader.call.args) > 1 or "batch_size" in names for loader, names in zip(loaders, named, strict=True)
    )
    # What goes over a loader, such as a progress bar, has no batch size to be asked for.
    asked = loaders and sized and given and is_loader(program, file, source)
    return text_of(file, source) if asked else ""


def _within(node: ast.AST, taken: list[OptimizerStep]) -> tuple[ast.stmt, ...]:
    """The statements in a piece of code that step an optimizer, by place."""
    found = [statement(step.call) for step in taken if node in chain(step.call)]
    return tuple(sorted(found, key=lambda item: item.lineno))
