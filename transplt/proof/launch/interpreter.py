"""Whether an interpreter can run the emulated device: it needs torch 2.10 or newer."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata

from transplt.proof.launch.options import UsageError

#: The first torch whose Python registers the hooks and the guard of a device of one's own.
MINIMUM = (2, 10)
#: With `-c` the current folder is searched first, and may be anybody's.
_ASK = """
import sys
sys.path[:] = [each for each in sys.path if each]
import os, platform
from importlib import metadata
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
names = (name for folder in sys.path if os.path.isdir(folder) for name in os.listdir(folder))
print(version("torch"), version("numpy"), platform.python_version(), *names, sep="\\n")
"""
#: How the folder is called that a distribution leaves beside its packages, its version in the name.
_DISTRIBUTION = (".dist-info", ".egg-info")


@dataclass(frozen=True)
class Versions:
    """What an interpreter has; "" for what it does not. `installed` are all distributions, with their versions."""

    torch: str
    numpy: str
    python: str
    installed: tuple[str, ...] = ()


def torch_of(python: str) -> str:
    """The version of torch that `python` has; UsageError as for `versions_of`."""
    return versions_of(python).torch


def versions_of(python: str) -> Versions:
    """The versions of torch, numpy and Python of an interpreter.

    Raises UsageError, with one sentence that says what to install, when there is none or it is too old.
    """
    if sys.platform == "win32":
        raise UsageError("transplt run works on Linux and macOS only.")
    found = _installed(python)
    version = found.torch
    if not version:
        raise UsageError(
            "transplt run needs PyTorch 2.10 or newer: pip install 'transplt[emulator]', or name an interpreter that "
            "has it with --python."
        )
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < MINIMUM:
        raise UsageError(
            f"transplt run needs PyTorch 2.10 or newer, this interpreter has {version}: pip install 'torch>=2.10', or "
            "name another interpreter with --python."
        )
    return found


def _installed(python: str) -> Versions:
    if python == sys.executable:
        folders = [folder for folder in sys.path if os.path.isdir(folder)]
        found = _distributions(name for folder in folders for name in os.listdir(folder))
        return Versions(_version("torch"), _version("numpy"), platform.python_version(), found)
    try:
        # From 3.13 on Python itself imports modules from there for `-c`, before any line of ours runs.
        safe = {**os.environ, "PYTHONSAFEPATH": "1"}
        asked = subprocess.run([python, "-c", _ASK], env=safe, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"the interpreter {python} cannot be started: {error.strerror}.") from error
    told = [*asked.stdout.splitlines(), "", "", ""]  # nothing, where it has no torch
    return Versions(told[0], told[1], told[2], _distributions(told[3:]))


def _distributions(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name.endswith(_DISTRIBUTION)}))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
