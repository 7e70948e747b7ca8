"""Moving statements one level in: which lines move, by what, and whether a statement has its lines to itself."""

from __future__ import annotations

import ast
import io
import tokenize

from transplt.text.source import Source


def indent_of(source: Source, node: ast.stmt) -> str:
    """What stands before a statement on its line."""
    start = source.line_starts[node.lineno - 1]
    return source.slice(start, start + node.col_offset)


def indent_unit(source: Source, tree: ast.Module) -> str:
    """One level of indentation as the file has it; four blanks when it has none."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.stmt) and isinstance(body, list) and body and body[0].lineno > node.lineno:
            outer, inner = indent_of(source, node), indent_of(source, body[0])
            if not inner.strip() and inner.startswith(outer) and inner != outer:
                return inner[len(outer) :]
    return "    "


def owns_its_lines(source: Source, node: ast.stmt) -> bool:
    """True when nothing but blanks stands before a statement, and nothing but a comment behind it."""
    if indent_of(source, node).strip(" \t\f"):
        return False
    last = node.end_lineno or node.lineno
    start = source.line_starts[last - 1] + (node.end_col_offset or 0)
    end = source.line_starts[last] if last < len(source.line_starts) else len(source.utf8)
    rest = source.slice(start, end).strip()
    return not rest or rest.startswith("#")


def movable_lines(source: Source, first: int, last: int) -> list[int]:
    """The lines from `first` to `last` that get more indentation: none that is empty or begins inside a string."""
    inside = _lines_in_strings(source)
    return [line for line in range(first, last + 1) if line not in inside and source.line_text(line).strip()]


def _lines_in_strings(source: Source) -> set[int]:
    """Numbers of the lines that begin inside a string."""
    found: set[int] = set()
    opened: list[int] = []
    starts = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
    ends = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}
    text = source.text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in starts:
                opened.append(token.start[0])
            elif token.type in ends and opened:
                found.update(range(opened.pop() + 1, token.end[0] + 1))
            elif token.type == tokenize.STRING:
                found.update(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        return set(range(1, len(source.line_starts) + 1))
    return found
