"""Which torch_npu a run has: the vendor's own over the emulated card, or the hand-made one."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass

from transplt.base.errors import shown
from transplt.proof.launch import driver, torch_npu_wheel
from transplt.proof.launch.interpreter import Versions
from transplt.proof.launch.options import RunOptions, TorchNpu, UsageError
from transplt.proof.launch.torch_npu_wheel import NoWheel

#: Asks for one of them, for tests and for comparing the two.
VARIABLE = "TRANSPLT_TORCH_NPU"
HAND_MADE, REAL = "hand-made", "real"


@dataclass(frozen=True)
class Backend:
    """The torch_npu of a run, None for the hand-made one, and why the vendor's does not fit ("": nobody asked)."""

    torch_npu: TorchNpu | None
    why: str = ""

    def in_words(self, card: str, wanted: str = "") -> str:
        """What a script ran on; `wanted` is the minor version of PyTorch that it is for,
        where that is known."""
        if self.torch_npu is not None:
            fits = not wanted or self.torch_npu.version.startswith(f"{wanted}.")
            other = "" if fits else f", and not on that for torch {wanted}"
            return f"torch_npu {self.torch_npu.version} on an emulated {card}{other}"
        return f"a hand-made torch_npu on an emulated {card}" + (f": {self.why}" if self.why else "")


def backend_of(options: RunOptions, found: Versions) -> Backend:
    """The vendor's torch_npu where one was released for the torch that was found, with its driver, which is built
    where it is missing; UsageError with the command that fetches it where it is not there."""
    asked = os.environ.get(VARIABLE, "")
    if asked not in ("", HAND_MADE, REAL):
        raise UsageError(f"{VARIABLE}={shown(asked)}: it is {REAL} or {HAND_MADE}.")
    if options.host != "npu" or asked == HAND_MADE:
        return Backend(None)
    try:
        wheel = torch_npu_wheel.wheel_for(found)
    except NoWheel as why:
        if asked == REAL:
            raise UsageError(f"{VARIABLE}={REAL}: {why}.") from why
        return Backend(None, str(why))
    cache = torch_npu_wheel.folder_of_wheels()
    if not torch_npu_wheel.is_there(wheel, cache):
        raise UsageError(
            f"the script runs on torch_npu {wheel.version}, which is not here yet: {install_command(options.python)}"
        )
    place = cache / wheel.name
    needs = str(cache / wheel.needs) if wheel.needs else ""
    return Backend(TorchNpu(wheel.version, str(place), str(driver.build(place, cache)), needs))


def install_command(python: str) -> str:
    """The command that fetches torch_npu for an interpreter."""
    other = f" --python {shlex.quote(python)}" if python != sys.executable else ""
    return f"transplt emulator install{other}"
