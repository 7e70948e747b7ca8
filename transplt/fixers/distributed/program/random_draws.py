"""What is drawn at random: whether a program seeds it, and the loops in which each rank draws for itself.

These go over epochs or data, and nothing is made anew in them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.program.loops import Loop, loops_around, repeated
from transplt.program.optimizers import optimizer_calls
from transplt.program.program import File, Program, enclosing_function
from transplt.program.reached_functions import functions_run_from, functions_run_in
from transplt.program.training import Training
from transplt.rules.torch_callables import full_names
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import chain, statement

#: The functions that seed the generators of a package.
SEEDED_BY = {
    "torch": full_names("seeds"),
    "numpy": frozenset({"numpy.random.seed"}),
    "random": frozenset({"random.seed"}),
}
_DEEPEST = 20
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def seeded(program: Program, names: frozenset[str] = SEEDED_BY["torch"]) -> bool:
    """True when a program calls one of some functions that seed."""
    return any(file.names.qualified(call.func) in names for file in program.files for call in file.scan.calls)


def seeded_again(training: Training, outer: list[tuple[File, Loop]]) -> Iterator[tuple[File, ast.stmt]]:
    """The statements in loops, or in what trains there, that seed, by a function of the program or by themselves."""
    program = training.program
    run, loops = functions_run_from(program, outer), {loop for _, loop in outer}
    names = frozenset().union(*SEEDED_BY.values())
    pending = [(at, call) for at in program.files for call in at.scan.calls if at.names.qualified(call.func) in names]
    seen: set[ast.AST | None] = set()
    while pending:
        at, call = pending.pop()
        function = enclosing_function(call)
        if not loops.isdisjoint(chain(call)) or (function in run and function in training.functions):
            yield at, statement(call)
        elif function not in seen:
            seen.add(function)
            pending += program.call_sites.get(function, []) if function is not None else []


def drawing_loops(training: Training) -> list[tuple[File, Loop]]:
    """The outermost of these loops."""
    loops = [(file, loop) for file, loop, loaders in training.loops if loaders] or training.regions
    around = list(dict.fromkeys(_training_loop(training.program, file, loop) for file, loop in loops))
    return [each for each in around if not any(other[1] in chain(each[1]) for other in around)]


def _training_loop(program: Program, file: File, loop: Loop) -> tuple[File, Loop]:
    """The outermost loop around a training loop, through callers, in which no optimizer is made, in functions that it
    calls neither: each round would train anew."""
    makes = [(at, call) for at, call, _ in optimizer_calls(program)]
    # What gives a model other weights to begin with makes a training anew, too.
    makes += [
        (at, call)
        for at in program.files
        for call in at.scan.calls
        if last_name(call.func) in ("apply", "reset_parameters")
        or (at.names.qualified(call.func) or "").startswith("torch.nn.init.")
    ]
    found = (file, loop)
    node: ast.AST = loop
    seen: set[ast.AST | None] = {None}
    while True:
        if around := loops_around(node):
            node = around[0]
            run = functions_run_in(program, file, around[0])
            if any(around[0] in chain(call) or enclosing_function(call) in run for _, call in makes):
                return found
            found = (file, around[0])
            continue
        function = enclosing_function(node)
        sites = program.call_sites.get(function, []) if function is not None else []
        if function in seen or len(sites) != 1:
            return found
        seen.add(function)
        file, node = sites[0]


def comes_again(program: Program, loop: Loop) -> bool:
    """True for a loop that may run more than once: in a loop, or by several calls of what it stands in."""
    if repeated(program, loop):
        return True
    function, seen = enclosing_function(loop), set[ast.AST]()
    while function is not None and function not in seen:
        seen.add(function)
        sites = program.call_sites.get(function, [])
        in_one = any(isinstance(above, _COMPREHENSIONS) for _, call in sites for above in chain(call))
        unseen = not sites and any(function.name in at.scan.attributes for at in program.files)  # `workers[i].run()`
        if len(sites) > 1 or in_one or unseen:
            return True
        function = enclosing_function(sites[0][1]) if sites else None
    return False


def trains_last(program: Program, file: File, loop: Loop, outer: list[tuple[File, Loop]]) -> bool:
    """True for a loop that runs once, and behind all others of `outer`, as far as single calls of functions show."""
    if comes_again(program, loop):
        return False
    steps = _entered_by(program, file, loop)
    for at, other in outer:
        theirs = {enclosing_function(node): node.lineno for _, node in _entered_by(program, at, other)}
        common = next((node for _, node in steps if enclosing_function(node) in theirs), None)
        same = common is not None and (common is loop or file is at)
        if other is not loop and (common is None or not same or theirs[enclosing_function(common)] > common.lineno):
            return False
    return True


def _entered_by(program: Program, file: File, loop: Loop) -> list[tuple[File, Loop | ast.Call]]:
    """A loop, and the only call of the function that holds it, and so on."""
    found: list[tuple[File, Loop | ast.Call]] = [(file, loop)]
    while (function := enclosing_function(found[-1][1])) is not None:
        sites = program.call_sites.get(function, [])
        if len(sites) != 1 or len(found) > _DEEPEST:
            break
        found.append(sites[0])
    return found
