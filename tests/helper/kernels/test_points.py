"""Operators on points against loops written from their definitions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helper.in_ranks import torch
from tests.helper.kernels.references import check_rows, kernels
from tests.helper.kernels.rows import np

pytestmark = pytest.mark.torch


def cloud(*shape: int, seed: int = 0, grid: int = 0) -> Any:
    """Points, on a coarse grid where there shall be ties."""
    draw = np.random.default_rng(seed)
    values = draw.integers(0, grid, shape) / 2 + 1 if grid else draw.normal(size=shape)
    return torch.tensor(values.astype(np.float32))


def indices(*shape: int, below: int, seed: int = 1) -> Any:
    return torch.tensor(np.random.default_rng(seed).integers(0, below, shape), dtype=torch.int32)


def squares(a: Any, b: Any) -> Any:
    """The squared distances [M, N] in float32, summed as the kernels do."""
    gone = [np.float32(a[:, None, axis]) - np.float32(b[None, :, axis]) for axis in range(3)]
    return gone[0] * gone[0] + gone[1] * gone[1] + gone[2] * gone[2]


def in_ball(centers: Any, points: Any, least: float, most: float, count: int, held: Any) -> Any:
    found = held.copy()
    for row, near in enumerate(squares(centers, points)):
        taken = [k for k, d in enumerate(near) if d == 0 or least * least <= d < np.float32(most) * np.float32(most)]
        for place in range(count if taken else 0):
            found[row, place] = taken[place] if place < min(len(taken), count) else taken[0]
    return found


def furthest(distances: Any, near: Any, count: int, threads: int, out: Any) -> tuple[list[int], Any]:
    """As the kernels: each thread keeps its first best, and of two threads the lower one wins a tie."""
    near, taken, size = near.copy(), [0], len(near)
    for _ in range(count - 1):
        best, at = [-1.0] * threads, [0] * threads
        for k in range(size):
            if not out[k]:
                near[k] = min(near[k], distances[taken[-1]][k])
                if near[k] > best[k % threads]:
                    best[k % threads], at[k % threads] = near[k], k
        step = threads // 2
        while step:
            for k in range(step):
                if best[k + step] > best[k]:
                    best[k], at[k] = best[k + step], at[k + step]
            step //= 2
        taken.append(at[0])
    return taken, near


def nothing(size: int) -> Any:
    return np.zeros(size, bool)


@pytest.mark.parametrize(("size", "count", "grid"), [(1, 1, 0), (37, 12, 0), (64, 64, 3), (50, 70, 2), (5, 0, 0)])
def test_furthest_points(size: int, count: int, grid: int) -> None:
    points = cloud(2, size, 3, grid=grid)
    near = torch.full((2, size), 1e10)
    output = torch.full((2, count), -1, dtype=torch.int32)
    assert kernels.furthest_point_sampling_wrapper(2, size, count, points, near, output) == 1
    threads = 1 << (size.bit_length() - 1)
    for each in range(2):
        distances = squares(points[each].numpy(), points[each].numpy())
        taken, left = furthest(distances, np.full(size, 1e10, np.float32), count, threads, nothing(size))
        assert output[each].tolist() == taken[:count]
        assert np.array_equal(near[each].numpy(), left)
        given = torch.tensor(distances)[None]
        other, again = torch.zeros(1, count, dtype=torch.int32), torch.full((1, size), 1e10)
        kernels.furthest_point_sampling_with_dist_forward(given, again, other, b=1, n=size, m=count)
        assert other[0].tolist() == taken[:count]
    if not grid:
        assert kernels.furthest_point_sampling(points, count).tolist() == output.tolist()


def test_points_at_the_origin_are_left_out_where_the_original_does() -> None:
    points = cloud(1, 9, 3, grid=4)
    points[0, 3:7] = 0.01
    distances, out = squares(points[0].numpy(), points[0].numpy()), np.zeros(9, bool)
    out[3:7] = True
    taken, _ = furthest(distances, np.full(9, 1e10, np.float32), 9, 8, out)
    assert kernels.furthest_point_sampling(points, 9).tolist() == [taken]
    assert kernels.furthest_point_sampling(torch.zeros(1, 4, 3), 3).tolist() == [[0, 0, 0]]


def test_furthest_points_beyond_what_was_taken_before() -> None:
    points, near = cloud(1, 8, 3), torch.full((1, 8), 0.25)
    taken, left = furthest(squares(points[0].numpy(), points[0].numpy()), near[0].numpy(), 4, 8, nothing(8))
    output = torch.zeros(1, 4, dtype=torch.int32)
    kernels.furthest_point_sampling_forward(points, near, output, b=1, n=8, m=4)
    assert output.tolist() == [taken]
    assert np.array_equal(near[0].numpy(), left)


@pytest.mark.parametrize(
    ("n", "m", "count", "radius"), [(40, 7, 5, 1.0), (3, 4, 8, 2.0), (20, 3, 4, 0.001), (0, 2, 3, 1.0)]
)
def test_ball_query(n: int, m: int, count: int, radius: float) -> None:
    points, centers = cloud(2, n, 3), cloud(2, m, 3, seed=5)
    zeros = np.zeros((m, count), np.int32)
    found = kernels.ball_query(centers, points, radius, count)
    assert found.dtype == torch.int32
    held = torch.full((2, m, count), 7, dtype=torch.int32)
    assert kernels.ball_query_wrapper(2, n, m, radius, count, centers, points, held) == 1
    for each in range(2):
        a, b = centers[each].numpy(), points[each].numpy()
        assert np.array_equal(found[each].numpy(), in_ball(a, b, 0, radius, count, zeros))
        assert np.array_equal(held[each].numpy(), in_ball(a, b, 0, radius, count, zeros + 7))


def test_a_point_on_the_radius_is_out_and_the_inner_radius_keeps_the_center() -> None:
    points = torch.tensor([[[0.0, 0, 0], [0.5, 0, 0], [1, 0, 0], [2, 0, 0]]])
    centers = points[:, :1]
    assert kernels.ball_query(centers, points, 1.0, 4).tolist() == [[[0, 1, 0, 0]]]
    idx = torch.zeros(1, 1, 4, dtype=torch.int32)
    kernels.ball_query_forward(centers, points, idx, b=1, n=4, m=1, min_radius=1.0, max_radius=3.0, nsample=4)
    assert idx.tolist() == [[[0, 2, 3, 0]]]


def test_ball_query_in_pieces_and_in_half(monkeypatch: pytest.MonkeyPatch) -> None:
    from transplt.helper.kernels import points as module

    points, centers = cloud(2, 30, 3), cloud(2, 11, 3, seed=5)
    whole, nearest = kernels.ball_query(centers, points, 1.0, 4), kernels.three_nn(centers, points)
    monkeypatch.setattr(module, "point_pieces", lambda queries, each: (slice(k, k + 3) for k in range(0, queries, 3)))
    assert torch.equal(kernels.ball_query(centers, points, 1.0, 4), whole)
    assert torch.equal(kernels.three_nn(centers, points)[1], nearest[1])
    half = kernels.ball_query(torch.zeros(1, 1, 3).half(), torch.tensor([[[0.3, 0, 0]]]).half(), 0.3, 1)
    assert half.tolist() == [[[0]]]  # 0.3 in float16 squares to less than 0.3 squared in float32


@pytest.mark.parametrize(("n", "m", "grid"), [(9, 20, 0), (9, 20, 2), (4, 2, 0), (3, 0, 0), (0, 5, 0)])
def test_three_nearest(n: int, m: int, grid: int) -> None:
    unknown, known = cloud(2, n, 3, grid=grid), cloud(2, m, 3, seed=3, grid=grid)
    distances, idx = kernels.three_nn(unknown, known)
    into, at = torch.empty(2, n, 3), torch.empty(2, n, 3, dtype=torch.int32)
    kernels.three_nn_wrapper(2, n, m, unknown, known, into, at)
    assert torch.equal(into, distances) and torch.equal(at, idx)
    for each in range(2):
        for row, near in enumerate(squares(unknown[each].numpy(), known[each].numpy())):
            order = sorted(range(m), key=lambda k, near=near: (near[k], k))[:3]
            assert idx[each, row].tolist() == order + [0] * (3 - len(order))
            assert distances[each, row].tolist() == [near[k] for k in order] + [np.inf] * (3 - len(order))


@pytest.mark.parametrize(("n", "m", "k"), [(20, 6, 5), (3, 4, 6), (0, 2, 3), (5, 0, 2)])
def test_nearest(n: int, m: int, k: int) -> None:
    points, centers = cloud(2, n, 3), cloud(2, m, 3, seed=3)
    idx, distances = torch.empty(2, m, k, dtype=torch.int32), torch.empty(2, m, k)
    kernels.knn_forward(points, centers, idx, distances, b=2, n=n, m=m, nsample=k)
    for each in range(2):
        for row, near in enumerate(squares(centers[each].numpy(), points[each].numpy())):
            order = np.argsort(near, kind="stable")[:k].tolist()
            assert idx[each, row].tolist() == order + [0] * (k - len(order))
            assert distances[each, row].tolist() == [near[q] for q in order] + [1e10] * (k - len(order))


@pytest.mark.parametrize("shape", [(6,), (6, 4), (0, 4)])
def test_features_by_index_and_back(shape: tuple[int, ...]) -> None:
    features = cloud(2, 5, 9).transpose(1, 2).contiguous().transpose(1, 2)  # not contiguous
    idx = indices(2, *shape, below=9)
    grad = cloud(2, 5, *shape, seed=4)
    name = "gather_points" if len(shape) == 1 else "group_points"
    found, back = getattr(kernels, name)(features, idx), getattr(kernels, f"{name}_grad")(grad, idx, 9)
    into, sums = torch.full((2, 5, *shape), 9.0), torch.ones(2, 5, 9)
    sizes = (2, 5, 9, *shape)
    assert getattr(kernels, f"{name}_wrapper")(*sizes, features, idx, into) == 1
    assert getattr(kernels, f"{name}_grad_wrapper")(*sizes, grad, idx, sums) == 1
    wanted, sum_wanted = np.zeros((2, 5, *shape), np.float32), np.zeros((2, 5, 9), np.float32)
    for b in range(2):
        for c in range(5):
            for place in np.ndindex(*shape):
                wanted[(b, c, *place)] = features[b, c, idx[(b, *place)]]
                sum_wanted[b, c, idx[(b, *place)]] += grad[(b, c, *place)]
    assert np.array_equal(found.numpy(), wanted) and torch.equal(into, found)
    assert np.allclose(back.numpy(), sum_wanted, atol=1e-5) and torch.allclose(sums, back + 1)


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_interpolation(kind: str) -> None:
    dtype = getattr(torch, kind)
    features, weight, idx = cloud(2, 4, 7).to(dtype), cloud(2, 5, 3, seed=2).abs().to(dtype), indices(2, 5, 3, below=7)
    found = kernels.three_interpolate(features, idx, weight)
    into = torch.empty(2, 4, 5, dtype=dtype)
    kernels.three_interpolate_wrapper(2, 4, 7, 5, features, idx, weight, into)
    wanted = np.zeros((2, 4, 5))
    for b, c, n, k in np.ndindex(2, 4, 5, 3):
        wanted[b, c, n] += float(features[b, c, idx[b, n, k]]) * float(weight[b, n, k])
    assert np.allclose(found.float().numpy(), wanted, atol=1e-5 if kind == "float32" else 2e-2)
    assert torch.equal(into, found) and found.dtype == dtype


def test_the_gradients_are_those_of_the_values() -> None:
    idx, three = indices(2, 4, 3, below=6), indices(2, 5, 3, below=6)
    weight = torch.rand(2, 5, 3, dtype=torch.float64)
    features = torch.rand(2, 3, 6, dtype=torch.float64, requires_grad=True)
    for forward, backward in (
        (lambda f: kernels.group_points(f, idx), lambda g: kernels.group_points_grad(g, idx, 6)),
        (lambda f: kernels.gather_points(f, idx[..., 0]), lambda g: kernels.gather_points_grad(g, idx[..., 0], 6)),
        (lambda f: kernels.three_interpolate(f, three, weight),
         lambda g: kernels.three_interpolate_grad(g, three, weight, 6)),
    ):  # fmt: skip
        assert torch.autograd.gradcheck(forward, features)
        out = forward(features)
        grad = torch.rand_like(out)
        (wanted,) = torch.autograd.grad(out, features, grad)
        assert torch.allclose(backward(grad), wanted)


def test_clouds_by_counts() -> None:
    counts, ours = torch.tensor([4, 0, 6], dtype=torch.int32), torch.tensor([2, 0, 3], dtype=torch.int32)
    points, centers = cloud(10, 3), cloud(5, 3, seed=8)
    idx = torch.zeros(5, 3, dtype=torch.int32)
    assert kernels.ball_query_wrapper_stack(3, 5, 0.9, 3, centers, ours, points, counts, idx) == 1
    distances, at = torch.empty(5, 3), torch.empty(5, 3, dtype=torch.int32)
    kernels.three_nn_wrapper_stack(centers, ours, points, counts, distances, at)
    empties = 0
    for clouds, rows in ((slice(0, 4), slice(0, 2)), (slice(4, 10), slice(2, 5))):
        a, b = centers[rows].numpy(), points[clouds].numpy()
        wanted = in_ball(a, b, 0, 0.9, 3, np.full((len(a), 3), -5, np.int32))
        for row in range(len(a)):
            if wanted[row, 0] == -5:
                wanted[row], empties = [-1, 0, 0], empties + 1
        assert np.array_equal(idx[rows].numpy(), wanted)
        nearest = np.argsort(squares(a, b), axis=1, kind="stable")[:, :3] + clouds.start
        assert np.array_equal(at[rows].numpy(), nearest)
    assert 0 < empties < 5
    features, grad = cloud(10, 2, seed=9), cloud(5, 2, 3, seed=10)
    grouped, back = torch.empty(5, 2, 3), torch.zeros(10, 2)
    assert kernels.group_points_wrapper_stack(3, 5, 2, 3, features, counts, idx.clamp(min=0), ours, grouped) == 1
    assert kernels.group_points_grad_wrapper_stack(3, 5, 2, 10, 3, grad, idx.clamp(min=0), ours, counts, back) == 1
    starts, wanted_back = [0, 0, 4, 4, 4], np.zeros((10, 2))
    for row, channel, place in np.ndindex(5, 2, 3):
        at_point = starts[row] + max(0, int(idx[row, place]))
        assert grouped[row, channel, place] == features[at_point, channel]
        wanted_back[at_point, channel] += float(grad[row, channel, place])
    assert np.allclose(back.numpy(), wanted_back, atol=1e-5)
    near, taken = torch.full((10,), 1e10), torch.zeros(5, dtype=torch.int32)
    sizes = torch.tensor([2, 0, 3], dtype=torch.int32)
    assert kernels.stack_farthest_point_sampling_wrapper(points, near, counts, taken, sizes) == 1
    first, _ = furthest(squares(*[points[:4].numpy()] * 2), np.full(4, 1e10), 2, 8, nothing(4))
    last, _ = furthest(squares(*[points[4:].numpy()] * 2), np.full(6, 1e10), 3, 8, nothing(6))
    assert taken.tolist() == first + [4 + each for each in last]


@pytest.mark.parametrize(("count", "radius"), [(3, 1.5), (40, 1.0), (2, 0.1)])
def test_points_of_the_voxels_around(count: int, radius: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from transplt.helper.kernels import point_stacks

    monkeypatch.setattr(point_stacks, "point_pieces", lambda many, each: (slice(k, k + 4) for k in range(0, many, 4)))
    draw = np.random.default_rng(2)
    held = np.full((2, 3, 4, 5), -1, np.int32)
    places = np.argwhere(draw.random(held.shape) < 0.5)
    held[tuple(places.T)] = np.arange(len(places))
    xyz = torch.tensor((places[:, 1:] / 2).astype(np.float32))  # some lie on the radius
    coords = draw.integers(0, [2, 3, 4, 5], (9, 4)).astype(np.int32)
    centers = torch.tensor((coords[:, 1:] / 2).astype(np.float32))
    idx = torch.full((9, count), 5, dtype=torch.int32)
    sizes = (9, 3, 4, 5, count, radius, 1, 2, 1)
    given = centers, xyz, torch.tensor(coords), torch.tensor(held), idx
    assert kernels.voxel_query_wrapper(*sizes, *given) == 1
    for row, (b, z, y, x) in enumerate(coords.tolist()):
        taken = []
        for dz, dy, dx in np.ndindex(3, 5, 3):
            at = z + dz - 1, y + dy - 2, x + dx - 1
            if all(0 <= place < most for place, most in zip(at, (3, 4, 5), strict=True)) and held[(b, *at)] >= 0:
                point = int(held[(b, *at)])
                if float((xyz[point] - centers[row]).square().sum()) <= float(np.float32(radius) ** 2):
                    taken.append(point)
        taken = taken[:count]
        filled = taken + taken[:1] * (count - len(taken)) if taken else [-1] + [5] * (count - 1)
        assert idx[row].tolist() == filled


def test_interpolation_of_stacked_clouds() -> None:
    features = torch.rand(6, 3, dtype=torch.float64, requires_grad=True)
    idx, weight = indices(4, 3, below=6), torch.rand(4, 3, dtype=torch.float64)
    out, back = torch.empty(4, 3, dtype=torch.float64), torch.zeros(6, 3, dtype=torch.float64)
    grad = torch.rand(4, 3, dtype=torch.float64)
    kernels.three_interpolate_wrapper_stack(features.detach(), idx, weight, out)
    wanted = (features[idx.long()] * weight[..., None]).sum(1)
    kernels.three_interpolate_grad_wrapper_stack(grad, idx, weight, back)
    assert torch.allclose(out, wanted)
    assert torch.allclose(back, torch.autograd.grad(wanted, features, grad)[0])


def test_clouds_by_ends() -> None:
    ends, new_ends = torch.tensor([3, 9], dtype=torch.int32), torch.tensor([2, 4], dtype=torch.int32)
    points = cloud(9, 3)
    taken, near = torch.zeros(4, dtype=torch.int32), torch.full((9,), 1e10)
    kernels.furthestsampling_cuda(2, 6, points, ends, new_ends, near, taken)
    first, _ = furthest(squares(*[points[:3].numpy()] * 2), np.full(3, 1e10), 2, 4, nothing(3))
    last, _ = furthest(squares(*[points[3:].numpy()] * 2), np.full(6, 1e10), 2, 4, nothing(6))
    assert taken.tolist() == first + [3 + each for each in last]
    centers = points[taken.long()]
    idx, distances = torch.zeros(4, 4, dtype=torch.int32), torch.zeros(4, 4)
    kernels.knnquery_cuda(4, 4, points, centers, ends, new_ends, idx, distances)
    for rows, clouds in ((slice(0, 2), slice(0, 3)), (slice(2, 4), slice(3, 9))):
        for row, each in enumerate(squares(centers[rows].numpy(), points[clouds].numpy())):
            order = np.argsort(each, kind="stable")[:4].tolist()
            padding = 4 - len(order)
            assert idx[rows][row].tolist() == [clouds.start + k for k in order] + [clouds.start] * padding
            assert distances[rows][row].tolist() == [each[k] for k in order] + [1e10] * padding


def test_nearest_of_clouds_of_one_size_in_the_order_of_pointweb() -> None:
    draw = np.random.default_rng(3)
    points, centers = (torch.tensor(draw.normal(size=(2, size, 3)).astype(np.float32)) for size in (3, 5))
    idx, distances = torch.zeros(2, 5, 4, dtype=torch.int32), torch.zeros(2, 5, 4)
    kernels.knnquery_cuda(2, 3, 5, 4, points, centers, idx, distances)
    for each in range(2):
        for row, found in enumerate(squares(centers[each].numpy(), points[each].numpy())):
            order = np.argsort(found, kind="stable")[:4].tolist()
            assert idx[each, row].tolist() == [*order, 0]
            assert np.allclose(distances[each, row, :3], [found[k] for k in order])
            assert distances[each, row, 3] == float("inf")


def test_what_point_transformer_does_with_neighbours() -> None:
    n, s, c, w = 5, 3, 4, 2
    idx = indices(n, s, below=n)
    one, two, position, weight = (
        torch.rand(*shape, dtype=torch.float64, requires_grad=True)
        for shape in ((n, c), (n, c), (n, s, c), (n, s, w))
    )

    def zeros(*shape: int) -> Any:
        return torch.zeros(*shape, dtype=torch.float64)

    grad = torch.rand(n, s, c, dtype=torch.float64)
    out, back1, back2 = zeros(n, s, c), zeros(n, c), zeros(n, c)
    wanted = torch.stack([torch.stack([one[i] - two[idx[i, k].long()] for k in range(s)]) for i in range(n)])
    kernels.subtraction_forward_cuda(n, s, c, one.detach(), two.detach(), idx, out)
    kernels.subtraction_backward_cuda(n, s, c, idx, grad, back1, back2)
    assert torch.allclose(out, wanted)
    for mine, theirs in zip((back1, back2), torch.autograd.grad(wanted, (one, two), grad), strict=True):
        assert torch.allclose(mine, theirs)

    grouped, back = zeros(n, s, c), zeros(n, c)
    kernels.grouping_forward_cuda(n, s, c, one.detach(), idx, grouped)
    kernels.grouping_backward_cuda(n, s, c, grad, idx, back)
    assert torch.equal(grouped, one[idx.long()])
    assert torch.allclose(back, torch.autograd.grad(one[idx.long()], one, grad)[0])

    rows = []
    for i in range(n):
        picked = [one[idx[i, k].long()] + position[i, k] for k in range(s)]
        rows.append(torch.stack([sum(picked[k][q] * weight[i, k, q % w] for k in range(s)) for q in range(c)]))
    wanted, few = torch.stack(rows), torch.rand(n, c, dtype=torch.float64)
    held = one.detach(), position.detach(), weight.detach()
    out = zeros(n, c)
    kernels.aggregation_forward_cuda(n, s, c, w, *held, idx, out)
    assert torch.allclose(out, wanted)
    backs = zeros(n, c), zeros(n, s, c), zeros(n, s, w)
    kernels.aggregation_backward_cuda(n, s, c, w, *held, idx, few, *backs)
    for mine, theirs in zip(backs, torch.autograd.grad(wanted, (one, position, weight), few), strict=True):
        assert torch.allclose(mine, theirs)

    shares = torch.rand(n, s, dtype=torch.float64)
    out, back = zeros(n, c), zeros(n, c)
    kernels.interpolation_forward_cuda(n, c, s, one.detach(), idx, shares, out)
    kernels.interpolation_backward_cuda(n, c, s, few, idx, shares, back)
    wanted = (one[idx.long()] * shares[..., None]).sum(1)
    assert torch.allclose(out, wanted)
    assert torch.allclose(back, torch.autograd.grad(wanted, one, few)[0])


def test_groups_in_the_order_of_arguments_of_older_mmcv() -> None:
    features, idx, grad = cloud(2, 3, 9), indices(2, 4, 5, below=9), cloud(2, 3, 4, 5, seed=3)
    new, old = torch.empty(2, 3, 4, 5), torch.empty(2, 3, 4, 5)
    back, old_back = torch.zeros(2, 3, 9), torch.zeros(2, 3, 9)
    kernels.group_points_forward(features, idx, new, b=2, c=3, n=9, npoints=4, nsample=5)
    kernels.group_points_forward(2, 3, 9, 4, 5, features, idx, old)
    kernels.group_points_backward(grad, idx, back, b=2, c=3, n=9, npoints=4, nsample=5)
    kernels.group_points_backward(2, 3, 9, 4, 5, grad, idx, old_back)
    assert torch.equal(new, old) and torch.equal(new, kernels.group_points(features, idx))
    assert torch.equal(back, old_back) and torch.equal(back, kernels.group_points_grad(grad, idx, 9))


def test_neighbours_weighted_by_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    from transplt.helper.kernels import point_scores

    monkeypatch.setattr(point_scores, "point_pieces", lambda count, each: (slice(k, k + 2) for k in range(0, count, 2)))
    b, n0, n1, m, k, o = 2, 6, 5, 3, 4, 2
    idx = torch.tensor(np.random.default_rng(0).integers(0, n0, (b, n1, k)))
    idx[0, 1, 2], idx[1, 3, 1] = -1, n0  # outside: left out
    points, centers, scores = (
        torch.rand(*shape, dtype=torch.float64, requires_grad=True)
        for shape in ((b, n0, m, o), (b, n0, m, o), (b, n1, k, m))
    )
    rows = torch.zeros(b, o, n1, k, dtype=torch.float64)
    for i, n, q in np.ndindex(b, n1, k):
        if 0 <= idx[i, n, q] < n0:
            gone = points[i, idx[i, n, q]] - centers[i, idx[i, n, 0]]
            place = tuple(map(torch.tensor, (i, list(range(o)), n, q)))
            rows = rows.index_put(place, (gone * scores[i, n, q, :, None]).sum(0))
    held = points.detach(), centers.detach(), scores.detach()
    out = torch.ones(b, o, n1, k, dtype=torch.float64)
    sizes = {"B": b, "N0": n0, "N1": n1, "M": m, "K": k, "O": o, "aggregate": 0}
    kernels.assign_score_withk_forward(*held, idx, out, **sizes)
    assert torch.allclose(out, rows + 1)
    grad, backs = torch.rand_like(out), [torch.ones_like(each) for each in held]
    kernels.assign_score_withk_backward(grad, *held, idx, *backs, **sizes)
    for mine, theirs in zip(backs, torch.autograd.grad(rows, (points, centers, scores), grad), strict=True):
        assert torch.allclose(mine, theirs + 1)


def test_the_table_names_what_there_is() -> None:
    check_rows("points")
