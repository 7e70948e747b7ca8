"""What is known of a tensor without running: of which types it may be, and whether it lies on the card.

A set of types holds all that are possible: an operator refuses a tensor for certain if it refuses each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

CPU, CARD = "cpu", "card"
#: Names below torch that are a type.
DTYPES = {
    "float": "float32", "float32": "float32", "double": "float64", "float64": "float64", "half": "float16",
    "float16": "float16", "bfloat16": "bfloat16", "cfloat": "complex64", "complex64": "complex64",
    "cdouble": "complex128", "complex128": "complex128", "chalf": "complex32", "complex32": "complex32",
    "long": "int64", "int64": "int64", "int": "int32", "int32": "int32", "short": "int16", "int16": "int16",
    "int8": "int8", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool",
    **{name: name for name in "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu".split()},
}  # fmt: skip
_COMPLEX_OF = {"float64": "complex128", "float32": "complex64", "float16": "complex32"}
_REAL_OF = {wide: plain for plain, wide in _COMPLEX_OF.items()}
#: Complex numbers of which nothing else is known; complex32 is made of float16 alone.
COMPLEX = frozenset({"complex64", "complex128"})
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPLEXES = ("complex32", "complex64", "complex128")


@dataclass(frozen=True, slots=True)
class Tensor:
    """`types` is empty where nothing is known of them, `device` where it may be either. `sure`: it is a tensor of at
    least one dimension; else it may be a number, or no tensor at all."""

    types: frozenset[str] = frozenset()
    device: str = ""
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Number:
    """A number of Python: `whole` where it is an int, `imaginary` where it is complex."""

    whole: bool = False
    imaginary: bool = False


@dataclass(frozen=True, slots=True)
class Several:
    """A list or a tuple whose items are alike; of an empty one nothing is known yet."""

    item: Tensor | Number | None = None


Known = Tensor | Number | Several


def joined(every: Iterable[Known | None]) -> Known | None:
    """What holds for one of several values; None where nothing is known of one of them."""
    found: Known | None = None
    for index, each in enumerate(every):
        if each is None:
            return None
        if not index:
            found = each
        elif isinstance(found, Several) or isinstance(each, Several):
            if not (isinstance(found, Several) and isinstance(each, Several)):
                return None
            item = joined([found.item, each.item])
            found = Several(item if not isinstance(item, Several) else None)
        elif isinstance(found, Number) or isinstance(each, Number):
            if not (isinstance(found, Number) and isinstance(each, Number)):
                return None
            found = Number(found.whole and each.whole, found.imaginary or each.imaginary)
        elif found is not None:
            types = found.types | each.types if found.types and each.types else frozenset[str]()
            device = found.device if found.device == each.device else ""
            found = Tensor(types, device, found.sure and each.sure)
    return found


def promoted(every: list[Known | None]) -> Tensor:
    """The tensor that an operator makes of its operands, all of which may be broadcast against each other.

    A tensor without dimensions counts less than others of its kind, so of two kinds of floats either may come out.
    """
    tensors = [each for each in every if isinstance(each, Tensor)]
    numbers = [each for each in every if isinstance(each, Number)]
    known = [each.types for each in tensors if each.types]
    unknown = len(known) + len(numbers) < len(every)
    devices = {each.device for each in tensors}
    device = CARD if CARD in devices else CPU if devices == {CPU} else ""
    types = known[0] if known else frozenset[str]()
    for other in known[1:]:
        types = frozenset(each for one in types for two in other for each in _of(one, two))
    if any(each.imaginary for each in numbers):
        types = complex_of(Tensor(types))
    if not types <= {*_COMPLEXES, *_FLOATS}:
        types = frozenset() if unknown or not all(each.whole for each in numbers) else types
    elif unknown:
        types = types | COMPLEX if types and types <= {*_COMPLEXES} else frozenset()
    return Tensor(types, device, any(each.sure for each in tensors))


def _of(one: str, other: str) -> tuple[str, ...]:
    """The types that may come of two."""
    if one == other:
        return (one,)
    for kind in (_COMPLEXES, _FLOATS):
        if one in kind and other in kind:
            return (one, other, "float32") if {one, other} == {"float16", "bfloat16"} else (one, other)
        if one in kind or other in kind:
            wide, plain = (one, other) if one in kind else (other, one)
            if kind is _COMPLEXES and plain == "float64":
                return (wide, "complex128")
            return (wide,)
    return (one, other)


def complex_of(tensor: Known | None) -> frozenset[str]:
    """The types of complex numbers of which a tensor is a part."""
    types = tensor.types if isinstance(tensor, Tensor) else frozenset[str]()
    if types and types <= {*_COMPLEX_OF}:
        return frozenset(_COMPLEX_OF[each] for each in types)
    return types if types and types <= {*_COMPLEXES} else COMPLEX


def real_of(types: frozenset[str]) -> frozenset[str]:
    """The types of the parts of complex numbers; others stay."""
    return frozenset(_REAL_OF.get(each, each) for each in types)


def is_wide(types: frozenset[str]) -> bool:
    """True for floats and complex numbers alone: what keeps its type in a sum or a sine."""
    return bool(types) and types <= {*_FLOATS, *_COMPLEXES}
