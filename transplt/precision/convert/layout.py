"""Tensors of a device in another order of their dimensions: without the blocks of 16 channels that it computes on.

Source: msaccucmp of mindstudio-probe 26.2.0 (`convert -f FORMAT -s SHAPE`, format_manager) and the document of formats
of CANN (NC1HWC0, FRACTAL_NZ, FRACTAL_Z).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from transplt.base.errors import UsageError, shown

#: A numpy.ndarray.
Array = Any

FORMATS = ("NCHW", "NHWC", "ND", "NCDHW", "NDHWC")
#: From a plain format to NCHW or NCDHW.
_PLAIN = {"NHWC": (0, 3, 1, 2), "HWCN": (3, 2, 0, 1), "CHWN": (3, 0, 1, 2), "NDHWC": (0, 4, 1, 2, 3),
          "DHWCN": (4, 3, 0, 1, 2), "NCHW": (0, 1, 2, 3), "NCDHW": (0, 1, 2, 3, 4)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layout:
    """The order that is asked for; `shape` is that of the tensor in its network, in this order, which shows where the
    padding of blocks ends. () where nobody knows it."""

    format: str
    shape: tuple[int, ...] = ()


def in_layout(array: Array, form: str, wanted: Layout) -> Array:
    """`array`, which is in the format `form`, in the order that is wanted. UsageError where there is no such way."""
    if form == wanted.format:
        return array
    if wanted.format == "ND":
        return _cropped(_of_blocks(array, form) if form == "FRACTAL_NZ" else array, wanted.shape, form)
    last = wanted.format in ("NHWC", "NDHWC")
    shape = wanted.shape
    if last and shape:
        shape = (shape[0], shape[-1], *shape[1:-1])
    made = _channels_first(array, form, shape)
    if made is None or made.ndim != len(wanted.format):
        shown_shape = [*array.shape]
        raise UsageError(f"a tensor in {form or 'no format'} of shape {shown_shape} is not written as {wanted.format}")
    made = _cropped(made, shape, form)
    return made.transpose(0, *range(2, made.ndim), 1) if last else made


def _channels_first(array: Array, form: str, shape: tuple[int, ...]) -> Array | None:
    if form in _PLAIN and array.ndim == len(_PLAIN[form]):
        return array.transpose(_PLAIN[form])
    if form in ("NC1HWC0", "NC1HWC0_C04") and array.ndim == 5:
        n, c1, h, w, c0 = array.shape
        return array.transpose(0, 1, 4, 2, 3).reshape(n, c1 * c0, h, w)
    if form == "NDC1HWC0" and array.ndim == 6:
        n, d, c1, h, w, c0 = array.shape
        return array.transpose(0, 2, 5, 1, 3, 4).reshape(n, c1 * c0, d, h, w)
    if form == "FRACTAL_Z" and array.ndim == 4:
        if len(shape) != 4:
            raise UsageError("a tensor in FRACTAL_Z needs its shape: --shape N,C,H,W")
        _, n1, n0, c0 = array.shape
        c1 = math.ceil(shape[1] / c0)
        if c1 * shape[2] * shape[3] != array.shape[0]:
            raise UsageError(f"--shape {[*shape]} is not that of a tensor in FRACTAL_Z of shape {[*array.shape]}")
        blocks = array.reshape(c1, shape[2], shape[3], n1 * n0, c0)
        return blocks.transpose(3, 0, 4, 1, 2).reshape(n1 * n0, c1 * c0, shape[2], shape[3])
    if form == "ND" and array.ndim == len(shape):
        return array
    return None


def _of_blocks(array: Array, form: str) -> Array:
    """Of FRACTAL_NZ, whose last dimensions are N1, M1, M0, N0."""
    if array.ndim < 4:
        raise UsageError(f"a tensor in {form} has four dimensions at least, and not {[*array.shape]}")
    *head, n1, m1, m0, n0 = array.shape
    axes = (*range(len(head)), *(len(head) + each for each in (1, 2, 0, 3)))
    return array.transpose(axes).reshape(*head, m1 * m0, n1 * n0)


def _cropped(array: Array, shape: tuple[int, ...], form: str) -> Array:
    if not shape:
        return array
    if len(shape) != array.ndim or any(one > other for one, other in zip(shape, array.shape, strict=False)):
        raise UsageError(f"--shape {[*shape]} does not lie in a tensor of shape {[*array.shape]} (in {form})")
    return array[tuple(slice(size) for size in shape)]


def read_shape(text: str) -> tuple[int, ...]:
    """`1,3,224,224`. UsageError for anything else."""
    parts = [part.strip() for part in text.replace("x", ",").split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f"--shape {shown(text)}: sizes, as 1,3,224,224")
    return tuple(map(int, parts))
