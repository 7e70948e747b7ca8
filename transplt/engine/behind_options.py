"""Findings in branches that a program takes only where somebody asks for them: behind an option that is off by default.

Read from one file: options of its own command line, fields of its dataclasses, and parameters of the function that
the branch stands in. Where the default is not in sight a branch counts as taken.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from transplt.base.finding import Finding
from transplt.syntax.asks import keyword_of, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, Scan, chain

#: What is no constant, or has several defaults.
_UNKNOWN = object()
_ADDS = ("add_argument", "add_option")


def mark_options(scan: Scan, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings; open ones say which option they stand behind."""
    if not any(finding.open for finding in findings):
        return findings
    branches = list(_branches(scan))
    if not branches:
        return findings
    return tuple(
        replace(finding, option=option) if finding.open and (option := _option(branches, finding)) else finding
        for finding in findings
    )


def _option(branches: Iterable[tuple[int, int, str]], finding: Finding) -> str:
    """The option of the innermost branch around a finding."""
    line = finding.span.line
    around = [(first - last, name) for first, last, name in branches if first <= line <= last]
    return max(around)[1] if around else ""


def _branches(scan: Scan) -> Iterator[tuple[int, int, str]]:
    """First and last line of each branch that is off by default, with the words for what turns it on."""
    options = _options(scan)
    for node in ast.walk(scan.tree):
        if not isinstance(node, ast.If):
            continue
        known = {**options, **_parameters(node)}
        if words := _off(node.test, known):
            yield node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno, words
        elif node.orelse and (words := _off(ast.UnaryOp(ast.Not(), node.test), known)):
            yield node.orelse[0].lineno, node.orelse[-1].end_lineno or node.orelse[-1].lineno, words


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


def _parameters(node: ast.If) -> dict[str, tuple[object, str]]:
    """The parameters of the function around a branch, by their defaults; not one that it binds again."""
    function = next((above for above in chain(node) if isinstance(above, FUNCTIONS)), None)
    if function is None:
        return {}
    spec = function.args
    named = [*spec.posonlyargs, *spec.args]
    rows: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(named[len(named) - len(spec.defaults) :], spec.defaults, strict=True),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]
    bound = {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return {
        argument.arg: (default.value, f"{argument.arg}=")
        for argument, default in rows
        if isinstance(default, ast.Constant) and argument.arg not in bound
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
        name = string_of(keyword_of(call, "dest")) or spelled.lstrip("-").replace("-", "_")
        yield name, _default(call), spelled


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
    for node in ast.walk(scan.tree):
        if not isinstance(node, ast.ClassDef) or not any(
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
