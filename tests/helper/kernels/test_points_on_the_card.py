"""Operators on points and boxes on the emulated card, which refuses types as the real one does, and on the CPU."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, torch
from tests.helper.kernels.references import helpers_of, kernels

pytestmark = pytest.mark.torch
TOPICS = ("points", "chamfer", "voxels", "boxes")


def whole(*shape: int, below: int) -> Any:
    return torch.randint(0, below, shape).int()


def filled(value: float, *shape: int) -> Any:
    return torch.full(shape, value)


def none(*shape: int) -> Any:
    return torch.zeros(*shape, dtype=torch.int32)


def calls() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """A call of each function of the tables."""
    cloud, centers, far = torch.randn(2, 20, 3), torch.randn(2, 6, 3), filled(1e10, 2, 20)
    features, weight, three = torch.randn(2, 4, 20), torch.rand(2, 6, 3), whole(2, 6, 3, below=20)
    at, grad = whole(2, 6, 5, below=20), torch.randn(2, 4, 6, 5)
    back = torch.zeros(2, 4, 20)
    yield "furthest_point_sampling", (cloud, 8)
    yield "ball_query", (centers, cloud, 1.0, 5)
    yield "gather_points", (features, at[..., 0].contiguous())
    yield "gather_points_grad", (grad[..., 0].contiguous(), at[..., 0].contiguous(), 20)
    yield "group_points", (features, at)
    yield "group_points_grad", (grad, at, 20)
    yield "three_nn", (centers, cloud)
    yield "three_interpolate", (features, three, weight)
    yield "three_interpolate_grad", (grad[..., 0].contiguous(), three, weight, 20)
    yield "furthest_point_sampling_wrapper", (2, 20, 8, cloud, far, none(2, 8))
    yield "ball_query_wrapper", (2, 20, 6, 1.0, 5, centers, cloud, none(2, 6, 5))
    yield "gather_points_wrapper", (2, 4, 20, 6, features, at[..., 0].contiguous(), filled(0, 2, 4, 6))
    yield "gather_points_grad_wrapper", (2, 4, 20, 6, grad[..., 0].contiguous(), at[..., 0].contiguous(), back)
    yield "group_points_wrapper", (2, 4, 20, 6, 5, features, at, torch.zeros(2, 4, 6, 5))
    yield "group_points_grad_wrapper", (2, 4, 20, 6, 5, grad, at, back)
    yield "three_nn_wrapper", (2, 6, 20, centers, cloud, torch.zeros(2, 6, 3), none(2, 6, 3))
    yield "three_interpolate_wrapper", (2, 4, 20, 6, features, three, weight, torch.zeros(2, 4, 6))
    yield "three_interpolate_grad_wrapper", (2, 4, 6, 20, grad[..., 0].contiguous(), three, weight, back)
    yield "furthest_point_sampling_forward", (cloud, far, none(2, 8), 2, 20, 8)
    distances = torch.cdist(cloud, cloud)
    yield "furthest_point_sampling_with_dist_forward", (distances, far, none(2, 8), 2, 20, 8)
    yield "ball_query_forward", (centers, cloud, none(2, 6, 5), 2, 20, 6, 0.2, 1.0, 5)
    yield "gather_points_forward", (features, at[..., 0].contiguous(), torch.zeros(2, 4, 6), 2, 4, 20, 6)
    yield "gather_points_backward", (grad[..., 0].contiguous(), at[..., 0].contiguous(), back, 2, 4, 20, 6)
    yield "group_points_forward", (features, at, torch.zeros(2, 4, 6, 5), 2, 4, 20, 6, 5)
    yield "group_points_backward", (grad, at, back, 2, 4, 20, 6, 5)
    yield "knn_forward", (cloud, centers, none(2, 6, 4), torch.zeros(2, 6, 4), 2, 20, 6, 4)
    yield "three_nn_forward", (centers, cloud, torch.zeros(2, 6, 3), none(2, 6, 3), 2, 6, 20)
    yield "three_interpolate_forward", (features, three, weight, torch.zeros(2, 4, 6), 2, 4, 20, 6)
    yield "three_interpolate_backward", (grad[..., 0].contiguous(), three, weight, back, 2, 4, 6, 20)
    bank, scores, near = torch.randn(2, 20, 3, 4), torch.rand(2, 6, 5, 3), at.long()
    yield "assign_score_withk_forward", (bank, bank + 1, scores, near, torch.zeros(2, 4, 6, 5), 2, 20, 6, 3, 5, 4, 0)
    outs = torch.zeros(2, 20, 3, 4), torch.zeros(2, 20, 3, 4), torch.zeros(2, 6, 5, 3)
    yield "assign_score_withk_backward", (grad, bank, bank + 1, scores, near, *outs, 2, 20, 6, 3, 5, 4, 0)
    yield from stacks(cloud.flatten(0, 1), centers.flatten(0, 1))
    yield from voxels()
    yield from boxes()


def stacks(cloud: Any, centers: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    counts, ours = torch.tensor([25, 15]).int(), torch.tensor([5, 7]).int()
    idx, features, grad = whole(12, 5, below=15), torch.randn(40, 4), torch.randn(12, 4, 5)
    back, three, weight = torch.zeros(40, 4), whole(12, 3, below=40), torch.rand(12, 3)
    yield "ball_query_wrapper_stack", (2, 12, 1.0, 5, centers, ours, cloud, counts, none(12, 5))
    yield "stack_ball_query_forward", (centers, ours, cloud, counts, none(12, 5), 1.0, 5)
    yield "group_points_wrapper_stack", (2, 12, 4, 5, features, counts, idx, ours, torch.zeros(12, 4, 5))
    yield "stack_group_points_forward", (features, counts, idx, ours, torch.zeros(12, 4, 5), 2, 4, 12, 5)
    yield "group_points_grad_wrapper_stack", (2, 12, 4, 40, 5, grad, idx, ours, counts, back)
    yield "stack_group_points_backward", (grad, idx, ours, counts, back, 2, 4, 12, 40, 5)
    yield "three_nn_wrapper_stack", (centers, ours, cloud, counts, torch.zeros(12, 3), none(12, 3))
    yield "three_interpolate_wrapper_stack", (features, three, weight, torch.zeros(12, 4))
    yield "three_interpolate_grad_wrapper_stack", (torch.randn(12, 4), three, weight, back)
    far, sizes = filled(1e10, 40), torch.tensor([4, 3]).int()
    yield "stack_farthest_point_sampling_wrapper", (cloud, far, counts, none(7), sizes)
    coords, taken = whole(12, 4, below=2), whole(2, 2, 2, 2, below=40) - 3
    yield "voxel_query_wrapper", (12, 2, 2, 2, 5, 1.0, 1, 1, 1, centers, cloud, coords, taken, none(12, 5))
    ends, new_ends = torch.tensor([25, 40]).int(), torch.tensor([5, 12]).int()
    yield "furthestsampling_cuda", (2, 25, cloud, ends, new_ends, far, none(12))
    yield "knnquery_cuda", (12, 4, cloud, centers, ends, new_ends, none(12, 4), torch.zeros(12, 4))
    near, pairs, few = whole(40, 5, below=40), torch.randn(40, 5, 4), torch.randn(40, 5, 2)
    yield "grouping_forward_cuda", (40, 5, 4, features, near, torch.zeros(40, 5, 4))
    yield "grouping_backward_cuda", (40, 5, 4, pairs, near, back)
    yield "interpolation_forward_cuda", (12, 4, 3, features, three, weight, torch.zeros(12, 4))
    yield "interpolation_backward_cuda", (12, 4, 3, torch.randn(12, 4), three, weight, back)
    yield "subtraction_forward_cuda", (40, 5, 4, features, features + 1, near, torch.zeros(40, 5, 4))
    yield "subtraction_backward_cuda", (40, 5, 4, near, pairs, back, back.clone())
    yield "aggregation_forward_cuda", (40, 5, 4, 2, features, pairs, few, near, back)
    outs = back, torch.zeros(40, 5, 4), torch.zeros(40, 5, 2)
    yield "aggregation_backward_cuda", (40, 5, 4, 2, features, pairs, few, near, features + 1, *outs)
    one, two = torch.randn(2, 9, 3), torch.randn(2, 7, 3)
    idx1, idx2 = whole(2, 9, below=7), whole(2, 7, below=9)
    pulls, grads = (torch.randn(2, 9), torch.randn(2, 7)), (torch.zeros(2, 9, 3), torch.zeros(2, 7, 3))
    for name in ("chamfer_distance_forward", "chamfer_forward_into"):
        yield name, (one, two, torch.zeros(2, 9), torch.zeros(2, 7), none(2, 9), none(2, 7))
    yield "chamfer_distance_backward", (one, two, idx1, idx2, *pulls, *grads)
    yield "chamfer_backward_into", (one, two, *grads, *pulls, idx1, idx2)
    yield "chamfer_backward_over", (one, two, *grads, *pulls, idx1, idx2)
    yield "chamfer_forward", (one, two)
    yield "chamfer_backward", (one, two, idx1, idx2, *pulls)


def voxels() -> Iterator[tuple[str, tuple[Any, ...]]]:
    points, size, limits = torch.rand(60, 4) * 2 - 0.2, [0.5, 0.5, 1.0], [0.0, 0, 0, 1.5, 1.5, 2]
    yield "dynamic_voxelize_forward", (points, size, limits, none(60, 3))
    buffers = torch.zeros(9, 4, 4), none(9, 3), none(9), torch.zeros((), dtype=torch.long)
    yield "hard_voxelize_forward", (points, size, limits, *buffers, 4, 9)
    coors = torch.randint(-1, 3, (60, 3)).int()
    for kind in ("max", "sum", "mean"):
        made = kernels.dynamic_point_to_voxel_forward(points, coors, kind)
        yield "dynamic_point_to_voxel_forward", (points, coors, kind)
        grads = torch.zeros(60, 4), torch.randn(*made[0].shape)
        yield "dynamic_point_to_voxel_backward", (*grads, points, made[0], *made[2:], kind)
    rois, xyz, features = torch.rand(2, 5, 7) + 0.3, torch.rand(2, 50, 3), torch.randn(2, 50, 3)
    yield "points_in_boxes_part_forward", (rois, xyz, none(2, 50) - 1)
    yield "points_in_boxes_all_forward", (rois, xyz, none(2, 50, 5))
    yield "points_in_boxes_gpu", (rois, xyz, none(2, 50) - 1)
    for name in ("points_in_boxes_cpu_forward", "points_in_boxes_cpu"):
        yield name, (rois[0], xyz[0], none(5, 50))
    yield "pts_in_boxes3d_cpu", (torch.zeros(5, 50, dtype=torch.long), xyz[0], rois[0])
    for name in ("roipoint_pool3d_forward", "roipoint_pool3d_centered", "roipool3d_forward"):
        yield name, (xyz, rois, features, torch.zeros(2, 5, 8, 6), none(2, 5))
    apart = torch.zeros(5, 8, 3), torch.zeros(5, 8, 3), torch.zeros(5, dtype=torch.long)
    yield "roipool3d_cpu", (xyz[0], rois[0], features[0], *apart)
    shape = (5, 2, 2, 2)
    for method in (0, 1):
        given = rois[0], xyz[0], features[0]
        kept = none(*shape, 3), none(*shape, 6), torch.zeros(*shape, 3)
        for name in ("roiaware_pool3d_forward", "roiaware_pool3d_centered"):
            yield name, (*given, *kept, method)
        kernels.roiaware_pool3d_forward(*given, *kept, method)
        yield "roiaware_pool3d_backward", (kept[1], kept[0], torch.randn(*shape, 3), torch.zeros(50, 3), method)
    at = torch.randint(-1, 4, (2, 30, 3)).int()
    held = torch.randn(2, 30, 3), torch.zeros(2, 3, 3, 3), none(2, 30, 3) - 1
    yield "voxel_pooling_train_forward_wrapper", (2, 30, 3, 3, 3, 2, at, *held)
    lifted = torch.rand(2, 3, 5, 2), torch.rand(2, 3, 5, 2), torch.zeros(2, 3, 3, 3)
    yield "voxel_pooling_inference_forward_wrapper", (2, 1, 3, 5, 2, 3, 3, 3, 2, at, *lifted)
    cells, ends = whole(20, 4, below=2), none(0)
    yield "bev_pool_forward", (torch.randn(20, 3), cells, ends, ends, 2, 2, 2, 2)
    yield "bev_pool_backward", (torch.randn(2, 2, 2, 2, 3), cells, ends, ends, 2, 2, 2, 2)
    depth, feat, ranks = torch.rand(1, 2, 3, 2, 2), torch.rand(1, 2, 2, 2, 4), [whole(15, below=k) for k in (24, 8, 9)]
    yield "bev_pool_v2_forward", (depth, feat, torch.zeros(1, 1, 3, 3, 4), *ranks, ends, ends)
    pulls = torch.randn(1, 1, 3, 3, 4), torch.zeros_like(depth), torch.zeros_like(feat)
    yield "bev_pool_v2_backward", (*pulls, depth, feat, *ranks, ends, ends)
    yield "bev_pool_v2_backward_opt", (*pulls, depth, feat, *ranks, ends, ends)


def boxes() -> Iterator[tuple[str, tuple[Any, ...]]]:
    one, two, keep = torch.rand(12, 7) * 2 + 0.1, torch.rand(9, 7) * 2 + 0.1, torch.zeros(12, dtype=torch.long)
    flat, scores, number = torch.rand(12, 5) * 2 + 0.1, torch.rand(12), torch.zeros((), dtype=torch.long)
    for name in ("boxes_overlap_bev_gpu", "boxes_iou_bev_gpu"):
        yield name, (one, two, torch.zeros(12, 9))
        yield name, (flat, flat[:5], torch.zeros(12, 5))
    for name in ("boxes_aligned_overlap_bev_gpu", "boxes_aligned_iou_bev_cpu"):
        yield name, (one[:9], two, torch.zeros(9, 1))
    for name in ("nms_gpu", "nms_normal_gpu"):
        yield name, (one, keep, 0.2)
    for name in ("iou3d_nms3d_forward", "iou3d_nms3d_normal_forward"):
        yield name, (one, keep, number, 0.2)
    yield "box_iou_rotated", (flat, flat[:4])
    yield "box_iou_rotated_into", (flat, flat[:4], torch.zeros(48), 0, False)
    yield "box_iou_rotated_into", (flat, flat + 0.1, torch.zeros(12), 1, True)
    yield "nms_rotated", (flat, scores, 0.2)
    order = scores.sort(descending=True).indices
    yield "nms_rotated_sorted", (flat, scores, order, flat[order], none(0), 0.2, 0)
    yield "points_in_polygons_forward", (torch.randn(9, 2), torch.randn(4, 8), torch.zeros(9, 4))
    mask = torch.zeros(2, 3, 24, dtype=torch.bool)
    mask[..., 2:7] = True
    yield "sort_vertices_forward", (torch.randn(2, 3, 24, 2), mask, mask.sum(-1).int())


def on_both() -> list[str]:
    """The names of the functions called; an error where the card gives another result than the CPU."""
    import torch_npu  # noqa: F401

    torch.manual_seed(0)
    called = []
    for name, arguments in calls():
        there = [each.npu() if isinstance(each, torch.Tensor) else each for each in arguments]
        here = [each.clone() if isinstance(each, torch.Tensor) else each for each in arguments]
        results = [getattr(kernels, name)(*here), getattr(kernels, name)(*there)]
        pairs = list(zip(here, there, strict=True))
        if isinstance(results[0], list):
            pairs += list(zip(*results, strict=True))
        else:
            pairs.append((results[0], results[1]))
        for a, _ in pairs[len(here) :]:  # callers change in place what an autograd.Function gives them
            assert not isinstance(a, torch.Tensor) or not a._is_view(), name
        for a, b in pairs:
            if isinstance(a, torch.Tensor):
                assert b.device.type == "npu", name
                assert a.dtype == b.dtype and torch.allclose(a.double(), b.cpu().double(), atol=1e-4), name
            else:
                assert a == b, name
        called.append(name)
    return called


def test_every_function_runs_on_the_card_as_on_the_cpu() -> None:
    (called,) = each_rank(on_both, 1, host="npu")
    assert {*called} == {name for topic in TOPICS for name in helpers_of(topic)}


def with_driving_sdk() -> list[Any]:
    """What furthest points come from with DrivingSDK there: a stand-in that gives 7 everywhere."""
    import torch_npu  # noqa: F401

    package = types.ModuleType("mx_driving")
    package.furthest_point_sampling = (  # type: ignore[attr-defined]
        lambda points, count: torch.full((len(points), count), 7, dtype=torch.int32, device=points.device)
    )
    sys.modules["mx_driving"] = package
    found = []
    for size, least in ((20, 1e10), (20, 0.5), (200_000, 1e10)):
        points, near = torch.rand(1, size, 3).npu(), torch.full((1, size), least).npu()
        output = torch.zeros(1, 2, dtype=torch.int32).npu()
        kernels.furthest_point_sampling_wrapper(1, size, 2, points, near, output)
        found.append(output[0, 0].item() == 7)
    found.append(kernels.furthest_point_sampling(torch.rand(1, 9, 3).npu() + 1, 2).tolist() == [[7, 7]])
    found.append(kernels.furthest_point_sampling(torch.zeros(1, 9, 3).npu(), 2).tolist() == [[0, 0]])
    return found


def test_driving_sdk_answers_where_it_does_the_same() -> None:
    assert each_rank(with_driving_sdk, 1, host="npu") == [[True, False, False, True, True]]
