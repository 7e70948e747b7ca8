"""Scalars of TensorBoard event files, read as bytes: no protobuf and no TensorFlow.

A file is a row of TFRecords: length (8 bytes), its masked CRC-32C (4), data, the data's (4). Each holds an `Event` (2:
step, 5: summary), whose `Summary.Value` (1) has tag (1), simple_value (2) or tensor (8, a `TensorProto`). Sources:
tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto and framework/summary.proto, tensor.proto.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from transplt.base.text.regular_file import open_regular
from transplt.precision.proto import fields

_MOST_RECORD = 64 * 1024 * 1024
_MOST_FILES = 1_000
_POLYNOMIAL = 0x82F63B78
#: DataType of tensor.proto: float and double.
_FLOAT, _DOUBLE = 1, 2


class BrokenEvents(ValueError):
    """The bytes are no event file; the message is a clause for the user."""


def event_files(folder: str | os.PathLike[str]) -> list[Path]:
    """The event files of a folder, in the order in which they were begun (their names have the time)."""
    names = sorted(name for name in os.listdir(folder) if "tfevents" in name)[:_MOST_FILES]
    return [Path(folder, name) for name in names]


def is_event_file(head: bytes) -> bool:
    """True for the first bytes of a TFRecord file."""
    return len(head) >= 12 and struct.unpack("<I", head[8:12])[0] == _masked_crc(head[:8])


def scalars_in(path: str | os.PathLike[str]) -> Iterator[tuple[str, float, int]]:
    """(tag, value, step) in the order of the file. BrokenEvents; a last record that is cut is left out silently.

    OSError for a file that cannot be read.
    """
    with open_regular(path) as raw:
        yield from scalars_of(raw)


def scalars_of(file: BinaryIO) -> Iterator[tuple[str, float, int]]:
    """(tag, value, step) of an open event file."""
    number = 0
    while len(head := _exactly(file, 12)) == 12:
        number += 1
        if not is_event_file(head):
            raise BrokenEvents(f"record {number} of this event file is broken (its length has a wrong checksum)")
        length = struct.unpack("<Q", head[:8])[0]
        if length > _MOST_RECORD:
            raise BrokenEvents(f"record {number} of this event file has {length} bytes; up to {_MOST_RECORD} are read")
        data = _exactly(file, length + 4)
        if len(data) < length + 4:
            return
        try:
            yield from _event(data[:length])
        except (IndexError, struct.error, UnicodeDecodeError) as error:
            raise BrokenEvents(f"record {number} of this event file is not an event") from error


def _exactly(file: BinaryIO, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := file.read(min(size, 1 << 20))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _event(data: bytes) -> Iterator[tuple[str, float, int]]:
    step = 0
    summaries = []
    for number, value in fields(data):
        if number == 2 and isinstance(value, int):
            step = value - (1 << 64) if value >= 1 << 63 else value
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, value in fields(summary):
            if number == 1 and isinstance(value, bytes) and (scalar := _scalar(value)) is not None:
                yield scalar[0], scalar[1], step


def _scalar(data: bytes) -> tuple[str, float] | None:
    tag, found = "", None
    for number, value in fields(data):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            tag = value.decode("utf-8")
        elif number == 2 and len(value) == 4:
            found = struct.unpack("<f", value)[0]
        elif number == 8:
            found = _of_tensor(value)
    return None if found is None or not tag else (tag, found)


def _of_tensor(data: bytes) -> float | None:
    """The number that a TensorProto of one element holds."""
    kind, content, floats = 0, b"", b""
    for number, value in fields(data):
        if number == 1 and isinstance(value, int):
            kind = value
        elif isinstance(value, bytes) and number == 4:
            content = value
        elif isinstance(value, bytes) and number in (5, 6):
            floats = value
    form = {_FLOAT: "<f", _DOUBLE: "<d"}.get(kind)
    held = content or floats
    if form is None or len(held) != struct.calcsize(form):
        return None
    return float(struct.unpack(form, held)[0])


def _masked_crc(data: bytes) -> int:
    """The CRC-32C of a few bytes, masked as TFRecord does it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
