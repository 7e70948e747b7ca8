"""The programs of which a file is a part: one for each main file that reaches it."""

from __future__ import annotations

from transplt.program.program import File, Program, build
from transplt.project.facts import ProjectFacts
from transplt.themes.amp.connected import importers


def programs_around(project: ProjectFacts, own: File) -> list[Program]:
    """The programs that hold a file, its own first, with the nodes of that file.

    Main files are those that nobody imports, and those that name `__main__`.
    """
    files = dict(project.sources)
    files.setdefault(own.path, own.source.encode(own.source.utf8))
    above = importers(project, own.path)
    mains = [other for other in above if b"__main__" in files[other] or not importers(project, other)]
    found = [build(files, main, project, own) for main in (own.path, *mains)]
    return [program for program in found if own in program.files]
