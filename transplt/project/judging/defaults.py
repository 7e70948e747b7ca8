"""Numbers that became options or arguments of the same default: a port that has these trains as its original did."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from transplt.project.judging.statements import Apart, Statement, compared
from transplt.project.judging.themes import OPTIONS, defaults_of
from transplt.syntax.nodes import last_name

#: `args.lr`, whatever the options are called; a name that is no keyword and no attribute.
_OPTION = re.compile(r"\b(?!self\b|cls\b)\w+\.(\w+)\b(?!\()")
_NAME = re.compile(r"(?<![\w.])(\w+)\b(?!=)")

_Values = dict[str, str]


def with_defaults(apart: Apart) -> Apart:
    """What two programs do not have in common, with the new options and arguments of the second at their defaults."""
    options = dict(pair for each in apart.new for pair in _options(each))
    for target in (target for each in apart.new for target in getattr(each.node, "targets", ())):
        options.pop(getattr(target, "attr", ""), "")  # the program sets it itself
    arguments = _arguments(apart, options)
    if not options and not arguments:
        return apart

    def read(each: Statement) -> tuple[str, str, str]:
        given = arguments.get((each.path, each.scope), {})
        text = _NAME.sub(lambda found: given.get(found[1], found[0]), each.text) if given else each.text
        return each.path, each.scope, _at_default(text, options)

    again = compared(apart.gone, apart.new, (read,))
    return Apart(again.gone, again.new, apart.alike + again.alike)


def _at_default(text: str, options: _Values) -> str:
    return _OPTION.sub(lambda found: options.get(found[1], found[0]), text)


def _calls(each: Statement) -> Iterator[ast.Call]:
    return (node for node in each.inside() if isinstance(node, ast.Call))


def _options(each: Statement) -> Iterator[tuple[str, str]]:
    """The options that a statement makes: the names under which a program asks for them, and their defaults."""
    for call in _calls(each):
        default = next((word.value for word in call.keywords if word.arg == "default"), None)
        if last_name(call.func) in OPTIONS and isinstance(default, ast.Constant):
            for given in call.args:
                if isinstance(given, ast.Constant) and str(given.value).startswith("--"):
                    yield str(given.value)[2:].replace("-", "_"), ast.unparse(default)


def _arguments(apart: Apart, options: _Values) -> dict[tuple[str, str], _Values]:
    """By path and function: its new arguments with their defaults, where no call in the port gives another value."""
    before = {(each.path, each.scope, name): each for each, name in _functions(apart.gone)}
    calls: dict[str, list[ast.Call]] = defaultdict(list)
    for call in (call for each in apart.new for call in _calls(each)):
        calls[last_name(call.func)].append(call)
    found: dict[tuple[str, str], _Values] = {}
    for each, function in _functions(apart.new):
        if (was := before.get((each.path, each.scope, function))) is None:
            continue
        places, old = _names(each), _names(was)
        new = {name: ast.unparse(value) for name, value in defaults_of(each).items() if name not in old}
        for call in calls[function] if new else ():
            given = dict(zip(places[places[:1] in (["self"], ["cls"]) :], call.args, strict=False))
            given |= {word.arg: word.value for word in call.keywords if word.arg}
            values = {name: _at_default(ast.unparse(value), options) for name, value in given.items()}
            new = {name: value for name, value in new.items() if values.get(name, value) == value}
        if new:
            found[each.path, f"{each.scope}.{function}".lstrip(".")] = new
    return found


def _functions(statements: Iterable[Statement]) -> Iterator[tuple[Statement, str]]:
    return ((each, each.node.name) for each in statements if isinstance(each.node, ast.FunctionDef))


def _names(function: Statement) -> list[str]:
    """The names of all arguments of a function, in their order."""
    return [node.arg for part in function.parts for node in ast.walk(part) if isinstance(node, ast.arg)]
