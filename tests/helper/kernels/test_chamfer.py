"""The chamfer distance against loops, and its gradient against autograd."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helper.in_ranks import torch
from tests.helper.kernels.references import check_rows, kernels
from tests.helper.kernels.rows import np

pytestmark = pytest.mark.torch


def clouds(n: int, m: int, axes: int, grid: bool = False) -> tuple[Any, Any]:
    draw = np.random.default_rng(n * 7 + m)
    make = (lambda *shape: draw.integers(0, 2, shape)) if grid else (lambda *shape: draw.normal(size=shape))
    return tuple(torch.tensor(make(2, size, axes).astype(np.float32)) for size in (n, m))  # type: ignore[return-value]


def nearest(a: Any, b: Any) -> tuple[Any, Any]:
    """Distances and indices of one cloud, the first of equals."""
    found = [[float(np.float32(((p - q) ** 2).sum())) for q in b.double().numpy()] for p in a.double().numpy()]
    return [min(row) for row in found], [row.index(min(row)) for row in found]


@pytest.mark.parametrize(
    ("n", "m", "axes", "grid"), [(9, 5, 3, False), (5, 9, 2, False), (6, 6, 3, True), (1, 1, 5, False)]
)
def test_each_point_finds_the_nearest_of_the_other_cloud(n: int, m: int, axes: int, grid: bool) -> None:
    one, two = clouds(n, m, axes, grid)
    dist1, dist2, idx1, idx2 = kernels.chamfer_forward(one.transpose(0, 1).contiguous().transpose(0, 1), two)
    assert (idx1.dtype, idx2.dtype) == (torch.int32, torch.int32)
    for each in range(2):
        for distances, idx, (a, b) in ((dist1, idx1, (one, two)), (dist2, idx2, (two, one))):
            wanted, places = nearest(a[each], b[each])
            assert np.allclose(distances[each].numpy(), wanted, atol=1e-5)
            assert idx[each].tolist() == places
    into = torch.empty_like(dist1), torch.empty_like(dist2), torch.empty_like(idx1), torch.empty_like(idx2)
    assert kernels.chamfer_forward_into(one, two, *into) == 1
    assert all(torch.equal(a, b) for a, b in zip(into, (dist1, dist2, idx1, idx2), strict=True))


@pytest.mark.parametrize("axes", [2, 3])
def test_the_gradient_is_that_of_the_distance(axes: int) -> None:
    one, two = (each.double().requires_grad_() for each in clouds(7, 5, axes))
    squares = (one[:, :, None] - two[:, None]).square().sum(-1)
    grad1, grad2 = torch.rand(2, 7, dtype=torch.float64), torch.rand(2, 5, dtype=torch.float64)
    total = (squares.min(2).values * grad1).sum() + (squares.min(1).values * grad2).sum()
    wanted = torch.autograd.grad(total, (one, two))
    a, b = one.detach(), two.detach()
    _, _, idx1, idx2 = kernels.chamfer_forward(a, b)
    for mine, theirs in zip(kernels.chamfer_backward(a, b, idx1, idx2, grad1, grad2), wanted, strict=True):
        assert torch.allclose(mine, theirs)
    sums = torch.ones_like(a), torch.ones_like(b)
    assert kernels.chamfer_backward_into(a, b, *sums, grad1, grad2, idx1, idx2) == 1
    for mine, theirs in zip(sums, wanted, strict=True):
        assert torch.allclose(mine, theirs + 1)


def test_an_empty_cloud_leaves_the_buffers() -> None:
    one, none = torch.rand(1, 4, 3), torch.rand(1, 0, 3)
    dist1, _, idx1, _ = kernels.chamfer_forward(one, none)
    assert dist1.tolist() == [[0.0] * 4] and idx1.tolist() == [[0] * 4]
    grads = kernels.chamfer_backward(one, none, idx1, torch.zeros(1, 0).int(), torch.ones(1, 4), torch.ones(1, 0))
    assert grads[0].abs().sum() == 0 and grads[1].shape == (1, 0, 3)


def test_arguments_in_another_order_are_refused() -> None:
    one, two = clouds(4, 4, 3)
    dist1, dist2, idx1, idx2 = kernels.chamfer_forward(one, two)
    with pytest.raises(TypeError, match="another order"):
        kernels.chamfer_backward(one, two, dist1, dist2, idx1, idx2)


def test_gradients_that_are_filled_with_zeros_first() -> None:
    one, two = clouds(4, 5, 3)
    _, _, idx1, idx2 = kernels.chamfer_forward(one, two)
    pulls = torch.rand(2, 4), torch.rand(2, 5)
    wanted = kernels.chamfer_backward(one, two, idx1, idx2, *pulls)
    held = torch.ones_like(one), torch.ones_like(two)
    assert kernels.chamfer_backward_over(one, two, *held, *pulls, idx1, idx2) is None
    assert all(torch.allclose(mine, theirs) for mine, theirs in zip(held, wanted, strict=True))


@pytest.mark.parametrize("shape", [(2, 4, 4), (4, 3)])
def test_points_that_kernels_of_the_name_take_in_several_ways(shape: tuple[int, ...]) -> None:
    points, held = torch.rand(*shape), torch.zeros(2, 4)
    with pytest.raises(ValueError, match="known for"):
        kernels.chamfer_forward_into(points, points, held, held, held.int(), held.int())


def test_the_table_names_what_there_is() -> None:
    check_rows("chamfer")
