"""The older interface of operators (aclopCompileAndExecute): an operator has a name, its tensors are described, its
attributes have names. torch_npu calls so what has no function of aclnn, and everything in a program that sets
`jit_compile=True`."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

import torch
from npu_emulator.record import record as run_record

from . import libraries
from .calls import below_the_program, failed
from .named_operators import NAMED
from .outputs import put
from .records import DTYPES, MEMORY, tensor_at, unpack

#: Where the fields of driver.c's `description`, `buffer` and `attribute` lie, in bytes.
_SIZES, _CONSTANT = 16, 144
_NAME, _KIND, _NEXT = 8, 72, 0


def _tensor(description: int, buffer: int) -> Any:
    """The tensor that a description and a buffer stand for; None for an argument that is left out."""
    dtype, _, dimensions = unpack("3i", MEMORY, description)
    kind = DTYPES.get(dtype)
    if kind is None:
        return None
    sizes = unpack(f"{dimensions}q", MEMORY, description + _SIZES)
    address = unpack("Q", MEMORY, buffer)[0] if buffer else 0
    address = address or unpack("Q", MEMORY, description + _CONSTANT)[0]
    if not address or 0 in sizes:
        return torch.empty(sizes, dtype=kind, device="cpu")
    strides = [torch.Size(sizes[at + 1 :]).numel() for at in range(dimensions)]
    return tensor_at(address, kind, sizes, strides)


def _tensors(count: int, descriptions: int, buffers: int) -> list[Any]:
    handles = [unpack(f"{count}Q", MEMORY, each) for each in (descriptions, buffers)]
    return [_tensor(*pair) for pair in zip(*handles, strict=True)]


def _attributes(first: int) -> dict[str, Any]:
    """Attributes by name, out of their chain; the first of a name was set last."""
    found: dict[str, Any] = {}
    while first:
        kind, whole, real, data, count = unpack("qqdQQ", MEMORY, first + _KIND)
        match chr(kind):
            case "i" | "k":
                value: Any = whole
            case "b":
                value = bool(whole)
            case "f":
                value = real
            case "s":
                value = ctypes.string_at(data, count).decode()
            case letter:
                value = list(unpack(f"{count}{ {'I': 'q', 'F': 'f', 'B': '?'}[letter] }", MEMORY, data))
        found.setdefault(ctypes.string_at(first + _NAME).decode(), value)
        first = unpack("Q", MEMORY, first + _NEXT)[0]
    return found


def compute(
    name: bytes, inputs: int, described: int, held: int, outputs: int, results: int, places: int, attributes: int
) -> int:
    """Compute an operator by its name; an error code of CANN, or 0."""
    word = name.decode()
    try:
        function = NAMED.get(word)
        if function is None:
            raise NotImplementedError(f"the operator {word} is not emulated")
        run_record.operators[f"acl{word}"] += 1
        with below_the_program():
            given = _tensors(inputs, described, held)
            targets = _tensors(outputs, results, places)
            found = function(given, _attributes(attributes), targets)
            for target, value in zip(targets, found if isinstance(found, tuple) else (found,), strict=True):
                put(target, value)
        return 0
    except Exception as error:
        return failed(word, error)
    except BaseException as error:
        return libraries.after(error)


for _family in (
    "named_layers", "named_boxes", "named_recurrent", "named_deformable", "named_pooling",
    "named_images",
):
    import_module(f"npu_card.{_family}")
