"""Strings that name a device or a backend become NPU strings where they reach such a place; the rest stay."""

from __future__ import annotations

import ast
import re

import libcst as cst

from transplt.destinations import Place, places, verdict
from transplt.finding import Effort, Level
from transplt.flow import BACKEND, DEVICE, Flow
from transplt.rewrite import CannotRewrite, Change
from transplt.scan import FUNCTIONS, parent
from transplt.work import Work

DEVICE_STRING = re.compile(r"cuda(?::(?:\d+|%[dsi]|\{[^{}]*\})?)?")
BACKEND_STRING = re.compile(r"nccl")
BACKENDS_STRING = re.compile(r"(?:\w+:\w+,)+\w+:\w+|cuda:nccl")
DOTTED = re.compile(r"torch\.(?:\w+\.)*\w+")


def plan(work: Work) -> None:
    """Decide for each string that holds a CUDA word and that no other codemod has claimed."""
    if not work.scan.strings:
        return
    flow = work.flow
    for node in sorted(work.scan.strings, key=lambda n: (n.lineno, n.col_offset)):
        above = parent(node)
        outer = above if isinstance(above, ast.JoinedStr) else node
        if id(outer) in work.taken:
            continue
        value = whole_value(outer)
        assert isinstance(node.value, str)
        if DEVICE_STRING.fullmatch(value):
            _device(work, flow, outer, value)
        elif value == "nccl" or (BACKENDS_STRING.fullmatch(value) and "nccl" in value):
            _backend(work, flow, outer, value)
        elif DOTTED.fullmatch(value):
            _dotted(work, outer, value)
        else:
            _other(work, flow, outer, value)


def whole_value(node: ast.expr) -> str:
    """The text of a string expression; the fields of an f-string count as `{}`."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def _device(work: Work, flow: Flow, node: ast.expr, value: str) -> None:
    found = places(flow, node)
    said = verdict(flow, found, DEVICE)
    if said == DEVICE:
        _replace(work, node, "NPU201", f"device string {value!r}", (("cuda", "npu"),))
    else:
        _stays(work, node, value, said, found, "device")


def _backend(work: Work, flow: Flow, node: ast.expr, value: str) -> None:
    found = places(flow, node)
    said = verdict(flow, found, BACKEND)
    if said == BACKEND:
        pairs = (("nccl", "hccl"), ("cuda", "npu")) if "cuda" in value else (("nccl", "hccl"),)
        _replace(work, node, "NPU301", f"backend {value!r}", pairs)
    else:
        _stays(work, node, value, said, found, "backend")


def _replace(work: Work, node: ast.expr, code: str, what: str, pairs: tuple[tuple[str, str], ...]) -> None:
    if not work.take(node):
        return
    text = work.source.slice(*work.source.extent(node))
    if not one_plain_literal(node, text, [old for old, _ in pairs]):
        work.note(
            node,
            "NPU202",
            f"{what} is not written as one plain literal",
            help=f"write it as one literal with {pairs[0][1]} in place of {pairs[0][0]}",
        )
        return
    work.changes.append(
        Change(
            node,
            code,
            f"{what} -> {_swap(what.split(' ', 1)[1], pairs)}",
            lambda root: _swap_literal(root, pairs),
            api=what,
            writes_npu=True,
        )
    )


def one_plain_literal(node: ast.expr, text: str, words: list[str]) -> bool:
    """True when the source of a string is a single literal that holds the words as they are."""
    try:
        parsed = cst.parse_expression(f"({text})")
    except cst.ParserSyntaxError:
        return False
    if isinstance(parsed, cst.FormattedString):
        # What stands in the fields is code, with edits of its own.
        text = "".join(part.value for part in parsed.parts if isinstance(part, cst.FormattedStringText))
    elif not isinstance(parsed, cst.SimpleString):
        return False
    return all(text.count(word) == 1 for word in words)


def _swap(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for old, new in pairs:
        text = text.replace(old, new)
    return text


def _swap_literal(node: cst.CSTNode, pairs: tuple[tuple[str, str], ...]) -> cst.CSTNode:
    if isinstance(node, cst.SimpleString):
        return node.with_changes(value=_swap(node.value, pairs))
    if isinstance(node, cst.FormattedString):
        parts = [
            part.with_changes(value=_swap(part.value, pairs)) if isinstance(part, cst.FormattedStringText) else part
            for part in node.parts
        ]
        return node.with_changes(parts=parts)
    raise CannotRewrite("not a plain string")


_REASONS = {
    "prose": "text for people",
    "key": "a key: names of entries stay",
    "flag": "a command line flag: its name stays",
    "foreign": "another library's device",
    "annotation": "an annotation",
}


def _stays(work: Work, node: ast.expr, value: str, said: str, found: list[Place], what: str) -> None:
    if said == "row":
        display = next(place.other for place in found if place.kind == "row")
        if isinstance(display, ast.Dict) and _has_key(display, "npu"):
            work.keep(node, "the table has a row for npu")
            return
        work.note(
            node,
            "NPU213",
            f"a table has a row for {value!r} and none for the NPU",
            help="if the table is looked up by device type, add a row for 'npu'; if its keys are names, leave it",
            effort=Effort.LOW,
        )
    elif said in _REASONS:
        work.keep(node, _REASONS[said])
    else:
        work.note(
            node,
            "NPU203" if what == "device" else "NPU302",
            f"the string {value!r} reaches no place that is known to take a {what}",
            help=f"if it names a {what}, write {'npu' if what == 'device' else 'hccl'}; if it is a name, leave it",
            effort=Effort.LOW,
        )


def _has_key(display: ast.Dict, key: str) -> bool:
    return any(isinstance(k, ast.Constant) and k.value == key for k in display.keys)


def _dotted(work: Work, node: ast.expr, value: str) -> None:
    """A full name in a string: mock targets, import_module, type names."""
    matched = work.rules.resolve(value)
    above = parent(node)
    if isinstance(above, ast.Expr):
        work.keep(node, "text for people")
        return
    if matched is None or not matched[0].renames or (matched[0].args is not None and False):
        if matched is not None and not matched[0].renames:
            work.note_rule(node, matched[0], value, "named in a string")
        else:
            work.note(
                node, "NPU204", f"{value!r} names something of CUDA in a string",
                help="name what stands in its place on the NPU", effort=Effort.LOW,
            )
        return
    rule, prefix = matched
    new = rule.new + value[len(prefix) :]
    if rule.listed and prefix != value:
        work.note(
            node, "NPU204", f"{value!r} names something of CUDA in a string",
            help="name what stands in its place on the NPU", effort=Effort.LOW,
        )
        return
    if not work.take(node):
        return
    old_text = value
    if not one_plain_literal(node, work.source.slice(*work.source.extent(node)), [old_text]):
        work.note(node, "NPU202", f"{value!r} is not written as one plain literal", help=f"write {new!r}")
        return
    work.changes.append(
        Change(
            node,
            "NPU205",
            f"{value!r} in a string -> {new!r}",
            lambda root: _swap_literal(root, ((old_text, new),)),
            api=value,
            writes_npu=True,
        )
    )


def _other(work: Work, flow: Flow, node: ast.expr, value: str) -> None:
    """Strings that hold a CUDA word among other text."""
    if is_docstring(node):
        if ">>>" in value and "cuda" in value.lower():
            work.note(
                node, "NPU206", "a doctest uses CUDA", help="rewrite the example by hand if it is run",
                effort=Effort.LOW,
            )
        else:
            work.keep(node, "a docstring")
        return
    work.keep(node, "text, a name or a path: no device")


def is_docstring(node: ast.AST) -> bool:
    """True for the string that documents a module, class or function."""
    statement = parent(node)
    if not isinstance(statement, ast.Expr):
        return False
    owner = parent(statement)
    if isinstance(owner, (ast.Module, ast.ClassDef, *FUNCTIONS)):
        return owner.body[0] is statement
    return False


__all__ = ["Level", "plan"]
