"""`--amp-flag`: the option `--amp` in the script's own argparse, and how its value reaches the code that follows it.

`find_flag` finds where the option goes; `value_at` how it is spelled at a place, empty where that is not certain.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from transplt.edits.shared_lines import can_part
from transplt.flow.facts import ProjectFacts
from transplt.program.program import (
    File,
    Function,
    Program,
    ProgramValue,
    Variable,
    class_name,
    enclosing_function,
    is_static,
    scope_key,
    text_of,
)
from transplt.program.programs import programs_of
from transplt.program.reached_functions import reached_functions
from transplt.program.variable_values import parameter_of
from transplt.syntax.nodes import attribute_of, begins, block_of, last_name, of_kind
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement
from transplt.syntax.scopes import Binding

#: The option that goes into the script, and the attribute that holds its value.
OPTION, ATTRIBUTE = "--amp", "amp"
PARSERS = frozenset({"argparse.ArgumentParser"})


@dataclass(frozen=True, slots=True)
class Flag:
    """The parser of a program. The new option goes below `after`, or above `before` where no option is beside it."""

    file: File
    parser: str
    after: ast.stmt | None
    before: ast.stmt
    quote: str


@dataclass(frozen=True, slots=True)
class NoFlag:
    """Why the program gets no option, and the place that shows it (None: no place in particular)."""

    why: str
    file: File | None = None
    node: ast.expr | None = None


def find_flag(program: Program) -> Flag | NoFlag:
    """Where the one parser of a program gets its option."""
    calls = [(file, call) for file in program.files for call in file.scan.calls]
    made = [(file, call) for file, call in calls if file.names.qualified(call.func) in PARSERS]
    if not made:
        return NoFlag("the script has no argparse.ArgumentParser")
    for file, call in calls:
        method = attribute_of(call.func)
        if method == "add_argument" and (taken := _option_in_the_way(call)):
            return NoFlag(f"the script already has an option {taken}", file, call)
        if method == "add_subparsers":
            return NoFlag("the script's parser has subcommands", file, call)
    if len(made) > 1:
        return NoFlag("the script has several parsers", *made[1])
    parses = [(file, call) for file, call in calls if attribute_of(call.func) and reads_options(program, file, call)]
    if len(parses) != 1:
        why = "nothing parses its options" if not parses else "its options are parsed in several places"
        return NoFlag(f"the script has a parser, but {why}", *made[0])
    file, call = parses[0]
    match call.func:
        case ast.Attribute(value=ast.Name() | ast.Attribute() as parser):
            return _place(program, file, call, parser)
    return NoFlag("the parser has no name", file, call)


def level_is_an_option(project: ProjectFacts, file: File) -> bool:
    """True when the programs that run a file have room for options with the level and the scale of apex."""
    return all(
        not any(_has_option(call, {"opt-level", "opt_level", "loss-scale", "loss_scale"}) for call in each.scan.calls)
        for program in programs_of(project).around(file)
        for each in program.files
    )


def _has_option(call: ast.Call, names: set[str]) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "dest")]
    texts = [each.value for each in of_kind(ast.Constant, given) if isinstance(each.value, str)]
    return last_name(call.func) == "add_argument" and any(text.lstrip("-") in names for text in texts)


def value_at(program: Program, flag: Flag, file: File, node: ast.AST) -> str:
    """How the value of the option is spelled where `node` stands: `args.amp`, `self.args.amp`; empty when unsure."""
    for text in visible(program, file, node):
        return f"{text}.{ATTRIBUTE}"
    return ""


def _place(program: Program, file: File, call: ast.Call, base: ast.expr) -> Flag | NoFlag:
    """Below the last `parser.add_argument(...)` of the block that parses, or of the module; else above the parsing."""
    stored = statement(call)
    slot = program.slot(file, base)
    options = _options_in(program, file, block_of(stored), slot, stored)
    if not options and enclosing_function(call) is not None:
        options = _options_in(program, file, file.scan.tree.body, slot, None)
    quote = '"'
    if options:
        value = options[-1].value
        assert isinstance(value, ast.Call)
        if value.args and text_of(file, value.args[0]).startswith("'"):
            quote = "'"
    if "transplt:" in file.source.line_text((options[-1] if options else stored).lineno):
        return NoFlag("a comment keeps the option out of the parser", file, call)
    if not can_part(file.source, options[-1] if options else stored):
        return NoFlag("the statements of the parser's line cannot be put on separate lines", file, call)
    return Flag(file, text_of(file, base), options[-1] if options else None, stored, quote)


def _options_in(
    program: Program, file: File, block: list[ast.stmt], slot: Variable | None, above: ast.stmt | None
) -> list[ast.Expr]:
    """The `parser.add_argument(...)` statements of a block, those above a statement only."""
    return [
        item
        for item in of_kind(ast.Expr, block)
        if isinstance(item.value, ast.Call)
        and isinstance(item.value.func, ast.Attribute)
        and item.value.func.attr == "add_argument"
        and program.slot(file, item.value.func.value) == slot
        and (above is None or begins(item) < begins(above))
    ]


def _option_in_the_way(call: ast.Call) -> str:
    """The option of an `add_argument` that stands in the way of `--amp`: its own, or one that it may shorten."""
    for argument in call.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            name = argument.value
            if name == ATTRIBUTE or name.startswith(OPTION):
                return name
    for keyword in call.keywords:
        if keyword.arg == "dest" and isinstance(keyword.value, ast.Constant) and keyword.value.value == ATTRIBUTE:
            return f"with the value {ATTRIBUTE}"
    return ""


# --- code that follows the flag --------------------------------------------------------------------------------------

#: (value, why not): the spelling of the flag at a node, None with the reason where it is not certain.
Follow = Callable[[ast.AST], tuple[str | None, str]]


def follow(project: ProjectFacts, file: File) -> Follow:
    """How the code of a file follows the flag: in every program that runs it, with one spelling."""
    around = programs_of(project).around(file)
    programs = [(program, find_flag(program), reached_functions(program)) for program in around]

    def at(node: ast.AST) -> tuple[str | None, str]:
        function = enclosing_function(node)
        seen: set[str] = set()
        for program, flag, reached in programs:
            if function not in reached if function is not None else program.files[0] is not file:
                continue
            if isinstance(flag, NoFlag):
                return None, flag.why
            seen.add(value_at(program, flag, file, node))
        if len(seen) == 1 and (value := seen.pop()):
            return value, ""
        return None, "the command line options are not available here"

    return at


def reads_options(program: Program, file: File, call: ast.Call) -> bool:
    """True for `parser.parse_args(...)` and `parser.parse_known_args(...)` of a parser of argparse."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("parse_args", "parse_known_args"):
        return False
    if isinstance(func.value, ast.Call):
        return file.names.qualified(func.value.func) in PARSERS
    return _is_parser(program, file, func.value, set())


def _is_parser(program: Program, file: File, node: ast.expr, seen: set[Variable | ast.AST]) -> bool:
    if isinstance(node, ast.Call):
        if file.names.qualified(node.func) in PARSERS:
            return True
        callee = program.callee(file, node)
        if not isinstance(callee, FUNCTIONS) or callee in seen:
            return False
        returned, seen = list(program.returns(callee)), seen | {callee}
        return bool(returned) and all(_is_parser(program, program.owner[callee], item, seen) for item in returned)
    slot = program.slot(file, node)
    if slot is None or slot in seen:
        return False
    values = program.values.get(slot, [])
    return bool(values) and all(
        item.index is None and _is_parser(program, item.file, item.node, seen | {slot}) for item in values
    )


def visible(program: Program, file: File, node: ast.AST) -> list[str]:
    """The names under which the parsed options are certain to be there at a node, nearest first."""
    found: list[str] = []
    function = enclosing_function(node)
    if function is not None:
        scope = file.scan.scopes[function]
        for name in scope.bindings:
            slot = (file.path, scope_key(scope), name)
            if _holds(program, slot, set()) and _set_before(scope.bindings[name], node):
                found.append(name)
        arguments, above = [*function.args.posonlyargs, *function.args.args], parent(function)
        method = isinstance(above, ast.ClassDef) and arguments and not is_static(function)
        owner = (arguments[0].arg, program.root_class(class_name(file, above))) if method else None
        if owner is not None:
            name, cls = owner
            held = [slot for slot in program.values if slot[:2] == ("self", cls) and _holds(program, slot, set())]
            found += [f"{name}.{slot[2]}" for slot in held if _early(program, slot, node)]
    root = file.scan.root
    for name, bindings in root.bindings.items():
        known = file.names.lookup(name, file.scan.scope_of(node))
        if known is None or known[0] is not root or not _holds(program, (file.path, "", name), set()):
            continue
        if _set_before(bindings, node) if function is None else _global_is_there(program, file, function, name):
            found.append(name)
    return found


def _set_before(bindings: list[Binding], node: ast.AST) -> bool:
    """True when one statement gives the name its value, in a block around or above a node (or it is a parameter)."""
    for binding in bindings:
        if binding.kind == "param":
            continue
        if binding.kind != "assign":
            return False
        stored = statement(binding.node)
        if begins(stored) >= begins(node) or parent(stored) not in [node, *chain(node)]:
            return False
    return bool(bindings)


def _global_is_there(program: Program, file: File, function: Function, name: str) -> bool:
    """True when a function may read a name of its module: it does so already, or only this file calls it."""
    bindings = file.scan.root.bindings[name]
    if len(bindings) != 1 or bindings[0].kind != "assign":
        return False
    stored = statement(bindings[0].node)
    if isinstance(parent(stored), ast.Module):
        return True
    for used in file.scan.names.get(name, ()):
        if isinstance(used.ctx, ast.Load) and enclosing_function(used) is function:
            return True
    sites = program.call_sites.get(function, [])
    return bool(sites) and all(
        at is file and enclosing_function(call) is None and begins(call) > begins(stored) for at, call in sites
    )


def _early(program: Program, slot: Variable, node: ast.AST) -> bool:
    """True when an attribute is set in `__init__`; in it, above the node."""
    function = enclosing_function(node)
    for file in program.files:
        for store in file.scan.stores:
            if program.slot(file, store) == slot:
                holder = enclosing_function(store)
                if holder is None or holder.name != "__init__" or not isinstance(parent(statement(store)), FUNCTIONS):
                    return False
                if holder is function and begins(store) >= begins(node):
                    return False
    return True


def _holds(program: Program, slot: Variable, seen: set[Variable]) -> bool:
    """True when all that a variable ever holds are the parsed options."""
    if slot in seen:
        return False
    values = program.values.get(slot, [])
    function = parameter_of(program, slot)
    if function is not None:  # all calls of the function have to give the parameter, and there has to be one
        callee: ast.AST = parent(function) if function.name == "__init__" else function
        sites = program.call_sites.get(callee, [])
        given = [any(slot[2] == got for got, _ in program.arguments(call, callee)) for _, call in sites]
        if not all(given) or not (given or _spawned(program, function, slot[2])):
            return False
    spawned = _spawned(program, function, slot[2]) if function is not None else []
    every = [*values, *spawned]
    return bool(every) and all(_options(program, item, seen | {slot}) for item in every)


def _options(program: Program, value: ProgramValue, seen: set[Variable]) -> bool:
    """True when a value is the parsed options."""
    file, node = value.file, value.node
    match node:
        case ast.Call(func=ast.Attribute(attr=method)) if reads_options(program, file, node):
            return value.index == (None if method == "parse_args" else 0)
        case ast.Call():
            callee = program.callee(file, node)
            if not isinstance(callee, FUNCTIONS):
                return False
            returned = [ProgramValue(program.owner[callee], item, value.index) for item in program.returns(callee)]
            return bool(returned) and all(_returned(program, each, seen) for each in returned)
        case ast.Name() | ast.Attribute() if value.index is None:
            slot = program.slot(file, node)
            return slot is not None and _holds(program, slot, seen)
    return False


def _returned(program: Program, value: ProgramValue, seen: set[Variable]) -> bool:
    if value.index is not None and isinstance(value.node, ast.Tuple):
        return value.index < len(value.node.elts) and _options(
            program, ProgramValue(value.file, value.node.elts[value.index]), seen
        )
    return _options(program, value, seen)


def _spawned(program: Program, function: Function, name: str) -> list[ProgramValue]:
    """What `mp.spawn(function, args=(...))` gives a parameter: the first one is the rank."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)][1:]
    found: list[ProgramValue] = []
    for file in program.files:
        for call in file.scan.calls:
            if not (file.names.qualified(call.func) or "").endswith("multiprocessing.spawn") or not call.args:
                continue
            if program.named(file, call.args[0]) is not function:
                continue
            given = next((keyword.value for keyword in call.keywords if keyword.arg == "args"), None)
            given = call.args[1] if given is None and len(call.args) > 1 else given
            if isinstance(given, ast.Tuple) and name in names and names.index(name) < len(given.elts):
                found.append(ProgramValue(file, given.elts[names.index(name)]))
    return found
