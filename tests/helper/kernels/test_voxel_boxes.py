"""Points in boxes and what is pooled of them, against loops written from their definitions."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.helper.in_ranks import torch
from tests.helper.kernels.references import kernels
from tests.helper.kernels.rows import np

pytestmark = pytest.mark.torch


def scene(boxes: int, points: int, seed: int = 0) -> tuple[Any, Any]:
    """Boxes [M, 7] of some angles about the origin, and points [N, 3] within and around."""
    draw = np.random.default_rng(seed)
    found = np.concatenate(
        [draw.uniform(-1, 1, (boxes, 3)), draw.uniform(0.5, 2, (boxes, 3)), draw.uniform(-3, 3, (boxes, 1))], 1
    )
    return tuple(torch.tensor(each.astype(np.float32)) for each in (found, draw.uniform(-2, 2, (points, 3))))  # type: ignore[return-value]


def own(box: Any, point: Any) -> tuple[float, float, float]:
    """Where a point is in the frame of a box of a lidar: x, y from the center, z from the bottom."""
    over, up, angle = point[0] - box[0], point[1] - box[1], -box[6]
    cosine, sine = math.cos(angle), math.sin(angle)
    return over * cosine - up * sine, over * sine + up * cosine, point[2] - box[2]


def is_in(box: Any, point: Any) -> bool:
    x, y, z = own(box, point)
    return abs(z - box[5] / 2) <= box[5] / 2 and abs(x) < box[3] / 2 and abs(y) < box[4] / 2


def is_in_camera(box: Any, point: Any) -> bool:
    over, deep, angle = point[0] - box[0], point[2] - box[2], box[6]
    x, z = over * math.cos(angle) - deep * math.sin(angle), over * math.sin(angle) + deep * math.cos(angle)
    near = abs(over) <= 10 and abs(deep) <= 10 and abs(point[1] - (box[1] - box[3] / 2)) <= box[3] / 2
    return near and abs(x) <= box[5] / 2 and abs(z) <= box[4] / 2


def table_of(test: Any, boxes: Any, points: Any) -> list[list[bool]]:
    return [[test(box, point) for point in points.tolist()] for box in boxes.tolist()]


def test_which_box_holds_a_point() -> None:
    scenes = [scene(6, 50, seed) for seed in range(2)]
    boxes, points = (torch.stack(each) for each in zip(*scenes, strict=True))
    first, every = torch.full((2, 50), -1, dtype=torch.int32), torch.zeros(2, 50, 6, dtype=torch.int32)
    kernels.points_in_boxes_part_forward(boxes, points, first)
    kernels.points_in_boxes_all_forward(boxes, points, every)
    for each in range(2):
        wanted = table_of(is_in, *scenes[each])
        assert every[each].t().bool().tolist() == wanted
        assert first[each].tolist() == [next((m for m in range(6) if wanted[m][n]), -1) for n in range(50)]
        flags = torch.full((6, 50), 9, dtype=torch.int32)
        kernels.points_in_boxes_cpu_forward(*scenes[each], flags)
        assert flags.tolist() == [[int(x) for x in row] for row in wanted]
    assert first.max() > 0 and first.min() == -1


def test_no_boxes_and_no_points() -> None:
    none, points = torch.zeros(1, 0, 7), torch.zeros(1, 3, 3)
    first, every = torch.full((1, 3), -1, dtype=torch.int32), torch.zeros(1, 3, 0, dtype=torch.int32)
    kernels.points_in_boxes_part_forward(none, points, first)
    kernels.points_in_boxes_all_forward(none, points, every)
    assert first.tolist() == [[-1, -1, -1]]
    pooled, empty = torch.ones(1, 2, 4, 5), torch.zeros(1, 2, dtype=torch.int32)
    kernels.roipoint_pool3d_forward(torch.zeros(1, 0, 3), torch.ones(1, 2, 7), torch.zeros(1, 0, 2), pooled, empty)
    assert empty.tolist() == [[1, 1]] and pooled.min() == 1


@pytest.mark.parametrize("camera", [False, True])
@pytest.mark.parametrize("taken", [4, 20])
def test_the_first_points_of_a_box_are_pooled(camera: bool, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from transplt.helper.kernels import voxel_boxes

    monkeypatch.setattr(voxel_boxes, "point_pieces", lambda count, each: (slice(k, k + 3) for k in range(0, count, 3)))
    boxes, points = scene(7, 60, 4)
    boxes[0, :3] = 20
    features = torch.arange(120.0).reshape(60, 2)
    pooled, empty = torch.full((1, 7, taken, 5), 7.0), torch.zeros(1, 7, dtype=torch.int32)
    pool = kernels.roipool3d_forward if camera else kernels.roipoint_pool3d_forward
    pool(points[None], boxes[None], features[None], pooled, empty)
    wanted = table_of(is_in_camera if camera else is_in, boxes, points)
    assert empty[0].tolist() == [int(not any(row)) for row in wanted] and empty[0, 0] == 1
    for box, row in enumerate(wanted):
        inside = [n for n, held in enumerate(row) if held][:taken]
        for place in range(taken):
            if inside:
                n = inside[place % len(inside)]
                assert pooled[0, box, place].tolist() == [*points[n].tolist(), *features[n].tolist()]
            else:
                assert pooled[0, box, place].tolist() == [7.0] * 5
    if camera:
        flags, apart = torch.full((7, 60), 9), (torch.full((7, taken, 3), 7.0), torch.full((7, taken, 2), 7.0))
        assert kernels.pts_in_boxes3d_cpu(flags, points, boxes) == 1
        assert flags.bool().tolist() == wanted
        gone = torch.full((7,), 5)
        assert kernels.roipool3d_cpu(points, boxes, features, *apart, gone) == 1
        assert torch.equal(torch.cat(apart, -1), pooled[0]) and gone.tolist() == empty[0].tolist()


@pytest.mark.parametrize("method", [0, 1])
@pytest.mark.parametrize("most", [3, 40])
def test_parts_of_boxes(method: int, most: int) -> None:
    boxes, points = scene(3, 200, 7)
    features = torch.tensor(np.random.default_rng(0).integers(0, 5, (200, 2)).astype(np.float32))
    pooled, argmax = torch.zeros(3, 2, 3, 2, 2), torch.zeros(3, 2, 3, 2, 2, dtype=torch.int32)
    listed = torch.zeros(3, 2, 3, 2, most, dtype=torch.int32)
    kernels.roiaware_pool3d_forward(boxes, points, features, argmax, listed, pooled, pool_method=method)
    grad = torch.rand(3, 2, 3, 2, 2)
    back, wanted_back = torch.ones(200, 2), torch.ones(200, 2)
    parts: dict[tuple[int, ...], list[int]] = {}
    for number, box in enumerate(boxes.tolist()):
        for n, point in enumerate(points.tolist()):
            if is_in(box, point):
                x, y, z = own(box, point)
                places = (x + box[3] / 2, y + box[4] / 2, z)
                at = [min(c - 1, max(0, int(p / (s / c)))) for p, s, c in zip(places, box[3:6], (2, 3, 2), strict=True)]
                parts.setdefault((number, *at), []).append(n)
    assert max(map(len, parts.values())) > 2
    for at in np.ndindex(3, 2, 3, 2):
        inside = parts.get(at, [])[: most - 1]
        assert listed[at].tolist() == [len(inside), *inside, *[0] * (most - 1 - len(inside))]
        for channel in range(2):
            values = [float(features[n, channel]) for n in inside]
            if not inside:
                assert pooled[at][channel] == 0 and (method or argmax[at][channel] == -1)
            elif method:
                assert pooled[at][channel] == pytest.approx(sum(values) / len(values), rel=1e-5)
                for n in inside:
                    wanted_back[n, channel] += grad[at][channel] / len(inside)
            else:
                first = inside[values.index(max(values))]
                assert pooled[at][channel] == max(values) and argmax[at][channel] == first
                wanted_back[first, channel] += grad[at][channel]
    kernels.roiaware_pool3d_backward(listed, argmax, grad, back, pool_method=method)
    assert torch.allclose(back, wanted_back, atol=1e-5)


def test_boxes_that_have_their_z_in_the_middle() -> None:
    boxes, points = scene(6, 200, 5)
    middle = boxes.clone()
    middle[:, 2] += middle[:, 5] / 2
    features = torch.randn(200, 3)
    sizes = (6, 2, 2, 2)
    found, wanted = [], []
    for into, given, names in (
        (found, middle, ("points_in_boxes_gpu", "points_in_boxes_cpu", "roipoint_pool3d_centered",
                         "roiaware_pool3d_centered")),
        (wanted, boxes, ("points_in_boxes_part_forward", "points_in_boxes_cpu_forward", "roipoint_pool3d_forward",
                         "roiaware_pool3d_forward")),
    ):  # fmt: skip
        first, every = torch.full((1, 200), -1, dtype=torch.int32), torch.zeros(6, 200, dtype=torch.int32)
        pooled, empty = torch.zeros(1, 6, 9, 6), torch.zeros(1, 6, dtype=torch.int32)
        parts = [torch.zeros(*sizes, size, dtype=torch.int32) for size in (3, 8)] + [torch.zeros(*sizes, 3)]
        getattr(kernels, names[0])(given[None], points[None], first)
        getattr(kernels, names[1])(given, points, every)
        getattr(kernels, names[2])(points[None], given[None], features[None], pooled, empty)
        getattr(kernels, names[3])(given, points, features, *parts, 0)
        into += [first, every, pooled, empty, *parts]
    assert all(torch.equal(one, two) for one, two in zip(found, wanted, strict=True))


def test_the_margins_of_boxes_that_have_their_z_in_the_middle() -> None:
    box, points = torch.tensor([[0.0, 0, 0, 2, 2, 2, 0]]), torch.tensor([[1.000005, 0, 0], [1.005, 0, 0], [1.02, 0, 0]])
    first, every = torch.full((1, 3), -1, dtype=torch.int32), torch.zeros(1, 3, dtype=torch.int32)
    assert kernels.points_in_boxes_gpu(box[None], points[None], first) == 1
    assert kernels.points_in_boxes_cpu(box, points, every) == 1
    assert first.tolist() == [[0, -1, -1]] and every.tolist() == [[1, 1, 0]]


def test_features_are_added_up_in_cells_of_a_plane() -> None:
    draw = np.random.default_rng(1)
    at = torch.tensor(draw.integers(-1, 4, (2, 30, 3)), dtype=torch.int32)
    features = torch.tensor(draw.normal(size=(2, 30, 4)).astype(np.float32))
    out, memo = torch.ones(2, 3, 4, 4), torch.full((2, 30, 3), -1, dtype=torch.int32)
    numbers = torch.tensor([4, 3, 2], dtype=torch.int32)  # projects pass elements of a tensor
    assert kernels.voxel_pooling_train_forward_wrapper(2, 30, 4, *numbers, at, features, out, memo) == 1
    wanted, places = np.ones((2, 3, 4, 4)), np.full((2, 30, 3), -1)
    for b, n in np.ndindex(2, 30):
        x, y, z = at[b, n].tolist()
        if 0 <= x < 4 and 0 <= y < 3 and 0 <= z < 2:
            wanted[b, y, x] += features[b, n].numpy()
            places[b, n] = b, y, x
    assert np.allclose(out.numpy(), wanted, atol=1e-5) and np.array_equal(memo.numpy(), places)


def test_depth_times_context_in_cells_of_a_plane() -> None:
    b, cams, d, h, w, c = 2, 2, 3, 2, 2, 3
    draw = np.random.default_rng(1)
    at = torch.tensor(draw.integers(0, 3, (b, cams, d, h, w, 3)), dtype=torch.int32)
    depth, context = torch.rand(b * cams, d, h, w), torch.rand(b * cams, c, h, w)
    out = torch.zeros(b, 3, 3, c)
    sizes = (b, cams, d, h, w, c, 3, 3, 2)
    assert kernels.voxel_pooling_inference_forward_wrapper(*sizes, at, depth, context, out) == 1
    wanted = torch.zeros(b, 3, 3, c)
    for i, k, z, y, x in np.ndindex(b, cams, d, h, w):
        px, py, pz = at[i, k, z, y, x].tolist()
        if pz < 2:
            wanted[i, py, px] += depth[i * cams + k, z, y, x] * context[i * cams + k, :, y, x]
    assert torch.allclose(out, wanted, atol=1e-5)


def test_pools_of_lifted_features() -> None:
    draw = np.random.default_rng(1)
    cells = torch.tensor(draw.integers(0, 2, (20, 4)), dtype=torch.int32)
    x = torch.rand(20, 3, dtype=torch.float64, requires_grad=True)
    ends = torch.zeros(0, dtype=torch.int32)
    out = kernels.bev_pool_forward(x, cells, ends, ends, 2, 2, 2, 2)
    wanted = torch.zeros(2, 2, 2, 2, 3, dtype=torch.float64)
    for n in range(20):
        h, w, d, b = cells[n].tolist()
        wanted[b, d, h, w] += x.detach()[n]
    grad = torch.rand_like(wanted)
    assert torch.allclose(out, wanted)
    back = kernels.bev_pool_backward(grad, cells, ends, ends, 2, 2, 2, 2)
    assert torch.allclose(back, torch.autograd.grad(out, x, grad)[0])

    depth, feat = (torch.rand(*s, dtype=torch.float64, requires_grad=True) for s in ((1, 2, 3, 2, 2), (1, 2, 2, 2, 4)))
    ranks = [torch.tensor(draw.integers(0, most, 15), dtype=torch.int32) for most in (24, 8, 9)]
    out = torch.zeros(1, 1, 3, 3, 4, dtype=torch.float64)
    kernels.bev_pool_v2_forward(depth.detach(), feat.detach(), out, *ranks, ends, ends)
    at_depth, at_feat, at_bev = (each.long() for each in ranks)
    rows = depth.flatten()[at_depth, None] * feat.flatten(0, -2)[at_feat]
    wanted = torch.zeros(9, 4, dtype=torch.float64).index_add(0, at_bev, rows).view_as(out)
    assert torch.allclose(out, wanted)
    grad = torch.rand_like(out)
    backs = torch.zeros_like(depth), torch.zeros_like(feat)
    kernels.bev_pool_v2_backward(grad, *backs, depth.detach(), feat.detach(), *ranks, ends, ends)
    pulls = torch.autograd.grad(wanted, (depth, feat), grad)
    for mine, theirs in zip(backs, pulls, strict=True):
        assert torch.allclose(mine, theirs)
    held = torch.ones_like(depth), torch.ones_like(feat)
    kernels.bev_pool_v2_backward_opt(grad, *held, depth.detach(), feat.detach(), *ranks, ends, ends)
    assert all(torch.allclose(mine, theirs + 1) for mine, theirs in zip(held, pulls, strict=True))
    out = torch.full_like(out, 7)  # written over where a rank names a cell, and left elsewhere
    kernels.bev_pool_v2_forward(depth.detach(), feat.detach(), out, *ranks, ends, ends)
    named = torch.zeros(9, dtype=torch.bool).index_fill(0, at_bev, True).view(1, 1, 3, 3, 1)
    assert torch.allclose(out, torch.where(named, wanted.detach(), torch.tensor(7.0, dtype=torch.float64)))
