"""The two programs, as they are run: fresh copies, so that nothing that a run writes stays, or meets another run."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from transplt.emulator.options import UsageError
from transplt.errors import shown
from transplt.text.regular_file import SOURCE, read_regular

#: Bytes of a project that are copied for each run; data beside the sources are linked with --data.
LIMIT = 512 * 1024 * 1024
_LEFT = shutil.ignore_patterns(
    ".git", ".hg", ".svn", "__pycache__", ".venv", "venv", "node_modules", ".tox", "*.egg-info"
)


@dataclass(frozen=True)
class Project:
    """A program: its folder, and the script in it that is started. `data` are paths in it that are linked in place of
    being copied; scripts read them only."""

    root: Path
    main: str
    data: tuple[str, ...] = ()

    @property
    def distributed(self) -> bool:
        """Whether a file of it begins a process group by itself."""
        for path in self.root.rglob("*.py"):
            try:
                if b"init_process_group" in read_regular(path, SOURCE):
                    return True
            except OSError:
                continue
        return False

    def copy_to(self, folder: Path) -> Path:
        """A copy in `folder`, under the name of the project: the copy's root."""
        target = folder / self.root.name

        def left(directory: str, names: list[str]) -> set[str]:
            inside = Path(directory).relative_to(self.root)
            linked = {name for name in names if (inside / name).as_posix() in self.data}
            # A FIFO or a device is nothing to copy.
            odd = {
                name
                for name in names
                if not os.path.isdir(path := os.path.join(directory, name)) and not os.path.isfile(path)
            }
            return {*_LEFT(directory, names), *linked, *odd}

        shutil.copytree(self.root, target, ignore=left, symlinks=False, ignore_dangling_symlinks=True)
        for name in self.data:
            if (self.root / name).exists():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).symlink_to((self.root / name).resolve())
        return target


def find_project(given: Path, main: str, data: tuple[str, ...]) -> Project:
    """The program that a path means: a script, or a folder with `main` in it.

    Raises UsageError, in one sentence, where there is no such script or the folder is too large to be copied.
    """
    if given.is_file():
        project = Project(given.resolve().parent, given.name, data)
    else:
        root = given.resolve()
        script = main or "main.py"
        if not (root / script).is_file():
            hint = "" if main else "; name the script with --main"
            raise UsageError(f"there is no script {shown(script)} in {shown(str(given))}{hint}.")
        project = Project(root, Path(script).as_posix(), data)
    size = _size(project)
    if size > LIMIT:
        raise UsageError(
            f"{shown(str(given))} holds over {LIMIT // 2**20} MB, and each run gets a copy of it: name folders of data "
            "in it with --data, which are linked and not copied."
        )
    return project


def _size(project: Project) -> int:
    total = 0
    for directory, folders, names in os.walk(project.root):
        inside = Path(directory).relative_to(project.root)
        dropped = _LEFT(directory, folders)
        folders[:] = [f for f in folders if f not in dropped and (inside / f).as_posix() not in project.data]
        for name in names:
            path = os.path.join(directory, name)
            if (inside / name).as_posix() not in project.data and os.path.isfile(path):
                total += os.path.getsize(path)
        if total > LIMIT:
            break
    return total
