"""The elements of tensors, a file each: `Functional.conv2d.0.forward.input.0.pt`."""

from __future__ import annotations

import os
from typing import Any

import torch

from . import steps
from .entries import Keep

#: As it was before anybody watched it.
_save: Any = torch.save


def keeper(row: str) -> Keep:
    """What keeps the tensors of a row; None where figures are all that is asked for."""
    if steps.asked()["task"] != "tensor":
        return None
    form = steps.asked()["format"]
    where = os.path.join(steps.folder(), "dump_tensor_data")

    def keep(plain: Any, place: str) -> str:
        name = f"{row}.{place}.{form}"
        os.makedirs(where, exist_ok=True)
        path = os.path.join(where, name)
        copied = plain.clone(memory_format=torch.contiguous_format)
        if form == "pt":
            _save(copied, path)
        else:
            import numpy

            # numpy has no bfloat16; float32 holds every one.
            numpy.save(path, (copied.float() if copied.dtype == torch.bfloat16 else copied).numpy())
        return name

    return keep
