"""What git would leave out: patterns as in .gitignore, and what is tracked all the same. Git is never run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transplt.disk.git_index import Tracked, find_repository, read_tracked
from transplt.text.regular_file import IGNORES, read_regular

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


@dataclass(frozen=True, slots=True)
class _IgnoreFile:
    """The patterns of one .gitignore: a path of the input is seen by them as `add + path[strip:]`."""

    strip: int
    add: str
    spec: GitIgnoreSpec

    def verdict(self, path: str) -> bool | None:
        return self.spec.check_file(self.add + path[self.strip :]).include


@dataclass(frozen=True, slots=True)
class GitIgnores:
    """What git tracks and ignores, from the top of one repository down to one folder of the input."""

    strip: int
    tracked: Tracked
    rules: tuple[_IgnoreFile, ...]
    all_ignored: bool = False

    @classmethod
    def of(cls, root: Path, path: str) -> GitIgnores | None:
        """For the folder `path` of the input `root`, which may lie inside a repository; None where there is none."""
        folder = root / path
        top = find_repository(folder)
        tracked = read_tracked(folder)
        if tracked is None or top is None:
            return None
        strip = len(path) + 1 if path else 0
        rules: list[_IgnoreFile] = []
        exclude = read_spec(top / ".git" / "info" / "exclude")
        if exclude is not None:
            rules.append(_IgnoreFile(strip, _from(top, folder), exclude))
        for above in reversed(folder.parents):
            spec = read_spec(above / ".gitignore") if above == top or top in above.parents else None
            if spec is not None:
                rules.append(_IgnoreFile(strip, _from(above, folder), spec))
        return cls(strip, tracked, tuple(rules))

    def below(self, path: str, spec: GitIgnoreSpec | None) -> GitIgnores:
        """The same one folder further down, which may have a .gitignore of its own."""
        rules = self.rules
        if spec is not None:
            rules = (*rules, _IgnoreFile(len(path) + 1 if path else 0, "", spec))
        inner = path[self.strip :]
        ignored = self.all_ignored or bool(
            inner and not self.tracked.has_folder(inner) and _verdict(self.rules, path + "/")
        )
        return GitIgnores(self.strip, self.tracked, rules, ignored)

    def drops(self, path: str) -> bool:
        """True for a file (path relative to the input) that git ignores and does not track."""
        return self.all_ignored or (not self.tracked.has_file(path[self.strip :]) and _verdict(self.rules, path))


def _verdict(rules: tuple[_IgnoreFile, ...], path: str) -> bool:
    for rule in reversed(rules):
        verdict = rule.verdict(path)
        if verdict is not None:
            return verdict
    return False


def _from(above: Path, folder: Path) -> str:
    """The way from `above` down to `folder`, with a trailing slash, empty where they are the same."""
    return "" if above == folder else folder.relative_to(above).as_posix() + "/"


def read_spec(path: Path) -> GitIgnoreSpec | None:
    """The patterns of a .gitignore, None where there are none or they cannot be read; git follows no link here."""
    try:
        lines = read_regular(path, IGNORES, follow=False).decode("utf-8", "replace").splitlines()
        return spec_of([line for line in lines if line.strip()])
    except (OSError, ValueError):
        return None


def spec_of(patterns: Sequence[str]) -> GitIgnoreSpec | None:
    """Patterns as in .gitignore, None where there are none. ValueError when a pattern is no such one."""
    if not patterns:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)
