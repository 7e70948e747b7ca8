"""Where the tools may read and write: the folder that the person gave, and one for output."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from transplt.base.errors import UsageError, shown


@dataclass(frozen=True, slots=True)
class Folders:
    """`root` is the folder with the projects, `output` one for what is migrated (None: inside `root`); real paths."""

    root: Path
    output: Path | None = None

    def inside(self, name: str) -> Path:
        """The real path of what a tool was given, relative to `root` or absolute. UsageError when it lies elsewhere.

        Links are followed first: what counts is where the file is. A path that is not there yet may be given.
        """
        if "\0" in name:
            raise UsageError("a path has no zero bytes")
        path = Path(os.path.realpath(self.root / name))
        if not any(_holds(folder, path) for folder in (self.root, self.output) if folder is not None):
            raise UsageError(f"{shown(name)} is outside {shown(self.root)}, the folder of this server")
        return path

    def display(self, path: Path) -> str:
        """How a path is shown, and may be given again: relative to `root` where it lies in it."""
        return shown(os.path.relpath(path, self.root) if _holds(self.root, path) else path)

    def place_for(self, source: Path) -> Path:
        """The folder in which the migrated copy of `source` is made unless another is asked for.

        UsageError when there is none that does not lie inside the input or outside of the folders.
        """
        if self.output is not None:
            return self.output
        if source == self.root:
            raise UsageError(
                "the project fills the folder of this server, so its migrated copy has no place: start the server for "
                "the parent folder or with --output DIR, or migrate with in_place"
            )
        return source.parent


def _holds(folder: Path, path: Path) -> bool:
    return path == folder or folder in path.parents
