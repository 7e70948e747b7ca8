"""What an edit does to the text of its node: a new text, or a function of its LibCST tree, or of its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec

from transplt.edits.trees.lazy import cst

#: Gets the LibCST root of a site (an expression, a SimpleStatementLine, the Parameters of one parameter), with its long
#: operands as placeholder names, and returns the new root, or its source text.
Transform = Callable[["cst.CSTNode"], "cst.CSTNode | str"]

_P = ParamSpec("_P")


class CannotRewrite(Exception):
    """A transform met a form that it does not handle; the site becomes a manual finding."""


@dataclass(frozen=True, slots=True)
class OfText:
    """An edit for which the node is a text: something goes around all of it, or it is a string."""

    write: Callable[[str], str]


#: What an edit of existing code is: another text for the whole node, a function of its text, or one of its tree.
New = str | OfText | Transform
_NEWLINE = re.compile(r"\r\n|\r|\n")
#: An argument with a keyword argument behind it, and a value of a dict display with another row behind it.
_WITH_ANOTHER = ("_({}\n)", "{{_: {}\n}}")


def edit_of(
    *kinds: str, otherwise: str = ""
) -> Callable[[Callable[Concatenate[Any, _P], cst.CSTNode | str]], Callable[_P, Transform]]:
    """Makes an edit of a function of a LibCST node of some kinds: it takes all other arguments now, and the node later.

    A node of another kind is refused; `otherwise` says why.
    """

    def decorated(change: Callable[Concatenate[Any, _P], cst.CSTNode | str]) -> Callable[_P, Transform]:
        @wraps(change)
        def given(*args: _P.args, **named: _P.kwargs) -> Transform:
            def transform(node: cst.CSTNode) -> cst.CSTNode | str:
                if kinds and type(node).__name__ not in kinds:
                    raise CannotRewrite(otherwise or f"not the {kinds[0].lower()} that was expected")
                return change(node, *args, **named)

            return transform

        return given

    return decorated


def refusing(reason: str) -> Transform:
    """A transform that leaves the node as it is, for a reason."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        raise CannotRewrite(reason)

    return transform


def code(node: cst.CSTNode) -> str:
    """The source text of a tree."""
    return cst.Module([]).code_for_node(node)


def rewritten(text: str, news: Sequence[New], kind: type[ast.AST]) -> str:
    """The text of a node of that kind after some edits, one after the other. CannotRewrite: the node stays as it is."""
    current: cst.CSTNode | str = text
    for new in news:
        if isinstance(new, str):
            current = new
        elif isinstance(new, OfText):
            current = new.write(text_of(current, text))
        else:
            try:
                current = new(_tree(current, kind))
            except cst.CSTValidationError as error:
                raise CannotRewrite(f"the new text is not an expression: {error}") from None
    after = text_of(current, text)
    if issubclass(kind, ast.stmt):
        return after.rstrip("\r\n")
    if issubclass(kind, ast.expr):
        _check(after)
    return after


def _tree(current: cst.CSTNode | str, kind: type[ast.AST]) -> cst.CSTNode:
    if not isinstance(current, str):
        return current
    try:
        if issubclass(kind, ast.stmt):
            return cst.parse_statement(current + "\n")
        if issubclass(kind, ast.arg):
            return cst.ensure_type(cst.parse_statement(f"def _({current}): pass"), cst.FunctionDef).params
        return expression(current)
    except cst.ParserSyntaxError as error:
        raise CannotRewrite(f"LibCST does not read it: {error.message}") from None


@lru_cache(maxsize=256)
def expression(text: str) -> cst.BaseExpression:
    """The tree of an expression, which may go over several lines. Trees do not change: `torch.cuda` is read once."""
    node = cst.parse_expression(f"({text})")
    return node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])


def text_of(current: cst.CSTNode | str, before: str) -> str:
    """The source of what a node has become, with the line ends that it had."""
    if isinstance(current, str):
        return current
    found = _NEWLINE.search(before)
    return cst.Module([], default_newline=found.group() if found else "\n").code_for_node(current)


def _check(text: str) -> None:
    """An edit that only together with another one makes sense to the parser would get past the check of the file."""
    try:
        parsed = ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if not any(_parses(form.format(text)) for form in _WITH_ANOTHER):
            raise CannotRewrite(f"the new text is not an expression: {error}") from None
        return
    if isinstance(parsed, ast.Tuple) and not parsed.elts and "(" not in text:
        raise CannotRewrite("the new text is empty")


def _parses(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
