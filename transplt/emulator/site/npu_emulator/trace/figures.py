"""A tensor in a few numbers: enough to see that two are equal, and about how far they are apart."""

from __future__ import annotations

import importlib
import math
import zlib
from typing import Any

import torch

from .. import DEVICE
from .log import quiet

_signs: dict[int, Any] = {}
_to_cpu: Any = None


def host_alias(tensor: Any) -> Any:
    """The tensor over the host's memory, without a copy where its device is the emulated one."""
    global _to_cpu
    tensor = tensor.detach()
    local = getattr(tensor, "to_local", None)
    if callable(local):
        tensor = local()
    if tensor.device.type == "cpu":
        return tensor
    if tensor.device.type != DEVICE:
        return None
    if _to_cpu is None:
        module, name = ("npu_card.records", "host_view") if DEVICE == "npu" else ("cuda_standin.relabel", "to_cpu")
        _to_cpu = getattr(importlib.import_module(module), name)
    return _to_cpu(tensor)


def figures(tensor: Any) -> list[float] | None:
    """[norm, projection, other projection, checksum] in float64; None for what has no such figures.

    The projections are sums under fixed random signs: those of two tensors differ by about the norm of their
    difference. The checksum is equal where all bytes are.
    """
    with quiet(), torch.no_grad():
        try:
            plain = host_alias(tensor)
            if plain is None or plain.layout is not torch.strided:
                return None
            plain = plain.resolve_conj().contiguous().reshape(-1)
            checksum = zlib.crc32(memoryview(plain.view(torch.uint8).numpy())) if plain.numel() else 0
            if plain.is_complex():
                plain = torch.view_as_real(plain).reshape(-1)
            wide = plain if plain.dtype in (torch.float32, torch.float64) else plain.to(torch.float64)
            if not wide.numel():
                return [0.0, 0.0, 0.0, checksum]
            one, other = _random_signs(wide.numel(), wide.dtype)
            values = [float(wide.norm()), float(torch.dot(wide, one)), float(torch.dot(wide, other))]
        except (RuntimeError, TypeError, NotImplementedError):
            return None
    return [*(round_trip(value) for value in values), checksum]


def round_trip(value: float) -> float:
    """Nine digits are enough, and keep the trace small."""
    return float(f"{value:.9g}") if math.isfinite(value) else value


def gradient_figures(tensor: Any) -> list[float] | None:
    """[norm, projection, share of zeros] of a gradient; None where there is none."""
    if tensor is None:
        return None
    found = figures(tensor)
    if found is None:
        return None
    with quiet(), torch.no_grad():
        plain = host_alias(tensor)
        zeros = 1 - int(torch.count_nonzero(plain)) / max(plain.numel(), 1)
    return [found[0], found[1], round_trip(zeros)]


def number(tensor: Any) -> float | list[float] | None:
    """The value of a tensor with one element; the norm and projection of others."""
    with quiet(), torch.no_grad():
        plain = host_alias(tensor)
        if plain is not None and plain.numel() == 1:
            return round_trip(float(plain.reshape(()).to(torch.float64)))
    found = figures(tensor)
    return found[:2] if found is not None else None


def _random_signs(size: int, dtype: Any) -> tuple[Any, Any]:
    """Two vectors of -1 and 1, the same in every process; cut from the longest that was asked for."""
    known = _signs.get(dtype)
    if known is None or known.shape[1] < size:
        length = max(size, 4096)
        # Filled row by row from one stream, so that a longer vector begins as a shorter one did.
        generator = torch._C.Generator()
        generator.manual_seed(20_26)
        drawn = torch.empty((length, 2), dtype=torch.int8).random_(0, 2, generator=generator)
        known = _signs[dtype] = (drawn.T.contiguous().to(dtype) * 2) - 1
    return known[0, :size], known[1, :size]
