"""Findings in branches that a program takes only where somebody asks for them: behind an option that is off by default.

Read from one file: options of its own command line, fields of its dataclasses, and parameters of the function that
the branch stands in. Where the default is not in sight a branch counts as taken.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from transplt.base.finding import Finding
from transplt.flow.arguments import destination
from transplt.program.program import enclosing_function
from transplt.syntax.asks import defaults_of, keyword_of, last_name, string_of
from transplt.syntax.scan import Scan

#: What is no constant, or has several defaults.
_UNKNOWN = object()
_ADDS = ("add_argument", "add_option")
#: The blocks of statements, by their fields.
_BLOCKS = ("body", "orelse", "finalbody")


def mark_options(scan: Scan, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings; open ones say which option they stand behind."""
    options: dict[str, tuple[object, str]] | None = None
    marked = []
    for finding in findings:
        around = _branches_around(scan.tree, finding.span.line) if finding.open else []
        if around:
            options = _options(scan) if options is None else options
            words = (_taken_with(scan, node, in_body, options) for node, in_body in reversed(around))
            if option := next(filter(None, words), ""):
                finding = replace(finding, option=option)
        marked.append(finding)
    return tuple(marked)


def _branches_around(tree: ast.Module, line: int) -> list[tuple[ast.If, bool]]:
    """The branches that a line stands in, outermost first; True for one that is taken where its test holds."""
    found: list[tuple[ast.If, bool]] = []
    block: list[ast.stmt] = tree.body
    while (inside := _at(block, line)) is not None:
        blocks = [each for name in _BLOCKS if (each := getattr(inside, name, None))]
        blocks += [each.body for each in (*getattr(inside, "handlers", ()), *getattr(inside, "cases", ()))]
        block = next((each for each in blocks if _at(each, line) is not None), [])
        if isinstance(inside, ast.If) and block:
            found.append((inside, block is inside.body))
    return found


def _at(block: list[ast.stmt], line: int) -> ast.stmt | None:
    return next((each for each in block if each.lineno <= line <= (each.end_lineno or each.lineno)), None)


def _taken_with(scan: Scan, node: ast.If, in_body: bool, options: Mapping[str, tuple[object, str]]) -> str:
    known = {**options, **_parameters(scan, node)}
    return _off(node.test if in_body else ast.UnaryOp(ast.Not(), node.test), known)


def _off(test: ast.expr, known: Mapping[str, tuple[object, str]]) -> str:
    """The option because of which a test fails by default; empty where it may hold."""
    if isinstance(test, ast.BoolOp):
        found = [_off(value, known) for value in test.values]
        if isinstance(test.op, ast.And):
            return next(filter(None, found), "")
        return found[0] if all(found) else ""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        value, words = _value(test.operand, known)
        return words if value is not _UNKNOWN and value else ""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        value, words = _value(test.left, known)
        other = test.comparators[0]
        if value is _UNKNOWN or not isinstance(other, ast.Constant):
            return ""
        equal = value == other.value and type(value) is type(other.value)
        if isinstance(test.ops[0], (ast.Eq, ast.Is)):
            return "" if equal else f"{words} {other.value!s}"
        return words if isinstance(test.ops[0], (ast.NotEq, ast.IsNot)) and equal else ""
    value, words = _value(test, known)
    return words if value is not _UNKNOWN and not value else ""


def _value(node: ast.expr, known: Mapping[str, tuple[object, str]]) -> tuple[object, str]:
    """The default of an attribute or a parameter, and how it is given."""
    name = node.id if isinstance(node, ast.Name) else f".{node.attr}" if isinstance(node, ast.Attribute) else ""
    return known.get(name, (_UNKNOWN, ""))


def _parameters(scan: Scan, node: ast.If) -> dict[str, tuple[object, str]]:
    """The parameters of the function around a branch, by their defaults; not one that it binds again."""
    function = enclosing_function(node)
    if function is None:
        return {}
    bindings = scan.scopes[function].bindings
    return {
        argument.arg: (default.value, f"{argument.arg}=")
        for argument, default in defaults_of(function.args)
        if isinstance(default, ast.Constant) and len(bindings.get(argument.arg, ())) == 1
    }


def _options(scan: Scan) -> dict[str, tuple[object, str]]:
    """By `.name`: the default of an option of the command line, or of a field of a dataclass."""
    found: dict[str, tuple[object, str]] = {}
    for name, default, words in (*_of_parsers(scan), *_of_dataclasses(scan)):
        there = found.get(f".{name}")
        found[f".{name}"] = (default if there is None or there[0] == default else _UNKNOWN, words)
    return found


def _of_parsers(scan: Scan) -> Iterator[tuple[str, object, str]]:
    for call in scan.calls_by_last_name(_ADDS):
        names = [text for argument in call.args if (text := string_of(argument)) is not None]
        spelled = next((text for text in names if text.startswith("--")), "")
        if not spelled:
            continue
        yield destination(call), _default(call), spelled


def _default(call: ast.Call) -> object:
    if keyword_of(call, "required") is not None or any(keyword.arg is None for keyword in call.keywords):
        return _UNKNOWN
    given, action = keyword_of(call, "default"), string_of(keyword_of(call, "action"))
    if given is not None:
        return given.value if isinstance(given, ast.Constant) else _UNKNOWN
    if action in ("store_true", "store_false"):
        return action == "store_false"
    return None if keyword_of(call, "action") is None else _UNKNOWN


def _of_dataclasses(scan: Scan) -> Iterator[tuple[str, object, str]]:
    for node in scan.classes:
        if not any(
            last_name(each.func if isinstance(each, ast.Call) else each) == "dataclass" for each in node.decorator_list
        ):
            continue
        for row in node.body:
            if isinstance(row, ast.AnnAssign) and isinstance(row.target, ast.Name) and row.value is not None:
                value: ast.expr | None = row.value
                if isinstance(value, ast.Call):
                    value = keyword_of(value, "default") if last_name(value.func) == "field" else None
                default = value.value if isinstance(value, ast.Constant) else _UNKNOWN
                yield row.target.id, default, row.target.id
