"""What torch_npu reads out of the environment of a process, before it is loaded and after."""

from __future__ import annotations

import os
from typing import Any

from npu_emulator.config import config
from npu_emulator.record import record

_QUEUE = "TASK_QUEUE_ENABLE"
_KEPT = "0"
_watched = False


def prepare() -> None:
    """Set what an emulated card needs. Called before anything of the user's runs, and again in a process that was
    forked for a run."""
    _keep(os.environ.get(_QUEUE, _KEPT))
    os.environ[_QUEUE] = _KEPT
    _watch()
    # Where CANN is: torch_npu warns where this is not set, and else wants what lies there.
    os.environ |= dict.fromkeys(("ASCEND_HOME_PATH", "ASCEND_OPP_PATH"), config.driver)
    if config.cpu_fallback == "error":
        os.environ["TORCH_NPU_FALLBACK_CPU_DISABLE"] = "1"


def _keep(asked: str) -> None:
    """An operator runs in the thread that calls it: where a queue had it, a finding would have no line."""
    if asked != _KEPT:
        record.note(f"{_QUEUE} was {_KEPT} instead of {asked}: each operator ran in the thread that called it")


def _watch() -> None:
    """torch_npu may look at the setting as late as its first operator."""
    global _watched
    if _watched:
        return
    _watched = True
    setitem = os._Environ.__setitem__

    def keeping(self: Any, key: Any, value: Any) -> None:
        if key == _QUEUE:
            _keep(str(value))
            value = _KEPT
        setitem(self, key, value)

    os._Environ.__setitem__ = keeping  # type: ignore[method-assign]
