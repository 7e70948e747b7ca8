"""ELF files as small as they can be: a table of dynamic symbols, and bytes for whoever looks for texts."""

from __future__ import annotations

import struct
from collections.abc import Iterable

MACHINES = {"x86_64": 62, "aarch64": 183}


def elf_file(
    machine: str = "x86_64", defined: Iterable[str] = (), undefined: Iterable[str] = (), texts: Iterable[str] = ()
) -> bytes:
    """A shared library of that machine, as far as its symbols go."""
    names, symbols = b"\0", struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for group, section in ((defined, 1), (undefined, 0)):
        for name in group:
            symbols += struct.pack("<IBBHQQ", len(names), 1 << 4, 0, section, 0, 0)
            names += name.encode() + b"\0"
    held = b"\0" + b"".join(text.encode() + b"\0" for text in texts)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, MACHINES[machine], 1, 0, 0, 64, 0, 64, 0, 0, 64, 3, 0
    )
    at = 64 + 3 * 64
    sections = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    sections += struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, at, len(symbols), 2, 1, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at + len(symbols), len(names), 0, 0, 1, 0)
    return header + sections + symbols + names + held
