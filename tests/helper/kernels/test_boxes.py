"""Overlaps of rotated boxes against clipping polygons, and suppression against its definition."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.helper.in_ranks import torch
from tests.helper.kernels.references import check_rows, kernels
from tests.helper.kernels.rows import np

pytestmark = pytest.mark.torch


def corners(box: Any) -> list[tuple[float, float]]:
    """Of x, y, width, height and an angle from x to y."""
    x, y, w, h, angle = box
    c, s = math.cos(angle), math.sin(angle)
    return [(x + c * a * w / 2 - s * b * h / 2, y + s * a * w / 2 + c * b * h / 2)
            for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]  # fmt: skip


def overlap(one: Any, two: Any) -> float:
    """The area of one rectangle clipped by each edge of the other."""
    polygon, clip = corners(one), corners(two)
    for k in range(4):
        (ax, ay), (bx, by) = clip[k], clip[(k + 1) % 4]
        side = [(bx - ax) * (y - ay) - (by - ay) * (x - ax) for x, y in polygon]
        kept = []
        for n, (x, y) in enumerate(polygon):
            (px, py), before = polygon[n - 1], side[n - 1]
            if (before >= 0) != (side[n] >= 0):
                t = before / (before - side[n])
                kept.append((px + t * (x - px), py + t * (y - py)))
            if side[n] >= 0:
                kept.append((x, y))
        polygon = kept
    return abs(sum(polygon[n - 1][0] * y - polygon[n - 1][1] * x for n, (x, y) in enumerate(polygon))) / 2


def rectangles(count: int, seed: int, spread: float = 2.0) -> Any:
    draw = np.random.default_rng(seed)
    places, sizes = draw.uniform(-spread, spread, (count, 2)), draw.uniform(0.5, 4, (count, 2))
    return np.concatenate([places, sizes, draw.uniform(-7, 7, (count, 1))], 1)


def as_lidar(boxes: Any, columns: int) -> Any:
    """Rectangles as the iou3d kernels take them."""
    x, y, w, h, angle = boxes.T
    five, seven = [x - w / 2, y - h / 2, x + w / 2, y + h / 2, -angle], [x, y, 0 * x, w, h, 0 * x + 1, angle]
    return torch.tensor(np.stack(five if columns == 5 else seven, 1).astype(np.float32))


@pytest.mark.parametrize("columns", [5, 7])
def test_overlaps_seen_from_above(columns: int) -> None:
    one, two = rectangles(12, 0), rectangles(9, 1, 4.0)
    two[0] = one[0]  # the same box, one inside another, one that touches, one far away
    two[1] = [*one[1][:2], *(one[1][2:4] / 2), one[1][4] + 0.3]
    two[2], one[2] = [2, 0, 2, 2, 0], [0, 0, 2, 2, 0]
    two[3, :2] = 50
    wanted = np.array([[overlap(a, b) for b in two] for a in one])
    found, ious = torch.full((12, 9), -1.0), torch.full((12, 9), -1.0)
    a, b = as_lidar(one, columns), as_lidar(two, columns)
    assert kernels.boxes_overlap_bev_gpu(a, b, found) == 1
    assert kernels.boxes_iou_bev_gpu(a, b, ious) == 1
    near = 1e-3 if columns == 5 else 0.1  # corners count 0.01 outside of a box with seven columns
    assert np.allclose(found.numpy(), wanted, atol=near)
    assert (wanted[3:, 4:] > 0.1).any() and found[:, 3].max() == 0
    areas = (one[:, 2] * one[:, 3])[:, None] + (two[:, 2] * two[:, 3])[None]
    assert np.allclose(ious.numpy(), found.numpy() / (areas - found.numpy()), atol=1e-5)
    pairs = torch.full((9, 1), -1.0)
    assert kernels.boxes_aligned_overlap_bev_gpu(a[:9], b, pairs) == 1
    assert torch.allclose(pairs[:, 0], found[:9].diagonal(), atol=1e-5)
    assert kernels.boxes_aligned_iou_bev_cpu(a[:9], b, pairs) == 1
    assert torch.allclose(pairs[:, 0], ious[:9].diagonal(), atol=1e-5)
    with pytest.raises(RuntimeError):  # a buffer for all pairs is another function's
        kernels.boxes_aligned_overlap_bev_gpu(a[:9], b, torch.zeros(9, 9))


def test_the_margin_of_corners() -> None:
    one, two = np.array([[0, 0, 2, 2, 0.0]]), np.array([[2.008, 0.0, 2, 2, 0.0]])
    found = torch.zeros(1, 1)
    kernels.boxes_overlap_bev_gpu(as_lidar(one, 5), as_lidar(two, 5), found)
    assert float(found) == 0
    kernels.boxes_overlap_bev_gpu(as_lidar(one, 7), as_lidar(two, 7), found)
    assert float(found) == pytest.approx(2 * 0.008, rel=1e-3)  # the four corners lie within 0.01 of the other box


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("mode", [0, 1])
def test_rotated_boxes_of_images(aligned: bool, mode: int) -> None:
    one, two = rectangles(8, 3), rectangles(8, 4)
    two[0], two[1], one[7, 2] = one[0], [*one[1][:2] + 0.1, *one[1][2:]], 0
    area = one[:, 2] * one[:, 3], two[:, 2] * two[:, 3]
    table = np.array([[overlap(a, b) for b in two] for a in one])
    base = area[0][:, None] + area[1][None] - table if mode == 0 else np.broadcast_to(area[0][:, None], table.shape)
    wanted = np.where(table > 0, table / np.where(base > 0, base, 1), 0)
    ious = torch.full((8,) if aligned else (64,), -1.0)
    a, b = (torch.tensor(each.astype(np.float32)) for each in (one, two))
    kernels.box_iou_rotated_into(a, b, ious, mode_flag=mode, aligned=aligned)
    assert np.allclose(ious.numpy(), np.diag(wanted) if aligned else wanted.ravel(), atol=1e-4)
    if not aligned and mode == 0:
        in_degrees = [torch.cat([each[:, :4], -each[:, 4:] * 180 / math.pi], 1) for each in (a, b)]
        found = kernels.box_iou_rotated(*in_degrees)
        assert found.shape == (8, 8) and np.allclose(found.numpy(), wanted, atol=1e-4)


def test_boxes_in_pieces_and_none_at_all() -> None:
    many = rectangles(300, 5, 3.0)
    found, none = torch.zeros(300, 300), torch.zeros(0, 300)
    kernels.boxes_overlap_bev_gpu(as_lidar(many, 5), as_lidar(many, 5), found)
    assert np.allclose(found.diagonal().numpy(), many[:, 2] * many[:, 3], atol=1e-2)
    assert torch.allclose(found, found.t(), atol=1e-3)
    kernels.boxes_overlap_bev_gpu(torch.zeros(0, 5), as_lidar(many, 5), none)
    assert kernels.nms_gpu(torch.zeros(0, 5), torch.zeros(0, dtype=torch.long), 0.5) == 0
    assert kernels.nms_rotated(torch.zeros(0, 5), torch.zeros(0), 0.5).tolist() == []


def greedy(ious: Any, threshold: float) -> list[int]:
    kept: list[int] = []
    for n in range(len(ious)):
        if all(ious[k][n] <= threshold for k in kept):
            kept.append(n)
    return kept


@pytest.mark.parametrize("columns", [5, 7])
@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_suppression(columns: int, threshold: float, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = rectangles(40, 6)
    given = as_lidar(boxes, columns)
    ious = torch.zeros(40, 40)
    kernels.boxes_iou_bev_gpu(given, given, ious)
    keep = torch.full((40,), -1, dtype=torch.long)
    wanted = greedy(ious.tolist(), threshold)
    count = kernels.nms_gpu(given, keep, threshold)
    assert keep[:count].tolist() == wanted and 1 < count < 40
    number = torch.zeros((), dtype=torch.long)
    again = torch.full((40,), -1, dtype=torch.long)
    kernels.iou3d_nms3d_forward(given, again, number, nms_overlap_thresh=threshold)
    assert torch.equal(again, keep) and int(number) == count

    upright = boxes.copy()
    upright[:, 4] = 0
    table = np.array([[overlap(a, b) for b in upright] for a in upright])
    area = boxes[:, 2] * boxes[:, 3]
    wanted = greedy((table / (area[:, None] + area[None] - table)).tolist(), threshold)
    assert keep[: kernels.nms_normal_gpu(given, keep, threshold)].tolist() == wanted
    kernels.iou3d_nms3d_normal_forward(given, again, number, nms_overlap_thresh=threshold)
    assert again[: int(number)].tolist() == wanted


def test_suppression_by_scores() -> None:
    boxes, scores = rectangles(30, 8), torch.tensor(np.random.default_rng(1).permutation(30) / 30.0)
    area = boxes[:, 2] * boxes[:, 3]
    table = np.array([[overlap(a, b) for b in boxes] for a in boxes])
    ious = table / (area[:, None] + area[None] - table)
    order = scores.argsort(descending=True)
    wanted = [int(order[k]) for k in greedy(ious[order][:, order].tolist(), 0.3)]
    radians = torch.tensor(boxes.astype(np.float32))
    degrees = torch.cat([radians[:, :4], -radians[:, 4:] * 180 / math.pi], 1)
    assert kernels.nms_rotated(degrees, scores, 0.3).tolist() == wanted
    labels = torch.zeros(0, dtype=torch.int)
    newer = kernels.nms_rotated_sorted(radians, scores, order, radians[order], labels, 0.3, 0)
    older = kernels.nms_rotated_sorted(radians, scores, order, radians[order], 0.3, 0)
    named = kernels.nms_rotated_sorted(radians, scores, order, radians[order], iou_threshold=0.3, multi_label=0)
    assert newer.tolist() == older.tolist() == named.tolist() == wanted


def is_inside(point: Any, polygon: Any) -> bool:
    crossings = 0
    for k in range(4):
        (sx, sy), (tx, ty), (px, py) = polygon[k], polygon[k - 1], point
        if not min(sy, ty) <= py <= max(sy, ty):
            continue
        if (sx, sy) == (px, py) or (tx, ty) == (px, py):
            break
        if (sy < py <= ty) or (ty < py <= sy):
            x = sx + (py - sy) * (tx - sx) / (ty - sy)
            if x == px:
                break
            crossings += x > px
    return crossings % 2 == 1


def test_points_in_polygons() -> None:
    draw = np.random.default_rng(3)
    grid = draw.integers(0, 5, (60, 2)).astype(np.float32)  # many lie on edges and corners
    polygons = np.concatenate([draw.integers(0, 5, (12, 4, 2)), draw.normal(2, 2, (12, 4, 2))]).astype(np.float32)
    found = torch.full((60, 24), 7.0)
    kernels.points_in_polygons_forward(torch.tensor(grid), torch.tensor(polygons.reshape(24, 8)), found)
    wanted = [[float(is_inside(tuple(point), polygon.tolist())) for polygon in polygons] for point in grid.tolist()]
    assert found.tolist() == wanted and 0 < found.sum() < 720


def first_to_last(vertices: Any, mask: Any, count: int) -> list[int]:
    """As the kernel takes one vertex after the other."""

    def before(a: Any, b: Any) -> bool:
        if abs(a[0] - b[0]) < 1e-8 and abs(a[1] - b[1]) < 1e-8:
            return False
        if a[1] > 0 > b[1] or a[1] < 0 < b[1]:
            return bool(a[1] > 0)
        along = [abs(v[0]) * v[0] / (v[0] ** 2 + v[1] ** 2 + 1e-8) for v in (a, b)]
        gap = along[0] - along[1]
        return bool((a[1] > 0 and b[1] > 0 and gap > 1e-8) or (a[1] < 0 and b[1] < 0 and gap < 1e-8))

    pad = next(k for k in range(8, len(vertices)) if not mask[k])
    if count < 3:
        return [pad] * 9
    taken: list[int] = []
    for _ in range(count):
        least, at = (1.0, -1e-8), 0
        for k, vertex in enumerate(vertices):
            if mask[k] and before(vertex, least) and (not taken or before(vertices[taken[-1]], vertex)):
                least, at = tuple(vertex), k
        taken.append(at)
    taken += [taken[0], *[pad] * (8 - count)]
    if count == 8 and sum(one == two for one in taken[:4] for two in taken[4:8]) == 4:
        taken[4:] = [taken[0], *[pad] * 4]
    return taken


def test_vertices_in_the_order_of_their_angle() -> None:
    draw = np.random.default_rng(9)
    vertices, mask = draw.normal(size=(2, 6, 24, 2)).astype(np.float32), np.zeros((2, 6, 24), bool)
    for b, n in np.ndindex(2, 6):
        mask[b, n, draw.permutation(23)[: draw.integers(0, 9)]] = True
    vertices[0, 0, 4:8], mask[0, 0] = vertices[0, 0, :4], np.arange(24) < 8  # two boxes that are the same
    counts = mask.sum(-1)
    found = kernels.sort_vertices_forward(*(torch.tensor(each) for each in (vertices, mask, counts.astype(np.int32))))
    assert found.dtype == torch.int32 and found.shape == (2, 6, 9)
    for b, n in np.ndindex(2, 6):
        assert found[b, n].tolist() == first_to_last(vertices[b, n].tolist(), mask[b, n], counts[b, n])


def test_the_table_names_what_there_is() -> None:
    check_rows("boxes")
