"""Reference implementations of torch_npu.npu_* operators, in plain PyTorch after their documented formulas.

They compute what the operator computes, not how fast or in which precision. An operator that is not here and that the
chosen torch_npu has raises NotEmulated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from npu_emulator import names, silent

from .._kernel import count
from . import activation, attention, layout, loss, moe, norm

_MODULES = (activation, attention, layout, loss, moe, norm)
_table: dict[str, Callable[..., Any]] = {}


def _needs_npu(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The operator as it is called: its tensors are on an npu, as on hardware."""

    @functools.wraps(function)
    def operator(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(tensor, torch.Tensor) and tensor.device.type != "npu":
                    raise RuntimeError(f"[emulated npu] {name}: expected npu tensors, got one on {tensor.device}")
        count("npu::" + name)
        silent.look("npu::" + name, lambda: silent.named(function, args, kwargs))
        with torch.autocast("npu", enabled=False):  # a kernel takes its tensors as they come
            return function(*args, **kwargs)

    return operator


def install() -> None:
    """Make the operators that the chosen version has reachable, also below torch.ops.npu."""
    for module in _MODULES:
        for name in module.__all__:
            if names.exists("torch_npu", name):
                operator = _needs_npu(name, getattr(module, name))
                _table[name] = operator
                setattr(torch.ops.npu, name, operator)
    _table["get_npu_format"] = layout.get_npu_format


def find(name: str) -> Callable[..., Any] | None:
    return _table.get(name)
