"""Own kernels of the operators that make, copy, resize and view memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from npu_emulator.host_memory import raise_if_host_is_full

from . import devices
from .kernel import CPU_KEYS, count, move_into
from .kind import EMULATED, KIND
from .relabel import to_card, to_cpu

_aten: Any = torch.ops.aten
#: View operators: the CPU kernel works on a CUDA tensor as it is.
VIEWS = ("as_strided", "view", "_reshape_alias", "view_as_real", "view_as_complex", "unfold")


def _index(device: Any) -> int:
    index = device.index if device is not None and device.index is not None else devices.state.device
    devices.check_index(index)
    return int(index)


def _cpu(tensor: Any) -> Any:
    return to_cpu(tensor) if tensor.device.type == KIND else tensor


def _made(make: Any, shape: Any, *rest: Any, dtype: Any, **how: Any) -> Any:
    """`make(shape, *rest)` on the CPU. HostTooSmall if the host has not the memory."""
    try:
        return make(shape, *rest, dtype=dtype, device="cpu", **how)
    except RuntimeError as error:
        raise_if_host_is_full(error)
        raise


def empty(
    size: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Any:
    index = _index(device)
    count("aten::empty")
    layout_of = memory_format or torch.contiguous_format
    return to_card(_made(torch.empty, size, dtype=dtype, memory_format=layout_of), index)


def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Any:
    index = _index(device)
    return to_card(_made(torch.empty_strided, size, stride, dtype=dtype), index)


def zero_tensor(size: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None) -> Any:
    """A CPU ZeroTensor has no memory behind it: make real zeros."""
    index = _index(device)
    return to_card(_made(torch.zeros, size, dtype=dtype), index)


def copy_from(source: Any, target: Any, non_blocking: bool = False) -> Any:
    _cpu(target).copy_(_cpu(source))
    return target


def copy_(self: Any, source: Any, non_blocking: bool = False) -> Any:
    """copy_ sees tensors with the lazy conj and neg bits: PyTorch falls through those keys for it."""
    count("aten::copy_")
    from_cpu = to_cpu(source) if source.device.type == KIND else source.detach()
    into = to_cpu(self) if self.device.type == KIND else self.detach()
    into.copy_(from_cpu)
    return self


def resize_(self: Any, size: Any, *, memory_format: Any = None) -> Any:
    need = 1
    for length in size:
        need *= int(length)
    if (need + self.storage_offset()) * self.element_size() <= self.untyped_storage().nbytes():
        return _aten.resize_.default.redispatch(CPU_KEYS, self, size, memory_format=memory_format)
    old = to_cpu(self)
    layout_of = memory_format or torch.contiguous_format
    new = _made(torch.empty, size, dtype=self.dtype, memory_format=layout_of)
    kept = min(old.numel(), new.numel())
    if kept and old.is_contiguous():
        new.view(-1)[:kept].copy_(old.reshape(-1)[:kept])
    move_into(self, new, self.device.index)
    return self


def set_source_tensor(self: Any, source: Any) -> Any:
    if source.device != self.device:
        raise RuntimeError(f"{EMULATED} set_: the source is on {source.device}, the tensor on {self.device}")
    return _aten.set_.source_Storage_storage_offset.redispatch(
        CPU_KEYS, self, source.untyped_storage(), source.storage_offset(), source.shape, source.stride()
    )


def set_(self: Any) -> Any:
    return set_source_tensor(self, to_card(torch.empty(0, dtype=self.dtype), self.device.index))


def set_source_storage(self: Any, source: Any) -> Any:
    length = source.nbytes() // self.element_size()
    return _aten.set_.source_Storage_storage_offset.redispatch(CPU_KEYS, self, source, 0, [length], [1])


def same_kind_of_implementation(self: Any, other: Any) -> bool:
    """Keeps a Parameter's identity in module.to(); the real library registers the same operator."""
    return bool(self.layout == other.layout)


def record_stream(self: Any, stream: Any) -> None:
    return None


def _on_card_as_it_is(op: Any) -> Callable[..., Any]:
    def view(*args: Any, **kwargs: Any) -> Any:
        return op.redispatch(CPU_KEYS, *args, **kwargs)

    return view


def kernels() -> dict[str, Callable[..., Any]]:
    """Operator name (without aten::) -> kernel."""
    table: dict[str, Callable[..., Any]] = {
        "empty.memory_format": empty,
        "empty_strided": empty_strided,
        "_efficientzerotensor": zero_tensor,
        "_copy_from": copy_from,
        "copy_": copy_,
        "resize_": resize_,
        "set_": set_,
        "set_.source_Tensor": set_source_tensor,
        "set_.source_Storage": set_source_storage,
        "set_.source_Storage_storage_offset": _on_card_as_it_is(_aten.set_.source_Storage_storage_offset),
        "_has_compatible_shallow_copy_type": same_kind_of_implementation,
        "record_stream": record_stream,
    }
    for name in VIEWS:
        table[name] = _on_card_as_it_is(getattr(_aten, name).default)
    return table
