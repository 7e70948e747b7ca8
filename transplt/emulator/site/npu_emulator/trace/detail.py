"""What every line computed, for the one step at which two runs were seen to differ."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..config import config
from ..user_code import nearest
from . import steps
from .figures import figures
from .log import callers, emit, is_quiet, quiet

_LIMIT = 20_000


class _Recording(TorchFunctionMode):
    """Records the result of every function of torch, by the user's line that called it."""

    recorded = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        assert config.trace
        wanted = config.trace["detail"]
        taken = max(steps.attempts().values(), default=0)
        if is_quiet() or steps.stepping() or self.recorded > _LIMIT or not wanted - 2 <= taken <= wanted:
            return result
        name = getattr(func, "__name__", "")
        given_back = result if isinstance(result, (tuple, list)) else [result]
        first = next((each for each in given_back if isinstance(each, torch.Tensor)), None)
        if first is None or (name.startswith("__") and name not in _ARITHMETIC):
            return result
        with quiet():
            values = figures(first)
        if values is not None:
            self.recorded += 1
            dtype = str(first.dtype).removeprefix("torch.")
            given = [*args, *(value for _, value in sorted((kwargs or {}).items()))]
            plain = [value for value in given if value is None or isinstance(value, (bool, int, float))]
            frame = nearest(1)
            emit(
                "op", frame, name=name, shape=list(first.shape), dtype=dtype, p=values, grad=first.requires_grad,
                given=plain, by=callers(frame),
            )  # fmt: skip
        return result


_ARITHMETIC = {f"__{name}__" for name in "add radd sub rsub mul rmul truediv rtruediv matmul pow getitem".split()}


def install() -> None:
    """Record from the step before the one asked for on."""
    _Recording().__enter__()
