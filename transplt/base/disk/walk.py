"""Walks an input folder in sorted order and decides what is mirrored: nothing is read but .gitignore files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transplt.base.disk.git_ignores import GitIgnores, read_spec, spec_of
from transplt.base.errors import UsageError, reason, shown
from transplt.base.language import marked
from transplt.base.text.given_values import gives_settings
from transplt.base.text.kernel_sources import is_kernel_source
from transplt.base.text.regular_file import NOTEBOOKS, OTHER, SOURCE, Limit, too_large

#: Folders that hold what a tool made or fetched, never what a person wrote.
SKIPPED_FOLDERS = frozenset(
    {
        ".git", ".hg", ".svn", ".bzr", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".pytype",
        ".hypothesis", ".tox", ".nox", ".eggs", "node_modules", ".ipynb_checkpoints", ".transplt",
    }
)  # fmt: skip
#: A folder that holds one of these is a virtual environment.
_ENVIRONMENT_MARKS = frozenset({"pyvenv.cfg", "conda-meta"})
_SKIPPED_SUFFIXES = (".pyc", ".pyo")
#: Files of these kinds are source: .gitignore never leaves them out.
_SOURCE_SUFFIXES = frozenset(
    {
        ".py", ".pyi", ".pyx", ".pxd", ".pyw", ".ipynb", ".sh", ".bash", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp",
        ".hh", ".cu", ".cuh", ".inl",
    }
)  # fmt: skip
#: A backslash that makes no character mean itself.
_OF_WINDOWS = re.compile(r"\\\w")
#: Files over this many bytes that no rule reads stay where they are, unless asked for.
LARGE_FILE_BYTES = 10 * 1024 * 1024
#: What a system starts without a suffix is a program that was compiled, above this.
SMALL_SCRIPT_BYTES = 1024 * 1024


def _large(name: str) -> int:
    """The size from which on a file of this name is large: what transplt edits is read up to a higher one."""
    if name.endswith((".py", ".pyw")):
        return SOURCE.size
    return NOTEBOOKS.size if name.endswith(".ipynb") else LARGE_FILE_BYTES


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of the input that the output does not hold. `size` is in bytes, 0 where it has none."""

    path: str
    reason: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One file to mirror: its path relative to the input, size in bytes and permission bits."""

    path: str
    size: int
    mode: int

    @property
    def is_python(self) -> bool:
        return self.path.endswith((".py", ".pyw"))

    @property
    def has_facts(self) -> bool:
        """True for a file that may say something to its project: Python, a notebook, Cython, what a system starts
        without a suffix, what may hold the settings of a program, lists of packages, and sources of some kernels. A
        stub (.pyi) says nothing: the module beside it does.
        """
        if self.path.endswith((".py", ".pyw", ".ipynb", ".pyx")):
            return True
        if self.size >= SMALL_SCRIPT_BYTES:
            return False
        name = self.path.rpartition("/")[2]
        starts = bool(self.mode & 0o111 and "." not in name)
        return starts or name == "requirements.txt" or gives_settings(name) or is_kernel_source(name)

    @property
    def limit(self) -> Limit:
        """Up to which size the file is read whole."""
        return SOURCE if self.is_python else NOTEBOOKS if self.path.endswith(".ipynb") else OTHER


@dataclass(slots=True)
class Inventory:
    """What the walk found. `links` maps a link's path to the relative target that it gets in the output."""

    files: list[Entry] = field(default_factory=list)
    folders: list[tuple[str, int]] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    large: list[LeftOut] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not (self.files or self.links or self.large or self.left_out or self.unreadable)


def walk(
    root: Path,
    exclude: Sequence[str] = (),
    *,
    copy_all: bool = False,
    skip: frozenset[str] = frozenset(),
    above: tuple[str, Sequence[str]] = ("", ()),
) -> Inventory:
    """Everything below `root` (a real path), in an order that depends on names alone.

    `exclude` are patterns as in .gitignore; `skip` are paths that count as absent. `above` are patterns of a folder at
    or above `root`, with the way from there down to `root`. UsageError when `root` itself cannot be listed.
    """
    try:
        patterns = Excluded(("", exclude), above)
    except ValueError as error:
        raise UsageError(f"a pattern of --exclude cannot be read: {error}") from error
    walker = _Walker(root, patterns, copy_all, skip)
    walker.walk()
    return walker.found


class Excluded:
    """Patterns as in .gitignore, each group with the way from its folder down to the one that paths are relative to.

    ValueError for a pattern that is none, and for one that parts folders as Windows does: it would match nothing.
    """

    def __init__(self, *groups: tuple[str, Sequence[str]]) -> None:
        for pattern in (pattern for _, patterns in groups for pattern in patterns):
            if _OF_WINDOWS.search(pattern):
                raise ValueError(f"{pattern!r} has to part folders by /")
        self._specs = [(base, spec) for base, patterns in groups if (spec := spec_of(patterns)) is not None]

    def matches(self, path: str) -> bool:
        """True for a path that is left out; a folder ends with a slash."""
        return any(spec.verdict(base + path) for base, spec in self._specs)


class _Walker:
    def __init__(self, root: Path, exclude: Excluded, copy_all: bool, skip: frozenset[str]) -> None:
        self.root = root
        self.real_root = os.path.realpath(root)
        self.exclude = exclude
        self.copy_all = copy_all
        self.skip = skip
        self.found = Inventory()
        self._links: list[str] = []
        self._pending: list[tuple[str, GitIgnores | None]] = [("", None)]

    def walk(self) -> None:
        while self._pending:
            path, git = self._pending.pop()
            try:
                self._folder(path, git)
            except OSError as error:
                if not path:
                    raise UsageError(f"cannot read the folder {shown(self.root)}: {reason(error)}") from error
                self.found.unreadable.append((path, reason(error)))
        self._resolve_links()
        self.found.files.sort(key=lambda entry: entry.path)
        self.found.folders.sort()
        self.found.unreadable.sort()
        self.found.left_out.sort(key=lambda item: item.path)
        self.found.large.sort(key=lambda item: item.path)

    def _folder(self, path: str, git: GitIgnores | None) -> None:
        """Lists one folder; `git` says what the repository around it tracks and ignores."""
        with os.scandir(self.root / path) as listing:
            entries = list(listing)
        names = {entry.name for entry in entries}
        if path and not _ENVIRONMENT_MARKS.isdisjoint(names):
            self._leave_out(path, "virtual environment")
            return
        if ".git" in names or not path:
            git = GitIgnores.of(self.root, path) or git
        if git is not None:
            git = git.below(path, read_spec(self.root / path / ".gitignore") if ".gitignore" in names else None)
        if path:
            self.found.folders.append((path, stat.S_IMODE(os.stat(self.root / path).st_mode)))
        for entry in entries:
            below = f"{path}/{entry.name}" if path else entry.name
            try:
                self._entry(entry, below, git)
            except OSError as error:
                self.found.unreadable.append((below, reason(error)))

    def _entry(self, entry: os.DirEntry[str], path: str, git: GitIgnores | None) -> None:
        if path in self.skip or entry.name == ".git":
            return
        is_folder = entry.is_dir(follow_symlinks=False)
        if self.exclude.matches(path + "/" if is_folder else path):
            self._leave_out(path, marked("excluded"))
        elif is_folder:
            if entry.name not in SKIPPED_FOLDERS:
                self._pending.append((path, git))
        elif entry.is_symlink():
            self._links.append(path)
        elif not entry.is_file(follow_symlinks=False):
            self._leave_out(path, marked("neither a file nor a folder"))
        elif not entry.name.endswith(_SKIPPED_SUFFIXES):
            self._file(entry, path, git)

    def _file(self, entry: os.DirEntry[str], path: str, git: GitIgnores | None) -> None:
        info = entry.stat(follow_symlinks=False)
        if git is not None and os.path.splitext(entry.name)[1].lower() not in _SOURCE_SUFFIXES and git.drops(path):
            self._leave_out(path, marked("ignored by git and not tracked"), info.st_size)
        elif entry.name.endswith((".py", ".pyw")) and info.st_size > SOURCE.size:
            why = too_large(info.st_size, SOURCE)
            self.found.unreadable.append((path, why))
            self.found.large.append(LeftOut(path, why, info.st_size))
        elif info.st_size > _large(entry.name) and not self.copy_all:
            self.found.large.append(LeftOut(path, "larger than 10 MB and read by no rule", info.st_size))
        else:
            self.found.files.append(Entry(path, info.st_size, stat.S_IMODE(info.st_mode)))

    def _leave_out(self, path: str, why: str, size: int = 0) -> None:
        self.found.left_out.append(LeftOut(path, why, size))

    def _resolve_links(self) -> None:
        """Decides about the links, now that all that can be their target is known."""
        kept = {entry.path for entry in self.found.files} | {path for path, _ in self.found.folders} | {""}
        for path in sorted(self._links):
            target, why = self._link_target(path, kept)
            if target is None:
                self._leave_out(path, why)
            else:
                self.found.links[path] = os.path.relpath(target, os.path.dirname(path) or ".").replace(os.sep, "/")

    def _link_target(self, path: str, kept: set[str]) -> tuple[str | None, str]:
        """What a link leads to, relative to the input; None and the reason where the output cannot hold it."""
        full = self.root / path
        try:
            os.stat(full)
        except FileNotFoundError:
            return None, "broken link"
        except OSError as error:
            return None, f"link that cannot be followed ({reason(error)})"
        target = os.path.realpath(full)
        if target == self.real_root:
            return None, "link to a folder that holds it (a loop)"
        if not target.startswith(self.real_root.rstrip(os.sep) + os.sep):
            return None, "link to a place outside the input"
        inside = os.path.relpath(target, self.real_root).replace(os.sep, "/")
        if path.startswith(inside + "/"):
            return None, "link to a folder that holds it (a loop)"
        if inside not in kept:
            return None, "link to something that is left out"
        return inside, ""
