"""What a statement of a training is about, by the names in it: the theme under which a change of it is told."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache

from transplt.project.judging.statements import TABLE, Statement
from transplt.rules.tables import read_table
from transplt.syntax.nodes import last_name

#: With more words that are others, a statement is another one as a whole.
_FEW = 6
OPTIONS = ("add_argument", "option")
#: Names of what differs in every port.
OF_CARDS = re.compile(r"device|rank|gpu|npu|world|local|dist|worker|backend", re.IGNORECASE)


class Grade(Enum):
    """What a change comes to: it speaks against the port, reading cannot decide it, or a person should know of it."""

    AGAINST = "against"
    OPEN = "open"
    TOLD = "told"


@cache
def theme_of(name: str) -> str:
    """What a name of an option, an argument or a variable is about; empty where it is about none of the themes."""
    word = name.lower().replace("-", "_").strip("_")
    return next((theme for theme, pattern in read_table(TABLE)["words"] if re.search(pattern, word)), "")


def theme_at(statement: Statement, words: Iterable[str] = ()) -> str:
    """What a statement is about, first by the `words` of its form that are others."""
    for name in (*(words if len(words := [*words]) <= _FEW else ()), *_names(statement)):
        if theme := theme_of_call(name) or theme_of(name):
            return theme
    heads = isinstance(statement.node, (ast.If, ast.For, ast.While, ast.Try, ast.With))
    below = ast.walk(statement.node) if heads else ()
    called = (theme_of_call(last_name(node.func)) for node in below if isinstance(node, ast.Call))
    return next(filter(None, called), "computing")


@cache
def theme_of_call(name: str) -> str:
    """What a function is about, by its name."""
    return next((theme for theme, pattern in read_table(TABLE)["calls"] if re.fullmatch(pattern, name)), "")


def _names(statement: Statement) -> Iterator[str]:
    """What a statement sets, calls and gives, and what is called below it."""
    if statement.parts and isinstance(statement.parts[0], ast.expr):
        yield name_of(statement.parts[0])
    yield from defaults_of(statement)
    for node in statement.inside():
        match node:
            case ast.Call(func=function, args=args) if last_name(function) in OPTIONS:
                yield from (str(each.value) for each in args if isinstance(each, ast.Constant))
            case ast.Call(func=function):
                yield last_name(function)
            case ast.keyword(arg=str() as name):
                yield name


def name_of(target: ast.expr) -> str:
    """The last name of what is assigned to: `lr` of `group["lr"]`; empty where it has none."""
    match target:
        case ast.Subscript(slice=ast.Constant(value=str() as name)) | ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def options_of(statement: Statement) -> Iterator[tuple[str, dict[str, str]]]:
    """The options that a statement makes, by their longest names, and what else is said of each."""
    for node in statement.inside():
        if isinstance(node, ast.Call) and last_name(node.func) in OPTIONS:
            names = [str(each.value) for each in node.args if isinstance(each, ast.Constant)]
            words = {each.arg or "": ast.unparse(each.value) for each in node.keywords}
            yield max(names, key=len, default="").lstrip("-").replace("-", "_"), words


def defaults_of(statement: Statement) -> dict[str, ast.expr]:
    """The defaults of the arguments of a function."""
    found: dict[str, ast.expr] = {}
    for given in (each for each in statement.parts if isinstance(each, ast.arguments)):
        names = [each.arg for each in (*given.posonlyargs, *given.args)]
        found |= zip(names[len(names) - len(given.defaults) :], given.defaults, strict=True)
        found |= {name.arg: value for name, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
    return found
