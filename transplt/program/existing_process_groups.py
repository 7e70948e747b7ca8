"""Programs that run in several processes already: what sets them up, and the option without which they do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from transplt.flow.option_defaults import destination
from transplt.program.frameworks import PROCESSES, taken_over
from transplt.program.program import File, Program, enclosing_function
from transplt.program.ranks import helper_call
from transplt.syntax.nodes import by_place, keyword_of, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, chain

_BEGINS = "init_process_group"
#: What says by its value that there is one process, or what starts the others.
_NONE = frozenset({"none", "None", "", "single", "no"})
_LAUNCHERS = ("pytorch", "torchrun", "torch")


@dataclass(frozen=True, slots=True)
class Setup:
    """What sets up several processes: a call, or the base of a class. `spawns` when it starts them itself."""

    file: File
    node: ast.expr
    what: str
    spawns: bool


def setups(program: Program) -> list[Setup]:
    """What sets up several processes in a program, by place."""
    found = []
    for file in program.files:
        called: list[tuple[ast.expr, ast.expr]] = [(call, call.func) for call in file.scan.calls]
        derived = [(base, base) for node in file.scan.classes for base in node.bases]
        named = {node: file.names.qualified(name) for node, name in (*called, *derived)}
        for node in by_place(named):
            framework = taken_over(PROCESSES, named[node] or "")
            if isinstance(node, ast.Call) and helper_call(file, node) == "start":
                found.append(Setup(file, node, "npu_port.start", False))
            elif framework is not None:
                found.append(Setup(file, node, framework.called, framework.spawns))
    return found


# --- the option ------------------------------------------------------------------------------------------------------


def option_needed(program: Program, setups: list[Setup]) -> tuple[File, ast.Call, str] | None:
    """The call that states an option, and the option as it is given, where a process group is made with it alone."""
    for setup in setups:
        if setup.what.endswith(_BEGINS):
            for test, holds in _conditions(program, setup.file, setup.node, set()):
                if (found := _option(program, test, holds)) is not None:
                    return found
    return None


def _conditions(program: Program, file: File, node: ast.AST, seen: set[ast.AST]) -> Iterator[tuple[ast.expr, bool]]:
    """The conditions around a node, in its function and in those that call it, each with whether it has to hold."""
    below: ast.AST = node
    for above in chain(node):
        if isinstance(above, FUNCTIONS):
            break
        if isinstance(above, ast.If) and below is not above.test:
            yield above.test, below in above.body
        below = above
    function = enclosing_function(node)
    if function is not None and function not in seen:
        seen.add(function)
        for at, call in program.call_sites.get(function, []):
            yield from _conditions(program, at, call, seen)


def _option(program: Program, test: ast.expr, holds: bool) -> tuple[File, ast.Call, str] | None:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _option(program, operand, not holds)
        case ast.Name() | ast.Attribute() if holds and (stated := _stated(program, last_name(test))) is not None:
            return stated if string_of(keyword_of(stated[1], "action")) == "store_true" else None
        case ast.Compare(left=left, ops=[op], comparators=[other]) if isinstance(op, ast.NotEq) is holds:
            stated = _stated(program, last_name(left))
            one_process = string_of(other)
            if stated is None or one_process not in _NONE or string_of(keyword_of(stated[1], "default")) != one_process:
                return None
            choices = keyword_of(stated[1], "choices")
            every = map(string_of, choices.elts) if isinstance(choices, (ast.List, ast.Tuple)) else ()
            launcher = next((each for each in every if each in _LAUNCHERS), None)
            return (*stated[:2], f"{stated[2]} {launcher}") if launcher else None
    return None


def _stated(program: Program, name: str) -> tuple[File, ast.Call, str] | None:
    """`parser.add_argument("--name", ...)`, with the option as it is spelled; None for what the program sets itself:
    `args.distributed = int(os.environ["WORLD_SIZE"]) > 1`.
    """
    if not name or any(node.attr == name for file in program.files for node in file.scan.stores):
        return None
    for file in program.files:
        for call in file.scan.calls:
            if last_name(call.func) == "add_argument":
                flags = [flag for each in call.args if (flag := string_of(each) or "").startswith("--")]
                if flags and destination(call) == name:
                    return file, call, flags[0]
    return None
