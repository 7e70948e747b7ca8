"""Which files of a project belong together: who imports whom, and which of them are started."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from transplt.base.closure import closure
from transplt.base.grouped import grouped
from transplt.flow.facts import ProjectFacts


@dataclass(frozen=True, slots=True)
class Imports:
    """The import graph of a project, by path. `targets`: what a file imports, by place; `importers`: the reverse."""

    targets: Mapping[str, tuple[str, ...]]
    importers: Mapping[str, tuple[str, ...]]
    guarded: frozenset[str]  # files with `if __name__ == "__main__":`

    def reached(self, *paths: str) -> list[str]:
        """Files, and all that they import, directly or through others; the nearest first."""
        return [*closure(paths, lambda path: self.targets.get(path, ()))]

    def above(self, path: str) -> list[str]:
        """The files that import a file, directly or through others, sorted; without itself."""
        return sorted({*closure([path], lambda each: self.importers.get(each, ()))} - {path})

    def around(self, path: str) -> list[str]:
        """The files that one imports, and behind them those that import it, directly or through others."""
        return [*sorted({*self.reached(path)} - {path}), *self.above(path)]

    def entries(self, path: str) -> list[str]:
        """The files that are started and import a file, sorted: nobody imports them, or they have a main guard."""
        return [other for other in self.above(path) if other in self.guarded or not self.importers.get(other)]

    def entry(self, path: str) -> str:
        """The file from which to read a program that holds a file: the first that nobody imports, else the file."""
        return next((other for other in self.entries(path) if not self.importers.get(other)), path)

    def groups(self, paths: Iterable[str]) -> list[list[str]]:
        """Files in groups that have nothing to do with each other, as far as imports among them say."""
        left = dict.fromkeys(paths)
        both = {path: [each for each in (*self.targets.get(path, ()), *self.importers.get(path, ())) if each in left]
                for path in left}  # fmt: skip
        found = []
        while left:
            group = {*closure([next(iter(left))], lambda path: both.get(path, ()))}
            found.append([path for path in left if path in group])
            left = dict.fromkeys(path for path in left if path not in group)
        return found

    def alongside(self, paths: Collection[str]) -> dict[str, frozenset[str]]:
        """By path: those of these files that may run in one process with it: all but what only other scripts reach.

        A file that nobody imports and that has no main guard counts as reached by all: it may be loaded by its name.
        """
        targets = {path: [each for each in self.targets.get(path, ()) if each in paths] for path in paths}
        imported = {each for every in targets.values() for each in every}
        roots = {path: frozenset(closure([path], lambda each: targets.get(each, ())))
                 for path in paths if path in self.guarded or path not in imported}  # fmt: skip
        return {
            path: frozenset().union(
                *(reached for root, reached in roots.items() if root not in self.guarded or path in reached), [path]
            )
            for path in paths
        }


def imports_of(project: ProjectFacts) -> Imports:
    """The import graph of a project."""
    return project.once(_imports)


def _imports(project: ProjectFacts) -> Imports:
    importers = grouped((target, path) for path, targets in project.imports.items() for target in targets)
    turned = {path: tuple(sorted(every)) for path, every in importers.items()}
    return Imports(project.imports, turned, project.guarded)
