"""A program as its probe copy: edits of its files, and what is left to a person."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from transplt.base.settings import Settings
from transplt.engine.engine import index_source, join_facts
from transplt.flow.facts import ProjectFacts
from transplt.precision.instrument.edits import Edits, Left
from transplt.precision.instrument.loops import PROBE, record_steps
from transplt.precision.instrument.order import fix_order, seeds_of
from transplt.precision.instrument.trainers import makes_trainers
from transplt.program.imports import imports_of
from transplt.program.program import Program, program_of
from transplt.program.programs import programs_of
from transplt.program.steps import runs_backward
from transplt.syntax.files import Files
from transplt.syntax.modules import imported_names, module_name

_OF_TESTS = re.compile(r"(?:^|/)tests?(?:_[^/]*|\.py)?(?:/|$)").search


@dataclass(frozen=True)
class Probing:
    """What a probe copy records. `seed` is None for the program's own, else 1234, which msprobe has; `steps` are those
    to record, all without any; `api` is msprobe or ptdbg."""

    level: str = "mix"
    task: str = "statistics"
    steps: tuple[int, ...] = (0, 1)
    seed: int | None = None
    deterministic: bool = False
    api: str = "msprobe"


@dataclass(frozen=True)
class Probed:
    """The files of a program that change, by path; what is left; and the seed that the probe sets."""

    files: Mapping[str, bytes]
    left: tuple[Left, ...]
    seed: int


def instrument(files: Mapping[str, bytes], main: str, probing: Probing) -> Probed:
    """The probe copy of the program that begins in `main`; `files` are its Python files by their paths."""
    project = _project(files, main)
    program = _program(project, _reached(project, main))
    if not makes_trainers(program) and not any(
        runs_backward(file, call) for file in program.files for call in file.scan.calls
    ):
        # What trains is imported by other ways than by its name.
        program = _program(project, [main, *(path for path in sorted(files) if path != main and not _OF_TESTS(path))])
    bench = {file.path: Edits(file) for file in program.files}
    left = _unread(files, program)
    found = record_steps(program, bench)
    for edits in bench.values():
        fix_order(edits)
    own = seeds_of(program, list(bench.values()))
    seed = probing.seed if probing.seed is not None else own[0] if own else 1234
    for edits in bench.values():
        if edits.file.path == main:
            _head(edits, _call(probing, seed))
        elif edits.probes:
            _head(edits, "")
    if not found:
        left.append(Left(main, 1, f"no training loop was found: call {PROBE}.step() before each step"))
    changed = {edits.file.path: edits.result() for edits in bench.values() if edits.made}
    left += [each for edits in bench.values() for each in edits.left]
    return Probed(changed, tuple(sorted(set(left))), seed)


def _unread(files: Mapping[str, bytes], program: Program) -> list[Left]:
    """The files that no Python reads; they count where the program imports them."""
    names = {name for file in program.files for name in imported_names(file.path, file.scan.imports)}
    found = []
    for path, data in sorted(files.items()):
        if program.project.files.read(path, data) is None:
            module = module_name(path)
            needed = any(module == name or module.endswith(f".{name}") for name in names)
            found.append(Left(path, 1, "cannot be read as Python, and is copied unchanged", informs=not needed))
    return found


def _project(files: Mapping[str, bytes], main: str) -> ProjectFacts:
    settings = Settings(entry=main)
    parsed = Files()
    facts = (index_source(data, path, settings, parsed) for path, data in sorted(files.items()))
    return join_facts(facts, settings, parsed)


def _reached(project: ProjectFacts, main: str) -> list[str]:
    """The script, and what it imports, with the packages that this lies in."""
    imports = imports_of(project)
    found = imports.reached(main)
    while True:
        folders = {folder for path in found[1:] for folder in PurePosixPath(path).parents}
        more = {f"{folder}/__init__.py" for folder in folders} & {*project.sources} - {*found}
        if not more:
            return found
        found = imports.reached(*found, *sorted(more))


def _program(project: ProjectFacts, paths: Iterable[str]) -> Program:
    files = (programs_of(project).file(path) for path in paths)
    return program_of([file for file in files if file is not None], project)


def _call(probing: Probing, seed: int) -> str:
    given = [f"seed={seed}"]
    given += [f'task="{probing.task}"'] if probing.task != "statistics" else []
    given += [f'level="{probing.level}"'] if probing.level != "mix" else []
    given += [f"steps={list(probing.steps)}"] if probing.steps else []
    given += ["deterministic=True"] if probing.deterministic else []
    given += [f'api="{probing.api}"'] if probing.api != "msprobe" else []
    return f"{PROBE}.begin({', '.join(given)})"


def _head(edits: Edits, call: str) -> None:
    """The import of the probe, and its start, above all other code: what is bound before it is never recorded."""
    body = edits.file.scan.tree.body
    first = None
    for at, node in enumerate(body):
        docstring = at == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")):
            first = node
            break
    lines = f"import {PROBE}\n" + (f"\n{call}\n" if call else "")
    if first is None:
        edits.at_end(lines.removesuffix("\n"))
    elif not edits.above(first, lines.removesuffix("\n")):
        edits.report(first, f"no line can be inserted here: add {call or PROBE} by hand")
