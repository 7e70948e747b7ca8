"""Python-level patches of Tensor, factories and Module: what the dispatcher cannot see."""

from __future__ import annotations

import functools
import inspect
import weakref
from typing import Any

import torch
from torch.jit._builtins import _register_builtin

from . import devices
from .kind import EMULATED, KIND

_pinned: Any = weakref.WeakValueDictionary()
_PINNING = (
    "empty",
    "zeros",
    "ones",
    "rand",
    "randn",
    "full",
    "tensor",
    "arange",
    "randint",
    "empty_like",
    "zeros_like",
    "empty_strided",
)


def resolve(device: Any) -> Any:
    """'cuda' without an index -> the current device (the Python device guard always returns 0); others unchanged."""
    if device is None or isinstance(device, bool):
        return device
    if isinstance(device, int):
        device = torch.device(KIND, device)
    elif isinstance(device, str) and device.startswith(KIND):
        device = torch.device(device)
    if isinstance(device, torch.device) and device.type == KIND:
        if device.index is None:
            return torch.device(KIND, devices.state.device)
        devices.check_index(device.index)
    return device


def install() -> None:
    from torch.utils import _device

    _device._device_constructors()  # caches the originals; must come before any factory is wrapped
    _patch_moves()
    # Parameters of a lazy module refuse all but a few methods, which they know by identity.
    mixin: Any = torch.nn.parameter.UninitializedTensorMixin
    mixin._allowed_methods = _Allowed(mixin._allowed_methods)
    _patch_factories()
    _patch_pinning()
    _patch_compile()


def _patch_moves() -> None:
    tensor: Any = torch.Tensor
    original_to = tensor.to

    @functools.wraps(original_to)
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if args:
            first = args[0]
            if isinstance(first, (str, torch.device)) or (isinstance(first, int) and not isinstance(first, bool)):
                args = (resolve(first), *args[1:])
        elif "device" in kwargs:
            kwargs["device"] = resolve(kwargs["device"])
        return original_to(self, *args, **kwargs)

    def onto(self: Any, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if device is None:
            target = torch.device(KIND, devices.state.device)
        else:
            target = resolve(device if isinstance(device, int) else torch.device(device))
            if target.type != KIND:
                raise RuntimeError(f"{EMULATED} Tensor.{KIND}() cannot move a tensor to {target}")
        return to(self, target, non_blocking=non_blocking, **kwargs)

    original_type = tensor.type

    @functools.wraps(original_type)
    def cast(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        wanted = dtype
        if isinstance(dtype, str) and dtype.startswith(f"torch.{KIND}."):
            wanted = getattr(getattr(torch, KIND), dtype.rpartition(".")[2])
        if hasattr(wanted, "legacy_dtype"):  # torch.cuda.FloatTensor and the like
            return to(onto(self), wanted.legacy_dtype, non_blocking=non_blocking)
        return original_type(self, dtype, non_blocking, **kwargs) if dtype is not None else original_type(self)

    def module_onto(self: Any, device: Any = None) -> Any:
        return self._apply(lambda t: onto(t, device))

    tensor.to = to
    setattr(tensor, KIND, onto)
    tensor.type = cast
    tensor.record_stream = lambda self, stream: None
    setattr(torch.nn.Module, KIND, module_onto)


class _Allowed(list[Any]):
    """Methods, and whatever is wrapped around one of them."""

    def __contains__(self, function: Any) -> bool:
        return super().__contains__(function) or super().__contains__(inspect.unwrap(function))


def _builtin(wrapper: Any, name: str) -> None:
    """Let TorchScript go on resolving torch.<name>."""
    setattr(torch, name, wrapper)
    _register_builtin(wrapper, "aten::" + name)


def _patch_factories() -> None:
    """torch.tensor and its kin resolve an index-less device to index 0 in C++."""

    def resolving(original: Any) -> Any:
        @functools.wraps(original)
        def factory(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("device") is not None:
                kwargs["device"] = resolve(kwargs["device"])
            return original(*args, **kwargs)

        return factory

    for name in ("tensor", "as_tensor", "asarray"):
        _builtin(resolving(getattr(torch, name)), name)
    made: Any = torch.Tensor.new_tensor

    @functools.wraps(made)
    def new_tensor(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == KIND and kwargs.get("device") is None:
            kwargs["device"] = self.device
        elif kwargs.get("device") is not None:
            kwargs["device"] = resolve(kwargs["device"])
        return made(self, *args, **kwargs)

    tensor: Any = torch.Tensor
    tensor.new_tensor = new_tensor


def _patch_pinning() -> None:
    """Pinned memory is a label on the CPU tensor's storage."""
    tensor: Any = torch.Tensor

    def pin_memory(self: Any, device: Any = None) -> Any:
        if self.device.type != "cpu":
            raise RuntimeError(f"{EMULATED} pin_memory: only cpu memory can be pinned, this tensor is on {self.device}")
        if self.is_pinned():
            return self
        pinned = self.clone()
        _pinned[pinned.data_ptr()] = pinned.untyped_storage()
        return pinned

    def is_pinned(self: Any, device: Any = None) -> bool:
        if self.device.type != "cpu" or self.numel() == 0:
            return False
        return self.untyped_storage().data_ptr() in _pinned

    def pinning(original: Any) -> Any:
        @functools.wraps(original)
        def factory(*args: Any, pin_memory: bool = False, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            return made.pin_memory() if pin_memory else made

        return factory

    tensor.pin_memory, tensor.is_pinned = pin_memory, is_pinned
    for name in _PINNING:
        _builtin(pinning(getattr(torch, name)), name)


def _patch_compile() -> None:
    """torch.compile: inductor has no code generator for a card that is not there; run eagerly, with a note."""
    from npu_emulator.record import record

    original = torch.compile

    @functools.wraps(original)
    def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        record.note("torch.compile ran eagerly: the emulator has no inductor backend")
        return model if model is not None else lambda function: function

    torch.compile = compile
