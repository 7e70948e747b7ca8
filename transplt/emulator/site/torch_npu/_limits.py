"""The card's own rules: types that an operator refuses, casts that give another type, calls that do nothing.

They hold for an NPU, not for the stand-in for CUDA, nor where "cuda" means the npu. Facts and texts are those of the
static check (`npu_emulator.limits`).
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from npu_emulator import limits
from npu_emulator.config import config
from npu_emulator.limits import Limit
from npu_emulator.record import record
from npu_emulator.types import types_of
from npu_emulator.user_code import caller, kind, nearest

from . import _kernel, _types
from ._kernel import CPU_KEYS, boxed, info_of
from ._kind import EMULATED, KEY, KIND

#: Whether this process emulates a card with limits.
ENFORCED = KIND == "npu" and config.enforced
_aten: Any = torch.ops.aten


def refuse(limit: Limit, dtype: str = "", words: str = "") -> NoReturn:
    """Note the finding at the user's line, and raise what torch_npu does; `words` in place of the limit's."""
    record.finding(nearest(3), limit.code, limit.message_for(dtype), limit.help)
    raise RuntimeError(f"{EMULATED} {limit.error(dtype, words)}")


def refused(limits_of_one: tuple[Limit, ...]) -> dict[Any, Callable[[Any], NoReturn]] | None:
    """Types of torch -> what raises for them, of all limits of one operator; None where it takes all of them."""
    return {
        getattr(torch, name): functools.partial(_raise, limit) for limit in limits_of_one for name in limit.refuses
    } or None


def _raise(limit: Limit, dtype: Any) -> NoReturn:
    refuse(limit, str(dtype).removeprefix("torch."))


def _judge(info: Any, op: Any) -> None:
    namespace, _, name = info.name.partition("::")
    if namespace == "aten":
        info.types = _types.judge(name, info.arguments, _raise)
        for limit in limits.shapes().get(name.partition(".")[0].rstrip("_"), ()):
            info.most, info.too_many = limit.most, functools.partial(refuse, limit)


def checked(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """An own kernel of the engine, behind the check of its types."""
    if not ENFORCED or not types_of(name):
        return kernel
    base, _, overload = name.partition(".")
    info = info_of(getattr(getattr(_aten, base), overload or "default"))
    if info.types is None:
        return kernel

    @functools.wraps(kernel)
    def behind(*args: Any, **kwargs: Any) -> Any:
        info.types(args, kwargs)
        return kernel(*args, **kwargs)

    return behind


def _casts(limit: Limit) -> Callable[..., Any]:
    """`_to_copy` of torch_npu: a cast to float64, without a device, gives float32, and warns once."""
    op, source, target = _aten._to_copy.default, torch.float64, getattr(torch, limit.becomes)
    warned: list[bool] = []

    def to_copy(self: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, **kwargs: Any) -> Any:
        if dtype is source and layout is None and device is None and self.dtype is not source:
            dtype = target
            if not warned:
                warned.append(True)
                warnings.warn(limit.words, stacklevel=2)
            _report_of_user(limit.code, limit.message, limit.help)
        return op.redispatch(CPU_KEYS, self, dtype=dtype, layout=layout, device=device, **kwargs)

    return to_copy


def _report_of_user(code: str, message: str, advice: str) -> None:
    """A finding where the user's own line asks for it; PyTorch's lines may (GradScaler casts its scale)."""
    frame: Any = sys._getframe(2)
    while frame is not None and kind(frame.f_code.co_filename) == "transparent":
        frame = frame.f_back
    if frame is not None and kind(frame.f_code.co_filename) == "user":
        record.finding(frame, code, message, advice, "warning")


def report_call(name: str, depth: int = 3) -> None:
    """Note that the user's line calls what only warns, or gives a constant, on an NPU.

    It does not count as something left: where the answer is only shown, a migration writes this call itself (NPU240),
    and where it is compared, None stops the script in that line.
    """
    rule = limits.call(name)
    frame = caller(depth)
    if ENFORCED and rule is not None and frame is not None:
        record.finding(frame, rule.code, rule.message, rule.help, "info")


def install(library: Any) -> None:
    """Judge operators at their first use; `library` is where kernels of aten are registered."""
    if not ENFORCED:
        return
    _kernel.first_use.append(_judge)
    library.impl("mv", functools.partial(boxed, _aten.mv.default), KEY)  # or PyTorch makes addmv of it
    for limit in limits.casts().get("_to_copy", ()):
        library.impl("_to_copy", _casts(limit), KEY)
