"""The first part of `triton`: a kernel runs on as many programs as there are cores, each of which loops over blocks.

Source: triton-ascend, docs/en/programming_guide.md (setting the number of cores) and docs/en/migration_guide: programs
beyond the number of cores are started in rounds, which takes time, and more than 65535 are refused. One dimension is
preferred; others are merged into it by the runtime anyway.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.edits.groups import TUNED
from transplt.edits.ignores import Ignores
from transplt.edits.trees.calls import with_keyword
from transplt.edits.trees.statements import as_assignment
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.triton.reader.blocks import Dimension, dimensions_of, fills_the_cores
from transplt.fixers.triton.reader.bodies import Body, Exit, body_of
from transplt.fixers.triton.reader.kernels import Kernel, kernels_in
from transplt.fixers.triton.reader.launches import Launch, launches_in
from transplt.fixers.triton.reader.program_order import order_matters, reach_of
from transplt.fixers.tuning_writer import touched
from transplt.flow.facts import ProjectFacts
from transplt.program.programs import programs_of
from transplt.syntax.files import File
from transplt.syntax.nodes import argument_at
from transplt.syntax.scan import parent

CODE = "NPU774"
#: Findings on a launch that has at most as many programs as there are cores then.
_ANSWERED = frozenset({"NPU560", "NPU568"})
_HELP = "nothing to do: the kernel runs unchanged; with TRITON_ALL_BLOCKS_PARALLEL=1 the runtime does the same"


@dataclass(slots=True, frozen=True)
class _Plan:
    """What is written for a kernel."""

    kernel: Kernel
    launches: list[Launch]
    programs: dict[int, list[ast.Call]]
    dimensions: list[Dimension]
    body: Body
    multiplies: bool


def write_core_loops(writer: Writer, kernels: list[Kernel]) -> None:
    """Write a loop over the blocks into the kernels of a file that allow it."""
    for kernel in kernels:
        plan = _plan(writer.work, writer, kernel)
        if isinstance(plan, _Plan):
            _write(writer, plan)
        elif plan:
            calls = [call for call, name in kernel.calls() if name == "program_id"]
            writer.remark(calls[0], CODE, f"{kernel.name} keeps one program per block: {plan}", _HELP)


def _plan(work: Work, writer: Writer, kernel: Kernel) -> _Plan | str:
    """What to write for a kernel, or why nothing is written; an empty reason where there is nothing to gain."""
    programs: dict[int, list[ast.Call]] = {}
    for call, name in kernel.calls():
        if name == "program_id":
            axis = argument_at(call, 0, "axis")
            number = axis.value if isinstance(axis, ast.Constant) else None
            if not isinstance(number, int) or number not in (0, 1, 2):
                return "the axis of a program_id is not a number"
            programs.setdefault(number, []).append(call)
    if not programs:
        return ""
    launches = every_launch(kernel, work.project)
    if isinstance(launches, str):
        return launches
    if all(fills_the_cores(launch) for launch in launches):
        return ""
    reach = reach_of(kernel, work.project)
    if why := order_matters(kernel, reach, launches):
        return why
    dimensions = dimensions_of(kernel, launches)
    if isinstance(dimensions, str):
        return dimensions
    if max(programs) >= len(dimensions):
        return "it uses more dimensions than its grid has"
    body = body_of(kernel)
    if isinstance(body, str):
        return body
    plan = _Plan(kernel, launches, programs, dimensions, body, reach.multiplies)
    return _in_the_way(work, writer, plan) or plan


def _in_the_way(work: Work, writer: Writer, plan: _Plan) -> str:
    """Why the edits of a plan cannot all be made."""
    kernel, ignores = plan.kernel, Ignores(work)
    nodes: list[ast.expr | ast.stmt] = [kernel.node, *(launch.call for launch in plan.launches)]
    for node in nodes:
        if ignores.reason(CODE, node.lineno, node.end_lineno or node.lineno):
            return "a comment switches edits off there"
    at_launches = any(each.at_launches for each in plan.dimensions)
    for launch in plan.launches:
        if why := _grid_in_the_way(writer, launch.call.func):
            return why
        if at_launches and not work.share(launch.call):
            return "a launch is already edited"
    if any(touched(writer, call) for calls in plan.programs.values() for call in calls):
        return "the use of its program number is already edited"
    last = kernel.parameters[-1]
    if at_launches and (kernel.node.args.kwarg or kernel.node.args.vararg):
        return f"its last parameter is not {last.name}"
    if not writer.fits(*plan.body.looped, *(each.test for each in plan.body.exits)):
        return "several of its statements share a line"
    return ""


def _grid_in_the_way(writer: Writer, func: ast.expr) -> str:
    """Why the grid of a launch cannot be written over."""
    if not isinstance(func, ast.Subscript) or touched(writer, func):
        return "the grid of a launch is already edited"
    if isinstance(func.slice, ast.Tuple) and not writer.work.text(func.slice).startswith("("):
        return "the grid of a launch is written without parentheses"
    return ""


def _write(writer: Writer, plan: _Plan) -> None:
    kernel, work = plan.kernel, writer.work
    name = "cube_grid" if plan.multiplies else "vector_grid"
    message = f"{kernel.name} loops over its blocks, with one program per core"
    called = writer.helper(name, CODE, message, plan.launches[0].call)
    if not called:
        return
    sizes = _write_sizes(writer, plan, message)
    block = writer.free_name("block", "block_index", "program")
    language = work.text(next(iter(plan.programs.values()))[0].func).rpartition(".")[0]
    dot = f"{language}." if language else ""
    _write_programs(writer, plan, sizes, block, dot, message)
    total = sizes[0] if len(sizes) == 1 else " * ".join(sizes)
    header = f"for {block} in range({dot}program_id(0), {total}, {dot}num_programs(0)):"
    looped = plan.body.looped
    begins = []
    for change in plan.body.changed:
        new = writer.free_name(f"{change.name}_block", f"{change.name}_of_block")
        text = f"{change.name} of one block"
        if change.first is None:
            begins.append(f"{new} = {change.name}")
        elif isinstance(change.first, ast.AugAssign):
            writer.rewrite(change.first, CODE, text, as_assignment(new), apart=True)
        for each in change.uses:
            writer.rewrite(each, CODE, text, new, apart=True)
    goes_on = writer.free_name("goes_on", "block_goes_on")
    if any(leave.inner for leave in plan.body.exits):
        begins.append(f"{goes_on} = 1")
    writer.wrap(looped, header, CODE, message, begins=begins)
    for leave in plan.body.exits:
        _write_exit(writer, leave, goes_on, message)
    for launch in plan.launches:
        func = launch.call.func
        assert isinstance(func, ast.Subscript)
        writer.put_around(func.slice, CODE, message, called)
        work.answers.append((f"{TUNED}triton", work.source.extent(launch.call), _ANSWERED))


def _write_sizes(writer: Writer, plan: _Plan, message: str) -> list[str]:
    """The sizes of the grid as the kernel calls them: new parameters, or lines above its loop."""
    many = len(plan.dimensions) > 1
    names, given, lines = [], [], []
    for axis, size in enumerate(plan.dimensions):
        name = writer.free_name(*(f"{word}_{axis}" if many else word for word in ("blocks", "number_of_blocks")))
        if size.inside and (not many or size.inside.isidentifier() or size.inside.isdigit()):
            names.append(size.inside)
            continue
        names.append(name)
        if size.inside:
            lines.append(f"{name} = {size.inside}")
        else:
            given.append(name)
            for launch, text in zip(plan.launches, size.at_launches, strict=True):
                writer.rewrite(launch.call, CODE, message, with_keyword(name, text), apart=True)
    if given:
        _write_parameters(writer, plan.kernel, given, message)
    if lines:
        writer.before(plan.body.looped[0], lines, CODE, message)
    return names


def _write_parameters(writer: Writer, kernel: Kernel, names: list[str], message: str) -> None:
    last = kernel.parameters[-1]
    node: ast.expr | ast.arg = last.node if last.default is None else last.default
    texts = [name if last.default is None else f"{name}=0" for name in names]
    alone = last.node.lineno > kernel.node.lineno and (
        len(kernel.parameters) == 1 or kernel.parameters[-2].node.lineno < last.node.lineno
    )
    between = f",{writer.work.source.newline()}{' ' * last.node.col_offset}" if alone else ", "
    text = "".join(f"{between}{each}" for each in texts)
    writer.rewrite(node, CODE, message, f"{writer.work.text(node)}{text}", apart=True)


def _write_programs(writer: Writer, plan: _Plan, sizes: list[str], block: str, dot: str, message: str) -> None:
    for axis, calls in plan.programs.items():
        text = _number(axis, sizes, block)
        for call in calls:
            node, inner = call, text
            match parent(call), parent(parent(call)):
                case ast.Attribute(attr="to" | "cast"), ast.Call(args=[dtype], keywords=[]) as outer:
                    node, inner = outer, f"{dot}cast({text}, {writer.work.text(dtype)})"
                case ast.Attribute(), ast.Call():
                    inner = f"{dot}cast({text}, {dot}int32)"
                case ((ast.Assign() | ast.Tuple() | ast.AnnAssign()), _):
                    pass
                case _ if text != block:
                    inner = f"({text})"
            writer.rewrite(node, CODE, message, inner, apart=True)


def _number(axis: int, sizes: list[str], block: str) -> str:
    """The number of a program in a dimension; the first one runs fastest."""
    if len(sizes) == 1:
        return block
    if axis == 0:
        return f"{block} % {sizes[0]}"
    before = sizes[0] if axis == 1 else f"({sizes[0]} * {sizes[1]})"
    text = f"{block} // {before}"
    return text if axis == len(sizes) - 1 else f"{text} % {sizes[axis]}"


def _write_exit(writer: Writer, leave: Exit, goes_on: str, message: str) -> None:
    """What follows `if c: return` stands in its `else` then; where the return is further in, a name says whether."""
    if not leave.inner:
        writer.rewrite(leave.line, CODE, message, "pass", apart=True)
        writer.wrap(leave.rest, "else:", CODE, message)
        return
    writer.rewrite(leave.line, CODE, message, f"{goes_on} = 0", apart=True)
    writer.wrap(leave.rest, f"if {goes_on} == 1:", CODE, message)


def every_launch(kernel: Kernel, project: ProjectFacts) -> list[Launch] | str:
    """All launches of a kernel, where they are `kernel[grid](...)` in its own file; else why they are not known, empty
    for a function that only kernels call.
    """
    file = kernel.file
    own = [launch for launch in launches_in(file, project) if launch.kernel.node is kernel.node]
    seen = {id(launch.call.func) for launch in own}
    kernels = kernels_in(file)
    called = False
    for name in file.scan.names.get(kernel.name, ()):
        bindings = file.names.bindings_of(name)
        if not isinstance(name.ctx, ast.Load) or all(each.node is not kernel.node for each in bindings):
            continue
        if len(bindings) != 1:
            return "there are several functions with its name"
        above = parent(name)
        if isinstance(above, ast.Call) and above.func is name and any(each.holds(above) for each in kernels):
            called = True
        elif not (isinstance(above, ast.Subscript) and above.value is name and id(above) in seen):
            return f"line {name.lineno} uses it without launching it"
    if called:
        return "other kernels call it too" if own else ""
    if not own:
        return "no launch of it was found"
    for path in sorted(project.sources):
        if path != kernel.file.path and kernel.name.encode() in project.sources[path]:
            other = programs_of(project).file(path)
            if other is not None and _takes(project, other, kernel):
                return f"{path} uses it too"
    return own


def _takes(project: ProjectFacts, file: File, kernel: Kernel) -> bool:
    def is_its(full: str) -> bool:
        module = project.canonical(full).rpartition(".")[0]
        return project.path_of(module) in ("", kernel.file.path)

    bindings = file.scan.root.bindings.get(kernel.name, [])
    scopes = [scope.bindings.get(kernel.name, []) for scope in file.scan.scopes.values()]
    imports = [each for every in (bindings, *scopes) for each in every if each.kind == "import"]
    if any(is_its(each.target) for each in imports):
        return True
    if kernel.name in file.scan.names and not bindings and file.scan.root.stars:
        return True
    for alias in (alias for node in file.scan.imports if isinstance(node, ast.ImportFrom) for alias in node.names):
        if alias.name == kernel.name and alias.asname:
            return True
    attributes = (file.names.qualified(each) for each in file.scan.attributes.get(kernel.name, ()))
    return any(full is not None and is_its(full) for full in attributes)
