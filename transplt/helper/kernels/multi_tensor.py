"""Operations on lists of tensors, as apex calls them: norms, scaling, and sums of two lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from transplt.helper.kernels.recompute import as_compiled, widened

__all__ = ["multi_tensor_apply", "multi_tensor_axpby", "multi_tensor_l2norm", "multi_tensor_scale"]


def multi_tensor_apply(
    op: Callable[..., Any], noop_flag_buffer: torch.Tensor, tensor_lists: Sequence[Sequence[torch.Tensor]], *args: Any
) -> Any:
    """What apex's multi_tensor_applier returns: `op` with pieces of 65,536 numbers, which the functions here ignore."""
    return op(2048 * 32, noop_flag_buffer, tensor_lists, *args)


def _flag(noop_flag: torch.Tensor, tensors: Sequence[torch.Tensor]) -> None:
    """1 into `noop_flag` where one of the tensors holds an infinity or a NaN; it stays where none does."""
    if tensors:
        whole = torch.stack([each.isfinite().all().to(noop_flag.device) for each in tensors]).all()
        noop_flag.masked_fill_(~whole, 1)


@as_compiled
def multi_tensor_l2norm(
    chunk_size: int, noop_flag: torch.Tensor, tensor_lists: Sequence[Sequence[torch.Tensor]],
    per_tensor: bool | None = False,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """The norm of all tensors of the first list, float32 [1], and those of each, [tensors], or [0] if not asked for."""
    tensors = tensor_lists[0]
    if not tensors:
        return torch.zeros(1, device=noop_flag.device), torch.zeros(0, device=noop_flag.device)
    each = torch.stack([torch.linalg.vector_norm(widened(one)) for one in tensors])
    return torch.linalg.vector_norm(each).reshape(1), each if per_tensor else each[:0]


@as_compiled
def multi_tensor_scale(
    chunk_size: int, noop_flag: torch.Tensor, tensor_lists: Sequence[Sequence[torch.Tensor]], scale: float
) -> None:
    """The first list times `scale` into the second, in the types of that; `noop_flag` becomes 1 at infinities and NaN.

    It is looked at on the card: nothing waits for it.
    """
    given, into = tensor_lists
    for one, two in zip(given, into):  # noqa: B905
        two.copy_(widened(one) * float(scale))
    _flag(noop_flag, given)


@as_compiled
def multi_tensor_axpby(
    chunk_size: int, noop_flag: torch.Tensor, tensor_lists: Sequence[Sequence[torch.Tensor]], a: float, b: float,
    arg_to_check: int = -1,
) -> None:  # fmt: skip
    """a * x + b * y of the first two lists into the third; `noop_flag` becomes 1 at infinities and NaN.

    `arg_to_check` 0 looks at the first list, 1 at the second, -1 at both.
    """
    first, second, into = tensor_lists
    for x, y, out in zip(first, second, into):  # noqa: B905
        out.copy_(widened(x) * float(a) + widened(y) * float(b))
    _flag(noop_flag, [*(first if arg_to_check != 1 else ()), *(second if arg_to_check != 0 else ())])
