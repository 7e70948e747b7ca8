"""Imported by every Python process that has this folder on its path: prepares it as a CUDA host.

The folder stands alone on the path, without `site` beside it: on a CUDA host `import torch_npu` fails. What the two
have in common, the records, is found from here as `npu_emulator`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_SITE = os.path.join(os.path.dirname(_HERE), "site")


def _package(name: str, folder: str, **values: Any) -> None:
    """Let `name` be the package of a folder that is not on the path, without running its `__init__`."""
    module = ModuleType(name)
    module.__path__ = [os.path.join(_SITE, folder)]
    vars(module).update(values)
    sys.modules[name] = module


def _run_hidden_sitecustomize() -> None:
    """Execute the environment's own sitecustomize, which this module hides."""
    for folder in sys.path:
        path = os.path.join(folder or os.curdir, "sitecustomize.py")
        if folder and os.path.abspath(folder) != _HERE and os.path.isfile(path):
            spec = importlib.util.spec_from_file_location("_hidden_sitecustomize", path)
            if spec is not None and spec.loader is not None:
                spec.loader.exec_module(importlib.util.module_from_spec(spec))
            return


_run_hidden_sitecustomize()
_package("npu_emulator", "npu_emulator", DEVICE="cuda")
from cuda_standin import start  # noqa: E402

if "TRANSPLT_WARM" in os.environ:  # this process only waits: those that it forks begin
    start.prepare()
else:
    start.begin()
