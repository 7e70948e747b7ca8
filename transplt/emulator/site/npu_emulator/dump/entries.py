"""A value as msprobe writes it: a tensor in figures (and, if asked for, in a file), all else by its type and value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ..trace.figures import host_alias
from ..trace.log import quiet

#: From here on a float16 counts as overflown, as in msaccucmp: the largest finite one is 65504.
LARGEST_HALF = 65504.0
#: Takes the host's alias of a tensor, and returns the name under which its elements will be kept; None keeps none.
Keep = Callable[[Any, str], str] | None


def entry(value: Any, place: str = "", keep: Keep = None) -> Any:
    """`value` for dump.json; `place` is where in the operator it stands (`input.0`)."""
    if value is None:
        return None
    if isinstance(value, torch.Tensor):
        return _tensor(value, place, keep)
    if isinstance(value, (list, tuple)):
        return [entry(each, f"{place}.{at}", keep) for at, each in enumerate(value)]
    if isinstance(value, dict):
        return {str(key): entry(each, f"{place}.{key}", keep) for key, each in value.items()}
    if isinstance(value, (bool, int, float, str)):
        return {"type": type(value).__name__, "value": value}
    if isinstance(value, (torch.dtype, torch.device)):
        return {"type": f"torch.{type(value).__name__}", "value": str(value)}
    if isinstance(value, slice):
        return {"type": "slice", "value": str(value)}
    return {"type": type(value).__name__}


def _tensor(tensor: Any, place: str, keep: Keep) -> dict[str, Any]:
    described: dict[str, Any] = {"type": "torch.Tensor", "dtype": str(tensor.dtype), "shape": list(tensor.shape)}
    with quiet(), torch.no_grad():
        try:
            plain = host_alias(tensor)
            described |= _figures(plain)
        except (RuntimeError, TypeError, NotImplementedError):  # sparse, quantized, of no storage
            plain, described = None, {**described, "Max": None, "Min": None, "Mean": None, "Norm": None}
        described["requires_grad"] = bool(tensor.requires_grad)
        if keep is not None and plain is not None:
            described["data_name"] = keep(plain, place)
    return described


def _figures(plain: Any) -> dict[str, Any]:
    if plain is None or not plain.numel():
        return {"Max": None, "Min": None, "Mean": None, "Norm": None}
    if plain.dtype == torch.bool:
        return {"Max": bool(plain.any()), "Min": bool(plain.all()), "Mean": None, "Norm": None}
    if plain.is_complex():
        plain = plain.abs()
    if not plain.is_floating_point():
        return {"Max": int(plain.max()), "Min": int(plain.min()), "Mean": None, "Norm": None}
    wide = plain if plain.dtype == torch.float64 else plain.float()
    largest, smallest = float(wide.max()), float(wide.min())
    return {"Max": largest, "Min": smallest, "Mean": float(wide.mean()), "Norm": float(wide.norm())}


def overflown(described: Any) -> bool:
    """Whether a value described by `entry` holds what is not finite, or a float16 at the end of its range."""
    if isinstance(described, list):
        return any(overflown(each) for each in described)
    if not isinstance(described, dict):
        return False
    if "type" not in described or not isinstance(described["type"], str):
        return any(overflown(each) for each in described.values())
    figures = [described.get(name) for name in ("Max", "Min", "Mean", "value")]
    numbers = [value for value in figures if isinstance(value, float)]
    if not all(math.isfinite(value) for value in numbers):
        return True
    return described.get("dtype") == "torch.float16" and any(abs(value) >= LARGEST_HALF for value in numbers)
