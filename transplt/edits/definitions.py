"""Functions and classes of our own in a file: above all code that may use them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from transplt.edits.writer import Writer
from transplt.syntax.scan import FUNCTIONS


def define(writer: Writer, lines: Sequence[str], code: str, message: str) -> None:
    """Write a definition above the first statement that is neither an import nor a setting of one."""
    source, place = writer.work.source, _top(writer.work.scan.tree)
    above = [source.line_text(line) for line in (place.lineno - 1, place.lineno - 2) if line > 0]
    lead = [""] * (2 - sum(1 for line in above if not line.strip())) if len(above) == 2 else []
    writer.before(place, [*lead, *lines, "", ""], code, message, above_comments=True)


def _top(tree: ast.Module) -> ast.stmt:
    for node in tree.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return node
        if any(isinstance(inner, ast.Call) for inner in ast.walk(node)) and not isinstance(node, ast.Try):
            return node
    return tree.body[-1]
