"""Checkpoints a script saves, as digests that another run's can be compared with."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
import sys
from typing import Any

from . import DEVICE
from .record import record
from .start import when_imported

_LIMIT = 50  # checkpoints per process
_MOST = 100_000  # pieces of printed lines
#: Digests of states of the device's generators that the program asked for: each kind of device has a form of its own.
_states: set[str] = set()


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
    """tensor path -> shape, dtype, sha256 of the bytes, sum and norm (float64), and so for numbers beside them, such as
    an accuracy; of the state of a generator of the device only that it is one."""
    import torch

    found: dict[str, dict[str, Any]] = {}
    numbers = value.items() if isinstance(value, dict) else ()
    floats = ((str(key), torch.tensor(part, dtype=torch.float64)) for key, part in numbers if isinstance(part, float))
    for path, tensor in itertools.chain(tensors_of(value), floats):
        plain = tensor.detach().cpu().contiguous()
        sha256 = _sha256(plain)
        if sha256 in _states:
            found[path] = {"shape": [], "dtype": "state of a generator", "sha256": "", "sum": 0.0, "norm": 0.0}
            continue
        wide = plain.to(torch.float64) if not plain.is_complex() else torch.view_as_real(plain).to(torch.float64)
        found[path] = {
            "shape": list(plain.shape),
            "dtype": str(plain.dtype),
            "sha256": sha256,
            "sum": float(wide.sum()),
            "norm": float(wide.norm()),
        }
    return found


def _sha256(plain: Any) -> str:
    import torch

    data = plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
    return hashlib.sha256(data).hexdigest()


def _watch_states(random: Any, owner: Any) -> None:
    """Know a state of a generator where `get_rng_state` of a device's module, or of what imports it, returned it."""
    original = random.get_rng_state

    @functools.wraps(original)
    def get_rng_state(*args: Any, **kwargs: Any) -> Any:
        state = original(*args, **kwargs)
        _states.add(_sha256(state))
        return state

    random.get_rng_state = owner.get_rng_state = get_rng_state


def install() -> None:
    """Note the digest of whatever torch.save saves, and what is printed: the lines of ranks mix where they arrive."""
    import torch

    write = sys.stdout.write

    def noted(text: str) -> int:
        if len(record.output) < _MOST:
            record.output.append(text)
        return write(text)

    with contextlib.suppress(AttributeError):  # of a stream without a place for it
        sys.stdout.write = noted  # type: ignore[method-assign]

    if DEVICE == "cuda":
        _watch_states(torch.cuda.random, torch.cuda)
    else:
        when_imported("torch_npu", lambda torch_npu: _watch_states(torch_npu.npu.random, torch_npu.npu))

    original = torch.save

    @functools.wraps(original)
    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(obj, f, *args, **kwargs)
        if len(record.saves) < _LIMIT:
            name = os.path.relpath(os.fspath(f)) if isinstance(f, (str, os.PathLike)) else "<buffer>"
            record.saves.append({"path": str(name), "rank": os.environ.get("RANK"), "tensors": digest(obj)})
        return result

    torch.save = save
