"""Other sizes of an image: interpolation, and gradients of padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import operator

aten = torch.ops.aten


def _scales(values: Any) -> list[Any]:
    """Scales as ATen has them: torch_npu writes 0 or -1 for those that the program did not give."""
    return [value if value > 0 else None for value in values]


def _forward(resample: Any, axes: int) -> Callable[..., Any]:
    def run(input: Any, size: Any, *rest: Any) -> Any:
        aligned = [bool(rest[0])] if len(rest) > axes else []
        scales = _scales(rest[len(aligned) :]) or [None] * axes
        return resample(input, size, *aligned, *scales)

    return run


def _backward(resample: Any, axes: int) -> Callable[..., Any]:
    def run(grad: Any, size: Any, input_size: Any, *rest: Any) -> Any:
        aligned = [bool(rest[0])] if len(rest) > axes else []
        return resample(grad, size, input_size, *aligned, *_scales(rest[len(aligned) :]))

    return run


#: ATen's operator by CANN's functions; for an operator of n axes the last n arguments are its scales.
_FORWARD = {
    "upsample_nearest1d": "UpsampleNearest1d UpsampleNearest1dV2",
    "upsample_nearest2d": "UpsampleNearest2d UpsampleNearest2dV2",
    "upsample_nearest3d": "UpsampleNearest3d",
    "_upsample_nearest_exact1d": "UpsampleNearestExact1d",
    "_upsample_nearest_exact2d": "UpsampleNearestExact2d",
    "_upsample_nearest_exact3d": "UpsampleNearestExact3d",
    "upsample_linear1d": "UpsampleLinear1d",
    "upsample_bilinear2d": "UpsampleBilinear2d",
    "upsample_trilinear3d": "UpsampleTrilinear3d",
    "upsample_bicubic2d": "UpsampleBicubic2d",
    "_upsample_bilinear2d_aa": "UpsampleBilinear2dAA",
    "_upsample_bicubic2d_aa": "UpsampleBicubic2dAA",
}
_BACKWARD = {
    "upsample_nearest1d_backward": "UpsampleNearest1dBackward",
    "upsample_nearest2d_backward": "UpsampleNearest2dBackward",
    "upsample_nearest3d_backward": "UpsampleNearest3dBackward",
    "_upsample_nearest_exact1d_backward": "UpsampleNearestExact1dBackward",
    "_upsample_nearest_exact2d_backward": "UpsampleNearestExact2dBackward",
    "_upsample_nearest_exact3d_backward": "UpsampleNearestExact3dBackward",
    "upsample_linear1d_backward": "UpsampleLinear1dBackward",
    "upsample_bilinear2d_backward": "UpsampleBilinear2dBackward UpsampleBilinear2dBackwardV2",
    "upsample_trilinear3d_backward": "UpsampleTrilinear3dBackward",
    "upsample_bicubic2d_backward": "UpsampleBicubic2dBackward",
    "_upsample_bilinear2d_aa_backward": "UpsampleBilinear2dAABackward",
    "_upsample_bicubic2d_aa_backward": "UpsampleBicubic2dAAGrad",
}
for _table, _run in ((_FORWARD, _forward), (_BACKWARD, _backward)):
    for _name, _functions in _table.items():
        _axes = int(next(letter for letter in _name if letter.isdigit()))
        operator(*_functions.split())(_run(getattr(aten, _name).default, _axes))
