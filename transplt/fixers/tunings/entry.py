"""Lines that go in below the imports of a main file: for the whole program, before it touches a card.

At module level they hold in processes that are spawned too, because these import the main file again.
"""

from __future__ import annotations

import ast
import re

from transplt.edits.edit import Beside
from transplt.edits.shared_lines import indent_unit
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.around import program_around
from transplt.fixers.tuning_writer import torch_name
from transplt.program.cards import on_card
from transplt.program.imports import imports_of
from transplt.program.program import Program
from transplt.program.steps import goes_back
from transplt.syntax.nodes import is_main_guard, nodes_in
from transplt.syntax.scan import FUNCTIONS

_IMPORTS = (ast.Import, ast.ImportFrom)
_TESTS = ("test_", "unit_test", "conftest", "setup.py", "hubconf.py")


def write_below_imports(writer: Writer, line: str, already: tuple[bytes, ...], code: str, message: str) -> None:
    """Put `torch.` and a line in, once for a program; nothing where one of its files has a word of `already`."""
    work = writer.work
    program = program_around(work)
    if program is None or not is_entry(work) or not _uses_torch(work, program):
        return
    texts = [file.source.utf8 for file in program.files]
    if any(word in text for text in texts for word in already) or not on_card(program):
        return
    last = _last_import(work.scan.tree)
    torch = torch_name(writer)
    if last is None or not writer.fits(last) or _comes_below(work, torch, last):
        return
    below = (edit.where for edit in writer.edits if edit.group and isinstance(edit.where, Beside))
    lead = [] if any(place.node is last and place.below for place in below) else [""]
    lines = [f"{torch}.{line}"]
    if writer.portable:
        lines = [f'if {writer.card} == "npu":', f"{indent_unit(work.source, work.scan.tree)}{lines[0]}"]
    writer.after(last, [*lead, *lines], code, message)


def _comes_below(work: Work, name: str, node: ast.stmt) -> bool:
    """True for a name that the file imports below a statement, and not above it."""
    brought = [each.node.lineno for each in work.scan.root.bindings.get(name, ()) if isinstance(each.node, _IMPORTS)]
    return bool(brought) and min(brought) > node.lineno


def is_entry(work: Work) -> bool:
    """True for a file that is run: nobody imports it, and it does something itself.

    A launcher without torch may import it as well (`import main_pretrain as trainer`, and submitit starts that).
    """
    path = work.scan.path
    name = path.rpartition("/")[2]
    importers = imports_of(work.project).importers.get(path, ())
    if importers:
        program = program_around(work)
        others = [file.source.utf8 for file in program.files if file.path in importers] if program else []
        of_torch = any(re.search(rb"^\s*(?:import|from) torch\b", text, re.MULTILINE) for text in others)
        inside = nodes_in(node for node in work.scan.tree.body if is_main_guard(node))
        if of_torch or not any(getattr(each, "attr", "") in ("parse_args", "parse_known_args") for each in inside):
            return False
    if name.startswith(_TESTS) or name == "__init__.py" or "tests/" in path:
        return False
    body = work.scan.tree.body
    return any(is_main_guard(node) or _starts(work, node) for node in body)


def _uses_torch(work: Work, program: Program) -> bool:
    """True when the file imports torch, or a file of the project that puts something on a card."""
    if b"torch" in work.source.utf8:
        return any(
            (b.target or "").split(".")[0] == "torch" for found in work.scan.root.bindings.values() for b in found
        )
    targets = imports_of(work.project).targets.get(work.scan.path, ())
    return on_card(program, targets)


def _starts(work: Work, node: ast.stmt) -> bool:
    """True for code at module level that trains, and for `main()` there, a function of the file; in a loop, a `try` and
    the like where that trains.
    """
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return False
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            if any(binding.kind == "def" for binding in work.scan.root.bindings.get(name, ())):
                return True
        case ast.For() | ast.While() | ast.With() | ast.If() | ast.Try():
            functions = (line for line in work.scan.tree.body if isinstance(line, FUNCTIONS))
            trains = {function.name for function in functions if goes_back(function)}
            called = (getattr(inner.func, "id", "") for inner in ast.walk(node) if isinstance(inner, ast.Call))
            if not trains.isdisjoint(called):
                return True
    return goes_back(node)


def _last_import(tree: ast.Module) -> ast.stmt | None:
    """The last import of those at the top, what is imported on conditions among them."""
    found: ast.stmt | None = None
    for node in tree.body:
        match node:
            case ast.ImportFrom(module="__future__"):
                found = None
            case ast.Import() | ast.ImportFrom():
                found = node
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.For() | ast.While() | ast.With():
                break
            case ast.If() if is_main_guard(node):
                break
            case ast.Try(body=body) | ast.If(body=body) if any(isinstance(inner, _IMPORTS) for inner in body):
                found = node
    return found
