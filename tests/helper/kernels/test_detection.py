"""Suppression of boxes and pooling of regions in torch, against loops written from their definitions."""

from __future__ import annotations

import importlib
import itertools
import math
from typing import Any

import pytest

from tests.helper.kernels.rows import check_rows, close, kernels, np, numbers, torch

pytestmark = pytest.mark.torch
nms, roi, pools, psroi = (kernels(name) for name in ("nms", "roi", "region_pools", "psroi_pool"))


def test_each_row_names_a_function_that_takes_its_arguments() -> None:
    check_rows("detection", "nms", "roi", "region_pools", "psroi_pool")


# --- boxes -----------------------------------------------------------------------------------------------------------


def some_boxes(count: int, seed: int = 0, whole: bool = False) -> tuple[Any, Any]:
    corner, size = numbers(count, 2, seed=seed, low=0, high=20), numbers(count, 2, seed=seed + 1, low=1, high=12)
    boxes = torch.cat([corner, corner + size], 1).float()
    scores = numbers(count, seed=seed + 2, low=0, high=1).float()
    return (boxes.round(), (scores * 4).round() / 4) if whole else (boxes, scores)


def overlap(a: Any, b: Any, offset: int) -> float:
    width = max(min(a[2], b[2]) - max(a[0], b[0]) + offset, 0)
    height = max(min(a[3], b[3]) - max(a[1], b[1]) + offset, 0)
    areas = [(c[2] - c[0] + offset) * (c[3] - c[1] + offset) for c in (a, b)]
    united = sum(areas) - width * height
    return float(width * height / united) if united else math.nan


def greedy(boxes: Any, scores: Any, threshold: float, offset: int) -> list[int]:
    order = sorted(range(len(boxes)), key=lambda each: -float(scores[each]))
    kept: list[int] = []
    for each in order:
        if not any(overlap(boxes[other].tolist(), boxes[each].tolist(), offset) > threshold for other in kept):
            kept.append(each)
    return kept


@pytest.mark.parametrize("block", [2048, 7])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
def test_greedy_suppression(threshold: float, whole: bool, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("transplt.helper.kernels.nms"), "_NMS_BLOCK", block)
    for seed in range(2):
        boxes, scores = some_boxes(40, seed, whole)
        for offset in (0, 1):
            wanted = greedy(boxes.double(), scores, threshold, offset)
            assert nms.nms_by_score(boxes, scores, iou_threshold=threshold, offset=offset).tolist() == wanted
        wanted = sorted(greedy(boxes.double(), scores, threshold, 1))
        assert nms.nms_of_pixels(boxes, scores, threshold).tolist() == wanted
        assert nms.nms_of_rows(torch.cat([boxes, scores[:, None]], 1), threshold).tolist() == wanted


def test_suppression_of_none_of_one_of_the_same_and_of_empty_boxes() -> None:
    boxes, scores = some_boxes(4)
    nothing = nms.nms_by_score(boxes[:0], scores[:0], 0.5, 0)
    assert nothing.tolist() == [] and nothing.dtype == torch.int64
    assert nms.nms_by_score(boxes[:1], scores[:1], 0.5, 0).tolist() == [0]
    assert nms.nms_by_score(boxes[:1].expand(5, 4), torch.ones(5), 0.5, 0).tolist() == [0]
    points = torch.zeros(3, 4)  # no area: nothing covers them
    assert nms.nms_by_score(points, torch.tensor([0.1, 0.3, 0.2]), 0.5, 0).tolist() == [1, 2, 0]
    chain = torch.tensor([[each, 0.0, each + 10, 10.0] for each in range(0, 40, 4)])
    assert nms.nms_by_score(chain, torch.arange(10, 0, -1).float(), 0.3, 0).tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("mode", [0, 1])
def test_overlaps(mode: int, offset: int) -> None:
    one, two = some_boxes(5)[0], some_boxes(4, 5)[0]
    two[0] = one[0]
    wanted = np.zeros((5, 4))
    for a, b in itertools.product(range(5), range(4)):
        wanted[a, b] = overlap(one[a].tolist(), two[b].tolist(), offset)
        if mode:
            first = one[a].tolist()
            areas = [(c[2] - c[0] + offset) * (c[3] - c[1] + offset) for c in (first, two[b].tolist())]
            wanted[a, b] *= (sum(areas) / (1 + wanted[a, b])) / areas[0]
    ious = torch.zeros(5, 4)
    nms.bbox_overlaps(one, two, ious, mode=mode, aligned=False, offset=offset)
    close(ious, wanted, 1e-5)
    pairs = torch.zeros(4)
    nms.bbox_overlaps(one[:4], two, pairs, mode=mode, aligned=True, offset=offset)
    close(pairs, np.diag(wanted[:4]).copy(), 1e-5)
    nms.bbox_overlaps(one[:0], two, ious[:0], mode=mode, aligned=False, offset=offset)


def softened(boxes: Any, scores: Any, threshold: float, sigma: float, least: float, method: int, offset: int) -> Any:
    rows = [[*box, float(scores[number]), number] for number, box in enumerate(boxes.tolist())]
    done = 0
    while done < len(rows):
        best = max(range(done, len(rows)), key=lambda each: (rows[each][4], -each))
        rows[done], rows[best] = rows[best], rows[done]
        place = done + 1
        while place < len(rows):
            shared = overlap(rows[done][:4], rows[place][:4], offset)
            factor = {0: 0.0 if shared >= threshold else 1.0, 1: 1 - shared if shared >= threshold else 1.0,
                      2: math.exp(-shared * shared / sigma)}[method]  # fmt: skip
            rows[place][4] *= factor
            if rows[place][4] < least:
                rows[place] = rows[-1]
                rows.pop()
                continue
            place += 1
        done += 1
    return rows


@pytest.mark.parametrize("method", [0, 1, 2])
def test_soft_suppression(method: int) -> None:
    for seed in range(3):
        boxes, scores = some_boxes(30, seed, whole=seed == 2)
        dets = torch.full((30, 5), -7.0)
        left = nms.soft_nms(boxes, scores, dets, iou_threshold=0.3, sigma=0.5, min_score=0.2, method=method, offset=0)
        wanted = softened(boxes, scores, 0.3, 0.5, 0.2, method, 0)
        assert left.tolist() == [row[5] for row in wanted]
        close(dets[: len(wanted)], [row[:5] for row in wanted], 1e-5)
        assert (dets[len(wanted) :] == -7).all()
    assert nms.soft_nms(boxes[:0], scores[:0], dets[:0], 0.3, 0.5, 0.1, method, 0).tolist() == []


def test_matches_of_the_boxes_that_stay() -> None:
    boxes, scores = some_boxes(25)
    found = nms.nms_match(torch.cat([boxes, scores[:, None]], 1), 0.3)
    order = sorted(range(25), key=lambda each: -float(scores[each]))
    wanted, free = [], set(order)
    for each in order:
        if each in free:
            mine = [one for one in order if one in free and one != each
                    and overlap(boxes[each].tolist(), boxes[one].tolist(), 0) >= 0.3]  # fmt: skip
            free -= {each, *mine}
            wanted.append([each, *mine])
    assert found == wanted


# --- regions ---------------------------------------------------------------------------------------------------------


def read(image: Any, y: float, x: float) -> Any:
    """RoIAlign's read of [channels, height, width]: up to 1 beyond the map it is the border, then 0."""
    high, wide = image.shape[1:]
    if y < -1 or y > high or x < -1 or x > wide:
        return np.zeros(image.shape[0])
    y, x = min(max(y, 0), high - 1), min(max(x, 0), wide - 1)
    top, left = int(y), int(x)
    below, right = min(top + 1, high - 1), min(left + 1, wide - 1)
    a, b = y - top, x - left
    return ((1 - a) * (1 - b) * image[:, top, left] + (1 - a) * b * image[:, top, right]
            + a * (1 - b) * image[:, below, left] + a * b * image[:, below, right])  # fmt: skip


def aligned_regions(
    images: Any, rois: Any, scale: float, ph: int, pw: int, ratio: int, aligned: bool, most: bool, last: int = 0
) -> Any:
    out = np.zeros((len(rois), images.shape[1], ph, pw))
    where = np.full((2, len(rois), images.shape[1], ph, pw), -1.0)
    for n, (number, *box) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (each * scale - (0.5 if aligned else 0) for each in box)
        x2, y2 = x2 + last * scale, y2 + last * scale
        width, height = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1 - last), max(y2 - y1, 1 - last))
        down = ratio if ratio > 0 else math.ceil(height / ph)
        along = ratio if ratio > 0 else math.ceil(width / pw)
        for p, q in itertools.product(range(ph), range(pw)):
            places = [(y1 + (p + (i + 0.5) / down) * height / ph, x1 + (q + (j + 0.5) / along) * width / pw)
                      for i in range(down) for j in range(along)]  # fmt: skip
            reads = [read(images[int(number)].numpy(), *place) for place in places]
            if not most:
                out[n, :, p, q] = sum(reads) / max(len(reads), 1) if reads else 0
                continue
            out[n, :, p, q] = np.max(reads, 0) if reads else -3.4028234663852886e38
            for c, best in enumerate(np.argmax(reads, 0) if reads else []):
                where[:, n, c, p, q] = places[best]
    return (out, where) if most else out


ROIS = [[0, 1.0, 2.0, 9.0, 7.0], [1, -6.0, -3.0, 4.5, 3.3], [1, 5.0, 5.0, 5.1, 5.2], [0, 6.0, 6.0, 4.0, 3.0],
        [1, 0.0, 0.0, 40.0, 30.0]]  # fmt: skip


@pytest.mark.parametrize("piece", [2**25, 1])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [2, 0])
def test_means_of_regions(ratio: int, aligned: bool, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("transplt.helper.kernels.roi"), "_ROI_PIECE", piece)
    images, rois = numbers(2, 3, 6, 8), torch.tensor(ROIS, dtype=torch.float64)
    wanted = aligned_regions(images, rois, 0.5, 2, 3, ratio, aligned, False)
    close(roi.roi_align_forward(images, rois, 0.5, 2, 3, ratio, aligned), wanted)
    if not aligned:
        close(roi.roi_align_forward(images, rois, 0.5, 2, 3, ratio), wanted)
    output, none = torch.full(wanted.shape, 5.0, dtype=images.dtype), images.new_zeros(0)
    into = {"aligned_height": 2, "aligned_width": 3, "spatial_scale": 0.5, "sampling_ratio": ratio, "aligned": aligned}
    roi.roi_align_into_forward(images, rois, output, none, none, pool_mode=1, **into)
    close(output, wanted)
    grad = numbers(*wanted.shape, seed=3)
    found = roi.roi_align_backward(grad, rois, 0.5, 2, 3, 2, 3, 6, 8, ratio, aligned)
    close((found * images).sum(), (grad * output).sum())
    for place in ((0, 1, 2, 3), (1, 2, 5, 7), (1, 0, 0, 0)):
        moved = torch.zeros_like(images)
        moved[place] = 1
        close(found[place], (grad * roi.roi_align_forward(moved, rois, 0.5, 2, 3, ratio, aligned)).sum())
    buffer = torch.ones_like(images)
    roi.roi_align_into_backward(grad, rois, none, none, buffer, pool_mode=1, **into)
    close(buffer, found + 1)


@pytest.mark.parametrize("ratio", [2, 0])
def test_the_largest_reads_of_regions(ratio: int) -> None:
    images, rois = numbers(2, 3, 6, 8), torch.tensor(ROIS, dtype=torch.float64)
    into = {"aligned_height": 2, "aligned_width": 3, "spatial_scale": 0.5, "sampling_ratio": ratio, "aligned": True}
    wanted, where = aligned_regions(images, rois, 0.5, 2, 3, ratio, True, True)
    output, y, x = (torch.full(wanted.shape, 5.0, dtype=images.dtype) for _ in range(3))
    roi.roi_align_into_forward(images, rois, output, y, x, pool_mode=0, **into)
    close(output, wanted)
    close(y, where[0])
    close(x, where[1])
    grad, found = numbers(*wanted.shape, seed=3), torch.zeros_like(images)
    roi.roi_align_into_backward(grad, rois, y, x, found, pool_mode=0, **into)
    used = (y != -1) if ratio == 0 else torch.ones_like(y, dtype=torch.bool)
    close((found * images).sum(), (grad * output)[used].sum())


def pooled(images: Any, rois: Any, scale: float, ph: int, pw: int, whole: bool) -> Any:
    out, places = np.full((len(rois), images.shape[1], ph, pw), 5.0), np.full((len(rois), images.shape[1], ph, pw), 7)
    high, wide = images.shape[2:]
    for n, (number, *box) in enumerate(rois.tolist()):
        if whole:
            x1, y1, x2, y2 = (math.copysign(math.floor(abs(each * scale) + 0.5), each) for each in box)
            width, height = max(x2 - x1 + 1, 1), max(y2 - y1 + 1, 1)
        else:
            x1, y1, x2, y2 = box[0] * scale, box[1] * scale, (box[2] + 1) * scale, (box[3] + 1) * scale
            width, height = x2 - x1, y2 - y1
            if width <= 0 or height <= 0:
                continue
        for c, p, q in itertools.product(range(images.shape[1]), range(ph), range(pw)):
            top, bottom = p * (height / ph), (p + 1) * (height / ph)
            left, right = q * (width / pw), (q + 1) * (width / pw)
            if whole:
                top, bottom = math.floor(top) + y1, math.ceil(bottom) + y1
                left, right = math.floor(left) + x1, math.ceil(right) + x1
            else:
                top, bottom = math.floor(top + y1), math.ceil(bottom + y1)
                left, right = math.floor(left + x1), math.ceil(right + x1)
            cells = [(float(images[int(number), c, y, x]), -(y * wide + x))
                     for y in range(int(min(max(top, 0), high)), int(min(max(bottom, 0), high)))
                     for x in range(int(min(max(left, 0), wide)), int(min(max(right, 0), wide)))]  # fmt: skip
            best = max(cells, default=(0.0, 1))
            out[n, c, p, q], places[n, c, p, q] = best[0], -best[1]
    return out, places


@pytest.mark.parametrize("piece", [2**25, 1])
def test_the_largest_pixels_of_regions(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("transplt.helper.kernels.roi"), "_ROI_PIECE", piece)
    images = (numbers(2, 3, 6, 8) * 4).round()  # with ties
    rois = torch.tensor([*ROIS, [0, 30.0, 30.0, 40.0, 40.0], [0, 3.0, 5.0, 7.0, 9.0]], dtype=torch.float64)
    wanted, places = pooled(images, rois, 0.5, 2, 3, True)
    output, argmax = roi.roi_pool_forward(images, rois, 0.5, 2, 3)
    close(output, wanted)
    assert argmax.dtype == torch.int32 and argmax.tolist() == places.tolist()
    grad = numbers(*wanted.shape, seed=3)
    found = roi.roi_pool_backward(grad, images, rois, argmax, 0.5, 2, 3, 2, 3, 6, 8)
    close((found * images).sum(), (grad * output).sum())
    wanted, places = pooled(images, rois, 0.5, 2, 3, False)
    output, argmax = torch.full(wanted.shape, 5.0, dtype=images.dtype), torch.full(wanted.shape, 7, dtype=torch.int32)
    roi.roi_pool_into_forward(images, rois, output, argmax, pooled_height=2, pooled_width=3, spatial_scale=0.5)
    close(output, wanted)
    assert argmax.tolist() == places.tolist()
    argmax[3] = -1  # the empty region, whose buffers stayed
    buffer = torch.ones_like(images)
    roi.roi_pool_into_backward(grad, rois, argmax, buffer, pooled_height=2, pooled_width=3, spatial_scale=0.5)
    close((buffer - 1).sum(), grad.masked_fill(argmax < 0, 0).sum())


def test_no_regions_and_halves() -> None:
    images, rois = numbers(2, 3, 6, 8), torch.tensor(ROIS)
    assert roi.roi_align_forward(images, rois[:0].double(), 0.5, 2, 3, 0).shape == (0, 3, 2, 3)
    assert not roi.roi_align_backward(images.new_zeros(0, 3, 2, 3), rois[:0].double(), 0.5, 2, 3, 2, 3, 6, 8, 0).any()
    output, argmax = roi.roi_pool_forward(images, rois[:0].double(), 0.5, 2, 3)
    assert output.shape == argmax.shape == (0, 3, 2, 3)
    half = roi.roi_align_forward(images.half(), rois.half(), 0.5, 2, 3, 2)
    assert half.dtype == torch.float16
    close(half, roi.roi_align_forward(images, rois.half().double(), 0.5, 2, 3, 2), 3e-3)


@pytest.mark.parametrize("ratio", [2, 0])
def test_mmdetections_first_pooling(ratio: int) -> None:
    images, rois = numbers(2, 3, 6, 8), torch.tensor(ROIS, dtype=torch.float64)
    wanted = aligned_regions(images, rois, 0.5, 2, 3, ratio, False, False, last=1)
    output = torch.full(wanted.shape, 5.0, dtype=images.dtype)
    pools.roi_align_rows_forward(images, rois, 2, 3, 0.5, ratio, output)
    close(output, wanted)
    grad, found = numbers(*wanted.shape, seed=3), torch.ones_like(images)
    pools.roi_align_rows_backward(grad, rois, 2, 3, 0.5, ratio, found)
    close(((found - 1) * images).sum(), (grad * output).sum())
    wanted, places = pooled(images, rois, 0.5, 2, 3, False)
    output, argmax = torch.full(wanted.shape, 5.0, dtype=images.dtype), torch.full(wanted.shape, 7, dtype=torch.int32)
    pools.roi_pool_rows_forward(images, rois, 2, 3, 0.5, output, argmax)
    close(output, wanted)
    assert argmax.tolist() == places.tolist()
    argmax[3] = -1
    found = torch.zeros_like(images)
    pools.roi_pool_rows_backward(grad, rois, argmax, 0.5, found)
    close(found.sum(), grad.masked_fill(argmax < 0, 0).sum())


def turned(images: Any, rois: Any, scale: float, ph: int, pw: int, ratio: int, aligned: bool, sign: float) -> Any:
    out = np.zeros((len(rois), images.shape[1], ph, pw))
    for n, (number, x0, y0, width, height, angle) in enumerate(rois.tolist()):
        x0, y0 = x0 * scale - (0.5 if aligned else 0), y0 * scale - (0.5 if aligned else 0)
        width, height = (each * scale if aligned else max(each * scale, 1) for each in (width, height))
        down, along = (ratio, ratio) if ratio > 0 else (math.ceil(height / ph), math.ceil(width / pw))
        for p, q, i, j in itertools.product(range(ph), range(pw), range(down), range(along)):
            yy = -height / 2 + (p + (i + 0.5) / down) * height / ph
            xx = -width / 2 + (q + (j + 0.5) / along) * width / pw
            y = yy * math.cos(sign * angle) - xx * math.sin(sign * angle) + y0
            x = yy * math.sin(sign * angle) + xx * math.cos(sign * angle) + x0
            out[n, :, p, q] += read(images[int(number)].numpy(), y, x) / (down * along)
    return out


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [2, 0])
def test_turned_regions(ratio: int, aligned: bool) -> None:
    rois = [[0, 8.0, 6.0, 8.0, 5.0, 0.4], [1, 3.0, 2.0, 12.0, 1.0, -2.0], [1, 9.0, 9.0, 0.5, 0.3, 1.0]]
    images, rois = numbers(2, 3, 6, 8), torch.tensor(rois, dtype=torch.float64)
    output, grad = torch.zeros(3, 3, 2, 3).double(), numbers(3, 3, 2, 3, seed=3)
    for clockwise in (True, False):
        into = {"pooled_height": 2, "pooled_width": 3, "spatial_scale": 0.5, "sampling_ratio": ratio}
        pools.roi_align_rotated_into_forward(images, rois, output, **into, aligned=aligned, clockwise=clockwise)
        close(output, turned(images, rois, 0.5, 2, 3, ratio, aligned, -1 if clockwise else 1))
        found = torch.ones_like(images)
        pools.roi_align_rotated_into_backward(grad, rois, found, **into, aligned=aligned, clockwise=clockwise)
        close(((found - 1) * images).sum(), (grad * output).sum())
    if aligned:
        degrees = torch.cat([rois[:, :5], rois[:, 5:] * 180 / math.pi], 1)
        close(pools.roi_align_rotated_forward(images, degrees, 0.5, 2, 3, ratio), output)
        close(pools.roi_align_rotated_backward(grad, degrees, 0.5, 2, 3, 2, 3, 6, 8, ratio), found - 1)


def test_borders_of_boxes() -> None:
    images, size = numbers(2, 8, 5, 6), 3
    boxes = torch.tensor([[[1.0, 1.0, 4.0, 3.5], [-4.0, 0.0, 2.0, 9.0], [2.0, 2.0, 2.0, 2.0]]] * 2).double()
    boxes[1] += 0.7
    wanted, places = np.zeros((2, 2, 3, 4)), np.zeros((2, 2, 3, 4))
    for n, c, b in itertools.product(range(2), range(2), range(3)):
        x1, y1, x2, y2 = boxes[n, b].tolist()
        for side in range(4):
            x, y = (x1, y1) if side < 2 else (x2, y2)
            dx = ((x2 - x1) / size, 0, -(x2 - x1) / size, 0)[side]
            dy = (0, (y2 - y1) / size, 0, -(y2 - y1) / size)[side]
            plane = images[n, side * 2 + c : side * 2 + c + 1].numpy()
            values = [float(read(plane, y + i * dy, x + i * dx)[0]) for i in range(size + 1)]
            wanted[n, c, b, side], places[n, c, b, side] = max(values), int(np.argmax(values))
    output, argmax = torch.zeros(2, 2, 3, 4).double(), torch.zeros(2, 2, 3, 4, dtype=torch.int32)
    pools.border_align_forward(images, boxes, output, argmax, pool_size=size)
    close(output, wanted)
    assert argmax.tolist() == places.tolist()
    grad, found = numbers(2, 2, 3, 4, seed=2), torch.ones_like(images)
    pools.border_align_backward(grad, boxes, argmax, found, pool_size=size)
    close(((found - 1) * images).sum(), (grad * output).sum())


@pytest.mark.parametrize("ratio", [2, 0])
def test_regions_whose_bins_move(ratio: int) -> None:
    regions = [[0, 5.0, 5.0, 13.0, 11.0], ROIS[1], [1, 8.0, 7.0, 8.4, 7.6]]
    images, rois = numbers(2, 3, 9, 10), torch.tensor(regions, dtype=torch.float64)
    offset, gamma = numbers(3, 2, 2, 3, seed=1), 0.3
    wanted = np.zeros((3, 3, 2, 3))
    for n, p, q in itertools.product(range(3), range(2), range(3)):
        number, x1, y1, x2, y2 = rois[n].tolist()
        left, top, width, height = x1 * 0.5 - 0.5, y1 * 0.5 - 0.5, (x2 - x1) * 0.5, (y2 - y1) * 0.5
        down, along = (ratio, ratio) if ratio else (math.ceil(height / 2), math.ceil(width / 3))
        left, top = left + gamma * width * float(offset[n, 0, p, q]), top + gamma * height * float(offset[n, 1, p, q])
        for i, j in itertools.product(range(down), range(along)):
            y, x = top + (p + (i + 0.5) / down) * height / 2, left + (q + (j + 0.5) / along) * width / 3
            wanted[n, :, p, q] += read(images[int(number)].numpy(), y, x) / (down * along)
    sizes = {"pooled_height": 2, "pooled_width": 3, "spatial_scale": 0.5, "sampling_ratio": ratio, "gamma": gamma}
    output = torch.full(wanted.shape, 5.0, dtype=images.dtype)
    pools.deform_roi_pool_forward(images, rois, offset, output, **sizes)
    close(output, wanted)
    grad, to_images, to_offset = numbers(*wanted.shape, seed=3), torch.ones_like(images), torch.zeros_like(offset)
    pools.deform_roi_pool_backward(grad, images, rois, offset, to_images, to_offset, **sizes)
    close(((to_images - 1) * images).sum(), (grad * output).sum())
    for place in itertools.product((0, 2), range(2), range(2), range(3)):  # regions that lie within the map
        moved = [offset.clone(), offset.clone()]
        moved[0][place] += 1e-5
        moved[1][place] -= 1e-5
        values = []
        for one in moved:
            again = torch.zeros_like(output)
            pools.deform_roi_pool_forward(images, rois, one, again, **sizes)
            values.append((grad * again).sum())
        close(to_offset[place], (values[0] - values[1]) / 2e-5, 1e-6)
    plain = torch.zeros_like(output)
    pools.deform_roi_pool_forward(images, rois, offset[:0], plain, **sizes)
    close(plain, aligned_regions(images, rois, 0.5, 2, 3, ratio, True, False))


def sensitive(images: Any, rois: Any, trans: Any, scale: float, dim: int, groups: int, size: int, parts: int,
              samples: int, std: float) -> Any:  # fmt: skip
    """Means and numbers of the reads of bins that have channels of their own and move."""
    high, wide = images.shape[2:]
    out, count = np.zeros((len(rois), dim, size, size)), np.zeros((len(rois), dim, size, size))
    for n, c, p, q in itertools.product(range(len(rois)), range(dim), range(size), range(size)):
        number, *box = rois[n].tolist()
        x1, y1, x2, y2 = (math.copysign(math.floor(abs(each) + 0.5), each) for each in box)
        left, top = x1 * scale - 0.5, y1 * scale - 0.5
        width, height = max((x2 + 1) * scale - 0.5 - left, 0.1), max((y2 + 1) * scale - 0.5 - top, 0.1)
        dx = dy = 0.0
        if trans is not None:
            kind = c // (dim // (trans.shape[1] // 2))
            place = (math.floor(p / size * parts), math.floor(q / size * parts))
            dx, dy = (float(trans[(n, 2 * kind + each, *place)]) * std for each in (0, 1))
        channel = (c * groups + math.floor(p * groups / size)) * groups + math.floor(q * groups / size)
        for i, j in itertools.product(range(samples), range(samples)):
            x = left + q * width / size + dx * width + j * width / size / samples
            y = top + p * height / size + dy * height + i * height / size / samples
            if -0.5 <= x <= wide - 0.5 and -0.5 <= y <= high - 0.5:
                y, x = min(max(y, 0), high - 1), min(max(x, 0), wide - 1)
                out[n, c, p, q] += read(images[int(number), channel : channel + 1].numpy(), y, x)[0]
                count[n, c, p, q] += 1
    return out / np.maximum(count, 1), count


@pytest.mark.parametrize("piece", [2**24, 1])
@pytest.mark.parametrize("moves", [True, False])
def test_bins_with_channels_of_their_own(moves: bool, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("transplt.helper.kernels.psroi_pool"), "_PSROI_PIECE", piece)
    images, rois = numbers(2, 4 * 4, 6, 8), torch.tensor(ROIS, dtype=torch.float64)
    trans = numbers(5, 4, 2, 2, seed=1) if moves else torch.zeros(0).double()
    sizes = (0.5, 4, 2, 4, 2, 3, 0.3)
    wanted, number = sensitive(images, rois, trans if moves else None, *sizes)
    output, count = psroi.dcn_v2_psroi_pooling_forward(images, rois, trans, not moves, *sizes)
    close(output, wanted)
    close(count, number)
    into = [torch.full_like(output, 5.0), torch.full_like(output, 5.0)]
    psroi.deform_psroi_pooling_cuda_forward(images, rois, trans, *into, not moves, *sizes)
    close(into[0], wanted)
    close(into[1], number)
    grad = numbers(*wanted.shape, seed=3)
    to_images, to_trans = psroi.dcn_v2_psroi_pooling_backward(grad, images, rois, trans, count, not moves, *sizes)
    close((to_images * images).sum(), (grad * output).sum())
    buffers = [torch.ones_like(images), torch.ones_like(trans)]
    psroi.deform_psroi_pooling_cuda_backward(grad, images, rois, trans, count, *buffers, not moves, *sizes)
    close(buffers[0], to_images + 1)
    close(buffers[1], to_trans + 1)
    if not moves:
        return
    assert to_trans.shape == trans.shape
    for place in itertools.product((0, 2), range(4), range(2), range(2)):
        values = []
        for step in (1e-6, -1e-6):
            moved = trans.clone()
            moved[place] += step
            again, _ = psroi.dcn_v2_psroi_pooling_forward(images, rois, moved, False, *sizes)
            values.append((grad * again).sum())
        close(to_trans[place], (values[0] - values[1]) / 2e-6, 1e-5)


def test_boxes_that_are_no_numbers_do_not_stop_a_program() -> None:
    images, nan = numbers(1, 4, 6, 8), math.nan
    rois = torch.tensor([[0, nan, 1.0, 5.0, 6.0], [0, 1.0, 1.0, math.inf, 6.0], [0, 1.0, 1.0, 5.0, 6.0]]).double()
    for ratio in (0, 2):
        found = roi.roi_align_forward(images, rois, 0.5, 2, 3, ratio, True)
        close(found[2], roi.roi_align_forward(images, rois[2:], 0.5, 2, 3, ratio, True)[0])
        assert roi.roi_align_backward(found, rois, 0.5, 2, 3, 1, 4, 6, 8, ratio, True).shape == images.shape
    output, argmax = roi.roi_pool_forward(images, rois, 0.5, 2, 3)
    close(output[2], roi.roi_pool_forward(images, rois[2:], 0.5, 2, 3)[0][0])
    assert int(argmax.min()) >= -1
    _, count = psroi.dcn_v2_psroi_pooling_forward(images, rois, images[:0], True, 0.5, 1, 2, 2, 2, 3, 0.1)
    assert not count[0].any() and count[2].all()
