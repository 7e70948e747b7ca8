"""What a deformable convolution reads, in the older interface of operators: batch, rows, columns, channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .named_operators import named
from .operators.deformable import Window, deformed, deformed_backward


def _first(value: Any) -> Any:
    """Channels before rows and columns."""
    return value.permute(0, 3, 1, 2)


def _window(ksize: Sequence[int], strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int]) -> Window:
    return ksize, strides[1:3], pads[::2], dilations[1:3]


@named("DeformableOffsets")
def deformable_offsets(
    images: Any, offsets: Any, *, ksize: Any, strides: Any, pads: Any, dilations: Any, deformable_groups: int,
    modulated: bool,
) -> Any:  # fmt: skip
    """See `deformed`."""
    window = _window(ksize, strides, pads, dilations)
    read = deformed(_first(images), _first(offsets), window, deformable_groups, modulated)
    return read.permute(0, 2, 3, 1)


@named("DeformableOffsetsGrad")
def deformable_offsets_backward(
    grad: Any, images: Any, offsets: Any, *, ksize: Any, strides: Any, pads: Any, dilations: Any,
    deformable_groups: int, modulated: bool,
) -> Any:  # fmt: skip
    """Gradients of images and offsets."""
    window = _window(ksize, strides, pads, dilations)
    found = deformed_backward(
        _first(grad), _first(images), _first(offsets), window, deformable_groups, modulated
    )
    return tuple(each.permute(0, 2, 3, 1) for each in found)
