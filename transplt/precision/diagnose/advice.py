"""What is wrong with a training host, from what was found on it: missing, not belonging together, left over."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from transplt.precision.diagnose.host import LIBRARIES, MANAGERS, Host
from transplt.rules.tables import read_table


class State(Enum):
    """How a thing is."""

    FINE = "fine"
    NOTE = "note"
    WRONG = "wrong"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: how it is, what was found, and what to do where something is to be done."""

    what: str
    state: State
    text: str
    do: str = ""


SOURCE_IT = (
    "source /usr/local/Ascend/ascend-toolkit/set_env.sh in the shell, service or container that starts the training"
)


def checks_of(host: Host) -> list[Check]:
    """All that was looked at, in the order of an installation."""
    found = [_python(host), _torch(host), _torch_npu(host), _cann(host)]
    if host.kernels:  # they may count their versions in another way than the toolkit, so the two are not compared
        found.append(Check("kernels", State.FINE, host.kernels))
    found += [_triton(host)] if host.triton.triton or host.triton.ascend else []
    found += [_driver(host), _devices(host)]
    if host.cann:
        if host.sourced:
            found.append(Check("set_env.sh", State.FINE, "sourced"))
        else:
            text = "not sourced: ASCEND_HOME_PATH or ASCEND_OPP_PATH is not set"
            found.append(Check("set_env.sh", State.WRONG, text, SOURCE_IT))
        found += [_library(name, place, host) for name, place in host.libraries.items()]
    restart = "check npu-smi info -t health -i N; restart the card when no process uses it"
    for card, health in sorted(host.sick.items()):
        found.append(Check(f"card {card}", State.WRONG, f"its health is {health}", restart))
    return [*found, *_processes(host), *_variables(host)]


def _row(host: Host) -> dict[str, str]:
    """The row of the table of versions for the installed torch; empty for a torch that the table does not have."""
    rows: dict[str, dict[str, str]] = read_table("support/versions.json")["torch"]
    return rows.get(".".join(host.torch.split("+")[0].split(".")[:2]), {})


def _python(host: Host) -> Check:
    span = _row(host).get("python", "")
    numbers = re.findall(r"3\.(\d+)", span)
    minor = int(host.python.split(".")[1])
    if len(numbers) == 2 and not int(numbers[0]) <= minor <= int(numbers[1]):
        text = f"{host.python}; torch_npu for torch {host.torch} needs Python {span}"
        return Check("Python", State.WRONG, text, f"an environment with Python {span}")
    return Check("Python", State.FINE, host.python)


def _torch(host: Host) -> Check:
    if not host.torch:
        do = "install torch and torch_npu in the same version"
        return Check("torch", State.MISSING, "not installed in this Python", do)
    if "+cu" in host.torch or "+rocm" in host.torch:
        do = "install the CPU build with pip: torch_npu needs it, and a CUDA build may search for CUDA"
        return Check("torch", State.NOTE, f"{host.torch}, a build for GPUs", do)
    return Check("torch", State.FINE, host.torch)


def _torch_npu(host: Host) -> Check:
    wanted = _row(host).get("torch_npu", "")
    if not host.torch_npu:
        do = f"pip install torch_npu=={wanted}" if wanted else "install the torch_npu of torch's version with pip"
        return Check("torch_npu", State.MISSING, "not installed in this Python", do)
    ours, theirs = _package(host.torch), _package(host.torch_npu)
    if ours and theirs and ours[0] != theirs[0]:
        text = f"{host.torch_npu} does not match torch {host.torch}: their first three numbers must be equal"
        do = f"pip install torch_npu=={wanted}" if wanted else "install both in the same version"
        return Check("torch_npu", State.WRONG, text, do)
    if host.torch and not wanted:
        return Check("torch_npu", State.NOTE, f"{host.torch_npu}; the table of versions has no torch {host.torch}")
    return Check("torch_npu", State.FINE, host.torch_npu)


def _cann(host: Host) -> Check:
    row = _row(host)
    wanted = row.get("cann", "")
    if not host.cann:
        text = f"no toolkit found{f' (torch {host.torch} needs CANN {wanted})' if wanted else ''}"
        return Check("CANN", State.MISSING, text, f"install the toolkit and the kernels of the card; {SOURCE_IT}")
    text = f"{host.cann} in {host.cann_home}"
    older = older_cann(host.cann, wanted)
    ours, theirs = _package(host.torch_npu), _package(row.get("torch_npu", ""))
    if older and host.torch_npu and not (ours and theirs and ours < theirs):
        text += f" is older than the CANN {wanted} that torch_npu {host.torch_npu} needs"
        return Check("CANN", State.WRONG, text, f"install CANN {wanted}, toolkit and kernels")
    if older:
        return Check("CANN", State.NOTE, f"{text}; the newest torch_npu for torch {host.torch} needs {wanted}")
    return Check("CANN", State.FINE, text)


#: CANN that a triton-ascend goes with (its installation guide, 2026).
_TRITON_CANN = {"3.2.0": "8.5.0", "3.2.1": "9.0.0", "3.2.2": "9.1.0"}


def _triton(host: Host) -> Check:
    """triton and triton-ascend share one folder: since 3.2.1 the second installs the first and writes over it."""
    here = host.triton
    both = f"triton {here.triton} and triton-ascend {here.ascend} are installed in the same folder"
    exact = f"=={here.ascend}" if here.ascend else ""
    again = f"pip uninstall -y triton triton-ascend; pip install triton-ascend{exact}"
    if not here.ascend:
        if not (host.torch_npu or host.cards):
            return Check("Triton", State.FINE, f"triton {here.triton}, for GPUs")
        text = f"triton {here.triton} is for GPUs; kernels fail on NPUs (0 active drivers)"
        return Check("Triton", State.NOTE, text, f"if the program has Triton kernels: {again}")
    if here.triton and here.in_force in ("triton", "mixed"):
        whose = "the GPU one is used" if here.in_force == "triton" else "both are installed"
        do = f"{again}; installing triton later breaks this again"
        return Check("Triton", State.WRONG, f"{both}, and {whose}", do)
    wanted = _TRITON_CANN.get(here.ascend.split("+")[0], "")
    if host.cann and older_cann(host.cann, wanted):
        text = f"triton-ascend {here.ascend} needs CANN {wanted[:3]}, and {host.cann} is older"
        return Check("Triton", State.NOTE, text, "install the versions of one row of triton-ascend's guide")
    if re.search(r"^\|\s*\d+\s+(?:Ascend)?310P", host.smi, re.MULTILINE):
        text = f"triton-ascend {here.ascend}; it compiles no kernels for a 310P"
        return Check("Triton", State.NOTE, text, "use operators of torch instead of Triton kernels")
    if here.triton:
        state = State.FINE if here.in_force == "triton-ascend" else State.NOTE
        whose = "triton-ascend is used" if here.in_force else "it is unknown which one is used"
        return Check("Triton", state, f"{both}; {whose}", "" if here.in_force else again)
    return Check("Triton", State.FINE, f"triton-ascend {here.ascend}")


def _driver(host: Host) -> Check:
    if not host.driver:
        do = "install driver and firmware; in a container mount /usr/local/Ascend/driver of the host"
        return Check("driver", State.MISSING, "no driver found", do)
    return Check("driver", State.FINE, f"{host.driver}, firmware {host.firmware or 'not to be read here'}")


def _devices(host: Host) -> Check:
    if not host.cards:
        do = "in a container pass the devices: --device /dev/davinci0 --device /dev/davinci_manager ..."
        return Check("cards", State.MISSING, "no /dev/davinci*", do)
    numbers = ", ".join(map(str, host.cards))
    lacking = [name for name in MANAGERS if name not in host.managers]
    if lacking:
        text = f"cards {numbers}, but no {', '.join(f'/dev/{name}' for name in lacking)}"
        return Check("cards", State.WRONG, text, "also pass these devices to the container")
    if host.no_access:
        text = f"cards {numbers}; this user may not use {', '.join(f'/dev/{name}' for name in host.no_access)}"
        return Check("cards", State.WRONG, text, "usermod -aG HwHiAiUser USER, then log in again")
    return Check("cards", State.FINE, numbers)


def _library(name: str, place: str, host: Host) -> Check:
    if place:
        return Check(name, State.FINE, place)
    of_driver = "LD_LIBRARY_PATH must hold /usr/local/Ascend/driver/lib64 and below"
    do = SOURCE_IT if LIBRARIES[name] != "driver" else of_driver
    return Check(name, State.MISSING, f"in no folder of LD_LIBRARY_PATH (it belongs to: {LIBRARIES[name]})", do)


def _processes(host: Host) -> list[Check]:
    return [
        Check(
            f"process {each.process}", State.NOTE, f"{each.name} holds {each.memory} MB of card {each.card}",
            "if this is your own leftover process, end it by its number: until then another training may not start on "
            "that card",
        )
        for each in host.processes
    ]  # fmt: skip


def _variables(host: Host) -> list[Check]:
    found = []
    for name, new in host.cuda_variables.items():
        text = f"set, but NPUs do not read it{f'; use {new}' if new else ''}"
        found.append(Check(name, State.NOTE, text, f"transplt explain {name}"))
    if host.variables.get("ASCEND_LAUNCH_BLOCKING") == "1":
        text = "1: the host waits for each operator: right stacks, but slow"
        found.append(Check("ASCEND_LAUNCH_BLOCKING", State.NOTE, text, "unset it once the error is found"))
    return found


#: `2.1.0`, `2.1.0.post17`, `2.9.0rc1`, each with more behind a plus.
_PACKAGE = re.compile(r"(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+))?(?:\.post(\d+))?(?:\.dev\d+)?(?:\+.*)?")


def _package(text: str) -> tuple[tuple[int, ...], int, int] | None:
    """A package's version in the order of versions: its numbers, behind its candidates, and its repairs. None for what
    is none. (A card pack brings this module to hosts that may lack `packaging`.)"""
    if (match := _PACKAGE.fullmatch(text)) is None:
        return None
    before = {"a": -300, "b": -200, "rc": -100}[match[2]] + int(match[3]) if match[2] else 0
    return tuple(map(int, match[1].split("."))), before, int(match[4] or 0)


def older_cann(mine: str, wanted: str) -> bool:
    """True where a CANN is older than another: 8.0.RC3 before 8.0.0 before 8.1.RC1."""
    return bool(wanted) and _numbers(mine) < _numbers(wanted)


def _numbers(text: str) -> tuple[int, ...]:
    """A version of CANN as numbers; a release candidate comes before the release."""
    if (match := re.match(r"(\d+)\.(\d+)(?:\.(?:(RC)?(\d+)))?", text, re.IGNORECASE)) is None:
        return (0,)
    candidate, last = match[3] is not None, int(match[4] or 0)
    return int(match[1]), int(match[2]), 0 if candidate else 1, last
