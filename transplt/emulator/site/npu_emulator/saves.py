"""Checkpoints a script saves, as digests that another run's can be compared with."""

from __future__ import annotations

import functools
import hashlib
import os
from typing import Any

from .record import record

_LIMIT = 50  # checkpoints per process


def tensors_of(value: Any, path: str = "") -> Any:
    """(path, tensor) of every tensor in nested dicts, lists, modules and objects with a state_dict."""
    import torch

    if isinstance(value, torch.Tensor):
        yield path or ".", value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from tensors_of(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from tensors_of(part, f"{path}[{i}]")
    elif callable(getattr(value, "state_dict", None)):
        yield from tensors_of(value.state_dict(), path)


def digest(value: Any) -> dict[str, dict[str, Any]]:
    """tensor path -> shape, dtype, sha256 of the bytes, sum and norm (float64)."""
    import torch

    found: dict[str, dict[str, Any]] = {}
    for path, tensor in tensors_of(value):
        plain = tensor.detach().cpu().contiguous()
        data = plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
        wide = plain.to(torch.float64) if not plain.is_complex() else torch.view_as_real(plain).to(torch.float64)
        found[path] = {
            "shape": list(plain.shape),
            "dtype": str(plain.dtype),
            "sha256": hashlib.sha256(data).hexdigest(),
            "sum": float(wide.sum()),
            "norm": float(wide.norm()),
        }
    return found


def install() -> None:
    """Note the digest of whatever torch.save saves."""
    import torch

    original = torch.save

    @functools.wraps(original)
    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(obj, f, *args, **kwargs)
        if len(record.saves) < _LIMIT:
            name = os.path.relpath(os.fspath(f)) if isinstance(f, (str, os.PathLike)) else "<buffer>"
            record.saves.append({"path": str(name), "rank": os.environ.get("RANK"), "tensors": digest(obj)})
        return result

    torch.save = save
