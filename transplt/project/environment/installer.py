"""uv where it is, else venv and pip: what makes an environment, and installs into it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transplt.base.errors import shown
from transplt.proof.launch import pip
from transplt.proof.launch.options import UsageError
from transplt.proof.launch.pip import Failed


@dataclass(frozen=True)
class Installer:
    """Of the environment in `folder`; `uv` is its command, "" where pip does it; `lock` is a file that what it starts
    keeps open, so that a lock on it holds for as long as pip lives."""

    folder: Path
    uv: str
    lock: int

    @classmethod
    def of(cls, folder: Path, lock: int) -> Installer:
        """What is here for it."""
        return cls(folder, shutil.which("uv") or "", lock)

    @property
    def name(self) -> str:
        """What does it."""
        return "uv" if self.uv else "pip"

    @property
    def python(self) -> str:
        """The interpreter of the environment."""
        return str(self.folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))

    def make(self, base: str) -> None:
        """Make the environment, for the Python of another one. UsageError where that fails."""
        command = [self.uv, "venv", "--python", base] if self.uv else [base, "-I", "-m", "venv"]
        try:
            self._run([*command, str(self.folder)])
        except Failed as why:
            hint = "; on Debian it is the package python3-venv" if "ensurepip" in str(why) else ""
            raise UsageError(f"cannot create an environment in {shown(str(self.folder))}: {why}{hint}") from why

    def install(self, words: Sequence[str], *options: str) -> None:
        """Install packages. Failed with the last that pip or uv says."""
        if self.uv:
            self._run([self.uv, "pip", "install", "--python", self.python, *options, *words])
        else:
            more = ["--prefer-binary", "--progress-bar", "off"]
            self._run([self.python, "-I", "-m", "pip", "install", *more, *options, *words])

    def import_error(self, module: str) -> str:
        """What stops the import of a module; "" where nothing does."""
        try:
            self._run([self.python, "-I", "-c", f"import {module}"])
        except Failed as why:
            return str(why)
        return ""

    def mend(self) -> None:
        """Take the mark from what an interrupted call left half-installed: what pip and uv write last is missing."""
        for info in self.folder.glob("lib/python*/site-packages/*.dist-info"):
            if not (info / "RECORD").is_file():
                shutil.rmtree(info, ignore_errors=True)

    def _run(self, command: Sequence[str]) -> None:
        pip.carry_out(command, keep_open=(self.lock,))
