"""Imported by every Python process that has this folder on its path: prepares it for the emulated NPU.

Spawned workers, `torchrun` ranks and launch scripts inherit PYTHONPATH, so they get here without knowing it.
"""

from __future__ import annotations

import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_hidden_sitecustomize() -> None:
    """Execute the environment's own sitecustomize, which this module hides."""
    for folder in sys.path:
        if not folder or os.path.abspath(folder) == _HERE:
            continue
        path = os.path.join(folder, "sitecustomize.py")
        if os.path.isfile(path):
            spec = importlib.util.spec_from_file_location("_hidden_sitecustomize", path)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


_run_hidden_sitecustomize()
from npu_emulator import start  # noqa: E402

if "TRANSPLT_WARM" in os.environ:  # this process only waits: those that it forks begin
    start.find_imports()
else:
    start.begin()
