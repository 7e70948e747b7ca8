""" "cuda" means the emulated npu: for reference runs of an original script, and for runs that only record leftovers."""

from __future__ import annotations

import functools
import re
from typing import Any

from . import codes

_CUDA = re.compile(r"cuda(:\d+)?$")
#: torch.cuda name -> torch.npu name where the two differ.
_RENAMED = {
    "CUDAGraph": "NPUGraph",
    "CUDAPluggableAllocator": "NPUPluggableAllocator",
    "nvtx": "mstx",
    "cudart": "npurt",
}
_LIKE = ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like")
_NEW = ("new_tensor", "new_zeros", "new_ones", "new_empty", "new_full")


def is_cuda(value: Any) -> bool:
    """Whether a device argument means CUDA ("cuda", "cuda:1", torch.device("cuda"))."""
    if isinstance(value, str):
        return _CUDA.match(value) is not None
    return getattr(value, "type", None) == "cuda" and type(value).__name__ == "device"


def to_npu(value: Any) -> Any:
    """`value` with CUDA devices replaced by npu ones (strings, devices, map_location dicts)."""
    if isinstance(value, str):
        if _CUDA.match(value):
            return "npu" + value[4:]
        return value.replace("torch.cuda.", "torch.npu.") if value.startswith("torch.cuda.") else value
    if isinstance(value, dict):
        return {to_npu(k): to_npu(v) for k, v in value.items()}
    if is_cuda(value):
        import torch

        return torch.empty(0, device="npu" if value.index is None else f"npu:{value.index}").device
    return value


def backend(value: Any) -> Any:
    """ "hccl" for "nccl", "cpu:gloo,npu:hccl" for "cpu:gloo,cuda:nccl"."""
    return value.replace("nccl", "hccl").replace("cuda:", "npu:") if isinstance(value, str) else value


def npu_attribute(path: str, name: str) -> Any:
    """What `path.name` below torch.cuda stands for on the npu; the original when there is no counterpart."""
    import torch_npu

    node: Any = torch_npu.npu
    for part in [*path.split(".")[2:], name]:
        try:
            node = getattr(node, _RENAMED.get(part, part))
        except AttributeError:
            original: Any = __import__("sys").modules[path]
            return vars(original)[name]
    return node


def install(seen: Any) -> None:
    """Make every way to name a device accept "cuda". `seen(what, code)` is called before each use is carried out."""
    import torch
    from torch.jit._builtins import _register_builtin
    from torch.utils import _device

    constructors = {f.__name__ for f in _device._device_constructors()}
    real_device = torch.device

    class _Meta(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, real_device)

    class device(metaclass=_Meta):
        """torch.device, with "cuda" read as "npu"."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            if any(is_cuda(v) for v in (*args, *kwargs.values())):
                seen("torch.device of type 'cuda'", codes.DEVICE)
            return real_device(*[to_npu(a) for a in args], **{k: to_npu(v) for k, v in kwargs.items()})

    torch.device = device

    def carry_out(owner: Any, name: str, label: str, builtin: bool = False) -> None:
        original = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def aliased(*args: Any, **kwargs: Any) -> Any:
            if any(_means_cuda(v) for v in args) or any(
                _means_cuda(kwargs[k]) for k in _DEVICE_KEYWORDS if k in kwargs
            ):
                seen(f"{label} on a 'cuda' device", codes.DEVICE)
                args = tuple(to_npu(a) if _means_cuda(a) else a for a in args)
                kwargs = {k: to_npu(v) if k in _DEVICE_KEYWORDS else v for k, v in kwargs.items()}
            return original(*args, **kwargs)

        setattr(owner, name, aliased)
        if builtin:
            _register_builtin(aliased, "aten::" + name)

    for name in sorted(constructors | set(_LIKE)):
        carry_out(torch, name, "torch." + name, builtin=True)
    for name in ("load", "set_default_device"):
        carry_out(torch, name, "torch." + name)
    for name in ("to", "type", "pin_memory", *_NEW):
        carry_out(torch.Tensor, name, "Tensor." + name)
    carry_out(torch.nn.Module, "to", "Module.to")
    carry_out(torch.random, "fork_rng", "torch.random.fork_rng")

    def tensor_cuda(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen("Tensor.cuda()", codes.METHOD)
        return self.npu(*[to_npu(a) for a in args], **{k: to_npu(v) for k, v in kwargs.items()})

    def module_cuda(self: Any, device: Any = None) -> Any:
        seen("Module.cuda()", codes.METHOD)
        return self._apply(lambda t: t.npu(to_npu(device)))  # `npu` of a module takes numbers alone

    torch.Tensor.cuda, torch.nn.Module.cuda = tensor_cuda, module_cuda

    def set_default_tensor_type(kind: Any) -> None:
        if "cuda" in str(kind):
            seen("set_default_tensor_type of a torch.cuda tensor type", codes.DEFAULT_TENSOR_TYPE)
            torch.set_default_device("npu")
        else:
            default_type(kind)

    default_type = torch.set_default_tensor_type
    torch.set_default_tensor_type = set_default_tensor_type


_DEVICE_KEYWORDS = ("device", "device_type", "map_location", "dtype", "pin_memory_device")


def _means_cuda(value: Any) -> bool:
    if isinstance(value, dict):
        return any(is_cuda(v) for v in (*value.keys(), *value.values()))
    return is_cuda(value) or (isinstance(value, str) and value.startswith("torch.cuda."))
