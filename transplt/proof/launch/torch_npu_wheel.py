"""The vendor's torch_npu that fits an interpreter: its wheel, unpacked in the user's cache and nowhere else.

Installed beside torch it would make every `import torch` fail on a machine without a card.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from transplt.base.disk.cache_folder import Cache, NoCache
from transplt.base.disk.whole_folder import whole_folder
from transplt.base.errors import reason, shown
from transplt.proof.launch import pip
from transplt.proof.launch.interpreter import CONTAINER, Versions
from transplt.proof.launch.options import UsageError
from transplt.rules.package_releases import newest_torch_npu

_ABI = re.compile(r"cpython-3(\d+)-(\w+)-linux-gnu")
_MACHINES = ("x86_64", "aarch64")
#: What the wheel imports besides torch, and what the index calls it.
_IMPORTED = ("numpy", "pyyaml")
#: Of the platforms that the wheels were made for; pip takes each that is named.
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")


class NoWheel(Exception):
    """Why no torch_npu fits, as a clause for the user."""


@dataclass(frozen=True)
class Wheel:
    """A release of torch_npu for a Python and a machine; `lacks` are the packages that it imports and the interpreter
    does not have."""

    version: str
    python: str
    machine: str
    lacks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.version}-{self._tag}"

    @property
    def needs(self) -> str:
        """The name of the folder of what the interpreter lacks; "" where that is nothing."""
        return f"{'+'.join(self.lacks)}-{self._tag}" if self.lacks else ""

    @property
    def _tag(self) -> str:
        return f"cp{self.python.replace('.', '')}-linux_{self.machine}"


def wheel_for(found: Versions) -> Wheel:
    """The newest torch_npu for the torch of an interpreter. NoWheel where there is none."""
    abi = _ABI.fullmatch(found.abi)
    if abi is None or abi[2] not in _MACHINES:
        abis = f"torch_npu is for CPython on Linux, {' or '.join(_MACHINES)}"
        raise NoWheel(f"{abis}, not for {shown(found.abi) or 'this interpreter'}; {CONTAINER}")
    release = found.torch.partition("+")[0]
    if release not in newest_torch_npu():
        raise NoWheel(f"no torch_npu was released for torch {release}")
    version, build = newest_torch_npu()[release]
    python = f"3.{abi[1]}"
    if python not in build.pythons:
        raise NoWheel(f"torch_npu {version} is for Python {', '.join(build.pythons)}, not for {python}")
    # It registers options of the allocator that torch for CUDA has registered; tried with 2.10 to 2.14 of both.
    if found.cuda:
        raise NoWheel(
            f"torch_npu {version} aborts next to a torch for CUDA {found.cuda}; install the CPU build: pip install "
            f"'torch=={release}' --index-url https://download.pytorch.org/whl/cpu"
        )
    there = zip(_IMPORTED, (found.numpy, found.yaml), strict=True)
    return Wheel(version, python, abi[2], tuple(name for name, has in there if not has))


def newest_release(torch_version: str) -> str:
    """The last release of torch of a minor version ("2.9") that has a torch_npu; each has one."""
    return [each for each in newest_torch_npu() if each.rpartition(".")[0] == torch_version][-1]


def folder_of_wheels() -> Path:
    """Where they lie in the user's cache. UsageError where the user has no cache that will do."""
    try:
        return Cache.of_user().folder / "torch_npu"
    except NoCache as why:
        raise UsageError(f"torch_npu is kept in the user's cache folder, which cannot be used: {why}.") from why


def is_there(wheel: Wheel, cache: Path) -> bool:
    return all((cache / name).is_dir() for name in (wheel.name, wheel.needs) if name)


def fetch(wheel: Wheel, python: str, cache: Path) -> None:
    """Unpack what is missing of it, by the interpreter's pip, ours, or uv. UsageError, a sentence, where that fails."""
    command = _installer(wheel, python)
    for name, wanted in ((wheel.name, [f"torch-npu=={wheel.version}"]), (wheel.needs, [*wheel.lacks])):
        if not name or (cache / name).is_dir():
            continue
        print(f"Fetching {' '.join(wanted)}", file=sys.stderr, flush=True)
        try:
            with whole_folder(cache / name) as made:
                pip.carry_out([*command, "--no-deps", "--target", str(made), *wanted])
        except pip.Failed as why:
            away = " (it cannot reach its index)" if why.offline else ""
            raise UsageError(f"torch_npu cannot be downloaded{away}: {why}.") from why
        except OSError as error:
            raise UsageError(f"torch_npu cannot be written to {shown(cache)}: {reason(error)}.") from error


def _installer(wheel: Wheel, python: str) -> list[str]:
    """The command that installs a package for an interpreter into a folder. uv makes environments that have no pip."""
    if _has_pip(python):
        return [python, "-m", "pip", "install", "--no-compile"]
    if python != sys.executable and _has_pip(sys.executable):
        platforms = (f"--platform={each}_{wheel.machine}" for each in _PLATFORMS)
        other = ["--python-version", wheel.python, "--implementation", "cp", "--only-binary", ":all:", *platforms]
        return [sys.executable, "-m", "pip", "install", "--no-compile", *other]
    if (uv := shutil.which("uv")) is not None:
        return [uv, "pip", "install", "--python", python]
    raise UsageError(f"pip or uv is needed to download torch_npu: {shown(python)} -m ensurepip")


def _has_pip(python: str) -> bool:
    return subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
