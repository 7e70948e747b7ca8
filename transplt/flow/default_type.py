"""The type of tensors that are made without one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.syntax.names import Names
from transplt.syntax.nodes import argument_at, last_name
from transplt.syntax.scan import Scan

_DOUBLE = ("torch.float64", "torch.double", "torch.DoubleTensor", "torch.cuda.DoubleTensor")


def sets_double(scan: Scan, names: Names) -> bool:
    """True for a file that makes float64 the default: `torch.set_default_dtype(torch.float64)`."""
    return any(True for _ in double_defaults(scan, names))


def double_defaults(scan: Scan, names: Names) -> Iterator[ast.expr]:
    """The types that calls make the default where they are float64."""
    if b"set_default_" not in scan.source.utf8:
        return
    for call in scan.calls:
        if last_name(call.func) in ("set_default_dtype", "set_default_tensor_type"):
            given = argument_at(call, 0, "d")
            if given is not None and (names.qualified(given) or getattr(given, "value", None)) in _DOUBLE:
                yield given
