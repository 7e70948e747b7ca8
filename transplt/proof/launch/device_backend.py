"""The vendor's torch_npu on which a run has its NPU, over the emulated card."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from transplt.proof.launch import driver, torch_npu_wheel
from transplt.proof.launch.environments import setup_clause
from transplt.proof.launch.interpreter import CONTAINER, Versions
from transplt.proof.launch.options import RunOptions, TorchNpu, UsageError
from transplt.proof.launch.torch_npu_wheel import NoWheel, Wheel


def torch_npu_of(options: RunOptions, found: Versions, start: Path) -> TorchNpu | None:
    """The torch_npu that was released for the torch that was found, with its driver, which is built where it is
    missing; None for a run on another host.

    UsageError with the command that fetches it where it is not there; where none was released, with what makes an
    environment for the project whose program lies in the folder `start`, or a container.
    """
    if options.host != "npu":
        return None
    wheel = wheel_or_way(found, start)
    cache = torch_npu_wheel.folder_of_wheels()
    if not torch_npu_wheel.is_there(wheel, cache):
        raise UsageError(
            f"the script runs on torch_npu {wheel.version}, which is not here yet: {install_command(options.python)}"
        )
    place = cache / wheel.name
    needs = str(cache / wheel.needs) if wheel.needs else ""
    return TorchNpu(wheel.version, str(place), str(driver.build(place, cache)), needs)


def wheel_or_way(found: Versions, start: Path) -> Wheel:
    """As `wheel_for`; UsageError, with the way to one, where there is none."""
    try:
        return torch_npu_wheel.wheel_for(found)
    except NoWheel as why:
        way = "" if CONTAINER in str(why) else f"; {setup_clause(start)}, and {CONTAINER}"
        raise UsageError(f"{why}{way}.") from why


def ran_on(torch_npu: TorchNpu, card: str, wanted: str = "") -> str:
    """What a script ran on; `wanted` is the minor version of PyTorch that it is for, where that is known."""
    fits = not wanted or torch_npu.version.startswith(f"{wanted}.")
    other = "" if fits else f"; the migration targets torch {wanted}"
    return f"torch_npu {torch_npu.version} (emulated {card}){other}"


def install_command(python: str) -> str:
    """The command that fetches torch_npu for an interpreter."""
    other = f" --python {shlex.quote(python)}" if python != sys.executable else ""
    return f"transplt emulator install{other}"
