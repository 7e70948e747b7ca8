"""The files that work together with one: those that it imports, those that import it, and so on, as one program."""

from __future__ import annotations

import ast
import re

from transplt.edits.work import Work
from transplt.flow.facts import ProjectFacts
from transplt.program.imports import imports_of
from transplt.program.program import Program, program_of
from transplt.program.star_imports import names_in
from transplt.program.torchscript import scripted_in
from transplt.syntax.files import File
from transplt.syntax.names import Names
from transplt.syntax.scan import chain

#: Files without any of these words hold nothing about how a model trains, and with what data.
_WORDS = re.compile(
    rb"jit.script|optim|zero_grad|\.grad\b|backward|parameters\(|__main__|DataLoader"
    rb"|share_memory|requires_grad|set_default_|from_pretrained|find_unused|bucket_view|deepspeed|accelerate|lightning"
)


def programs_in(work: Work) -> dict[str, Program]:
    """The programs of the project by path: files that have nothing to do with each other are in different ones."""
    return work.project.once(_programs) if work.project.sources else work.once(_alone)


def program_around(work: Work) -> Program | None:
    """The program that the file on the bench is part of, with its nodes."""
    programs, path = programs_in(work), work.scan.path
    program = programs.get(path)
    if program is None or any(file.scan is work.scan for file in program.files):
        return program
    # It was parsed once more: what was kept had met its limit.
    files = [_own(work) if file.path == path else file for file in program.files]
    program = program_of(files, work.project)
    programs.update((file.path, program) for file in files)
    return program


def _own(work: Work) -> File:
    return _with_stars(File(work.scan.path, work.source, work.scan, Names(work.scan)), work.project)


def _with_stars(file: File, project: ProjectFacts) -> File:
    """A file whose names know what `from torch.optim import *` brings."""
    if not any(star.startswith("torch.") for star in file.scan.root.stars):
        return file
    return File(file.path, file.source, file.scan, names_in(file.scan, project.reexports))


def _speaks(path: str, data: bytes) -> bool:
    return path.endswith("__init__.py") or _WORDS.search(data) is not None


def _alone(work: Work) -> dict[str, Program]:
    path = work.scan.path
    return {path: program_of([_own(work)], work.project)} if _speaks(path, work.source.utf8) else {}


def _programs(project: ProjectFacts) -> dict[str, Program]:
    every = ((path, data) for path, data in sorted(project.sources.items()) if _speaks(path, data))
    read = ((path, project.files.read(path, data)) for path, data in every)
    files = {path: _with_stars(file, project) for path, file in read if file is not None}
    found: dict[str, Program] = {}
    for group in imports_of(project).groups(files):
        program = program_of([files[path] for path in group], project)
        found.update((path, program) for path in group)
    return found


def scripted(work: Work, node: ast.AST) -> bool:
    """True in a function or class that TorchScript reads (or that an unknown `jit` decorates)."""
    for above in (node, *chain(node)):
        for decorator in getattr(above, "decorator_list", ()):
            func = decorator.func if isinstance(decorator, ast.Call) else decorator
            full = work.names.qualified(func) or ast.unparse(func)
            if "jit" in full:
                return True
    program = program_around(work)
    if program is None:
        return False
    compiled = program.once(scripted_in)
    return any((work.scan.path, getattr(above, "lineno", 0)) in compiled for above in chain(node))
