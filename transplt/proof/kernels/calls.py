"""The calls of kernels that a run of the original recorded: a file that can be kept, and used without that run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from transplt.base.errors import shown
from transplt.base.text.regular_file import RECORDS, read_regular
from transplt.proof.launch.options import UsageError
from transplt.proof.prove.training import Place

FORMAT = 1


class Kernel(NamedTuple):
    """A kernel by its name and the file of the original that it stands in."""

    name: str
    path: str


@dataclass(frozen=True)
class Calls:
    """`told` is the file as JSON (see npu_emulator.kernels.recording); `why` is why the script ended early, "" where it
    came to its end."""

    told: dict[str, Any]
    why: str = ""

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls, in the order in which they were made."""
        found: list[dict[str, Any]] = self.told["calls"]
        return found

    def kernels(self) -> dict[Kernel, Place]:
        """The kernels that were launched, with their lines in the original."""
        told = [each for call in self.calls for each in call["kernels"]] + self.told["left"]
        return {Kernel(each["name"], each["path"]): Place(each["path"], each["line"]) for each in told}

    def left(self) -> dict[Kernel, str]:
        """Kernels of which no call could be recorded, and why."""
        return {Kernel(each["name"], each["path"]): each["why"] for each in self.told["left"]}

    def as_bytes(self) -> bytes:
        return f"{json.dumps(self.told, indent=1)}\n".encode()


def read_calls(path: Path) -> Calls:
    """What `--save-calls` wrote. UsageError for anything else."""
    try:
        told = json.loads(read_regular(path, RECORDS))
    except (OSError, ValueError) as error:
        raise UsageError(f"--calls {shown(str(path))} cannot be read: {shown(str(error))}.") from error
    if not isinstance(told, dict) or told.get("format") != FORMAT or not isinstance(told.get("calls"), list):
        raise UsageError(f"--calls {shown(str(path))}: not written by --save-calls of this version.")
    return Calls(told)
