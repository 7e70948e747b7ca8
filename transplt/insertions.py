"""Lines that go in: `import torch_npu`, modules that a user's rule needs, `npu = cuda` in a class."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.scan import Scan
from transplt.source import Source
from transplt.work import Addition

TORCH_NPU = "import torch_npu  # noqa: F401"


@dataclass(frozen=True, slots=True)
class Insertion:
    """Text to put in at a byte offset (always a line start, or the end of the file)."""

    offset: int
    text: str
    code: str
    message: str


def import_insertions(source: Source, scan: Scan, modules: list[str], moved: set[int]) -> list[Insertion]:
    """Where to import `modules` (torch_npu among them). `moved` holds ids of statements that name the NPU now."""
    wanted = [module for module in modules if not _imported(scan, module)]
    if not wanted:
        return []
    body = scan.tree.body
    index = _after(body, moved)
    offset, lead = _line_after(source, body, index)
    newline = source.newline()
    lines = [TORCH_NPU if module == "torch_npu" else f"import {module}" for module in wanted]
    text = lead + "".join(line + newline for line in lines)
    message = "import " + ", ".join(wanted)
    return [Insertion(offset, text, "NPU403", message)]


def _imported(scan: Scan, module: str) -> bool:
    """True when the top level of the file imports a module already."""
    for node in scan.tree.body:
        if isinstance(node, ast.Import) and any(
            alias.name == module and alias.asname is None for alias in node.names
        ):
            return True
    return False


def _after(body: list[ast.stmt], moved: set[int]) -> int:
    """Index of the top-level statement behind which the import goes; -1 for the head of the file."""
    head = _head(body)
    for index, node in enumerate(body):
        if _imports_torch(node):
            if id(node) in moved:
                return max(index - 1, head)
            return index
        if isinstance(node, ast.Try) and any(_imports_torch(inner) for inner in node.body):
            # Behind the whole statement: inside it an except clause would hide what goes wrong.
            return index
        if any(id(inner) in moved for inner in ast.walk(node) if isinstance(inner, ast.stmt)):
            return max(index - 1, head)
    last = head
    for index in range(head + 1, len(body)):
        if not isinstance(body[index], (ast.Import, ast.ImportFrom)):
            break
        last = index
    return last


def _imports_torch(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] == "torch" for alias in node.names)
    return isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "torch"


def _head(body: list[ast.stmt]) -> int:
    """Index of the last statement of the docstring and `from __future__` head; -1 when there is none."""
    head = -1
    for index, node in enumerate(body):
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if (docstring and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)) or future:  # type: ignore[attr-defined]
            head = index
        else:
            break
    return head


def _line_after(source: Source, body: list[ast.stmt], index: int) -> tuple[int, str]:
    """Start of the line after a top-level statement and all that shares its last line, and what to write before it."""
    if index < 0:
        return _first_line(source, body), ""
    while index + 1 < len(body) and body[index + 1].lineno == body[index].end_lineno:
        index += 1
    end_line = body[index].end_lineno or 1
    if end_line < len(source.line_starts):
        return source.line_starts[end_line], ""
    return len(source.utf8), "" if source.utf8.endswith((b"\n", b"\r")) else source.newline()


def _first_line(source: Source, body: list[ast.stmt]) -> int:
    """Where the head of a file without docstring ends: above the first statement, below the comments at the top."""
    if not body:
        return len(source.utf8)
    first = body[0]
    line = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
    return source.line_starts[line - 1]


def line_insertion(source: Source, addition: Addition) -> Insertion:
    """An added statement on a line of its own beside another statement, at the same indentation."""
    node = addition.beside
    line = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    start = source.line_starts[line - 1]
    indent = source.utf8[start : start + node.col_offset].decode()
    newline = source.newline()
    if addition.before:
        return Insertion(start, f"{indent}{addition.text}{newline}", addition.code, addition.message)
    end_line = node.end_lineno or node.lineno
    if end_line < len(source.line_starts):
        offset, lead = source.line_starts[end_line], ""
    else:
        offset = len(source.utf8)
        lead = "" if source.utf8.endswith((b"\n", b"\r")) else newline
    return Insertion(offset, f"{lead}{newline}{indent}{addition.text}{newline}", addition.code, addition.message)


def constants_insertion(source: Source, scan: Scan, lines: list[str], code: str) -> Insertion:
    """Module-level statements below the imports at the head of the file."""
    body = scan.tree.body
    last = _head(body)
    for index, node in enumerate(body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            last = index
        elif index > _head(body) and not isinstance(node, (ast.Try, ast.If)):
            break
    offset, lead = _line_after(source, body, last)
    newline = source.newline()
    text = lead + newline + "".join(line + newline for line in lines)
    return Insertion(offset, text, code, f"{lines[0].split(' = ')[0]} from the environment")
