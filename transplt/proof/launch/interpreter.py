"""Whether an interpreter can run the emulated device: it needs torch 2.10 or newer."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from transplt.base.errors import shown
from transplt.base.extras import install_command
from transplt.base.settings import TORCH_VERSIONS
from transplt.proof.launch import installed
from transplt.proof.launch.options import UsageError

#: The first torch whose Python registers the hooks and the guard of a device of one's own.
MINIMUM = (2, 10)
#: The last torch that a torch_npu may be there for; of the next one nobody knows what it registers.
_NEWEST = tuple(map(int, TORCH_VERSIONS[-1].split(".")))
_OLDER = "PyTorch 2.10 or newer"
_NEWER = f"PyTorch {TORCH_VERSIONS[-1]} or older, as no torch_npu was released for a newer one"
_SPECIFIERS = {_OLDER: ">=2.10", _NEWER: f"<{_NEWEST[0]}.{_NEWEST[1] + 1}"}
#: What hosts do that have no torch_npu of their own.
CONTAINER = "docker build -t transplt -f docs/container/Dockerfile . makes a container where everything works"
#: With `-c` the current folder is searched first, and may be anybody's.
_ASK = f"""
import sys
sys.path[:] = [each for each in sys.path if each]
exec(compile({inspect.getsource(installed)!r}, "installed.py", "exec"))
"""
#: Which of the modules on the command line are nowhere; none of them is imported.
_ASK_FOR = """
import sys
sys.path[:] = [each for each in sys.path if each]
from importlib.util import find_spec
print(*(name for name in sys.argv[1:] if find_spec(name) is None), sep="\\n")
"""
_ASK_NEEDS = """
import re, sys
sys.path[:] = [each for each in sys.path if each]
from importlib import metadata
needs = (each for each in metadata.requires(sys.argv[1]) or () if "extra ==" not in each)
print(*(re.match(r"[\\w.-]+", each)[0] for each in needs), sep="\\n")
"""
#: How the folder is called that a distribution leaves beside its packages, its version in the name.
_DISTRIBUTION = (".dist-info", ".egg-info")


@dataclass(frozen=True)
class Versions:
    """What an interpreter has; "" for what it does not. `installed` are all distributions, with their versions; `cuda`
    is what torch was built for, `abi` that of compiled modules, such as cpython-311-x86_64-linux-gnu."""

    torch: str
    numpy: str
    python: str
    installed: tuple[str, ...] = ()
    yaml: str = ""
    cuda: str = ""
    abi: str = ""


def versions_of(python: str, way: str = "") -> Versions:
    """The versions of torch, numpy and Python of an interpreter; `way` is what makes one that will do.

    Raises UsageError, with one sentence that says what to install, when there is none or it will not do.
    """
    refuse_windows()
    found = whole_of(python)
    if not found.torch:
        how = install_command("emulator") if python == sys.executable else f"{shown(python)} has none; install it there"
        raise UsageError(
            f"PyTorch 2.10 or newer is needed: {way or how}, or name an interpreter that has it with --python."
        )
    if why := unfit(found):
        how = f"pip install 'torch{_SPECIFIERS[why]}'"
        raise UsageError(
            f"{why} is needed, and this interpreter has {found.torch}: {way or how}, or name another interpreter "
            "with --python."
        )
    return found


def refuse_windows() -> None:
    """UsageError on Windows, with what works there."""
    if sys.platform == "win32":
        raise UsageError(f"transplt run works on Linux and macOS only: {CONTAINER}.")


def unfit(found: Versions) -> str:
    """What torch a run needs, where that of an interpreter will not do; "" where it will."""
    numbers = re.match(r"(\d+)\.(\d+)", found.torch)
    version = (int(numbers[1]), int(numbers[2])) if numbers is not None else (0, 0)
    return _OLDER if version < MINIMUM else _NEWER if version > _NEWEST else ""


def whole_of(python: str) -> Versions:
    """Likewise, whatever it has; UsageError where it cannot be started."""
    lines = installed.installed() if python == sys.executable else _printed_lines(python, _ASK)
    torch, numpy, yaml, version, cuda, abi, *names = [*lines, *[""] * 6]  # it may say less, or nothing
    found = tuple(sorted({name for name in names if name.endswith(_DISTRIBUTION)}))
    return Versions(torch, numpy, version, found, yaml, cuda, abi)


def lacks(python: str, names: Sequence[str]) -> list[str]:
    """Those of the first names of modules that an interpreter does not find; UsageError as for `versions_of`."""
    return _printed_lines(python, _ASK_FOR, *names) if names else []


def requirements_of(python: str, distribution: str) -> list[str]:
    """The distributions that one that an interpreter has asks for; nothing where it does not have it."""
    return _printed_lines(python, _ASK_NEEDS, distribution)


def install_with(python: str) -> str:
    """The command to type, up to the packages, that installs for an interpreter; uv makes environments without pip."""
    try:
        has = not lacks(python, ["pip"])
    except UsageError:
        has = True
    return f"{shlex.quote(python)} -m pip install" if has else f"uv pip install --python {shlex.quote(python)}"


def _printed_lines(python: str, program: str, *words: str) -> list[str]:
    """The lines that an interpreter prints for one of our programs."""
    try:
        # From 3.13 on Python itself imports modules from there for `-c`, before any line of ours runs.
        safe = {**os.environ, "PYTHONSAFEPATH": "1"}
        asked = subprocess.run([python, "-c", program, *words], env=safe, capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"the interpreter {python} cannot be started: {error.strerror}.") from error
    return asked.stdout.split("\n")[:-1] if asked.stdout.strip() else []
