"""What kernels said in torch share: how they are called, the type they compute in, their gradients, their buffers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import torch

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def as_compiled(function: _Kernel) -> _Kernel:
    """`function` as a compiled kernel runs: nothing is recorded for gradients, autocast changes no type inside, and
    results that are not arguments are no views: callers change what an `autograd.Function` gave them in place.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        device = next((each.device.type for each in args if isinstance(each, torch.Tensor)), "cpu")
        with torch.no_grad(), torch.autocast(device, enabled=False):
            found = function(*args, **kwargs)
            if isinstance(found, (list, tuple)):
                return type(found)(each if each is None else unshared(each, args) for each in found)
            return unshared(found, args)

    return cast(_Kernel, run)


def unshared(found: Any, given: Sequence[Any] = ()) -> Any:
    """A tensor in memory of its own where it is a view and none of `given`; else what it is."""
    if not isinstance(found, torch.Tensor) or not found._is_view() or any(found is each for each in given):
        return found
    return found.clone()


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` as float32 where it is of 16 bits, as kernels add up; else itself."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def kernel_gradients(
    compute: Callable[..., torch.Tensor], inputs: Sequence[torch.Tensor], grad: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """The gradients of `compute(*inputs)` for `grad`; it is computed again. Zeros where none comes."""
    with torch.enable_grad():
        leaves = [each.detach().requires_grad_() for each in inputs]
        result = compute(*leaves)
    found = torch.autograd.grad(result, leaves, grad.to(result.dtype), allow_unused=True)
    return tuple(torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, found))  # noqa: B905


def filled(buffer: torch.Tensor, values: torch.Tensor) -> None:
    """Give a buffer of any size the shape and the values of `values`, in its own type."""
    if buffer.shape != values.shape:
        buffer.resize_(values.shape)
    buffer.copy_(values)
