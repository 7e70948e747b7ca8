"""What the commonest edits come to, without a tree: for `check`, which shows edits and makes none.

LibCST's import costs more than the whole rest of a check of a small file (benchmarks/startup.py), so that the place
and the new text of a renamed thing are read off the positions that `ast` gives. Each function returns None where these
do not tell, and the edit is worked out; tests hold each against the transform of the same name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence


def dotted(text: str, wanted: Sequence[str]) -> str | None:
    """`transplt.trees.names.dotted`."""
    node = _expression(text)
    if node is None:
        return None
    spans: list[tuple[int, int]] = []
    at: ast.expr = node
    while isinstance(at, ast.Attribute):
        spans.append(_end_of(text, at, at.attr))
        at = at.value
    if isinstance(at, ast.Constant):
        return None  # `None` is a name to LibCST
    if not isinstance(at, ast.Name) or len(spans) + 1 != len(wanted):
        return ".".join(wanted)
    spans.append(_end_of(text, at, at.id))
    old = [name.attr for name in _chain(node)] + [at.id]
    if [text[start:end] for start, end in spans] != old:
        return None  # a name that Python spells in another way than the file
    return replaced(text, zip(reversed(spans), wanted, strict=True))


def attribute_named(text: str, name: str) -> str | None:
    """`transplt.trees.names.attribute_named`."""
    node = _expression(text)
    if not isinstance(node, ast.Attribute):
        return None
    start, end = _end_of(text, node, node.attr)
    return text[:start] + name + text[end:] if text[start:end] == node.attr else None


def with_first(text: str, value: str) -> str | None:
    """`transplt.trees.calls.with_first`."""
    node = _expression(text)
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
        return None
    called: ast.expr = node.func
    while isinstance(called, ast.Attribute):
        called = called.value
    at = _end_of(text, node.func, "")[1]
    if not isinstance(called, ast.Name) or not text.startswith("(", at):
        return None
    at += 1 + len(text[at + 1 :]) - len(text[at + 1 :].lstrip(" "))
    if text[at] in "#\\\t\f\r\n":
        return None
    return f"{text[:at]}{value}{', ' if node.args or node.keywords else ''}{text[at:]}"


def with_twin(text: str, old: str, twin: str) -> str | None:
    """`transplt.trees.calls.with_twin`."""
    node = _expression(text)
    for argument in node.args if isinstance(node, ast.Call) else ():
        start = _offset(text, argument.lineno, argument.col_offset - (argument.lineno == 1))
        end = _end_of(text, argument, "")[1]
        literal, rest = text[start:end], text[end:].lstrip()
        if isinstance(argument, ast.Constant) and literal in (f"'{old}'", f'"{old}"'):
            after = f"{text[:end]}, {literal[0]}{twin}{literal[0]}{text[end:]}"
            return after if rest.startswith(",") or rest == ")" else None  # else it stands in brackets
    return None


def modules_imported(text: str, names: Mapping[int, str]) -> str | None:
    """`transplt.trees.names.modules_imported`."""
    node = _statement(text)
    if not isinstance(node, ast.Import):
        return None
    spans = [(_start_of(text, alias), alias.name) for alias in node.names]
    if any(not text.startswith(name, start) for start, name in spans):
        return None
    return replaced(text, (((start, start + len(name)), names[index])
                           for index, (start, name) in enumerate(spans) if index in names))  # fmt: skip


def names_imported(text: str, module: str, names: Sequence[tuple[str, str | None] | None]) -> str | None:
    """`transplt.trees.names.names_imported`."""
    node = _statement(text)
    if not isinstance(node, ast.ImportFrom) or not node.module or not text.startswith(f"from {node.module} import"):
        return None
    edits = [((len("from "), len("from ") + len(node.module)), module)]
    for alias, new in zip(node.names, names, strict=True):
        start = _start_of(text, alias)
        end = start + len(alias.name)
        if not text.startswith(alias.name, start):
            return None
        if new is None:
            continue
        name, local = new
        if local is not None and alias.asname is None:
            name = f"{name} as {local}"
        elif local == name:
            end = _offset(text, alias.end_lineno or 0, alias.end_col_offset or 0)
        edits.append(((start, end), name))
    return replaced(text, edits)


def replaced(text: str, edits: Iterable[tuple[tuple[int, int], str]]) -> str:
    """The text with spans (sorted) replaced."""
    parts: list[str] = []
    at = 0
    for (start, end), new in edits:
        parts += (text[at:start], new)
        at = end
    return "".join((*parts, text[at:]))


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(f"({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _statement(text: str) -> ast.stmt | None:
    try:
        found = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return found[0] if len(found) == 1 else None


def _chain(node: ast.expr) -> list[ast.Attribute]:
    found = []
    while isinstance(node, ast.Attribute):
        found.append(node)
        node = node.value
    return found


def _end_of(text: str, node: ast.expr, name: str) -> tuple[int, int]:
    """The span of the name that ends a node of `_expression`, which has one more character on its first line."""
    column = (node.end_col_offset or 0) - (node.end_lineno == 1)
    end = _offset(text, node.end_lineno or 1, column)
    return end - len(name), end


def _start_of(text: str, alias: ast.alias) -> int:
    return _offset(text, alias.lineno, alias.col_offset)


def _offset(text: str, line: int, column: int) -> int:
    """The place in a text of a line (from 1) and a column in UTF-8 bytes."""
    at = 0
    for _ in range(line - 1):
        ends = [end for end in (text.find("\n", at), text.find("\r", at)) if end >= 0]
        at = min(ends) + (2 if text.startswith("\r\n", min(ends)) else 1)
    return at + len(text[at:].encode()[:column].decode())
