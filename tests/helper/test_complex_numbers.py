"""Operators on real and imaginary parts, and on the CPU, against torch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from transplt.helper.complex_numbers import by_parts, by_products, polar  # noqa: E402
from transplt.helper.host_operators import on_cpu  # noqa: E402

pytestmark = pytest.mark.torch


def numbers(*shape: int, dtype: Any = None, grad: bool = False) -> Any:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randn(*shape, dtype=dtype or torch.complex128, generator=generator).requires_grad_(grad)


INDEX = torch.tensor([2, 0, 1, 1])
MASK = torch.tensor([True, False, True, True])
PLACES: list[Callable[[Any], Any]] = [
    lambda x: x[INDEX], lambda x: x[:, INDEX], lambda x: x[INDEX, 1:], lambda x: x[MASK], lambda x: x[None, INDEX],
    lambda x: x[INDEX][:, INDEX], lambda x: x[:, INDEX, INDEX], lambda x: x[[0, 1]], lambda x: x[INDEX, :, INDEX],
    lambda x: x[INDEX.view(2, 2)], lambda x: x[:, None, INDEX], lambda x: x[INDEX[:0]],
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("turned", [False, True])
def test_an_index_of_the_real_view(place: Callable[[Any], Any], turned: bool) -> None:
    """What the edit writes: the view is indexed as the tensor is, and what comes of it can be viewed as complex."""
    x = numbers(4, 4, 4).transpose(0, 2) if turned else numbers(4, 4, 4)
    assert torch.equal(torch.view_as_complex(place(torch.view_as_real(x))), place(x))


def test_an_index_behind_an_ellipsis() -> None:
    for x in (numbers(3, 4, 5), numbers(3, 5, 4).transpose(1, 2)):
        assert torch.equal(torch.view_as_complex(torch.view_as_real(x)[..., INDEX, :]), x[..., INDEX])


@pytest.mark.parametrize(
    ("function", "given", "more"),
    [
        (torch.gather, (numbers(4, 4), 1, INDEX.expand(4, 4)), {}),
        (torch.roll, (numbers(4, 3), 1), {"dims": 0}),
        (torch.Tensor.roll, (numbers(4, 3), (1, 2), (0, 1)), {}),
        (torch.tril, (numbers(4, 4),), {"diagonal": 1}),
        (torch.cat, ([numbers(2, 3), numbers(1, 3).real, numbers(3, 3)],), {"dim": 0}),
        (torch.index_add, (numbers(4, 3), 0, INDEX, numbers(4, 3)), {"alpha": 2}),
        (torch.masked_select, (numbers(4), MASK), {}),
        (torch.roll, (numbers(3).real, 1), {}),
    ],
)
def test_what_moves_numbers(function: Callable[..., Any], given: tuple[Any, ...], more: dict[str, Any]) -> None:
    assert torch.equal(by_parts(function, *given, **more), function(*given, **more))


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (torch.matmul, (numbers(3, 4), numbers(4, 5))),
        (torch.matmul, (numbers(2, 3, 4), numbers(4))),
        (torch.bmm, (numbers(2, 3, 4), numbers(2, 4, 5))),
        (torch.matmul, (numbers(3, 4).real, numbers(4, 5).real)),
        (torch.einsum, ("ab,bc->ca", numbers(3, 4), numbers(4, 5))),
        (torch.matmul, (numbers(3, 4).conj(), numbers(4, 5))),
        (torch.matmul, (numbers(0, 4), numbers(4, 5))),
    ],
)
def test_products(function: Callable[..., Any], given: tuple[Any, ...]) -> None:
    torch.testing.assert_close(by_products(function, *given), function(*given))


def test_products_of_a_real_one_with_a_complex_one() -> None:
    real, x = numbers(3, 4).real, numbers(4, 5)
    torch.testing.assert_close(by_products(torch.matmul, real, x), real.to(x.dtype) @ x)
    torch.testing.assert_close(by_products(torch.matmul, x.mT, real.mT), x.mT @ real.mT.to(x.dtype))


def test_gradients() -> None:
    x, w = numbers(3, 4, grad=True), numbers(4, 2, grad=True)
    assert torch.autograd.gradcheck(lambda x, w: by_products(torch.matmul, x, w), (x, w))
    assert torch.autograd.gradcheck(lambda x: by_parts(torch.roll, x, 1, 0), (x,))
    angle = numbers(3, dtype=torch.float64, grad=True)
    assert torch.autograd.gradcheck(lambda angle: polar(angle.abs() + 1, angle), (angle,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_polar(dtype: Any) -> None:
    size, angle = torch.rand(5, 3, dtype=dtype), torch.randn(3, dtype=dtype)
    found, wanted = polar(size, angle), torch.polar(size, angle.expand(5, 3))
    assert found.dtype == wanted.dtype
    torch.testing.assert_close(found, wanted)


def test_on_the_cpu_nothing_differs() -> None:
    d = numbers(4, 4, dtype=torch.float64)
    assert torch.equal(on_cpu(torch.matmul, d, d), d @ d)
    values, places = on_cpu(torch.sort, d, dim=0)
    assert torch.equal(values, d.sort(0).values) and torch.equal(places, d.sort(0).indices)
    assert on_cpu(torch.sort, d).values is not None
    assert [*map(float, on_cpu(torch.aminmax, d))] == [float(d.min()), float(d.max())]
