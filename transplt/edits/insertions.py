"""Lines that go in: `import torch_npu`, modules that a user's rule needs, `npu = cuda` in a class."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass

from transplt.edits.rewrite import SiteEdit
from transplt.edits.work import Addition, Work
from transplt.finding import Level
from transplt.syntax.scan import FUNCTIONS, Scan, parent
from transplt.text.source import Source

TORCH_NPU = "import torch_npu  # noqa: F401"
_STANDARD = sys.stdlib_module_names | {"distutils", "imp", "tomllib"}  # the same under every Python
#: Calls that only keep what they are given.
_HOLDERS = frozenset("dict add_argument add_option list tuple set field Field get getenv setdefault str".split())


@dataclass(frozen=True, slots=True)
class Insertion:
    """Text to put in at a byte offset (always a line start, or the end of the file)."""

    offset: int
    text: str
    code: str
    message: str
    level: Level = Level.SAFE


@dataclass(frozen=True, slots=True)
class Deletion:
    """The bytes of a statement that go out, with what stands there then (nothing, or `pass`)."""

    start: int
    end: int
    text: str
    code: str
    message: str
    level: Level = Level.SAFE


def needs_torch_npu(work: Work, edits: list[SiteEdit]) -> bool:
    """True when what was written into a file runs there only after `import torch_npu`.

    A file that merely holds settings (`backend = "hccl"`, `dict(device="npu")`, `add_argument(default="npu")`) and
    imports nothing but the standard library hands its strings to others, who import torch.
    """
    nodes = [change.node for edit in edits for change in edit.changes if change.writes_npu]
    if not nodes:
        return False
    return _uses_packages(work) or any(not _is_setting(node) for node in nodes)


def _uses_packages(work: Work) -> bool:
    if work.scan.root.stars:
        return True
    for node in work.scan.imports:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        relative = isinstance(node, ast.ImportFrom) and node.level
        if relative or any(name.split(".")[0] not in _STANDARD for name in names):
            return True
    return False


def _is_setting(node: ast.AST) -> bool:
    """True for a string that is only stored, compared or handed to a container."""
    if not isinstance(node, (ast.Constant, ast.JoinedStr)):
        return False
    current: ast.AST = node
    while not isinstance(current, ast.stmt):
        above = parent(current)
        if isinstance(above, ast.Call) and current is not above.func:
            last = above.func.attr if isinstance(above.func, ast.Attribute) else getattr(above.func, "id", "")
            if last not in _HOLDERS:
                return False
        current = above
    return True


def import_insertions(source: Source, scan: Scan, modules: list[str], moved: set[int]) -> list[Insertion]:
    """Where to import `modules` (torch_npu among them). `moved` holds ids of statements that name the NPU now."""
    wanted = [module for module in modules if not _imported(scan, module)]
    if not wanted:
        return []
    body = scan.tree.body
    place = _inner_place(source, body, moved)
    if place is None:
        place = _line_after(source, body, _before_uses(body, _after(body, moved), moved))
    offset, lead, indent = place
    newline = source.newline()
    lines = [TORCH_NPU if module == "torch_npu" else f"import {module}" for module in wanted]
    text = lead + "".join(indent + line + newline for line in lines)
    message = "import " + ", ".join(wanted)
    return [Insertion(offset, text, "NPU403", message)]


def _imported(scan: Scan, module: str) -> bool:
    """True when a file imports a module already, at module level and where it takes effect."""
    return any(
        scan.scope_of(alias) is scan.root and not _for_types_only(node)
        for node in scan.imports
        for alias in node.names
        if _brings(node, alias, module)
    )


def _brings(node: ast.Import | ast.ImportFrom, alias: ast.alias, module: str) -> bool:
    if module != "torch_npu":
        # The name has to be bound as the edits write it.
        return isinstance(node, ast.Import) and alias.name == module and alias.asname is None
    if isinstance(node, ast.Import):
        return alias.name.split(".")[0] == module
    return not node.level and (node.module or "").split(".")[0] == module


def _for_types_only(node: ast.AST) -> bool:
    while not isinstance(node, ast.Module):
        above = parent(node)
        if isinstance(above, ast.If) and node in above.body and is_type_checking(above.test):
            return True
        node = above
    return False


def is_type_checking(test: ast.expr) -> bool:
    """True for `TYPE_CHECKING`, however it is imported."""
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


def _inner_place(source: Source, body: list[ast.stmt], moved: set[int]) -> tuple[int, str, str] | None:
    """A place inside `if available: import torch`, when that is the first import of torch; None for any other."""
    for node in body:
        if _imports_torch(node) or isinstance(node, ast.Try):
            return None
        if isinstance(node, ast.If) and not is_type_checking(node.test):
            if any(_imports_torch(inner) for branch in _other_branches(node) for inner in branch):
                return None
            for inner in node.body:
                if _imports_torch(inner) and inner.lineno > node.lineno:
                    start = source.line_starts[inner.lineno - 1]
                    if id(node) in moved and b"cuda" in source.utf8[start : source.extent(inner)[1]]:
                        return None  # this import needs torch_npu itself
                    indent = source.utf8[start : start + inner.col_offset].decode()
                    if indent.strip():
                        return None
                    offset, lead, _ = _line_after(source, node.body, node.body.index(inner))
                    return offset, lead, indent
    return None


def _other_branches(node: ast.If) -> list[list[ast.stmt]]:
    branches = [node.orelse]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        branches += [node.body, node.orelse]
    return branches


def _after(body: list[ast.stmt], moved: set[int]) -> int:
    """Index of the top-level statement behind which the import goes; -1 for the head of the file."""
    head = _head(body)
    last = head
    in_block = True
    for index, node in enumerate(body):
        if _imports_torch(node):
            return max(index - 1, head) if id(node) in moved else index
        if isinstance(node, (ast.Try, ast.With, ast.If)) and _holds_torch_import(node):
            # Behind the whole statement: inside it an except clause would hide what goes wrong.
            return max(index - 1, head) if id(node) in moved else index
        if index > head:
            in_block = in_block and isinstance(node, (ast.Import, ast.ImportFrom))
            last = index if in_block else last
            if id(node) in moved and not isinstance(node, (ast.Import, ast.ImportFrom, *FUNCTIONS, ast.ClassDef)):
                return min(last, index - 1)
    return last


def _before_uses(body: list[ast.stmt], index: int, moved: set[int]) -> int:
    """`index`, or the statement above its line when what follows on that line names the NPU (`import torch; f()`)."""
    last = index
    while 0 <= last < len(body) - 1 and body[last + 1].lineno == body[last].end_lineno:
        last += 1
        if id(body[last]) in moved:
            first = index
            while first > 0 and body[first - 1].end_lineno == body[first].lineno:
                first -= 1
            return first - 1 if first > _head(body) else index
    return index


def _holds_torch_import(node: ast.Try | ast.With | ast.If) -> bool:
    if isinstance(node, ast.If) and is_type_checking(node.test):
        return False
    return any(_imports_torch(inner) for inner in [*node.body, *getattr(node, "orelse", ())])


def _imports_torch(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] == "torch" for alias in node.names)
    return isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "torch"


def _head(body: list[ast.stmt]) -> int:
    """Index of the last statement of the docstring and `from __future__` head; -1 when there is none."""
    head = -1
    for index, node in enumerate(body):
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            break
        head = index
    return head


def _line_after(source: Source, body: list[ast.stmt], index: int) -> tuple[int, str, str]:
    """Start of the line after a statement and all that shares its last line, what to write before it, no indent."""
    if index < 0:
        return _first_line(source, body), "", ""
    while index + 1 < len(body) and body[index + 1].lineno == body[index].end_lineno:
        index += 1
    end_line = body[index].end_lineno or 1
    if end_line < len(source.line_starts):
        return source.line_starts[end_line], "", ""
    return len(source.utf8), "" if source.utf8.endswith((b"\n", b"\r")) else source.newline(), ""


def _first_line(source: Source, body: list[ast.stmt]) -> int:
    """Where the head of a file without docstring ends: above the first statement, below the comments at the top."""
    if not body:
        return len(source.utf8)
    first = body[0]
    return source.line_starts[_first_line_of(first) - 1]


def _first_line_of(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def line_insertion(source: Source, addition: Addition) -> Insertion:
    """An added statement on a line of its own beside another statement, at the same indentation."""
    node = addition.beside
    start = source.line_starts[_first_line_of(node) - 1]
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
    offset, lead, _ = _line_after(source, body, last)
    newline = source.newline()
    text = lead + newline + "".join(line + newline for line in lines)
    return Insertion(offset, text, code, f"{lines[0].split(' = ')[0]} from the environment")


def joined(insertions: list[Insertion]) -> list[Insertion]:
    """One insertion for each offset: what goes in at one place is one record, in the order given."""
    by_offset: dict[int, Insertion] = {}
    for item in insertions:
        first = by_offset.get(item.offset)
        if first is not None:
            messages = dict.fromkeys([*first.message.split("; "), item.message])
            level = item.level if first.level is Level.SAFE else first.level
            item = Insertion(item.offset, first.text + item.text, first.code, "; ".join(messages), level)
        by_offset[item.offset] = item
    return list(by_offset.values())
