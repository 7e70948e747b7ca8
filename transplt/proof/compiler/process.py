"""Starts the Python of the compiler with `child`, and ends it when its time is over."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

CHILD = Path(__file__).with_name("child.py")


class NoAnswer(Exception):
    """Why there is none, as a clause; `late` where the time was over."""

    def __init__(self, why: str, late: bool = False) -> None:
        super().__init__(why)
        self.late = late


def ask(python: str, text: str, seconds: float, *words: str) -> str:
    """What the child writes for a text. NoAnswer where it does not start, end well or in time."""
    try:
        process = subprocess.Popen(
            [python, "-I", str(CHILD), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise NoAnswer(f"{python} cannot be started: {error.strerror}") from error
    try:
        output, errors = process.communicate(text, timeout=seconds)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise NoAnswer(f"it did not finish within {seconds:.0f} s", late=True) from error
        raise
    if process.returncode:
        lines = [line for line in errors.splitlines() if line.strip()]
        raise NoAnswer(f"it crashed: {(lines or [f'exit code {process.returncode}'])[-1][:200]}")
    return output
