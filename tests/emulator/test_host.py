"""Runs that say nothing of a program, since the machine was too small for them."""

from __future__ import annotations

from typing import Any

import pytest

from transplt.proof.launch.host import too_small
from transplt.proof.launch.runner import ScriptRun


def run(kind: str = "", message: str = "", code: int = 1, *, timed_out: bool = False) -> ScriptRun:
    error: dict[str, Any] | None = {"type": kind, "message": message} if kind else None
    return ScriptRun(code, ({"exception": error},), 0.0, timed_out=timed_out)


@pytest.mark.parametrize(
    "outcome",
    [
        run("HostTooSmall", "this machine has no 3.0 GiB left"),
        run("MemoryError"),
        run("ImportError", "libtorch_cpu.so: failed to map segment from shared object"),
        run("RuntimeError", "std::bad_alloc"),
        run("OSError", "[Errno 12] Cannot allocate memory"),
        run(code=-9),
        run(code=137),
    ],
)
def test_too_small(outcome: ScriptRun) -> None:
    assert too_small(outcome)


@pytest.mark.parametrize(
    "outcome",
    [
        run(code=0),
        run("ImportError", "No module named 'cv2'"),
        # The card is full, not the machine.
        run("OutOfMemoryError", "NPU out of memory. Tried to allocate 70.00 GiB"),
        run("RuntimeError", "shapes cannot be multiplied"),
        run(code=1),
        run(code=-11),
        run(code=-9, timed_out=True),
    ],
)
def test_of_the_program(outcome: ScriptRun) -> None:
    assert too_small(outcome) == ""
