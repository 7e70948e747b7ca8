"""Arguments of a call as JSON, and tensors like those of the call made from it again.

Small tensors keep their values. Of others the shape, strides and type are kept, and what is needed to draw such numbers
again: mean, deviation, smallest and largest, and whether they stand in order, as offsets of packed sequences do.
"""

from __future__ import annotations

import importlib
import math
import types
from collections.abc import Callable
from typing import Any

import torch

#: Elements of a tensor whose values are kept: of integers and bools (indices, lengths), and of floats.
KEPT_WHOLE, KEPT_FLOAT = 4096, 256
#: What `ctx` has in `forward` and `backward` of an autograd function.
_CONTEXTS = ("FunctionCtx", "BackwardCFunction", "Context")


class Unrecordable(Exception):
    """A value that no JSON can hold; the text says which."""


class Context:
    """Stands for `ctx` of an autograd function: what forward keeps, and backward asks for."""

    def __init__(self) -> None:
        self.saved_tensors: tuple[Any, ...] = ()
        self.needs_input_grad: tuple[bool, ...] = (True,) * 64

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        return self.saved_tensors

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Nothing is computed forward again."""

    def mark_dirty(self, *tensors: Any) -> None:
        """There is no graph that must know it."""

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """There is no graph that must know it."""

    def set_materialize_grads(self, value: bool) -> None:
        """There is no graph that must know it."""


class Describer:
    """Describes the arguments of one call; tensors of one storage are described as such."""

    def __init__(self) -> None:
        self._storages: dict[int, int] = {}

    def describe(self, value: Any) -> Any:
        """The value as JSON. Raises Unrecordable."""
        if value is None or (isinstance(value, (bool, int, str)) and type(value) in (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, torch.Tensor):
            return {"tensor": self._tensor(value)}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": "cpu" if value.type == "cpu" else "card"}
        if isinstance(value, list):
            return [self.describe(each) for each in value]
        if isinstance(value, tuple) and type(value) in (tuple, torch.Size):
            return {"tuple": [self.describe(each) for each in value]}
        if type(value) is dict:
            return {"dict": [[self.describe(key), self.describe(each)] for key, each in value.items()]}
        if type(value).__name__ == "constexpr" and hasattr(value, "value"):
            return self.describe(value.value)
        if type(value).__name__ == "dtype" and hasattr(value, "name"):
            return {"triton": str(value.name)}
        if isinstance(value, (types.FunctionType, type)) or type(value).__name__ == "InterpretedFunction":
            return {"named": self._named(value)}
        if any(kind.__name__ in _CONTEXTS for kind in type(value).__mro__):
            return {"context": self._context(value)}
        raise Unrecordable(f"a value of {type(value).__name__}")

    def _context(self, value: Any) -> dict[str, Any]:
        """What a context carries beside the methods of autograd."""
        saved = getattr(value, "saved_tensors", ()) if "Backward" in type(value).__name__ else ()
        own = {name: each for name, each in vars(value).items() if name not in ("saved_tensors", "to_save")}
        return {
            "saved": [self.describe(each) for each in saved],
            "needs": [bool(each) for each in getattr(value, "needs_input_grad", ())],
            "own": {name: self.describe(each) for name, each in own.items() if not name.startswith("__")},
        }

    def _named(self, value: Any) -> list[str]:
        inner = getattr(value, "fn", value) if not isinstance(value, (types.FunctionType, type)) else value
        name = getattr(inner, "__qualname__", "")
        if not name or "<" in name:
            raise Unrecordable("a function without a name")
        return [inner.__module__, name]

    def _tensor(self, value: torch.Tensor) -> dict[str, Any]:
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
            raise Unrecordable(f"a tensor of {type(value).__name__}")
        if value.is_quantized or (value.is_complex() and value.is_conj()):
            raise Unrecordable("a tensor that is quantized or conjugated")
        place = value.untyped_storage().data_ptr()
        found: dict[str, Any] = {
            "dtype": str(value.dtype).removeprefix("torch."),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "offset": value.storage_offset(),
            "storage": self._storages.setdefault(place, len(self._storages)),
            "host": value.device.type == "cpu",
            "grad": value.requires_grad,
        }
        with torch.no_grad():
            found |= _figures(value.detach().cpu())
        return found


def _figures(value: torch.Tensor) -> dict[str, Any]:
    """Its values, or what is needed to draw such ones."""
    if not value.numel():
        return {"values": []}
    if not value.is_floating_point():
        if value.is_complex():
            raise Unrecordable("a tensor of complex numbers")
        whole = value.flatten().to(torch.int64)
        if whole.numel() <= KEPT_WHOLE:
            return {"values": whole.tolist()}
        ordered = whole.numel() > 1 and bool((whole[1:] >= whole[:-1]).all())
        return {"low": int(whole.min()), "high": int(whole.max()), "sorted": ordered}
    numbers = value.flatten().to(torch.float64)
    if numbers.numel() <= KEPT_FLOAT:
        return {"values": [each if math.isfinite(each) else repr(each) for each in numbers.tolist()]}
    finite = numbers[numbers.isfinite()]
    if not finite.numel():
        return {"values": [repr(float(numbers[0]))]}  # all NaN, or infinite
    low, high, mean = float(finite.min()), float(finite.max()), float(finite.mean())
    spread = float(finite.std()) if finite.numel() > 1 else 0.0
    if not math.isfinite(spread):
        spread = 0.0
    return {"low": low, "high": high, "mean": mean if math.isfinite(mean) else low, "spread": spread}


class Maker:
    """Makes the arguments of one call: the same for every device and order, by seed and number of the call. `shake`
    moves each float at random by so many of its roundings."""

    def __init__(self, device: str, seed: int, shake: float = 0.0) -> None:
        self._device, self._seed, self._shake = device, seed, shake
        self._drawn = 0
        self._storages: dict[tuple[int, str], Any] = {}

    def make(self, told: Any) -> Any:
        """The value that `Describer.describe` told. Raises Unrecordable for a name that is not there."""
        if isinstance(told, list):
            return [self.make(each) for each in told]
        if not isinstance(told, dict):
            return told
        ((kind, inner),) = told.items()
        makers: dict[str, Callable[[Any], Any]] = {
            "float": float,
            "tensor": self._tensor,
            "dtype": lambda name: getattr(torch, name),
            "device": lambda name: torch.device("cpu" if name == "cpu" else self._device),
            "tuple": lambda parts: tuple(self.make(each) for each in parts),
            "dict": lambda pairs: {self.make(key): self.make(each) for key, each in pairs},
            "triton": _triton_type,
            "named": lambda name: find(*name),
            "context": self._context,
        }
        return makers[kind](inner)

    def _context(self, told: dict[str, Any]) -> Context:
        made = Context()
        made.saved_tensors = tuple(self.make(each) for each in told["saved"])
        if told["needs"]:
            made.needs_input_grad = tuple(told["needs"])
        for name, each in told["own"].items():
            setattr(made, name, self.make(each))
        return made

    def _tensor(self, told: dict[str, Any]) -> torch.Tensor:
        """The values go into a buffer of the size that the tensor needs, as the strides say."""
        dtype = getattr(torch, told["dtype"])
        shape, stride, offset = told["shape"], told["stride"], told["offset"]
        values = self._values(told, shape, dtype)
        device = "cpu" if told["host"] else self._device
        reach = sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        span = offset + (1 + reach if values.numel() else 0)
        key = (told["storage"], device)
        held = self._storages.get(key)
        needed = span * dtype.itemsize
        if held is None or held.numel() < needed:
            fresh = torch.zeros(max(needed, 1), dtype=torch.uint8, device=device)
            if held is None:
                self._storages[key] = held = fresh
            else:
                held = fresh  # a larger view of a storage that was seen: told as a tensor of its own
        with torch.no_grad():
            whole = torch.empty(0, dtype=dtype, device=device)
            whole.set_(held.untyped_storage(), offset, shape, stride)
            once = whole
            for dimension, step in enumerate(stride):
                if not step and shape[dimension] > 1:  # an expanded tensor has one row in memory
                    once, values = once.narrow(dimension, 0, 1), values.narrow(dimension, 0, 1)
            once.copy_(self._shaken(values))
        return whole.requires_grad_() if told["grad"] and dtype.is_floating_point else whole

    def _shaken(self, values: torch.Tensor) -> torch.Tensor:
        self._drawn += 1
        if not self._shake or not values.is_floating_point():
            return values
        generator = torch.Generator().manual_seed(self._seed * 1000003 + 500009 + self._drawn)
        signs = torch.randint(0, 2, values.shape, generator=generator).to(torch.float64) * 2 - 1
        share = self._shake * torch.finfo(values.dtype).eps
        return (values.to(torch.float64) * (1 + signs * share)).to(values.dtype)

    def _values(self, told: dict[str, Any], shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        if "values" in told:
            kept = [float(each) if isinstance(each, str) else each for each in told["values"]]
            exact = torch.float64 if dtype.is_floating_point else torch.int64
            made = torch.tensor(kept, dtype=exact)
            size = math.prod(shape)
            return (made if made.numel() == size else made.expand(size)).reshape(shape).to(dtype)
        self._drawn += 1
        generator = torch.Generator().manual_seed(self._seed * 1000003 + self._drawn)
        low, high = told["low"], told["high"]
        if not dtype.is_floating_point:
            drawn = torch.randint(low, high + 1, shape, generator=generator)
            return (drawn.flatten().sort().values.reshape(shape) if told["sorted"] else drawn).to(dtype)
        normal = torch.randn(shape, generator=generator, dtype=torch.float64) * told["spread"] + told["mean"]
        return normal.clamp(low, high).to(dtype)


def _triton_type(name: str) -> Any:
    language = importlib.import_module("triton.language")
    names = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
    return getattr(language, names.get(name, name))


def find(module: str, name: str) -> Any:
    """A function or class by its module and its qualified name. Raises Unrecordable where it is not there."""
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise Unrecordable(f"{module}.{name} is not there: {error}") from error
    return found
