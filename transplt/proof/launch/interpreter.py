"""Whether an interpreter can run the emulated device: it needs torch 2.10 or newer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata

from transplt.proof.launch.options import UsageError

#: The first torch whose Python registers the hooks and the guard of a device of one's own.
MINIMUM = (2, 10)
#: With `-c` the current folder is searched first, and may be anybody's.
_ASK = (
    "import sys; sys.path[:] = [each for each in sys.path if each]; "
    "from importlib.metadata import version; print(version('torch'))"
)


def torch_of(python: str) -> str:
    """The version of torch that `python` has.

    Raises UsageError, with one sentence that says what to install, when there is none or it is too old.
    """
    if sys.platform == "win32":
        raise UsageError("transplt run works on Linux and macOS only.")
    version = _installed(python)
    if version is None:
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
    return version


def _installed(python: str) -> str | None:
    if python == sys.executable:
        try:
            return metadata.version("torch")
        except metadata.PackageNotFoundError:
            return None
    try:
        # From 3.13 on Python itself imports modules from there for `-c`, before any line of ours runs.
        safe = {**os.environ, "PYTHONSAFEPATH": "1"}
        asked = subprocess.run([python, "-c", _ASK], env=safe, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"the interpreter {python} cannot be started: {error.strerror}.") from error
    return asked.stdout.strip() or None
