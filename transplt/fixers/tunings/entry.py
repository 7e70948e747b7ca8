"""Lines that go in below the imports of a main file: for the whole program, before it touches a card.

At module level they hold in processes that are spawned too, because these import the main file again.
"""

from __future__ import annotations

import ast
import re

from transplt.edits.edit import Beside
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.around import program_around
from transplt.fixers.tunings.writer import torch_name
from transplt.program.cards import on_card
from transplt.program.imports import imports_of
from transplt.program.program import Program
from transplt.program.steps import goes_back
from transplt.syntax.asks import is_main_guard
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
    if last is None or not writer.fits(last):
        return
    below = (edit.where for edit in writer.edits if edit.group and isinstance(edit.where, Beside))
    lead = [] if any(place.node is last and place.below for place in below) else [""]
    writer.after(last, [*lead, f"{torch_name(writer)}.{line}"], code, message)


def is_entry(work: Work) -> bool:
    """True for a file that is run: nobody imports it, and it does something itself.

    A launcher without torch may import it as well (`import main_pretrain as trainer`, and submitit starts that).
    """
    path = work.scan.path
    name = path.rpartition("/")[2]
    if imports_of(work.project).importers.get(path) and not (_reads_arguments(work) and _only_launched(work)):
        return False
    if name.startswith(_TESTS) or name == "__init__.py" or "tests/" in path:
        return False
    body = work.scan.tree.body
    return any(is_main_guard(node) or _trains(node) or _starts(work, node) for node in body)


def _reads_arguments(work: Work) -> bool:
    guards = [node for node in work.scan.tree.body if is_main_guard(node)]
    return any(
        isinstance(inner, ast.Attribute) and inner.attr in ("parse_args", "parse_known_args")
        for guard in guards
        for inner in ast.walk(guard)
    )


def _only_launched(work: Work) -> bool:
    program = program_around(work)
    every = imports_of(work.project).importers.get(work.scan.path, ())
    importers = [file for file in program.files if file.path in every] if program else []
    return not any(re.search(rb"^\s*(?:import|from) torch\b", file.source.utf8, re.MULTILINE) for file in importers)


def _uses_torch(work: Work, program: Program) -> bool:
    """True when the file imports torch, or a file of the project that puts something on a card."""
    if b"torch" in work.source.utf8:
        return any(
            (b.target or "").split(".")[0] == "torch" for found in work.scan.root.bindings.values() for b in found
        )
    targets = imports_of(work.project).targets.get(work.scan.path, ())
    return on_card(program, targets)


def _trains(node: ast.stmt) -> bool:
    return not isinstance(node, (*FUNCTIONS, ast.ClassDef)) and goes_back(node)


def _starts(work: Work, node: ast.stmt) -> bool:
    """True for `main()` at module level, a function of the file; in a loop, a `try` and the like where it trains."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = getattr(node.value.func, "id", "")
        return any(binding.kind == "def" for binding in work.scan.root.bindings.get(name, ()))
    if not isinstance(node, (ast.For, ast.While, ast.With, ast.If, ast.Try)):
        return False
    trains = {
        function.name for function in work.scan.tree.body if isinstance(function, FUNCTIONS) and goes_back(function)
    }
    called = (getattr(inner.func, "id", "") for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return not trains.isdisjoint(called)


def _last_import(tree: ast.Module) -> ast.stmt | None:
    """The last import of those at the top, what is imported on conditions among them."""
    found: ast.stmt | None = None
    for node in tree.body:
        if isinstance(node, _IMPORTS):
            found = None if isinstance(node, ast.ImportFrom) and node.module == "__future__" else node
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)) or is_main_guard(node):
            break
        elif isinstance(node, (ast.Try, ast.If)) and any(isinstance(inner, _IMPORTS) for inner in node.body):
            found = node
        elif isinstance(node, (ast.For, ast.While, ast.With)):
            break
    return found
