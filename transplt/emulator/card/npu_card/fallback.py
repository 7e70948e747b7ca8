"""Operators that torch_npu has no kernel for: it runs them on the CPU, and tells of each once, on the terminal. The
report has every line that calls one.

Such an operator gets a kernel of ours, which steps aside for the time of the call: what then runs is torch_npu's own.
"""

from __future__ import annotations

from typing import Any

import torch
from npu_emulator import codes
from npu_emulator.config import config
from npu_emulator.record import record
from npu_emulator.user_code import nearest

_KEY = "PrivateUse1"
#: With a kernel for these an operator is composed of others before a fallback is asked.
_COMPOSED = ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
_VERSION = ".".join(torch.__version__.split(".")[:2])
_LEVELS = {"warn": "warning", "error": "error", "ignore": "info"}


def install() -> None:
    """Watch every operator of ATen that has a kernel for the CPU alone."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key
    for full in sorted({*names("CPU")}.difference(*map(names, (_KEY, *_COMPOSED)))):
        namespace, _, name = full.partition("::")
        if namespace == "aten":
            base, _, overload = name.partition(".")
            operator = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
            if operator is not None:
                _Watched(name, operator)


class _Watched:
    """One operator without a kernel."""

    def __init__(self, name: str, operator: Any) -> None:
        self._name, self._operator = name, operator
        self._watch()

    def _watch(self) -> None:
        self._library = torch.library.Library("aten", "IMPL")
        self._library.impl(self._name, self._run, _KEY)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        what = f"aten::{self._name} has no NPU kernel in torch_npu for PyTorch {_VERSION}"
        hint = "it runs on the CPU there, with copies both ways"
        record.finding(nearest(2), codes.NO_KERNEL, what, hint, _LEVELS[config.cpu_fallback])
        self._library._destroy()
        try:
            return self._operator(*args, **kwargs)
        finally:
            self._watch()
