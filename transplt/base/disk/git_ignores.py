"""What git would leave out: patterns as in .gitignore, and what is tracked all the same. Git is never run."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transplt.base.disk.git_index import Tracked, find_repository, read_tracked
from transplt.base.text.regular_file import IGNORES, read_regular

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

#: Stars in a row mean one star, unless two are all between slashes; as a regular expression a row takes for ever.
_STARS = re.compile(r"(\\.|(?<![^/!])\*\*(?![^/]))|\*{2,}", re.DOTALL)
#: So many ways of sharing out a path among the stars of a pattern may be tried: a tenth of a second.
_MAX_WAYS = 5_000_000


class Patterns:
    """Patterns as in .gitignore. ValueError when one is no such pattern.

    A pattern with so many stars that it could take for ever on a path (four on more than a hundred characters, three
    on more than three hundred) says nothing about that path.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = [_STARS.sub(lambda stars: stars[1] or "*", line) for line in lines]
        self._most = max(map(_stars, self._lines), default=0)
        self._specs: dict[int, GitIgnoreSpec] = {}
        self._spec(self._most)

    def verdict(self, path: str) -> bool | None:
        """True: left out; False: kept by a pattern with `!`; None: no pattern holds. A folder ends with a slash."""
        stars = self._most
        while stars > 2 and math.comb(len(path) + stars, stars) > _MAX_WAYS:
            stars -= 1
        return self._spec(stars).check_file(path).include

    def _spec(self, stars: int) -> GitIgnoreSpec:
        """The patterns with at most so many stars."""
        if stars not in self._specs:
            from pathspec import GitIgnoreSpec

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `[[:alpha:]]` makes Python's `re` wonder aloud
                lines = [line for line in self._lines if _stars(line) <= stars]
                try:
                    self._specs[stars] = GitIgnoreSpec.from_lines(lines)
                except re.error as error:
                    raise ValueError(f"{error}") from error
        return self._specs[stars]


def _stars(line: str) -> int:
    return line.replace("**", "*").count("*")


@dataclass(frozen=True, slots=True)
class _IgnoreFile:
    """The patterns of one .gitignore: a path of the input is seen by them as `add + path[strip:]`."""

    strip: int
    add: str
    spec: Patterns

    def verdict(self, path: str) -> bool | None:
        return self.spec.verdict(self.add + path[self.strip :])


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

    def below(self, path: str, spec: Patterns | None) -> GitIgnores:
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


def read_spec(path: Path) -> Patterns | None:
    """The patterns of a .gitignore that are some, None where there are none or they cannot be read.

    git follows no link here.
    """
    try:
        lines = read_regular(path, IGNORES, follow=False).decode("utf-8", "replace").splitlines()
    except (OSError, ValueError):
        return None
    lines = [line for line in lines if line.strip()]
    try:
        return spec_of(lines)
    except ValueError:
        return spec_of([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    try:
        return spec_of([line]) is not None
    except ValueError:
        return False


def spec_of(patterns: Sequence[str]) -> Patterns | None:
    """Patterns as in .gitignore, None where there are none. ValueError when a pattern is no such one."""
    return Patterns(patterns) if patterns else None
