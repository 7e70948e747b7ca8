"""What a shared library gives to others and wants of them, as its ELF file lists it: 64 bits, little endian.

The structures are those of the System V ABI (gABI, chapters 4 and 5): Elf64_Ehdr, Elf64_Shdr, Elf64_Sym.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
#: ELFCLASS64, ELFDATA2LSB.
_KIND = b"\x7fELF\x02\x01"
#: sh_type of .dynsym, st_shndx of what lies elsewhere, binding of what nobody else sees.
_DYNSYM, _UNDEFINED, _LOCAL = 11, 0, 0
#: e_machine, by what `uname -m` calls it.
_MACHINES = {62: "x86_64", 183: "aarch64"}


@dataclass(frozen=True)
class Symbols:
    """The names of a library that the loader binds, and the machine that it is for ("" for others than the two)."""

    machine: str
    defined: frozenset[str]
    undefined: frozenset[str]


def read_symbols(library: Path) -> Symbols:
    """The dynamic symbols of a library. ValueError where it is none of this kind, or cut; OSError as the system has it.
    """
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[: len(_KIND)] != _KIND:
            raise ValueError(f"{library.name} is no ELF file of 64 bits, little endian")
        try:
            header = _HEADER.unpack_from(data)
            machine, at, count = header[2], header[6], header[12]
            sections = [_SECTION.unpack_from(data, at + number * _SECTION.size) for number in range(count)]
            defined: set[str] = set()
            undefined: set[str] = set()
            for _, kind, _, _, start, size, link, *_ in sections:
                if kind != _DYNSYM:
                    continue
                names = data[sections[link][4] : sections[link][4] + sections[link][5]]
                for name, info, _, section, _, _ in _SYMBOL.iter_unpack(data[start : start + size]):
                    if name and info >> 4 != _LOCAL:
                        text = names[name : names.index(b"\0", name)].decode("ascii", "backslashreplace")
                        (undefined if section == _UNDEFINED else defined).add(text)
        except (struct.error, IndexError) as error:
            raise ValueError(f"{library.name} is cut") from error
        return Symbols(_MACHINES.get(machine, ""), frozenset(defined), frozenset(undefined))
