"""`--amp-flag`: the option `--amp` in the script's own argparse, and how its value reaches the code that follows it.

`find_flag` finds where the option goes; `value_at` how it is spelled at a place, empty where that is not certain.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from transplt.edits.shared_lines import can_part
from transplt.fixers.amp.parsed_options import PARSERS, reads_options, visible
from transplt.flow.facts import ProjectFacts
from transplt.program.program import File, Program, Variable, enclosing_function, text_of
from transplt.program.programs import programs_of
from transplt.program.reached_functions import reached_functions
from transplt.syntax.nodes import attribute_of, begins, block_of, last_name, of_kind
from transplt.syntax.scan import statement

#: The option that goes into the script, and the attribute that holds its value.
OPTION, ATTRIBUTE = "--amp", "amp"


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
