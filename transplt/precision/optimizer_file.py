"""`optimizer.json` beside the operators of a step: what optimizers took and left, and where they were made.

A probe copy of `transplt instrument` writes it, and `transplt run --dump`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from transplt.base.errors import shown
from transplt.precision.files import read_json
from transplt.precision.record import Row, Tensor, UnusableDump, called

FILE = "optimizer.json"
#: Behind the name of a row: where its optimizer was made.
MADE = ".made"
#: The names of parameters have those of wrappers in front.
_WRAPPED = re.compile(r"^((?:\d+\.)?)(?:module\.)+")
_PARTS = (
    ("input_kwargs", ""), ("made", "made."), ("gradients", "gradient."), ("state", "state."),
    ("parameters", "parameters."), ("output", "output."), ("left", "left."),
)  # fmt: skip
#: Puts the tensors and numbers of a value into a list, by its name.
Collect = Callable[[Any, str, list[Tensor]], None]


def optimizer_rows(folder: str, collect: Collect) -> list[Row]:
    """Settings, those that it was made with, gradients and states are what goes in; weights, what comes out."""
    rows = []
    for name, entry in _entries(folder).items():
        inputs: list[Tensor] = []
        parameters: list[Tensor] = []
        outputs: list[Tensor] = []
        for key, prefix in _PARTS:
            found = parameters if key == "parameters" else outputs if key in ("output", "left") else inputs
            values = entry.get(key)
            for place, value in values.items() if isinstance(values, dict) else ():
                collect(value, prefix + _WRAPPED.sub(r"\1", place), found)
        rows.append(Row(name, *called(name), tuple(inputs), tuple(outputs), tuple(parameters)))
    return rows


def optimizer_stacks(folder: str) -> dict[str, tuple[str, ...]]:
    """The frames of each step of an optimizer, and by its name and MADE those of where it was made."""
    found: dict[str, tuple[str, ...]] = {}
    for name, entry in _entries(folder).items():
        for key, stack in ((name, "stack"), (name + MADE, "made_stack")):
            if isinstance(frames := entry.get(stack), list):
                found[key] = tuple(frame for frame in frames if isinstance(frame, str))
    return found


def _entries(folder: str) -> Mapping[str, dict[str, Any]]:
    path = os.path.join(folder, FILE)
    if not os.path.lexists(path):
        return {}
    document = read_json(path)
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, dict):
        raise UnusableDump(f"{shown(path)}: has no `data`")
    return {name: entry for name, entry in data.items() if isinstance(entry, dict)}
