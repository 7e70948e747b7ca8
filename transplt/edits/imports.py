"""Imports that go in: where `import torch_npu` stands, where those that a theme asked for do, and constants below
them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from transplt.base.text.source import Source
from transplt.edits.edit import AtTop, Edit
from transplt.edits.lines import Placed, first_line, lead_of, line_below, line_start, placed
from transplt.edits.work import Work
from transplt.flow.key_reads import key_reads
from transplt.flow.marks import BACKEND, DEVICE
from transplt.rules.versions import loads_itself
from transplt.syntax.configurations import is_configuration
from transplt.syntax.modules import modules_of
from transplt.syntax.nodes import has_main_guard, last_name
from transplt.syntax.scan import FUNCTIONS, Scan, parent

TORCH_NPU = "import torch_npu  # noqa: F401"
#: The code of an import that edits need.
CODE = "NPU403"
_MISSING = "import {} is missing; the edits of this file need it"
#: The top-level modules of the standard library.
STANDARD = sys.stdlib_module_names | {"distutils", "imp", "tomllib"}  # the same under every Python
#: Calls that only keep what they are given.
_HOLDERS = frozenset("dict add_argument add_option list tuple set field Field get getenv setdefault str".split())
#: How many statements in a row may stand between the imports at the top of a file.
_BETWEEN_IMPORTS = 3
#: What has to stand above imports that read it.
_SETS_ENVIRONMENT = re.compile(r"(?:os\.)?environ(?:\[.+\] = |\.setdefault\()")
#: What a new line holds when it needs torch_npu.
_NPU_NAME = re.compile(r"\.npu\.|\btorch_npu\.|autocast\(\"npu\"")


def is_given_an_npu(work: Work) -> bool:
    """True for a file in which nothing may be written, and which reads a device or a backend that is written outside of
    Python: before torch 2.5 nothing else would load torch_npu.
    """
    settings, given = work.settings, work.project.given
    if not given or settings.style != "npu" or loads_itself(settings.torch_version) or work.project.portable:
        return False
    if not _uses_packages(work):
        return False
    slots = work.slots
    return any(
        bool({DEVICE, BACKEND} & (slots.marks_of(read.slot) | set(read.marks)))
        for read in key_reads(slots, ())
        if read.how != "name" and read.path and read.path[-1].replace("-", "_") in given
    )


def needs_torch_npu(work: Work, applied: Iterable[Edit]) -> bool:
    """True when what was written into a file runs there only after `import torch_npu`.

    A file that merely holds settings (`backend = "hccl"`, `dict(device="npu")`, `add_argument(default="npu")`) and
    imports nothing but the standard library hands its strings to others, who import torch. So does a configuration,
    whatever it imports: nothing runs there.
    """
    nodes = [edit.node for edit in applied if edit.writes_npu]
    if all(isinstance(node, (ast.Constant, ast.JoinedStr)) for node in nodes) and is_configuration(work.scan.tree):
        return False
    return bool(nodes) and (_uses_packages(work) or any(not _is_setting(node) for node in nodes))


def stands_here(work: Work, text: str) -> bool:
    """True when the import of torch_npu belongs into this file, of which `text` is what was written.

    Since 2.5 torch itself loads torch_npu (the entry point torch.backends, TORCH_DEVICE_BACKEND_AUTOLOAD): the import
    then stands where a program begins, so that it holds with that switched off, and where the name is used. Before, and
    where the settings ask for it, it stands in each file that needs it.
    """
    if work.scan.path.endswith(".pyi") or work.settings.style == "portable":
        return False  # a stub is read, not run; what runs on CUDA too imports it behind a question
    wanted = work.settings.torch_npu_import
    if wanted == "each-file" or (wanted == "auto" and not loads_itself(work.settings.torch_version)):
        return True
    begins = has_main_guard(work.scan.tree) or work.scan.path not in work.project.aside.taken
    return begins or re.search(r"\btorch_npu\b", text) is not None


def names_npu(lines: Iterable[Placed]) -> bool:
    """True when a line that goes in needs torch_npu."""
    return any(_NPU_NAME.search(line.text) for line in lines)


def _uses_packages(work: Work) -> bool:
    if work.scan.root.stars:
        return True
    for node in work.scan.imports:
        names = modules_of(node)
        relative = isinstance(node, ast.ImportFrom) and node.level
        if relative or any(name.split(".")[0] not in STANDARD for name in names):
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
            last = last_name(above.func)
            if last not in _HOLDERS:
                return False
        current = above
    return True


def needed_imports(work: Work, modules: Mapping[str, str], moved: set[int]) -> list[Placed]:
    """Imports of `modules` (torch_npu among them), each with the code that needs it, where they are missing: those of
    the standard library among their like, the others directly behind the first import of torch. `moved`: ids of
    statements that name the NPU now.
    """
    source, scan, body = work.source, work.scan, work.scan.tree.body
    wanted = [module for module in modules if not _imported(scan, module)]
    heads = import_head(body, moved)
    standard = [module for module in wanted if module.partition(".")[0] in STANDARD]
    standard = standard if any(map(is_standard_import, heads)) else []
    found = [
        Placed(*_among_standard(source, heads, [f"import {module}"]), modules[module], _MISSING.format(module))
        for module in standard
    ]
    wanted = [module for module in wanted if module not in standard]
    if not wanted:
        return found
    place = _inner_place(source, body, moved)
    if place is None:
        after = _behind_packages(work, body, _after(body, moved))
        place = (_line_below(source, body, _before_uses(body, after, moved)), "")
    offset, indent = place
    newline = source.newline()
    lines = [TORCH_NPU if module == "torch_npu" else f"import {module}" for module in wanted]
    text = lead_of(source, offset) + "".join(indent + line + newline for line in lines)
    return [*found, Placed(offset, offset, text, modules[wanted[0]], _MISSING.format(", ".join(wanted)))]


def _behind_packages(work: Work, body: list[ast.stmt], index: int) -> int:
    """`index`, or the last import of a package in front of it where the project's own modules are imported there."""
    if index < 0 or _imports_torch(body[index]) or not is_own(work, body[index]):  # a project may have a folder `torch`
        return index
    for before in range(index - 1, -1, -1):
        node = body[before]
        if not isinstance(node, (ast.Import, ast.ImportFrom)) or is_future(node):
            break
        if not is_own(work, node) and not is_standard_import(node):
            return before
    return index


def is_own(work: Work, node: ast.stmt) -> bool:
    """True for an import of the project's own modules."""
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or work.defines_package(node.module or "")
    return isinstance(node, ast.Import) and any(work.defines_package(alias.name) for alias in node.names)


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
    return last_name(test) == "TYPE_CHECKING"


def _inner_place(source: Source, body: list[ast.stmt], moved: set[int]) -> tuple[int, str] | None:
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
                    return _line_below(source, node.body, node.body.index(inner)), indent
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
        holds = isinstance(node, (ast.Try, ast.With)) or (isinstance(node, ast.If) and not is_type_checking(node.test))
        if holds and any(map(_imports_torch, [*getattr(node, "body", ()), *getattr(node, "orelse", ())])):
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


def _line_below(source: Source, body: list[ast.stmt], index: int) -> int:
    """Start of the line below a statement and all that shares its last line; above the first statement for -1."""
    if index < 0:
        return line_start(source, first_line(body[0])) if body else len(source.utf8)
    while index + 1 < len(body) and body[index + 1].lineno == body[index].end_lineno:
        index += 1
    return line_below(source, body[index])


def constants(source: Source, scan: Scan, lines: list[str], code: str) -> Placed:
    """Module-level statements below the imports at the head of the file."""
    body = scan.tree.body
    last = _head(body)
    for index, node in enumerate(body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            last = index
        elif index > _head(body) and not isinstance(node, (ast.Try, ast.If)):
            break
    offset = _line_below(source, body, last)
    newline = source.newline()
    text = lead_of(source, offset) + newline + "".join(line + newline for line in lines)
    return Placed(offset, offset, text, code, f"{lines[0].split(' = ')[0]} from the environment")


# --- imports that a theme asked for ----------------------------------------------------------------------------------


def at_top(source: Source, scan: Scan, edits: Iterable[Edit]) -> list[Placed]:
    """The imports of edits `AtTop`: those of the standard library among their like, the others below the last of
    torch.
    """
    wanted: dict[str, Edit] = {}
    for edit in edits:
        if isinstance(edit.where, AtTop) and not edit.where.called:
            wanted.setdefault(str(edit.new), edit)
    if not wanted:
        return []
    body, newline = scan.tree.body, source.newline()
    heads = import_head(body, set())
    if not heads:
        text = "".join(f"{line}{newline}" for line in sorted(wanted))
        return [placed(wanted[min(wanted)], code_begins(source, body), text + newline)]
    words = {line: line.split() for line in wanted}  # of `import module` there are two
    standard = sorted(line for line, each in words.items() if len(each) == 2 and each[1].split(".")[0] in STANDARD)
    apart = any(map(is_standard_import, heads))  # else they are one block
    found = []
    for lines in [[line] for line in standard] if apart or not standard else [standard]:
        offset, _, text = _among_standard(source, heads, lines)
        found.append(placed(wanted[lines[0]], offset, text))
    others = sorted((line for line in wanted if line not in standard), key=lambda line: (line[:4] != "impo", line))
    offset = line_below(source, next(filter(_imports_torch, reversed(heads)), heads[-1]))
    lead = lead_of(source, offset)
    for line in others:
        found.append(placed(wanted[line], offset, f"{lead}{line}{newline}"))
        lead = ""
    return found


def code_begins(source: Source, body: Sequence[ast.stmt]) -> int:
    """The offset of the first statement below the docstring and the imports from `__future__`, or of the end."""
    first = next((node for node in body if not is_docstring(node) and not is_future(node)), None)
    return line_start(source, first_line(first)) if first else len(source.utf8)


def import_head(body: Sequence[ast.stmt], moved: set[int]) -> list[ast.Import | ast.ImportFrom]:
    """The imports at the top of a file, in front of what is `moved`: up to the first definition, loop or block of code;
    a few statements may stand between them (`sys.path.append(...)`), and any that set variables of the environment.
    Imports further down come after uses.
    """
    found: list[ast.Import | ast.ImportFrom] = []
    between = 0
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            between = 0
            if not is_future(node):
                found.append(node)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.For, ast.While, ast.With)) or id(node) in moved:
            break
        elif not isinstance(node, (ast.Try, ast.If)) and not _SETS_ENVIRONMENT.match(ast.unparse(node)):
            between += 1
            if between > _BETWEEN_IMPORTS:
                break
    return found


def is_standard_import(node: ast.stmt) -> bool:
    """True for an import of the standard library."""
    if isinstance(node, ast.Import):
        return all(alias.name.split(".")[0] in STANDARD for alias in node.names)
    return isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] in STANDARD


def _among_standard(
    source: Source, heads: Sequence[ast.Import | ast.ImportFrom], lines: list[str]
) -> tuple[int, int, str]:
    """Where `import module` of the standard library goes (start, end, text): in the order of the alphabet where its
    like stand in it, else behind them; above `from` imports of it, and on top where there are none.
    """
    newline = source.newline()
    text = "".join(f"{line}{newline}" for line in lines)
    standard = [node for node in heads if is_standard_import(node)]
    plain = [node for node in standard if isinstance(node, ast.Import)]
    if not standard:
        offset = line_start(source, heads[0].lineno)
        return offset, offset, text
    names = [node.names[0].name.lower() for node in plain]
    module = lines[0].split()[1].lower()
    after = next((node for node in plain if node.names[0].name.lower() > module), None)
    if not plain:
        offset = line_start(source, standard[0].lineno)
    elif after is not None and names == sorted(names):
        offset = line_start(source, after.lineno)
    else:
        offset = line_below(source, plain[-1])
    return offset, offset, text


def is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)
