"""Dumps that a device writes: eight bytes (the length of the header), a header, and the elements of all tensors.

The header is a protobuf `DumpData`: output (3), input (4), op_name (6); of a tensor data_type (1), format (2), shape
(3, its dims are 1) and, behind them, the number of its bytes (5 of an input, 6 of an output). The elements follow in
the order inputs, outputs, buffers. Sources: msaccucmp of mindstudio-probe 26.2.0 (dump_parse/big_dump_data.py,
cmp_utils/constant/const_manager.py: types, formats, names of files) and msprobe's AclDumpMsg.proto. Every size is held
against shape, type and the length of the file, so that what does not fit is refused and not misread.
"""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from transplt.base.errors import reason, shown
from transplt.base.text.regular_file import open_regular
from transplt.precision.elements import ELEMENTS, Array, numpy_or_sentence
from transplt.precision.proto import fields
from transplt.precision.record import UnusableDump

_MOST_HEADER = 64 * 1024 * 1024
_INPUT, _OUTPUT = 4, 3
#: The twelve types that the comparison guide lists, and what came later.
_TYPES = {
    1: "float32", 2: "float16", 3: "int8", 4: "uint8", 5: "int16", 6: "uint16", 7: "int32", 8: "int64", 9: "uint32",
    10: "uint64", 11: "bool", 12: "float64", 16: "complex64", 17: "complex128", 27: "bfloat16",
}  # fmt: skip
_FORMATS = {
    0: "NCHW", 1: "NHWC", 2: "ND", 3: "NC1HWC0", 4: "FRACTAL_Z", 6: "NHWC1C0", 9: "C1HWNC0", 12: "NC1HWC0_C04",
    13: "FRACTAL_Z_C04", 14: "CHWN", 16: "HWCN", 27: "NDHWC", 29: "FRACTAL_NZ", 30: "NCDHW", 31: "DHWCN",
    32: "NDC1HWC0", 33: "FRACTAL_Z_3D",
}  # fmt: skip


class DeviceFile(NamedTuple):
    """The parts of the name of a device's file: `Pooling.pool1.1147.1589195081588018`. `stream` is empty in older ones;
    `side` and `number` are those of a tensor that was converted from it (`.output.0.npy`)."""

    op_type: str
    op_name: str
    task: str
    stream: str
    time: str
    side: str
    number: str


_DEVICE_FILE = re.compile(
    r"([\w-]+)\.([\w-]+)\.(\d+)(?:\.(\d{1,10}))?\.(\d{12,20})(?:\.\d+){0,4}(?:\.(input|output)\.(\d+)(?:\.\w+)?)?"
)


def device_file(name: str) -> DeviceFile | None:
    """The parts of a file's name; None for a name of another form."""
    match = _DEVICE_FILE.fullmatch(name)
    return DeviceFile(*(group or "" for group in match.groups())) if match else None


@dataclass(frozen=True, slots=True)
class DeviceTensor:
    """One tensor of a dump. `side` is `input` or `output`; `format` is the order of its dimensions in CANN's words."""

    side: str
    index: int
    dtype: str
    format: str
    shape: tuple[int, ...]
    size: int


def is_device_dump(path: str) -> bool:
    """True where the first bytes can be those of a device's dump."""
    with open_regular(path) as file:
        head = file.read(9)
        size = os.fstat(file.fileno()).st_size
    return len(head) == 9 and 0 < struct.unpack("<Q", head[:8])[0] <= min(size - 8, _MOST_HEADER)


def device_tensors(path: str) -> Iterator[tuple[DeviceTensor, Array]]:
    """The tensors of a device's dump with their elements, bfloat16 as float32. UnusableDump with the file's name."""
    try:
        with open_regular(path) as file:
            yield from _read(file, path)
    except OSError as error:
        raise UnusableDump(f"cannot read {shown(path)}: {reason(error)}") from error
    except (IndexError, struct.error, ValueError, UnicodeDecodeError) as error:
        raise UnusableDump(f"{shown(path)} is not a dump of a device, or is damaged ({error})") from error


def _read(file: BinaryIO, path: str) -> Iterator[tuple[DeviceTensor, Array]]:
    left = os.fstat(file.fileno()).st_size - 8
    length = struct.unpack("<Q", _exactly(file, 8))[0]
    if length > min(left, _MOST_HEADER):
        raise ValueError(f"its header would have {length} bytes")
    tensors = _header(_exactly(file, length))
    left -= length
    if sum(tensor.size for tensor in tensors) > left:
        raise ValueError("it is shorter than its header says")
    if not tensors:
        raise ValueError("its header names no tensor")
    for tensor in tensors:
        if tensor.size > ELEMENTS.size:
            raise ValueError(str(ELEMENTS))
        yield tensor, _array(_exactly(file, tensor.size), tensor)


def _header(data: bytes) -> list[DeviceTensor]:
    """The tensors in the order of their elements: inputs, then outputs."""
    found: dict[int, list[bytes]] = {_INPUT: [], _OUTPUT: []}
    for number, value in fields(data):
        if number in found and isinstance(value, bytes):
            found[number].append(value)
    return [
        _tensor(message, side, index)
        for number, side in ((_INPUT, "input"), (_OUTPUT, "output"))
        for index, message in enumerate(found[number])
    ]


def _tensor(message: bytes, side: str, index: int) -> DeviceTensor:
    values: dict[int, Any] = {}
    for number, value in fields(message):
        values.setdefault(number, value)
    kind, layout, shape = values.get(1, 0), values.get(2, 0), values.get(3, b"")
    size = next((values[number] for number in (5, 6) if isinstance(values.get(number), int)), 0)
    if kind not in _TYPES:
        raise ValueError(f"{side} {index} has the type {kind}, which is not read")
    dims = tuple(_dims(shape))
    dtype = _TYPES[kind]
    width = 1 if dtype == "bool" else int(re.sub(r"\D", "", dtype)) // 8
    if math.prod(dims) * width != size:
        raise ValueError(f"{side} {index} has {size} bytes, which are not {dtype} of the shape {list(dims)}")
    return DeviceTensor(side, index, dtype, _FORMATS.get(layout, f"format {layout}"), dims, size)


def _dims(shape: Any) -> Iterator[int]:
    """The dims of a `Shape`: packed, or one by one."""
    for number, value in fields(shape) if isinstance(shape, bytes) else ():
        if number != 1:
            continue
        if isinstance(value, int):
            yield value
        else:
            # A packed field is varints without keys: each gets the key 8 (field 1, varint).
            at = 0
            while at < len(value):
                end = at
                while value[end] & 0x80:
                    end += 1
                yield from (each for _, each in fields(b"\x08" + value[at : end + 1]) if isinstance(each, int))
                at = end + 1


def _array(data: bytes, tensor: DeviceTensor) -> Array:
    np = numpy_or_sentence()
    if tensor.dtype == "bfloat16":
        flat = (np.frombuffer(data, dtype="<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        flat = np.frombuffer(data, dtype=np.dtype(tensor.dtype).newbyteorder("<"))
    return flat.reshape(tensor.shape)


def _exactly(file: BinaryIO, size: int) -> bytes:
    pieces = []
    while size > 0:
        piece = file.read(min(size, 1 << 24))
        if not piece:
            raise ValueError("it is truncated")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
