"""torch.cuda.FloatTensor and its kin: the tensor types of a device, from before dtypes and devices were arguments."""

from __future__ import annotations

from typing import Any

import torch

from .kind import KIND


class _TensorType(type):
    """The type of torch.cuda.FloatTensor and the like: tensors of that dtype on the card are its objects."""

    legacy_dtype: Any = None

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, torch.Tensor) and instance.device.type == KIND and instance.dtype == cls.legacy_dtype
        )


def _tensor(name: str, dtype: Any) -> Any:
    class Legacy(metaclass=_TensorType):
        legacy_dtype = dtype

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            if not args or isinstance(args[0], (int, torch.Size)):  # a shape
                return torch.empty(*(args or (0,)), dtype=dtype, device=KIND)
            values = list(args[0]) if isinstance(args[0], range) else args[0]
            return torch.as_tensor(values, dtype=dtype, device=KIND)

    Legacy.__module__, Legacy.__name__, Legacy.__qualname__ = f"torch.{KIND}", name, name
    return Legacy


def _storage(kind: Any) -> Any:
    class Legacy:
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return kind(*args).storage()

    return Legacy


_DTYPES = {
    "Float": torch.float32,
    "Double": torch.float64,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Long": torch.int64,
    "Int": torch.int32,
    "Short": torch.int16,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Bool": torch.bool,
}


def types() -> dict[str, Any]:
    """FloatTensor, FloatStorage and so on, by name."""
    named: dict[str, Any] = {}
    for prefix, dtype in _DTYPES.items():
        tensor = _tensor(prefix + "Tensor", dtype)
        named |= {prefix + "Tensor": tensor, prefix + "Storage": _storage(tensor)}
    return named
