"""Where a kernel stands: the line of its source that an operation comes from."""

from __future__ import annotations

import os
import sys
from functools import cache
from types import CodeType, FrameType
from typing import NamedTuple

import numpy
import triton

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TRITON = os.path.dirname(os.path.abspath(triton.__file__)) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep
#: Files of Triton that an operation goes through on its way from the kernel: they decide nothing by themselves.
_WAY = tuple(
    os.path.join(_TRITON, *parts)
    for parts in (
        ("language", "core.py"), ("language", "semantic.py"), ("language", "math.py"), ("runtime", "interpreter.py"),
        ("runtime", "jit.py"), ("runtime", "autotuner.py"),
    )
)  # fmt: skip


@cache
def _kind(filename: str) -> str:
    """`way`, `triton` (functions that Triton writes in its own language) or `kernel`."""
    if filename.startswith((_HERE, _NUMPY, "<")) or filename in _WAY:
        return "way"
    return "triton" if filename.startswith(_TRITON) else "kernel"


class Kept(NamedTuple):
    """What is asked of a frame, kept beyond its line."""

    f_code: CodeType
    f_lineno: int


def kept() -> Kept | None:
    """The place of `line`, as it is now."""
    frame = line()
    return Kept(frame.f_code, frame.f_lineno) if frame is not None else None


def line() -> FrameType | None:
    """The innermost frame of a kernel, or of a function that it calls, that is no part of Triton."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _kind(frame.f_code.co_filename) != "kernel":
        frame = frame.f_back
    return frame


def written_line() -> FrameType | None:
    """The frame of the line that has this operation; None where it is a step of one of Triton's own functions."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        kind = _kind(frame.f_code.co_filename)
        if kind != "way":
            return frame if kind == "kernel" else None
        frame = frame.f_back
    return None
