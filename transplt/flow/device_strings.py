"""Strings that name a device or a backend: `cuda`, `cuda:0`, `nccl`, `cpu:gloo,cuda:nccl`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.syntax.scan import Scan, parent

#: `{}` and `%d` stand for the number of a device; in `whole_value` of an f-string `{}` does.
DEVICE_STRING = re.compile(r"cuda(?::(?:\d+|%[dsi]|\{[^{}]*\})?)?", re.I)
#: torch takes the names of backends in any case.
BACKEND_STRINGS = ("nccl", "NCCL")
BACKENDS_STRING = re.compile(r"(?:\w+:\w+,)+\w+:\w+|cuda:nccl")


def strings_of(scan: Scan) -> Iterator[ast.expr]:
    """The string expressions of a file that spell a device or a backend, in no particular order."""
    for node in scan.strings:
        above = parent(node)
        if isinstance(above, ast.JoinedStr):
            if DEVICE_STRING.fullmatch(whole_value(above)):
                yield above
        elif len(value := str(node.value)) < 60 and (
            DEVICE_STRING.fullmatch(value) or value in BACKEND_STRINGS or BACKENDS_STRING.fullmatch(value)
        ):
            yield node


def whole_value(node: ast.expr) -> str:
    """The text of a string expression; the fields of an f-string count as `{}`."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
