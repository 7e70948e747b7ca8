"""What the values in a kernel are: tiles, scalars and pointers, with the types and shapes that are certain.

Types have the names that torch has for them (`float32`, `bool` for `tl.int1`), and those of 8 bits that Triton alone
has (`float8e4nv`). An empty type is not known, a shape of None neither.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction


class Kind(Enum):
    """What a value is. `ARGUMENT` is a parameter that may be a scalar or a pointer."""

    UNKNOWN = "unknown"
    ARGUMENT = "argument"
    SCALAR = "scalar"
    TILE = "tile"
    POINTER = "pointer"  # scalar or tile of them
    BLOCK_POINTER = "block pointer"  # also a tensor descriptor
    CONSTEXPR = "constexpr"
    TYPE = "type"
    TUPLE = "tuple"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Size:
    """A product of a number and constexprs: `2 * BT * BK`, `BT // 4`."""

    number: Fraction
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, number: int) -> Size:
        return cls(Fraction(number))

    def times(self, other: Size) -> Size:
        return Size(self.number * other.number, tuple(sorted((*self.names, *other.names))))

    def over(self, other: Size) -> Size | None:
        """The quotient, None where names do not cancel out."""
        if not other.number:
            return None
        names = list(self.names)
        for name in other.names:
            if name not in names:
                return None
            names.remove(name)
        return Size(self.number / other.number, tuple(names))

    def value(self, sizes: Mapping[str, int]) -> Fraction | None:
        """The number that it is for the values of its names; None where one of them is not known."""
        found = self.number
        for name in self.names:
            if name not in sizes:
                return None
            found *= sizes[name]
        return found

    @property
    def known(self) -> int | None:
        """The number that it is whatever the constexprs are."""
        return int(self.number) if not self.names and self.number.denominator == 1 else None

    def __str__(self) -> str:
        number = "" if self.number == 1 and self.names else str(self.number)
        return " * ".join(filter(None, (number, *self.names)))


def difference(one: Size | None, other: Size | None) -> Size | None:
    """`one - other`, where that is a product."""
    if one is None or other is None:
        return None
    if not other.number:
        return one
    return Size(one.number - other.number, one.names) if one.names == other.names else None


ONE = Size.of(1)
Shape = tuple[Size | None, ...]


@dataclass(frozen=True, slots=True)
class KernelValue:
    """What an expression of a kernel gives.

    `dtype` is the type of elements, of pointers that of what they point to; `shape` is () for a scalar. `size` is the
    number that a constexpr is, `items` are those of a tuple. `base` is the parameter that a pointer starts at.

    Of tiles and scalars: `data` says that it was read or computed, and is no position alone (`pid * BLOCK + arange`);
    `scattered` are the axes, from the last one (-1), along which it comes from a tile that was read (of a pointer its
    positions do), `adjacent` those along which its positions follow one another. `compared` are the lines of the
    comparisons of integers that a mask is made of; `weak` is a number of Python that gives way to the type beside it.
    """

    kind: Kind = Kind.UNKNOWN
    dtype: str = ""
    shape: Shape | None = None
    size: Size | None = None
    items: tuple[KernelValue, ...] = ()
    base: str = ""
    data: bool = False
    scattered: frozenset[int] = frozenset()
    adjacent: frozenset[int] = frozenset()
    compared: frozenset[int] = frozenset()
    weak: bool = False

    @property
    def is_tile(self) -> bool:
        """True for what has at least one dimension for certain, and is no pointer."""
        return self.kind is Kind.TILE and self.shape != ()

    @property
    def count(self) -> Size | None:
        """The number of its elements."""
        if self.shape is None:
            return None
        found = ONE
        for each in self.shape:
            if each is None:
                return None
            found = found.times(each)
        return found

    @property
    def strided(self) -> bool:
        """True for pointers that follow one another along another axis than the last: a transposed tile in memory."""
        return bool(self.shape and self.shape[-1] != ONE and self.adjacent and -1 not in self.adjacent)


UNKNOWN = KernelValue()
LAST = frozenset({-1})
NONE = KernelValue(Kind.NONE)

WIDTHS = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "float8e4nv": 1, "float8e4b8": 1, "float8e4b15": 1,
    "float8e5": 1, "float8e5b16": 1,
}  # fmt: skip
INTEGERS = frozenset("bool int8 uint8 int16 uint16 int32 uint32 int64 uint64".split())
FLOATS = frozenset(WIDTHS) - INTEGERS
#: Names below triton.language that are a type.
TYPES = {**{name: name for name in WIDTHS if name != "bool"}, "int1": "bool", "float8e4": "float8e4nv"}


def scalar(dtype: str = "", *, data: bool = False) -> KernelValue:
    """A scalar that is known when the kernel runs."""
    return KernelValue(Kind.SCALAR, dtype, (), data=data)


def tile(shape: Shape | None, dtype: str = "", *, data: bool = True) -> KernelValue:
    """A tile; a scalar where the shape is that of one."""
    return KernelValue(Kind.SCALAR if shape == () else Kind.TILE, dtype, shape, data=data)


def number(value: int | float | bool) -> KernelValue:
    """A number of Python in the text of a kernel."""
    dtype = "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
    size = Size.of(value) if type(value) is int else None
    return KernelValue(Kind.CONSTEXPR, dtype, (), size, weak=True)


def default_of(node: ast.expr | None) -> KernelValue:
    """What a parameter is by its default."""
    match node:
        case ast.Constant(value=None):
            return NONE
        case ast.Constant(value=bool() | int() | float() as value):
            return number(value)
    return UNKNOWN


def constant(name: str, one: KernelValue, other: KernelValue) -> KernelValue:
    """Two constexprs under an operator (`mul`)."""
    dtype = promoted(one, other) if name != "div" else "float32"
    size: Size | None = None
    if one.size is not None and other.size is not None:
        if name == "mul":
            size = one.size.times(other.size)
        elif name == "floordiv":
            size = one.size.over(other.size)
        elif name == "sub":
            size = difference(one.size, other.size)
        elif name == "add":
            size = difference(one.size, Size(-other.size.number, other.size.names))
    return KernelValue(Kind.CONSTEXPR, dtype, (), size, weak=one.weak and other.weak)


def merged(one: KernelValue, other: KernelValue) -> KernelValue:
    """What holds for either of two values; what is None in one branch is the other's."""
    if one == other or other.kind is Kind.NONE:
        return one
    if one.kind is Kind.NONE:
        return other
    if one.kind is not other.kind:
        kinds = {one.kind, other.kind}
        plain = {Kind.CONSTEXPR, Kind.SCALAR, Kind.ARGUMENT}
        if not kinds <= plain:
            return UNKNOWN
        return KernelValue(Kind.SCALAR, one.dtype if one.dtype == other.dtype else "", (), data=one.data or other.data)
    items: tuple[KernelValue, ...] = ()
    if len(one.items) == len(other.items):
        items = tuple(merged(*pair) for pair in zip(one.items, other.items, strict=True))
    shape: Shape | None = None
    if one.shape is not None and other.shape is not None and len(one.shape) == len(other.shape):
        shape = tuple(left if left == right else None for left, right in zip(one.shape, other.shape, strict=True))
    return KernelValue(
        one.kind,
        one.dtype if one.dtype == other.dtype else "",
        shape,
        one.size if one.size == other.size else None,
        items,
        one.base if one.base == other.base else "",
        one.data or other.data,
        one.scattered & other.scattered,
        one.adjacent & other.adjacent,
        one.compared | other.compared,
        one.weak and other.weak,
    )


def broadcast(one: Shape | None, other: Shape | None) -> Shape | None:
    """The shape that two tiles have together."""
    if one is None or other is None:
        # A scalar adds nothing to what is not known; two of which one is not known are not known.
        return None
    if len(one) < len(other):
        one = (ONE,) * (len(other) - len(one)) + one
    other = (ONE,) * (len(one) - len(other)) + other
    found: list[Size | None] = []
    for left, right in zip(one, other, strict=True):
        if left == right or right == ONE:
            found.append(left)
        elif left == ONE:
            found.append(right)
        else:
            # One of them may be 1 by its constexpr: the other one, where that is no number.
            found.append(left if right is None else right if left is None else None)
    return tuple(found)


def axes(shape: Shape | None) -> frozenset[int]:
    """The axes that a shape has, from the last one; those of length 1 are none."""
    return frozenset(at - len(shape) for at, each in enumerate(shape) if each != ONE) if shape is not None else LAST


def with_shape(value: KernelValue, shape: Shape | None) -> KernelValue:
    """The same value in another shape."""
    if shape != value.shape:
        value = replace(value, scattered=axes(shape) if value.scattered else value.scattered, adjacent=frozenset())
    if value.kind in (Kind.SCALAR, Kind.CONSTEXPR, Kind.ARGUMENT, Kind.TILE):
        kind = Kind.SCALAR if shape == () else Kind.TILE
        return replace(value, kind=kind, shape=shape, size=None, weak=False)
    return replace(value, shape=shape)


def promoted(one: KernelValue, other: KernelValue, *, divides: bool = False) -> str:
    """The type of two operands together (triton/language/semantic.py, `computation_type_impl`), empty if not known.

    `divides`: `/` and `%`, which compute 16-bit floats in float32.
    """
    if one.weak != other.weak:
        weak, typed = (one, other) if one.weak else (other, one)
        if not typed.dtype:
            return ""
        if typed.dtype in FLOATS or (weak.dtype and _kind(weak.dtype) <= _kind(typed.dtype)):
            return "float32" if divides and typed.dtype in ("float16", "bfloat16") else typed.dtype
    left, right = one.dtype, other.dtype
    both = {left, right}
    if "float64" in both:
        return "float64"
    if "" in both:
        # A number that a launch gives is an integer or float32.
        given = one.kind if not one.dtype else other.kind
        return "float32" if given is Kind.ARGUMENT and "float32" in both else ""
    if "float32" in both:
        return "float32"
    if "float16" in both:
        return "float32" if divides else "float16"
    if "bfloat16" in both:
        return "bfloat16" if len(both) == 1 and not divides else "float32"
    if both & FLOATS:
        return left if len(both) == 1 else "float16"
    if left.startswith("u") == right.startswith("u"):
        return left if WIDTHS[left] >= WIDTHS[right] and left != "bool" else right
    unsigned, signed = (left, right) if left.startswith("u") else (right, left)
    return unsigned if WIDTHS[unsigned] >= WIDTHS[signed] else signed


def _kind(dtype: str) -> int:
    return 0 if dtype == "bool" else 1 if dtype in INTEGERS else 2


def compares_integers(one: KernelValue, other: KernelValue) -> bool:
    """True where a tile of 32 or 64 bit integers is compared with what is no float."""
    tiles = [each for each in (one, other) if each.is_tile and each.dtype in ("int32", "int64")]
    rest = [each for each in (one, other) if each not in tiles]
    return bool(tiles) and not any(each.dtype in FLOATS for each in rest)
