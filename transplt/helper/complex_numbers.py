"""Complex numbers where a card takes none: an operator runs on their real and imaginary parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["by_parts", "by_products", "polar"]


def by_parts(function: Callable[..., torch.Tensor], *given: Any, **more: Any) -> torch.Tensor:
    """`function(*given, **more)` of complex tensors, for what moves numbers and mixes none, such as torch.gather.

    It runs on the real parts and on the imaginary parts. Without a complex tensor it runs as it is.
    """
    if not any(_complex_within(each) for each in (*given, *more.values())):
        return function(*given, **more)
    parts = []
    for which in (False, True):
        named = {key: _part_of(each, which) for key, each in more.items()}
        parts.append(function(*(_part_of(each, which) for each in given), **named))
    return torch.complex(*parts)


def by_products(function: Callable[..., torch.Tensor], *given: Any) -> torch.Tensor:
    """`function(*given)` of two tensors, complex or real, for what is linear in both: torch.matmul, torch.einsum.

    Four real products (two where one of them is real) take the place of a complex one.
    """
    first, second = (index for index, each in enumerate(given) if torch.is_tensor(each))

    def product(one: bool, other: bool) -> torch.Tensor:
        chosen = {first: _part_of(given[first], one), second: _part_of(given[second], other)}
        return function(*(chosen.get(index, each) for index, each in enumerate(given)))

    left, right = given[first].is_complex(), given[second].is_complex()
    if left and right:
        return torch.complex(product(False, False) - product(True, True), product(False, True) + product(True, False))
    if left or right:
        return torch.complex(product(False, False), product(left, right))
    return function(*given)


def polar(abs: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """torch.polar(abs, angle), by cosine and sine of the same type: cards have it for float32 alone."""
    return torch.complex(abs * angle.cos(), abs * angle.sin())


def _complex_within(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_complex_within(each) for each in value)
    return bool(torch.is_tensor(value) and value.is_complex())


def _part_of(value: Any, imaginary: bool) -> Any:
    """One part of a value: a real number has no imaginary part, and whole numbers are places."""
    if isinstance(value, (list, tuple)):
        return [_part_of(each, imaginary) for each in value]
    if torch.is_tensor(value) and value.is_complex():
        return value.imag if imaginary else value.real
    if torch.is_tensor(value) and value.is_floating_point():
        return torch.zeros_like(value) if imaginary else value
    return value
