"""torch.Generator(device="cuda")."""

from __future__ import annotations

from typing import Any

import torch

from . import devices
from .kind import KIND

_Base: Any = torch.Generator


class _Kind(type(_Base)):  # type: ignore[misc]
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _Base)


class CardGenerator(_Base):  # type: ignore[misc]
    """A CPU generator whose device is a CUDA card."""

    _index = 0

    @property
    def device(self) -> Any:
        return torch.device(KIND, self._index)


def _make(index: int) -> Any:
    generator = _Base.__new__(CardGenerator)
    generator._index = index
    return generator


class Generator(_Base, metaclass=_Kind):  # type: ignore[misc]
    """torch.Generator, knowing CUDA devices."""

    def __new__(cls, device: Any = "cpu") -> Any:
        named = torch.device(device)
        if named.type == KIND:
            return _make(named.index if named.index is not None else devices.state.device)
        return _Base(device)


def install() -> None:
    torch.Generator = Generator  # type: ignore[misc]
    for index, plain in enumerate(list(devices.generators)):
        generator = _make(index)
        generator.set_state(plain.get_state())
        devices.generators[index] = generator
