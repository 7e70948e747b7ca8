"""Aten operators with known silent errors: noted where a program meets their condition (`npu_emulator.silent`)."""

from __future__ import annotations

from typing import Any

from npu_emulator import silent

from . import _kernel
from ._limits import ENFORCED
from ._relabel import to_cpu
from ._schema import OperatorInfo

_names = silent.operators() if ENFORCED else frozenset()


def _look(info: OperatorInfo, args: Any, kwargs: Any) -> None:
    if info.name in _names:
        silent.look(info.name, lambda: {**dict(zip(info.arguments, args, strict=False)), **kwargs})


def install() -> None:
    """Look at each operator before it runs; for an emulated card alone."""
    silent.on_host = to_cpu
    if _names:
        _kernel.hooks.append(_look)
