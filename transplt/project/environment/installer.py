"""uv where it is, else venv and pip: what makes an environment, and installs into it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transplt.base.errors import shown
from transplt.proof.launch.options import UsageError

#: A package that takes longer, in seconds, is one that is being compiled.
LONGEST = 900.0
#: What pip's settings are called for uv, which reads none of pip's.
_FOR_UV = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_EXTRA_INDEX_URL": "UV_INDEX", "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_NO_INDEX": "UV_NO_INDEX", "PIP_CONSTRAINT": "UV_CONSTRAINT", "PIP_CERT": "SSL_CERT_FILE",
}  # fmt: skip


#: Lines of pip and uv that say which package it is: of its releases, what they ask for, or how it is built.
_BLAMES = re.compile(
    r"(?i)Cannot install|No matching distribution|Could not find a version|Failed (?:building|to build)"
    r"|because (?:you require|there (?:is|are) no)|depends on torch"
)


class Failed(Exception):
    """Why something was not installed, as a clause for the user; `offline` where the index could not be reached, and
    `output` is what pip or uv printed."""

    def __init__(self, why: str, offline: bool = False, output: str = "") -> None:
        super().__init__(why)
        self.offline, self.output = offline, output

    def names(self, name: str) -> bool:
        """Whether a line that says what went wrong names a distribution."""
        word = re.compile(rf"(?<![\w.-]){re.escape(name).replace('-', '[-_.]')}(?![\w-])", re.IGNORECASE)
        return any(word.search(line) for line in self.output.splitlines() if _BLAMES.search(line))


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
            self._carry_out([*command, str(self.folder)])
        except Failed as why:
            hint = "; on Debian it is the package python3-venv" if "ensurepip" in str(why) else ""
            raise UsageError(f"no environment can be made in {shown(str(self.folder))}: {why}{hint}") from why

    def install(self, words: Sequence[str], *options: str) -> None:
        """Install packages. Failed with the last that pip or uv says."""
        if self.uv:
            self._carry_out([self.uv, "pip", "install", "--python", self.python, *options, *words])
        else:
            more = ["--prefer-binary", "--progress-bar", "off"]
            self._carry_out([self.python, "-I", "-m", "pip", "install", *more, *options, *words])

    def import_error(self, module: str) -> str:
        """What stops the import of a module; "" where nothing does."""
        try:
            self._carry_out([self.python, "-I", "-c", f"import {module}"])
        except Failed as why:
            return str(why)
        return ""

    def mend(self) -> None:
        """Take the mark from what an interrupted call left half-installed: what pip and uv write last is missing."""
        for info in self.folder.glob("lib/python*/site-packages/*.dist-info"):
            if not (info / "RECORD").is_file():
                shutil.rmtree(info, ignore_errors=True)

    def _carry_out(self, command: Sequence[str]) -> None:
        # What the user has decided for environments of their own does not hold for this one; and nothing is imported
        # from the folder in which the command was typed (-I).
        environment = {**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_NO_INPUT": "1"}
        environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
        for theirs, ours in _FOR_UV.items():
            if os.environ.get(theirs) and ours not in environment:
                environment[ours] = os.environ[theirs]
        environment.pop("PYTHONPATH", None)
        try:
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", start_new_session=True, pass_fds=(self.lock,),
            )  # fmt: skip
        except OSError as error:
            raise Failed(f"{shown(command[0])} cannot be started: {error.strerror}") from error
        try:
            output, _ = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise Failed(f"it took longer than {LONGEST / 60:.0f} minutes") from error
        except BaseException:
            _end(process)
            raise
        if process.returncode:
            lines = [line.strip() for line in output.splitlines() if line.strip()]
            errors = [line for line in lines if re.match(r"(?i)\W*(?:error|because)\b|\w+Error:", line)]
            said = (errors or lines or [f"exit code {process.returncode}"])[-1]
            offline = any("Retrying (" in line or "error sending request" in line for line in lines)
            raise Failed(shown(said.removeprefix("ERROR: ")), offline, output)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
