"""What an operator was called with, read out of the driver's records (`driver.c`): tensors of the CPU over the memory
of the card, numbers, lists."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

import torch

#: All memory of the process, and a tensor of bytes over it: what lies on the card is a view of that tensor.
_FIRST = 4096
_END = (1 << 47) - 4096
MEMORY = memoryview((ctypes.c_char * _END).from_address(0)).cast("B")
_everything = torch.frombuffer((ctypes.c_char * (_END - _FIRST)).from_address(_FIRST), dtype=torch.uint8)
unpack = struct.unpack_from
#: Types by the number that aclDataType gives them (acl_base.h).
_NAMES = {
    0: "float32", 1: "float16", 2: "int8", 3: "int32", 4: "uint8", 6: "int16", 7: "uint16", 8: "uint32", 9: "int64",
    10: "uint64", 11: "float64", 12: "bool", 16: "complex64", 17: "complex128", 27: "bfloat16", 33: "complex32",
    34: "hifloat8", 35: "float8_e5m2", 36: "float8_e4m3fn",
}  # fmt: skip
DTYPES = {number: getattr(torch, name) for number, name in _NAMES.items() if hasattr(torch, name)}
#: How a scalar of a type is written; complex numbers are two.
_NUMBERS = {
    0: "f", 1: "e", 2: "b", 3: "i", 4: "B", 6: "h", 7: "H", 8: "I", 9: "q", 10: "Q", 11: "d", 12: "?", 16: "2f",
    17: "2d",
}  # fmt: skip
_views: dict[Any, Any] = {}
#: Tensors, and lists of them, by the number of their record; more than `_MOST` are forgotten.
_known: dict[int, Any] = {}
_MOST = 1 << 15
TENSOR, SCALAR, INTS, FLOATS, BOOLS, TENSORS, SCALARS = range(0x71, 0x78)


def tensor_at(address: int, dtype: Any, sizes: Any, strides: Any) -> Any:
    """A tensor of the CPU over memory that begins at `address`; sizes and strides in elements."""
    view = _views.get(dtype)
    if view is None:
        view = _views[dtype] = _everything.view(dtype)
    return view.as_strided(sizes, strides, (address - _FIRST) // dtype.itemsize)


def host_view(tensor: Any) -> Any:
    """A tensor of the CPU over the memory of one of the card, which it does not keep alive."""
    tensor = tensor.detach()
    if not tensor.numel():
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    view = tensor_at(tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
    view = torch._neg_view(view) if tensor.is_neg() else view
    return torch._conj(view) if tensor.is_conj() else view


def _tensor(handle: int) -> Any:
    number, _, dtype, _, dimensions, address, offset = unpack("q4iQq", MEMORY, handle)
    layout = unpack(f"{2 * dimensions}q", MEMORY, handle + 40)
    sizes, strides, kind = layout[:dimensions], layout[dimensions:], DTYPES[dtype]
    if not address or 0 in sizes:
        return torch.empty(sizes, dtype=kind, device="cpu")
    made = tensor_at(address + offset * kind.itemsize, kind, sizes, strides)
    return _keep(number, made)


def _keep(number: int, made: Any) -> Any:
    """Let what was made of a record be found by its number; 0 is none."""
    if number:
        if len(_known) > _MOST:
            _known.clear()
        _known[number] = made
    return made


def _scalar(handle: int) -> Any:
    dtype = unpack("i", MEMORY, handle + 12)[0]
    if dtype == 27:  # bfloat16: the upper half of a float
        return unpack("f", b"\0\0" + MEMORY[handle + 16 : handle + 18].tobytes())[0]
    values = unpack(_NUMBERS[dtype], MEMORY, handle + 16)
    return values[0] if len(values) == 1 else complex(*values)


def _items(letter: str) -> Callable[[int], list[Any]]:
    def read(handle: int) -> list[Any]:
        return list(unpack(f"{unpack('Q', MEMORY, handle + 16)[0]}{letter}", MEMORY, handle + 24))

    return read


_handles = _items("Q")
_READERS: dict[int, Callable[[int], Any]] = {
    TENSOR: _tensor, SCALAR: _scalar, INTS: _items("q"), FLOATS: _items("f"), BOOLS: _items("?"),
    TENSORS: lambda handle: _keep(unpack("q", MEMORY, handle)[0], [record(each) for each in _handles(handle)]),
    SCALARS: lambda handle: [record(each) for each in _handles(handle)],
}  # fmt: skip


def record(handle: int) -> Any:
    """What lies at `handle`: every record says what it is. None for a null pointer."""
    if not handle:
        return None
    number, kind = unpack("qi", MEMORY, handle)
    found = _known.get(number)
    return _READERS[kind](handle) if found is None else found


def _signed(bits: int) -> Callable[[int], int]:
    half, whole = 1 << (bits - 1), 1 << bits
    return lambda value: (value & (whole - 1)) - whole if value & half else value & (whole - 1)


#: How a word of the call is read, by the kind of the argument (rules/support/card_functions.json).
_WORDS: dict[str, Callable[[int], Any]] = {
    **dict.fromkeys("tTsSaFB", record),
    "i": _signed(64), "h": _signed(32), "c": _signed(8), "b": lambda value: bool(value & 255),
    "k": lambda value: DTYPES.get(_signed(32)(value)),
    "z": lambda handle: ctypes.string_at(handle).decode() if handle else None,
    "p": lambda handle: handle,
}  # fmt: skip
#: So many floating point numbers the driver keeps of a call.
_REGISTERS = 8


def reader(kinds: str) -> Callable[[int], list[Any]]:
    """What reads the arguments of an operator, of one kind a letter, at the address that the driver gives: first those
    in registers for floating point numbers, then all other registers, then the stack, as the calling conventions of
    System V for x86-64 and AAPCS64 pass them."""
    if sum(map(kinds.count, "df")) > _REGISTERS:
        raise NotImplementedError(f"more than {_REGISTERS} floating point arguments: {kinds}")
    words = [_WORDS[letter] for letter in kinds if letter not in "df"]
    shape = f"{len(words)}Q"

    def read(address: int) -> list[Any]:
        given = unpack(shape, MEMORY, address + 8 * _REGISTERS)
        return [convert(word) for convert, word in zip(words, given, strict=True)]

    if len(words) == len(kinds):
        return read
    reals = [letter for letter in kinds if letter in "df"]

    def read_with_reals(address: int) -> list[Any]:
        numbers = iter([unpack(letter, MEMORY, address + 8 * at)[0] for at, letter in enumerate(reals)])
        others = iter(read(address))
        return [next(numbers if letter in "df" else others) for letter in kinds]

    return read_with_reals
