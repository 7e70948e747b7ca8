"""Where the training steps of a program are, and how a probe copy records them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import NamedTuple

from transplt.edits.trees.expressions import between
from transplt.precision.instrument.edits import Edits
from transplt.precision.instrument.trainers import hand_to_trainers, owns_loop
from transplt.program.loops import LOOPS, Loop, loops_around
from transplt.program.optimizers import find_steps
from transplt.program.program import File, Program, enclosing_function
from transplt.program.steps import runs_backward, steps_by_itself
from transplt.syntax.nodes import by_place, last_name
from transplt.syntax.scan import chain

PROBE = "transplt_probe"
#: So many calls up a loop is looked for.
_FAR = 5
_BY_HAND = f"call {PROBE}.step() before each step"


def record_steps(program: Program, bench: Mapping[str, Edits]) -> bool:
    """Let every loop of a program that trains record its steps. False where there is none. `bench`: by path."""
    calls = _Calls(program)
    handed = hand_to_trainers(program, bench, PROBE)
    every = ((file, call) for file in program.files for call in file.scan.calls)
    found = [(file, call, _loop_of(calls, file, call)) for file, call in every if runs_backward(file, call)]
    # Beside loops that take steps, one that takes none profiles, attacks or checks.
    chosen = {place.loop: bench[place.file.path] for _, _, place in found if place and place.steps}
    chosen = chosen or {place.loop: bench[place.file.path] for _, _, place in found if place}
    for file, call, place in found:
        if place is None and not (handed and owns_loop(program, file, call)):
            message = f"no loop around this backward pass was found: {_BY_HAND}"
            bench[file.path].report(call, message, informs=bool(chosen) or handed)
    for loop, edits in chosen.items():
        if not any(above in chosen for above in chain(loop) if above is not loop):
            _record(edits, loop)
    return bool(chosen) or handed


class _Calls:
    """Who calls a function of a program, and which calls take a step of an optimizer."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.stepping: set[ast.AST] = set()  # calls, and the functions that hold one
        self._by_name: dict[str, list[tuple[File, ast.Call]]] = {}
        self._handed_to: dict[ast.AST, list[tuple[File, ast.Call]]] = {}
        for file in program.files:
            for call in by_place(file.scan.calls):
                self._by_name.setdefault(last_name(call.func), []).append((file, call))
                for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
                    if isinstance(argument, ast.Name | ast.Attribute):
                        given = program.definition(file, argument)
                        if isinstance(given, ast.FunctionDef) and given.name == last_name(argument):
                            self._handed_to.setdefault(given, []).append((file, call))
        pending: list[ast.AST] = [step.call for step in program.once(find_steps)]
        pending += [call for file in program.files for call in file.scan.calls if steps_by_itself(file, call)]
        self.stepping.update(pending)
        while pending:
            function = enclosing_function(pending.pop())
            if function is not None and function not in self.stepping:
                self.stepping.add(function)
                sites = [call for _, call in self.of(function)]
                self.stepping.update(sites)
                pending += sites

    def takes_step(self, node: ast.AST) -> bool:
        """True where an optimizer takes a step, itself or in a function that is called."""
        return any(each in self.stepping for each in ast.walk(node))

    def trains(self, function: ast.AST) -> bool:
        """True for a function with a loop that takes steps: what is called beside that is no part of it."""
        return any(isinstance(node, LOOPS) and self.takes_step(node) for node in ast.walk(function))

    def of(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[tuple[File, ast.Call]]:
        """The calls that run a function: those of it, those it is given to, and of methods those of its name."""
        found = [*self.program.call_sites.get(function, ()), *self._handed_to.get(function, ())]
        return found or [
            (file, call)
            for file, call in self._by_name.get(function.name, ())
            if isinstance(call.func, ast.Attribute)
            and file.names.qualified(call.func) is None
            and enclosing_function(call) is not function
            and (call.args or call.keywords or function.name != "train")  # `model.train()` is none of the program's
        ]


class _Place(NamedTuple):
    """A loop, and whether an optimizer takes a step in it."""

    file: File
    loop: Loop
    steps: bool


def _loop_of(calls: _Calls, file: File, node: ast.AST, seen: Collection[ast.AST] = ()) -> _Place | None:
    """The innermost loop around a node that also takes a step; without one the innermost loop."""
    loops = loops_around(node)
    taking = [loop for loop in loops if calls.takes_step(loop)]
    if taking:
        return _Place(file, taking[0], True)
    function = enclosing_function(node)
    places = [_Place(file, loops[0], False)] if loops else []
    if function is not None and function not in seen and len(seen) < _FAR and not (seen and calls.trains(function)):
        for other, call in calls.of(function):
            found = _loop_of(calls, other, call, (*seen, function))
            if found is not None and found.steps:
                return found
            places += [found] if found is not None else []
    return places[0] if places else None


def _record(edits: Edits, loop: Loop) -> None:
    if isinstance(loop, ast.AsyncFor):
        edits.report(loop, f"an async loop is not recorded: {_BY_HAND}")
    elif isinstance(loop, ast.For):
        several = isinstance(loop.iter, ast.Tuple)  # perhaps without brackets of its own
        edits.rewrite(loop.iter, between(f"{PROBE}.steps({'(' * several}", ")" * (1 + several)))
        edits.probes = True
    elif edits.above(loop.body[0], f"{PROBE}.step()"):
        edits.probes = True
    else:
        edits.report(loop, f"the body of this loop cannot be recorded: {_BY_HAND}")
