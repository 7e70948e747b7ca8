"""What is known of a value while a source is followed; anything else is UNKNOWN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


class Unknown:
    def __repr__(self) -> str:
        return "?"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor, or a list of such; `dtype` is None where it is not known, `device` where it lies (None: not known)."""

    dtype: str | None = None
    device: str | None = "npu"


@dataclass(frozen=True, slots=True)
class Dtype:
    name: str


@dataclass(frozen=True, slots=True)
class Types:
    """A list of types, in its order."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Options:
    dtype: str | None


@dataclass(frozen=True, slots=True)
class Chip:
    """A card as CANN tells it: `arch` by NpuArch, `soc` by its place in SocVersion."""

    arch: str
    soc: str


@dataclass(frozen=True, slots=True)
class Word:
    """A constant of an enumeration: NpuArch or SocVersion."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Null:
    """nullptr, and an optional that holds nothing."""


@dataclass(frozen=True, slots=True)
class Some:
    """The length of a list of tensors: not zero."""


NULL: Final = Null()
SOME: Final = Some()
Value = Any

#: The order of SocVersion, which sources compare by: opdev/platform.h of CANN.
_SOCS = "910 910B 910_93 950 910E 310 310P 310B"
SOCS = [f"ASCEND{name}" for name in _SOCS.split()]
#: The cards, by the names that transplt gives them.
CHIPS = {
    "910": Chip("DAV_1001", "ASCEND910"),
    "310P": Chip("DAV_2002", "ASCEND310P"),
    "910B": Chip("DAV_2201", "ASCEND910B"),
    "A3": Chip("DAV_2201", "ASCEND910_93"),
    "950": Chip("DAV_3510", "ASCEND950"),
}
#: Types of torch by the names of CANN (`DT_FLOAT`) and of ATen (`kFloat`, `ScalarType::Float`).
CANN = {
    "FLOAT": "float32", "FLOAT16": "float16", "BF16": "bfloat16", "DOUBLE": "float64", "INT8": "int8", "INT16": "int16",
    "INT32": "int32", "INT64": "int64", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64",
    "BOOL": "bool", "COMPLEX32": "complex32", "COMPLEX64": "complex64", "COMPLEX128": "complex128",
}  # fmt: skip
ATEN = {
    "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Double": "float64", "Char": "int8",
    "Short": "int16", "Int": "int32", "Long": "int64", "Byte": "uint8", "UInt16": "uint16", "UInt32": "uint32",
    "UInt64": "uint64", "Bool": "bool", "ComplexHalf": "complex32", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}  # fmt: skip
#: The types that a tensor is tried with.
TRIED = tuple(CANN.values())
COMPLEX = frozenset({"complex32", "complex64", "complex128"})
FLOATING = frozenset({"float64", "float32", "float16", "bfloat16"})
INTEGRAL = frozenset(TRIED) - COMPLEX - FLOATING - {"bool"}


def joined(one: Value, other: Value) -> Value:
    """What is known where either of two values may be there."""
    if one == other:
        return one
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        dtype = one.dtype if one.dtype == other.dtype else None
        return Tensor(dtype, one.device if one.device == other.device else None)
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(joined(*pair) for pair in zip(one, other, strict=True))
    return UNKNOWN


def promoted(one: str | None, other: str | None) -> str | None:
    """The type of an operation of two tensors with dimensions, as torch.promote_types."""
    if one is None or other is None:
        return None
    if one == other:
        return one
    kinds = [_kind(one), _kind(other)]
    if kinds[0] != kinds[1] and 3 not in kinds:
        return one if kinds[0] > kinds[1] else other
    pair = {one, other}
    if 3 in kinds:
        wide = {"complex128", "float64"} & pair
        return "complex128" if wide else "complex64" if pair != {"complex32", "float16"} else "complex32"
    if kinds[0] == 2:
        return "float64" if "float64" in pair else "float32"
    return None


def _kind(dtype: str) -> int:
    return 3 if dtype in COMPLEX else 2 if dtype in FLOATING else 1 if dtype in INTEGRAL else 0
