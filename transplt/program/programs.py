"""The programs of a project, each worked out once; all who read them see the same nodes of the same files."""

from __future__ import annotations

from dataclasses import dataclass, field

from transplt.flow.facts import ProjectFacts
from transplt.program.imports import imports_of
from transplt.program.program import Program, program_of
from transplt.program.star_imports import names_in
from transplt.syntax.files import File

#: Files in all programs together up to which programs are kept; what was read first goes.
_MOST_FILES = 2000


@dataclass(slots=True, eq=False)
class Programs:
    """What was read of a project. Its files have names that are known through other files."""

    project: ProjectFacts
    _files: dict[str, File] = field(default_factory=dict)
    _of_entry: dict[str, Program] = field(default_factory=dict)

    def own(self, file: File) -> File:
        """The one that stands for a file (that on the bench), as long as its nodes are the same."""
        known = self._files.get(file.path)
        if known is None or known.scan is not file.scan:
            known = self._files[file.path] = file
        return known

    def file(self, path: str) -> File | None:
        """A file of the project; None for one that cannot be read."""
        found = self.project.files.read(path, self.project.sources.get(path, b""))
        if found is None:
            return None
        return self.own(File(path, found.source, found.scan, names_in(found.scan, self.project.reexports)))

    def program(self, entry: str, own: File | None = None) -> Program:
        """The program of the main file `entry`; `own` is a file that was parsed before, whose nodes are to be used."""
        known = self._of_entry.pop(entry, None)
        others = [] if own is None or known is None else [each for each in known.files if each.path == own.path]
        if known is None or (others and own not in others):
            paths = imports_of(self.project).reached(entry)
            files = (own if own is not None and own.path == path else self.file(path) for path in paths)
            known = program_of([file for file in files if file is not None], self.project)
        self._of_entry[entry] = known
        while len(self._of_entry) > 1 and sum(len(each.files) for each in self._of_entry.values()) > _MOST_FILES:
            del self._of_entry[next(iter(self._of_entry))]
        return known

    def around(self, own: File) -> list[Program]:
        """The programs that hold a file, one for each main file that reaches it, its own first; with its nodes."""
        return [self.program(entry, own) for entry in (own.path, *imports_of(self.project).entries(own.path))]


def programs_of(project: ProjectFacts) -> Programs:
    """The programs of a project."""
    return project.once(Programs)
