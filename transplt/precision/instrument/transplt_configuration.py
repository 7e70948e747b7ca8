"""How a training is set up, before its first step: versions, environment, hyperparameters, order of data, weights.

For `configuration/rankN.json` in the folder of a dump, which `transplt compare --config` reads.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import sys
import weakref
import zlib
from importlib import metadata
from typing import Any

import torch

FOLDER = "configuration"
#: So many batches are known again by a checksum.
MOST_BATCHES = 8
#: Of a weight with more elements no checksum is taken, its figures are.
_MOST_ELEMENTS = 1 << 22
_PACKAGES = (
    "torch", "torch_npu", "numpy", "torchvision", "transformers", "accelerate", "deepspeed", "lightning",
    "pytorch-lightning", "timm", "datasets", "tokenizers", "peft", "trl", "safetensors",
)  # fmt: skip
_VARIABLES = (
    "PYTHONHASHSEED", "HCCL_", "NCCL_", "ASCEND_", "CUDA_", "CUBLAS_", "TORCH", "PYTORCH_", "OMP_NUM_THREADS",
    "MKL_NUM_THREADS", "NVIDIA_TF32", "WORLD_SIZE", "ACLNN_", "TASK_QUEUE_ENABLE", "CPU_AFFINITY_CONF",
)  # fmt: skip
#: Paths, and what nobody should read.
_NEVER = ("PATH", "HOME", "TOKEN", "SECRET", "PASSWORD", "KEY", "DIR")
_loaders: Any = weakref.WeakSet()


def note_loaders() -> None:
    """Know the loaders of data that are made from here on."""
    kind: Any = torch.utils.data.DataLoader
    made = kind.__init__

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        _loaders.add(self)

    kind.__init__ = __init__


def configuration(optimizers: list[tuple[str, dict[str, Any]]], weights: dict[str, Any], rank: int) -> dict[str, Any]:
    """What is known now. `optimizers` are (class, settings), `weights` tensors by their names."""
    distributed: Any = torch.distributed
    several = distributed.is_available() and distributed.is_initialized()
    return {
        "format": 1,
        "versions": {"python": platform.python_version(), "machine": platform.machine(), **_versions()},
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(_VARIABLES) and not any(word in name for word in _NEVER)
        },
        "arguments": sys.argv[1:],
        "settings": {
            "processes": int(distributed.get_world_size()) if several else 1,
            "seed": int(torch.initial_seed()),
            "threads": torch.get_num_threads(),
            "default dtype": str(torch.get_default_dtype()),
            "deterministic algorithms": bool(torch.are_deterministic_algorithms_enabled()),
            "float32 matmul precision": str(getattr(torch, "get_float32_matmul_precision", str)()),
        },
        "optimizers": [{"class": name, "settings": settings} for name, settings in optimizers],
        "loaders": sorted((_loader(each) for each in _loaders), key=repr),
        "weights": {name: _weight(tensor) for name, tensor in weights.items()},
        "batches": [],
        "rank": rank,
    }


def write(folder: str, found: dict[str, Any]) -> None:
    """The file of this rank in the folder of a dump."""
    where = os.path.join(folder, FOLDER)
    os.makedirs(where, exist_ok=True)
    path = os.path.join(where, f"rank{found['rank']}.json")
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
    os.replace(path + ".part", path)


def checksum(value: Any) -> str:
    """Of the tensors and numbers in a batch, in their order; "" of what cannot be read so."""
    try:
        return f"{functools.reduce(lambda crc, part: zlib.crc32(part, crc), _parts(value), 0):08x}"
    except (TypeError, KeyError, RuntimeError, RecursionError, NotImplementedError):
        return ""


def _parts(value: Any) -> list[bytes]:
    if isinstance(value, torch.Tensor):
        return [repr((str(value.dtype), tuple(value.shape))).encode(), _bytes(value)]
    if isinstance(value, dict) or hasattr(value, "keys"):
        return [part for key in sorted(value, key=str) for part in _parts(value[key])]
    if isinstance(value, (list, tuple)):
        return [part for each in value for part in _parts(each)]
    return [repr(value).encode()] if isinstance(value, (int, float, str, bool)) else []


def _bytes(tensor: Any) -> bytes:
    host = tensor.detach().cpu().contiguous().reshape(-1)
    if host.numel() < 4096:
        return bytes(host.view(torch.uint8).tolist())
    try:
        return bytes(host.view(torch.uint8).numpy().tobytes())
    except (RuntimeError, ImportError):  # without numpy
        return repr(host[:4096].tolist()).encode()


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found | ({"cuda": str(torch.version.cuda)} if torch.version.cuda else {})


def _loader(loader: Any) -> dict[str, Any]:
    batches = getattr(loader, "batch_sampler", None)
    sampler = getattr(batches, "sampler", None) or getattr(loader, "sampler", None)
    try:
        length = len(loader.dataset)
    except (TypeError, NotImplementedError, AttributeError):
        length = None
    return {
        "dataset": type(loader.dataset).__name__, "samples": length, "batch size": loader.batch_size,
        "drop last": bool(loader.drop_last), "sampler": type(sampler).__name__,
    }  # fmt: skip


def _weight(tensor: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"dtype": str(tensor.dtype), "shape": list(tensor.shape)}
    with torch.no_grad():
        try:
            host = getattr(tensor, "_local_tensor", tensor).detach()
            if host.numel() <= _MOST_ELEMENTS:
                described["checksum"] = f"{zlib.crc32(_bytes(host)):08x}"
            wide = host.float()
            if host.numel():
                described |= {"max": float(wide.max()), "min": float(wide.min()), "norm": float(wide.norm())}
        except (RuntimeError, TypeError, NotImplementedError):
            pass
    return described
