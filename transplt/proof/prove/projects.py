"""The two programs, as they are run: fresh copies, so that nothing that a run writes stays, or meets another run."""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from transplt.base.disk.mirror import hash_file
from transplt.base.errors import shown
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.proof.launch.edits import find_migration
from transplt.proof.launch.options import UsageError

#: Bytes of a project that are copied for each run; data beside the sources are linked with --data.
LIMIT = 512 * 1024 * 1024
#: How many scripts a message names.
_NAMED = 5
#: What a copy has been committed as: the same in all copies.
_TREE = b"tree 0\0"
_COMMIT = (
    f"tree {hashlib.sha1(_TREE, usedforsecurity=False).hexdigest()}\nauthor transplt <> 0 +0000\n"
    "committer transplt <> 0 +0000\n\nA copy of the project\n"
).encode()
_LEFT = shutil.ignore_patterns(
    ".git", ".hg", ".svn", "__pycache__", ".venv", "venv", "node_modules", ".tox", "*.egg-info"
)


def make_repository(folder: Path) -> None:
    """A git repository with one empty commit, for scripts that ask for their revision."""
    (folder / "refs").mkdir(parents=True)
    for kept in (_TREE, b"commit %d\0" % len(_COMMIT) + _COMMIT):
        name = hashlib.sha1(kept, usedforsecurity=False).hexdigest()
        (folder / "objects" / name[:2]).mkdir(parents=True)
        (folder / "objects" / name[:2] / name[2:]).write_bytes(zlib.compress(kept))
        (folder / "HEAD").write_text(f"{name}\n")  # the last one is the commit


@dataclass(frozen=True)
class Project:
    """A program: its folder, and the script in it that is started. `data` are paths in it that are linked in place of
    being copied; scripts read them only. What of them is not there is linked from the folder `elsewhere`."""

    root: Path
    main: str
    data: tuple[str, ...] = ()
    elsewhere: Path | None = None

    @cached_property
    def distributed(self) -> bool:
        """Whether a file of it begins a process group by itself."""
        return self._names(b"init_process_group")

    @cached_property
    def has_its_own_port(self) -> bool:
        """Whether a file of it names where its processes meet: two runs at the same time would meet there, too."""
        return self._names(b"MASTER_PORT", b"tcp://")

    @cached_property
    def evaluates(self) -> bool:
        return self._names(b".eval()")

    @cached_property
    def saves(self) -> bool:
        return self._names(b"torch.save(")

    def _names(self, *words: bytes) -> bool:
        return any(word in text for text in map(_read, self.root.rglob("*.py")) for word in words)

    def copy_to(self, folder: Path) -> Path:
        """A copy in `folder`, under the name of the project: the copy's root. UsageError for what cannot be read."""
        target = folder / self.root.name
        try:
            # (ignore_dangling_symlinks would leave out relative links that lead somewhere.)
            shutil.copytree(self.root, target, ignore=self.left)
        except shutil.Error as error:
            path, _, why = error.args[0][0]
            raise UsageError(f"{shown(path)} cannot be copied: {shown(why)}.") from error
        for name in self.data:
            for held in (self.root, self.elsewhere or self.root):
                if (held / name).exists():
                    (target / name).parent.mkdir(parents=True, exist_ok=True)
                    (target / name).symlink_to((held / name).resolve())
                    break
        return target

    def copied(self) -> Iterator[tuple[str, str]]:
        """The files that a copy has: the path in the project, with forward slashes, and where the file lies."""
        for directory, folders, names in os.walk(self.root, followlinks=True):
            left = self.left(directory, [*folders, *names])
            folders[:] = [folder for folder in folders if folder not in left]
            inside = Path(directory).relative_to(self.root)
            for name in names:
                if name not in left:
                    yield (inside / name).as_posix(), os.path.join(directory, name)

    def left(self, directory: str, names: list[str]) -> set[str]:
        """Of the names in a directory those that are not copied: caches, data that are linked, FIFOs and devices, and
        folders that lead back to one that they lie in."""
        inside = Path(directory).relative_to(self.root)
        above = {os.path.realpath(self.root / part) for part in (inside, *inside.parents)}
        left = {*_LEFT(directory, names)}
        for name in names:
            path = os.path.join(directory, name)
            back = os.path.isdir(path) and os.path.realpath(path) in above
            odd = not os.path.isdir(path) and not os.path.isfile(path)
            if back or odd or (inside / name).as_posix() in self.data:
                left.add(name)
        return left


def hash_of(project: Project) -> str:
    """The sha256 over the files that a run gets, in their order: path, a null byte, the sha256 of the contents, a line
    end. What is linked (`--data`) is not among them."""
    digest = hashlib.sha256()
    for name, path in sorted(project.copied()):
        try:
            digest.update(f"{name}\0{hash_file(path)}\n".encode("utf-8", "surrogateescape"))
        except OSError:
            continue  # the copy for a run says what is wrong with it
    return digest.hexdigest()


def find_projects(original: Path, migrated: Path, main: str, data: tuple[str, ...]) -> tuple[Project, Project]:
    """Both programs; scripts in sub-folders are started as `transplt run` starts them, in the folders of their
    projects. UsageError as for `find_project`, and for data that neither has."""
    above = _above(original, migrated) if original.is_file() and migrated.is_file() else 0
    before = find_project(original, main, data, above)
    try:
        after = find_project(migrated, main or (before.main if original.is_dir() else ""), data, above)
    except UsageError as error:
        newer = " The original has it: migrate again, with --force." if "no such script" in str(error) else ""
        raise UsageError(f"{error}{newer}") from error
    for path in before.data:
        if not (before.root / path).exists() and not (after.root / path).exists():
            raise UsageError(f"--data {shown(path)}: neither {shown(before.root)} nor {shown(after.root)} has it.")
    return before, replace(after, elsewhere=before.root)  # a migration copies no data


def _above(original: Path, migrated: Path) -> int:
    """How many folders the projects of two scripts begin above those that the scripts lie in: the output of a migration
    begins where it is recorded, the project in which the command is typed in the current folder, and the other
    likewise. 0 where the other has no such folders, or both would be one project."""
    scripts = original.resolve(), migrated.resolve()
    migration = find_migration(scripts[1].parent)
    for top in (migration.root if migration is not None else None, Path.cwd().resolve()):
        for script in scripts:
            if top is None or top not in script.parents:
                continue
            above = len(script.relative_to(top).parts) - 1
            inside = {each.parts[len(each.parts) - 1 - above : -1] for each in scripts}
            roots = {each.parents[above] for each in scripts if len(each.parents) > above}
            if len(inside) == 1 and len(roots) == 2:
                return above
    return 0


def find_project(given: Path, main: str, data: tuple[str, ...], above: int = 0) -> Project:
    """The program that a path means: a script, or a folder with `main` in it. The project of a script begins so many
    folders `above` its own.

    Raises UsageError, in one sentence, where there is no such script, a path is none in the folder, or the folder is
    too large to be copied.
    """
    linked = tuple(_inside(path, given, "--data") for path in data)
    if given.is_file():
        root = given.resolve().parents[above]
        project = Project(root, given.resolve().relative_to(root).as_posix(), linked)
    else:
        root = given.resolve()
        scripts = [path.name for path in sorted(root.glob("*.py")) if path.name != "setup.py"]
        there = [name for name in scripts if b"__main__" in _read(root / name)]
        there = there or [path.relative_to(root).as_posix() for path in sorted(root.glob("*/__main__.py"))]
        there = [] if main or (root / "main.py").is_file() else there
        script = there[0] if len(there) == 1 else _inside(main or "main.py", given, "--main")
        if not (root / script).is_file():
            hint = f" (there is {', '.join(there[:_NAMED])})" if there else ""
            hint = "" if main else f"; name the script with --main{hint}"
            raise UsageError(f"no such script: {shown(script)} in {shown(str(given))}{hint}.")
        project = Project(root, script, linked)
    sizes = (os.path.getsize(path) for _, path in project.copied())
    if any(total > LIMIT for total in accumulate(sizes)):
        raise UsageError(
            f"{shown(str(given))} has more than {LIMIT // 2**20} MB, and each run gets a copy: name its data folders "
            "with --data, to link them instead of copying."
        )
    return project


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, SOURCE)
    except OSError:
        return b""


def _inside(path: str, given: Path, option: str) -> str:
    """A path of the project, relative to its folder, in its shortest form. UsageError for any other."""
    shortest = os.path.normpath(path)
    if os.path.isabs(shortest) or shortest in (".", "..") or shortest.startswith(f"..{os.sep}"):
        raise UsageError(f"{option} {shown(path)}: name a path in {shown(given)}, relative to it.")
    return Path(shortest).as_posix()

