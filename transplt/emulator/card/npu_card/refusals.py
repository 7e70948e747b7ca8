"""What ProcessGroupHCCL, HCCL and gloo do not take: they raise it, and a run has a finding at the user's line."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from dataclasses import replace as replace_fields
from typing import Any

from npu_emulator import limits
from npu_emulator.limits import Limit
from npu_emulator.record import record
from npu_emulator.saves import tensors_of
from npu_emulator.trace.collectives import replace
from npu_emulator.trace.exchanges import FUNCTIONS
from npu_emulator.user_code import nearest

#: The words of ProcessGroupHCCL (as rules/support/card_limits.json has them), and those of HCCL's own refusals.
_TYPE = re.compile(r"HCCL (\w+): Unsupported data type|(Unsupported data type for HCCL process group)")
_OPERATION = re.compile(r"Cannot use ReduceOp\.(\w+) with HCCL")
_OF_HCCL = "EI0003"
#: What torch.distributed says where gloo is given tensors of the card.
_OF_GLOO = "No backend type associated with device type npu"
_here = threading.local()


def install() -> None:
    for name in FUNCTIONS:
        replace(name, functools.partial(_telling, name))


def _telling(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        depth = getattr(_here, "depth", 0)
        _here.depth = depth + 1
        try:
            return original(*args, **kwargs)
        except RuntimeError as error:
            if depth:
                raise  # told of the function that the user called
            dtypes = {str(each.dtype).removeprefix("torch.") for _, each in tensors_of([*args, *kwargs.values()])}
            limit = _limit(name, str(error), dtypes)
            if limit is not None:
                record.finding(nearest(2), limit.code, limit.message_for(min(dtypes, default="")), limit.help)
            raise
        finally:
            _here.depth = depth

    return collective


def _limit(name: str, error: str, dtypes: set[str]) -> Limit | None:
    """The limit of the table that an error comes from; None for other errors."""
    if _OF_GLOO in error:
        return limits.text("gloo")
    if found := _OPERATION.search(error):
        return next(iter(limits.reductions().get(found[1], ())), None)
    if found := _TYPE.search(error):
        known = limits.collectives().get(found[1] or "*", ())
        of_type = [each for each in known if dtypes & each.refuses]
        return replace_fields(of_type[0], name=name) if of_type else limits.of_collective(name)
    return limits.of_collective(name) if _OF_HCCL in error else None
