"""What operations of Triton's language give, by the values they are given (triton/language/core.py, semantic.py)."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from transplt.fixers.triton.reader.operations import ATOMICS
from transplt.fixers.triton.reader.values import (
    FLOATS,
    INTEGERS,
    LAST,
    ONE,
    UNKNOWN,
    KernelValue,
    Kind,
    Shape,
    Size,
    axes,
    broadcast,
    difference,
    number,
    promoted,
    scalar,
    tile,
    with_shape,
)
from transplt.syntax.nodes import keyword_of

#: Elementwise: the type of all they are given together.
_TOGETHER = frozenset("maximum minimum clamp fma fdiv div_rn umulhi cdiv".split())
_SAME = frozenset(
    "abs ceil cos erf exp exp2 floor log log2 rsqrt sigmoid sin softmax sqrt sqrt_rn flip cumsum cumprod sort "
    "associative_scan multiple_of max_contiguous max_constancy debug_barrier swizzle2d optimization_barrier".split()
)
#: Functions of one number by the names that Triton, its `math` and the libdevices have for them.
_FUNCTIONS = frozenset(
    "abs ceil cos cosh erf exp exp2 fast_expf floor log log1p log2 rsqrt sigmoid sin sinh sqrt sqrt_rn tanh tan "
    "expm1 erfc trunc rint round".split()
)
#: Packages of functions of one number, elementwise: `tl.math.exp`, `tl.extra.libdevice.tanh`.
_MATH = ("math.", "extra.")


def result_of(name: str, given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    """What an operation gives; UNKNOWN for one that is not known here."""
    short = name.rpartition(".")[2]
    rule = _RULES.get(name)
    if rule is not None:
        return rule(given, call)
    values = list(given.values())
    if name in _TOGETHER:
        return together(values, divides=name in ("fdiv", "div_rn"))
    if name in _SAME and values:
        return replace(values[0], size=None, weak=False)
    if name in ATOMICS and values:
        return with_shape(_read(values[0]), values[0].shape)
    if name.startswith(_MATH) and short and values:
        return replace(values[0], size=None, weak=False) if values[0].kind is not Kind.UNKNOWN else UNKNOWN
    if name in ("program_id", "num_programs"):
        return scalar("int32")
    return UNKNOWN


def named_like(name: str, values: list[KernelValue]) -> KernelValue:
    """What a function gives that cannot be found and is called like one of a number, elementwise (`rsqrt` of one of
    several modules)."""
    known = name in _FUNCTIONS and len(values) == 1 and values[0].kind in (Kind.TILE, Kind.SCALAR, Kind.ARGUMENT)
    return replace(values[0], size=None, weak=False) if known else UNKNOWN


def together(values: list[KernelValue], *, divides: bool = False) -> KernelValue:
    """What an elementwise operation gives for its operands, its type that of all of them together."""
    if not values:
        return UNKNOWN
    found = values[0]
    for each in values[1:]:
        found = binary(found, each, divides=divides)
    return found


def binary(one: KernelValue, other: KernelValue, *, divides: bool = False) -> KernelValue:
    """What `one + other` is; with `divides` what `one / other` is."""
    for pointer, beside in ((one, other), (other, one)):
        if pointer.kind is Kind.POINTER:
            if beside.kind is Kind.POINTER:
                return tile(broadcast(one.shape, other.shape), "int64", data=False)
            return replace(
                pointer,
                shape=broadcast(pointer.shape, beside.shape),
                scattered=pointer.scattered | beside.scattered,
                adjacent=pointer.adjacent | beside.adjacent,
            )
    kinds = {one.kind, other.kind}
    if Kind.UNKNOWN in kinds or not kinds <= {Kind.SCALAR, Kind.TILE, Kind.CONSTEXPR, Kind.ARGUMENT}:
        return UNKNOWN
    dtype = promoted(one, other, divides=divides)
    if kinds == {Kind.CONSTEXPR}:
        return KernelValue(Kind.CONSTEXPR, dtype, (), weak=one.weak and other.weak)
    if kinds <= {Kind.CONSTEXPR, Kind.ARGUMENT}:
        return KernelValue(Kind.ARGUMENT, dtype, ())
    shape = broadcast(one.shape, other.shape)
    tiles = [each for each in (one, other) if each.shape != ()]
    if shape == ():
        return scalar(dtype, data=one.data or other.data)
    return KernelValue(
        Kind.TILE,
        dtype,
        shape,
        data=any(each.data for each in tiles) or dtype in FLOATS,
        scattered=one.scattered | other.scattered,
        adjacent=one.adjacent | other.adjacent,
        compared=one.compared | other.compared,
    )


def shape_of(value: KernelValue | None) -> Shape | None:
    """The shape that a tuple of constexprs (or one of them) names."""
    if value is None:
        return None
    if value.kind is Kind.TUPLE:
        return tuple(each.size for each in value.items)
    return (value.size,) if value.kind is Kind.CONSTEXPR else None


def axis_of(value: KernelValue | None) -> int | None:
    """The axis that a constant names."""
    return value.size.known if value is not None and value.size is not None else None


def _read(pointer: KernelValue) -> KernelValue:
    """What a pointer points to."""
    if pointer.kind not in (Kind.POINTER, Kind.BLOCK_POINTER):
        return UNKNOWN
    found = tile(pointer.shape, pointer.dtype)
    whole = found.kind is Kind.TILE and pointer.dtype not in FLOATS
    return replace(found, scattered=axes(found.shape)) if whole else found


def _block_pointer(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    base = given.get("base", UNKNOWN)
    return KernelValue(Kind.BLOCK_POINTER, base.dtype, shape_of(given.get("block_shape")), base=base.base)


def _arange(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    start, end = given.get("start"), given.get("end")
    if end is None:
        start, end = number(0), start
    size = None if start is None or end is None else difference(end.size, start.size)
    return replace(tile((size,), "int32", data=False), adjacent=LAST)


def _made(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    dtype = given.get("dtype")
    return tile(shape_of(given.get("shape")), dtype.dtype if dtype is not None else "")


def _like(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    first = given.get("input", UNKNOWN)
    return tile(first.shape, first.dtype) if first.kind is Kind.TILE else UNKNOWN


def _cast(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    first, dtype = given.get("input", UNKNOWN), given.get("dtype", UNKNOWN)
    if first.kind is Kind.POINTER:  # .to(tl.pointer_type(...))
        return replace(first, dtype=dtype.dtype)
    if first.kind is Kind.CONSTEXPR:
        return KernelValue(Kind.CONSTEXPR, dtype.dtype, (), first.size)
    kind = Kind.SCALAR if first.kind is Kind.ARGUMENT else first.kind
    return replace(first, kind=kind, dtype=dtype.dtype, weak=False)


def _dot(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    left, right = given.get("input", UNKNOWN), given.get("other", UNKNOWN)
    out, acc = given.get("out_dtype"), given.get("acc")
    shape: Shape | None = None
    if left.shape is not None and right.shape is not None and len(left.shape) == len(right.shape) >= 2:
        shape = (*left.shape[:-1], right.shape[-1])
    if acc is not None and acc.kind is Kind.TILE:
        return tile(shape or acc.shape, acc.dtype)
    dtype = out.dtype if out is not None else "float32"
    if out is None and (not left.dtype or left.dtype in INTEGERS or left.dtype == "float64"):
        dtype = "int32" if left.dtype in INTEGERS else left.dtype
    return tile(shape, dtype)


def _dot_scaled(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    acc, out = given.get("acc"), given.get("out_dtype")
    dtype = acc.dtype if acc is not None and acc.kind is Kind.TILE else out.dtype if out is not None else "float32"
    return tile(acc.shape if acc is not None else None, dtype)


def _reduced(value: KernelValue, given: dict[str, KernelValue], call: ast.Call) -> Shape | None:
    keeps = keyword_of(call, "keep_dims")
    if keeps is not None or value.shape is None:
        kept = isinstance(keeps, ast.Constant) and keeps.value is True
        if not kept or value.shape is None or (axis := axis_of(given.get("axis"))) is None:
            return None
        return tuple(ONE if at in (axis, axis + len(value.shape)) else each for at, each in enumerate(value.shape))
    if "axis" not in given or given["axis"].kind is Kind.NONE:
        return ()
    axis = axis_of(given["axis"])
    if axis is None or not -len(value.shape) <= axis < len(value.shape):
        return None
    return tuple(each for at, each in enumerate(value.shape) if at != axis % len(value.shape))


def _summed(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    """A sum, a maximum or a minimum: small integers become int32."""
    first = given.get("input", UNKNOWN)
    if first.kind is not Kind.TILE:
        return UNKNOWN
    dtype = "int32" if first.dtype in ("bool", "int8", "int16") else first.dtype
    shape = _reduced(first, given, call)
    found = tile(shape, dtype if dtype != "bfloat16" else "")
    if "return_indices" in given:
        return KernelValue(Kind.TUPLE, items=(found, tile(shape, "int32")))
    return found


def _place(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    first = given.get("input", UNKNOWN)
    return tile(_reduced(first, given, call), "int32") if first.kind is Kind.TILE else UNKNOWN


def _reduce(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    first = given.get("input", UNKNOWN)
    if first.kind is Kind.TUPLE:
        parts = (tile(_reduced(each, given, call), each.dtype) for each in first.items)
        return KernelValue(Kind.TUPLE, items=tuple(parts))
    return tile(_reduced(first, given, call), first.dtype) if first.kind is Kind.TILE else UNKNOWN


def _where(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    condition, x, y = (given.get(name, UNKNOWN) for name in ("condition", "x", "y"))
    if Kind.POINTER in (x.kind, y.kind):
        return replace(x if x.kind is Kind.POINTER else y, shape=broadcast(x.shape, y.shape))
    found = binary(x, y)
    if found.kind is Kind.UNKNOWN:
        return UNKNOWN
    shape = broadcast(found.shape, condition.shape)
    return KernelValue(
        Kind.SCALAR if shape == () else Kind.TILE,
        found.dtype,
        shape,
        data=found.data or condition.data or found.dtype in FLOATS,
        scattered=found.scattered | condition.scattered,
    )


def _reshaped(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    first, *rest = given.values()
    named = given.get("shape")
    shape = shape_of(named) if named is not None else shape_of(rest[0]) if len(rest) == 1 else None
    if named is None and len(rest) > 1:
        shape = tuple(each.size for name, each in list(given.items())[1:] if name.startswith("argument"))
    return with_shape(first, shape) if first.kind in (Kind.TILE, Kind.POINTER) else UNKNOWN


def _broadcast_to(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    first, *rest = given.values()
    shape = shape_of(given.get("shape")) if len(rest) == 1 else tuple(each.size for each in rest)
    return with_shape(first, shape) if first.kind is not Kind.UNKNOWN else UNKNOWN


def _turned(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    first, *rest = given.values()
    if first.kind not in (Kind.TILE, Kind.POINTER) or first.shape is None:
        return first if first.kind is Kind.TILE else UNKNOWN
    order = rest[0].items if len(rest) == 1 else tuple(rest)
    axes = [axis_of(each) for each in order] if order else [*range(len(first.shape) - 2), -1, -2]
    if len(axes) != len(first.shape) or any(axis is None or abs(axis) > len(first.shape) for axis in axes):
        return with_shape(first, None)
    return with_shape(first, tuple(first.shape[axis] for axis in axes if axis is not None))


def _expanded(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    first, axis = given.get("input", UNKNOWN), axis_of(given.get("axis"))
    if first.shape is None or axis is None:
        return with_shape(first, None) if first.kind is Kind.TILE else UNKNOWN
    at = axis if axis >= 0 else axis + len(first.shape) + 1
    return with_shape(first, (*first.shape[:at], ONE, *first.shape[at:]))


def _join(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    found = together(list(given.values())[:2])
    return with_shape(found, (*found.shape, Size.of(2))) if found.shape is not None else found


def _split(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    first = next(iter(given.values()), UNKNOWN)
    half = with_shape(first, first.shape[:-1] if first.shape else None)
    return KernelValue(Kind.TUPLE, items=(half, half)) if first.kind is Kind.TILE else UNKNOWN


def _wider(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    found = together(list(given.values())[:2])
    if found.shape and found.shape[-1] is not None:
        return with_shape(found, (*found.shape[:-1], found.shape[-1].times(Size.of(2))))
    return with_shape(found, None) if found.kind is Kind.TILE else UNKNOWN


def _flat(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    first = next(iter(given.values()), UNKNOWN)
    return with_shape(first, (first.count,)) if first.kind is Kind.TILE else UNKNOWN


def _random(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    return tile(given.get("offset", UNKNOWN).shape, "float32")


def _assembly(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    arguments, dtype = given.get("args", UNKNOWN), given.get("dtype", UNKNOWN)
    shape: Shape | None = ()
    for each in arguments.items:
        shape = broadcast(shape, each.shape)
    if dtype.kind is Kind.TUPLE:
        return KernelValue(Kind.TUPLE, items=tuple(tile(shape, each.dtype) for each in dtype.items))
    return tile(shape if arguments.items else None, dtype.dtype)


def _top(given: dict[str, KernelValue], call: ast.Call) -> KernelValue:
    first, count = given.get("x", UNKNOWN), given.get("k", UNKNOWN)
    return with_shape(first, (*first.shape[:-1], count.size)) if first.shape else UNKNOWN


_RULES: dict[str, Callable[[dict[str, KernelValue], ast.Call], KernelValue]] = {
    "load": lambda given, call: _read(given.get("pointer", UNKNOWN)),
    "load_tensor_descriptor": lambda given, call: _read(given.get("desc", UNKNOWN)),
    "advance": lambda given, call: given.get("base", UNKNOWN),
    "gather": lambda given, call: tile(given.get("index", UNKNOWN).shape, given.get("src", UNKNOWN).dtype),
    "histogram": lambda given, call: tile((given.get("num_bins", UNKNOWN).size,), "int32"),
    "randint": lambda given, call: tile(given.get("offset", UNKNOWN).shape, "int32"),
    "make_block_ptr": _block_pointer, "make_tensor_descriptor": _block_pointer, "arange": _arange, "zeros": _made,
    "full": _made,
    "zeros_like": _like, "cast": _cast, "to": _cast, "dot": _dot, "dot_scaled": _dot_scaled, "sum": _summed,
    "xor_sum": _summed, "max": _summed, "min": _summed, "argmax": _place, "argmin": _place, "reduce": _reduce,
    "where": _where, "reshape": _reshaped, "view": _reshaped, "broadcast_to": _broadcast_to, "trans": _turned,
    "permute": _turned, "expand_dims": _expanded, "join": _join, "split": _split, "interleave": _wider, "cat": _wider,
    "ravel": _flat, "rand": _random, "randn": _random, "inline_asm_elementwise": _assembly, "topk": _top,
}  # fmt: skip
