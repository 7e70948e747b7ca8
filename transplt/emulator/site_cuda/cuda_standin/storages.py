"""Storages on the card: moving, cloning, saving and loading them."""

from __future__ import annotations

from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from . import devices
from .kind import EMULATED, KIND
from .relabel import to_card, to_cpu


def _as_tensor(storage: Any) -> Any:
    tensor = torch.empty(0, dtype=torch.uint8, device=storage.device)
    tensor.set_(storage)
    return tensor


def on_card(storage: Any, index: int) -> Any:
    """A CUDA storage over the memory of a CPU storage."""
    return to_card(torch.empty(0, dtype=torch.uint8).set_(storage), index).untyped_storage()


def _patch_methods() -> None:
    base: Any = torch.storage._StorageBase
    original_clone, original_to = base.clone, base.to

    def clone(self: Any) -> Any:
        return _as_tensor(self).clone().untyped_storage() if self.device.type == KIND else original_clone(self)

    def cpu(self: Any) -> Any:
        return to_cpu(_as_tensor(self)).clone().untyped_storage() if self.device.type == KIND else self

    def onto(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        if self.device.type == KIND:
            return self
        return on_card(self.clone(), devices.index_of(device))

    def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
        kind = torch.device(device).type
        if kind == KIND:
            return onto(self, device)
        return cpu(self) if kind == "cpu" else original_to(self, device=device)

    base.clone, base.cpu = clone, cpu
    setattr(base, KIND, onto)
    base.to = to  # PyTorch's own asks an allocator that a CPU build lacks


#: Storages whose memory was given back, by address; a weak reference keeps an address from being used again.
_freed: dict[int, StorageWeakRef] = {}


def _patch_resize() -> None:
    """FSDP frees and re-allocates parameter memory through the storage: the memory is kept, and reported as gone.

    By the size of a storage FSDP knows whether its parameters have to be gathered.
    """
    untyped: Any = torch.UntypedStorage
    original, original_nbytes = untyped.resize_, untyped.nbytes

    def nbytes(self: Any) -> int:
        gone = _freed and self.device.type == KIND and self._cdata in _freed
        return 0 if gone else int(original_nbytes(self))

    def resize_(self: Any, size: int) -> Any:
        if self.device.type != KIND:
            return original(self, size)
        if size > original_nbytes(self):
            raise RuntimeError(f"{EMULATED} growing a storage in place is not emulated")
        if size:
            _freed.pop(self._cdata, None)
        elif original_nbytes(self):
            for address in [address for address, storage in _freed.items() if storage.expired()]:
                del _freed[address]
            _freed[self._cdata] = StorageWeakRef(self)
        return self

    untyped.resize_, untyped.nbytes = resize_, nbytes


def _tag(storage: Any) -> str | None:
    return f"{KIND}:{storage.device.index}" if storage.device.type == KIND else None


def _restore(storage: Any, location: str) -> Any:
    if not location.startswith(KIND):
        return None
    index = devices.index_of(location)
    if index >= devices.count():
        raise RuntimeError(
            f"{EMULATED} torch.load: a storage was saved on {KIND}:{index}, but there are only {devices.count()} "
            "devices here; map_location can send it to another one"
        )
    return storage if storage.device.type == KIND else on_card(storage, index)


def install() -> None:
    _patch_methods()
    _patch_resize()
    torch.serialization.register_package(1, _tag, _restore)
