"""What a training host has, read from files and variables alone: nothing of torch, torch_npu or CANN is loaded.

Places of files: CANN installs into /usr/local/Ascend (root) or ~/Ascend; ascend_toolkit_install.info and version.info
hold `version=`; the driver has /usr/local/Ascend/driver/version.info (hiascend.com, CANN 8 installation guide).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from transplt.base.text.regular_file import SETTINGS, read_regular
from transplt.precision.diagnose.triton import Triton, installed_triton
from transplt.rules.environment import variables

#: Libraries that a training loads, and the package that brings each.
LIBRARIES = {
    "libascendcl.so": "CANN toolkit", "libhccl.so": "CANN toolkit", "libopapi.so": "CANN kernels or toolkit",
    "libascend_hal.so": "driver",
}  # fmt: skip
#: Devices without which no card can be used.
MANAGERS = ("davinci_manager", "devmm_svm", "hisi_hdc")
_ARCHES = ("aarch64-linux", "arm64-linux", "x86_64-linux")
_VERSION = re.compile(r"^\s*(?:package_)?version\s*=\s*\[?\"?([\w.+-]+)", re.IGNORECASE | re.MULTILINE)
_DRIVER_HOME = re.compile(r"^Driver_Install_Path_Param=(/\S+)", re.MULTILINE)
#: A row of npu-smi's table of processes: | NPU  Chip | process | name | memory |
_PROCESS = re.compile(r"^\|\s*(\d+)\s+\d+\s*\|\s*(\d+)\s*\|\s*(\S[^|]*?)\s*\|\s*(\d+)\s*\|\s*$", re.MULTILINE)
#: A row of its table of cards: | 0     910B3  | OK  | ...
_CARD = re.compile(r"^\|\s*(\d+)\s+((?:Ascend)?\d{3}\w*)\s*\|\s*(\w+)\s*\|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Process:
    """A process that npu-smi sees on a card; memory in MB."""

    card: int
    process: int
    name: str
    memory: int


@dataclass(slots=True)
class Host:
    """What was found; empty texts for what is not there."""

    python: str = ""
    torch: str = ""
    torch_npu: str = ""
    cann: str = ""
    cann_home: str = ""
    kernels: str = ""
    driver: str = ""
    firmware: str = ""
    cards: list[int] = field(default_factory=list)
    no_access: list[str] = field(default_factory=list)
    managers: list[str] = field(default_factory=list)
    smi: str = ""
    sick: dict[int, str] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    sourced: bool = False
    libraries: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    cuda_variables: dict[str, str] = field(default_factory=dict)
    triton: Triton = field(default_factory=Triton)


def installed(name: str) -> str:
    """The version of an installed package, from its metadata; empty where it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def examine(
    root: Path,
    environ: Mapping[str, str],
    package: Callable[[str], str] = installed,
    smi: Callable[[], str] | None = None,
    triton: Callable[[], Triton] = installed_triton,
) -> Host:
    """Looks at a host whose files lie below `root`. `smi` gives what npu-smi info prints, empty for nothing."""
    host = Host(python=".".join(map(str, sys.version_info[:3])), torch=package("torch"), torch_npu=package("torch_npu"))
    host.triton = triton()
    _cann(host, root, environ)
    match = _DRIVER_HOME.search(_text(root, "/etc/ascend_install.info"))
    base = match[1] if match else "/usr/local/Ascend"
    host.driver = _version(root, f"{base}/driver/version.info")
    host.firmware = _version(root, f"{base}/firmware/version.info")
    _devices(host, root)
    host.smi = smi() if smi is not None else ""
    host.sick = {int(card): health for card, _, health in _CARD.findall(host.smi) if health != "OK"}
    host.processes = [Process(int(a), int(b), name, int(size)) for a, b, name, size in _PROCESS.findall(host.smi)]
    folders = [folder for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for library in LIBRARIES:
        found = next((folder for folder in folders if _below(root, f"{folder}/{library}").exists()), "")
        host.libraries[library] = found
    host.variables = {
        name: environ[name] for name in sorted(environ) if name.startswith(("ASCEND", "HCCL", "PYTORCH_NPU"))
    }
    for name, variable in sorted(variables().items()):
        if name in environ and variable.npu != name:
            host.cuda_variables[name] = variable.npu
    return host


def _cann(host: Host, root: Path, environ: Mapping[str, str]) -> None:
    named = environ.get("ASCEND_HOME_PATH") or environ.get("ASCEND_TOOLKIT_HOME") or ""
    host.sourced = bool(named and environ.get("ASCEND_OPP_PATH"))
    home = environ.get("HOME", "/root")
    places = [named] if named else []
    for base in ("/usr/local/Ascend", f"{home}/Ascend"):
        places += [f"{base}/ascend-toolkit/latest", f"{base}/cann", f"{base}/latest", f"{base}/nnae/latest"]
    for place in places:
        files = [*(f"{arch}/ascend_toolkit_install.info" for arch in _ARCHES), "ascend_toolkit_install.info"]
        files += [*(f"{arch}/ascend_nnae_install.info" for arch in _ARCHES), "version.info"]
        found = next((text for file in files if (text := _version(root, f"{place}/{file}"))), "")
        if found:
            host.cann, host.cann_home = found, place
            host.kernels = _version(root, f"{place}/opp_kernel/version.info") or _version(
                root, f"{place}/opp/version.info"
            )
            return


def _devices(host: Host, root: Path) -> None:
    folder = _below(root, "/dev")
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    host.cards = sorted(int(name[7:]) for name in names if re.fullmatch(r"davinci\d+", name))
    host.managers = [name for name in MANAGERS if name in names]
    wanted = [*(f"davinci{card}" for card in host.cards), *host.managers]
    host.no_access = [name for name in wanted if not os.access(folder / name, os.R_OK | os.W_OK)]


def _version(root: Path, path: str) -> str:
    match = _VERSION.search(_text(root, path))
    return match[1] if match else ""


def _text(root: Path, path: str) -> str:
    try:
        return read_regular(_below(root, path), SETTINGS).decode("utf-8", "replace")
    except OSError:
        return ""


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")
