"""Asks npu-smi what is on the cards: the one program that `transplt doctor` starts, and it only reads."""

from __future__ import annotations

import os
import shutil
import subprocess

_SECONDS = 20
_MOST = 1_000_000


def npu_smi() -> str:
    """What `npu-smi info` prints; empty where it is not there, fails, or does not answer in time."""
    if (program := shutil.which("npu-smi")) is None:
        return ""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [program, "info"], capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, env=environment,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout[:_MOST].decode("utf-8", "replace") if done.returncode == 0 else ""
