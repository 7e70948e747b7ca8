"""A program as its probe copy: edits of its files, and what is left to a person."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from transplt.instrument.edits import Edits, Left
from transplt.instrument.loops import PROBE, record_steps
from transplt.instrument.order import fix_order, seeds_of
from transplt.program.files import File, read_file


@dataclass(frozen=True)
class Probing:
    """What a probe copy records. `seed` is None for the program's own, else 1234, which msprobe has; `steps` are those
    to record, all without any; `api` is msprobe or ptdbg."""

    level: str = "mix"
    task: str = "statistics"
    steps: tuple[int, ...] = (0,)
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
    read = {path: read_file(path, data) for path, data in sorted(files.items())}
    left = [Left(path, 1, "cannot be read as Python, and is copied as it is") for path in read if read[path] is None]
    every = [Edits(file) for file in read.values() if file is not None]
    found = record_steps(every)
    with_loops = {edits.file.path for edits in every if edits.probes}
    for edits in every:
        fix_order(edits)
    reached = _reached({edits.file.path: edits.file for edits in every}, main)
    # A loop in a file that nobody imports by its name: the program imports by other ways.
    spoken = reached if not with_loops or with_loops & reached else set(files)
    own = seeds_of([edits for edits in every if edits.file.path in spoken])
    seed = probing.seed if probing.seed is not None else own[0] if own else 1234
    for edits in every:
        if edits.file.path == main:
            _head(edits, _call(probing, seed))
        elif edits.probes:
            _head(edits, "")
    if not found:
        left.append(Left(main, 1, f"no training loop was found: call {PROBE}.step() before each step"))
    left += [each for edits in every if edits.file.path in spoken for each in edits.left]
    changed = {edits.file.path: edits.result() for edits in every if edits.changes}
    return Probed(changed, tuple(sorted(set(left))), seed)


def _reached(files: Mapping[str, File], main: str) -> set[str]:
    """The files that the script imports, and those that these import, by names in import statements."""
    seen: set[str] = set()
    left = [main]
    while left:
        path = left.pop()
        if path in seen or path not in files:
            continue
        seen.add(path)
        here = PurePosixPath(path).parent
        for node in files[path].scan.imports:
            for folder, name in _imported(node, here, PurePosixPath(main).parent):
                stem = folder
                for part in filter(None, name.split(".")):
                    stem /= part
                    left += [f"{stem}.py", f"{stem}/__init__.py"]
                left.append(f"{folder}/__init__.py")
    return seen


def _imported(
    node: ast.Import | ast.ImportFrom, here: PurePosixPath, top: PurePosixPath
) -> Iterator[tuple[PurePosixPath, str]]:
    """(folder, dotted name below it) of all that a statement may import."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        stem = node.module or ""
        names = [stem, *(f"{stem}.{name}".strip(".") for name in names)]
        if node.level:
            folder = here
            for _ in range(node.level - 1):
                folder = folder.parent
            yield from ((folder, name) for name in names)
            return
    yield from ((folder, name) for name in names for folder in (top, PurePosixPath("."), here))


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
    source, newline = edits.file.source, edits.file.source.newline()
    body = edits.file.scan.tree.body
    at = 0
    while at < len(body) and (_is_docstring(body[at], at) or _is_future(body[at])):
        at += 1
    lines = f"import {PROBE}{newline}" + (f"{newline}{call}{newline}" if call else "")
    if at < len(body):
        start = source.offset(_first_line(body[at]), 0)
        if at and body[at].lineno == (body[at - 1].end_lineno or 0):  # two statements on one line
            start = source.extent(body[at])[0]
        edits.span(start, start, lines)
    else:
        end = len(source.utf8)
        edits.span(end, end, ("" if source.utf8.endswith(b"\n") or not source.utf8 else newline) + lines)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _is_docstring(node: ast.stmt, at: int) -> bool:
    return at == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"
