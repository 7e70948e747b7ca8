"""Operators that a card has no kernel for in some type, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["on_cpu"]


def on_cpu(function: Callable[..., Any], *given: Any, **more: Any) -> Any:
    """`function(*given, **more)`, computed on the CPU in the types it is given; what comes of it goes back to the card.

    Gradients go the same way. Each call waits for the card, and copies. On CUDA it is the call alone.
    """
    homes = [each.device for each in (*given, *more.values()) if torch.is_tensor(each) and each.device.type != "cpu"]
    if any(home.type == "cuda" for home in homes):
        return function(*given, **more)
    every = [_moved_to(each, torch.device("cpu")) for each in given]
    found = function(*every, **{key: _moved_to(each, torch.device("cpu")) for key, each in more.items()})
    return _moved_to(found, homes[0]) if homes else found


def _moved_to(value: Any, device: torch.device) -> Any:
    if torch.is_tensor(value):
        # `.to` of an NPU makes float32 of float64.
        return value.to(device) if device.type == "cpu" else torch.empty_like(value, device=device).copy_(value)
    if isinstance(value, (list, tuple)):
        moved = [_moved_to(each, device) for each in value]
        return type(value)(*moved) if hasattr(value, "_fields") else type(value)(moved)
    return value
