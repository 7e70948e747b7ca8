"""Voxels against loops written from their definitions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helper.in_ranks import torch
from tests.helper.kernels.references import check_rows, kernels
from tests.helper.kernels.rows import np

pytestmark = pytest.mark.torch
SIZE, LIMITS = [0.5, 0.25, 1.0], [-1.0, 0.0, -1.0, 1.0, 1.0, 2.0]
EXTENTS = (4, 4, 3)


def cloud(count: int, seed: int = 0) -> Any:
    """Points of which some lie outside on each axis, and some on borders of voxels."""
    draw = np.random.default_rng(seed)
    points = draw.uniform([-1.2, -0.1, -1.2, 0], [1.2, 1.1, 2.2, 1], (count, 4))
    points[::5, :3] = np.round(points[::5, :3] * 4) / 4
    return torch.tensor(points.astype(np.float32))


def cell(point: Any) -> list[int]:
    return [int(np.floor((np.float32(point[k]) - np.float32(LIMITS[k])) / np.float32(SIZE[k]))) for k in range(3)]


def outside(at: list[int]) -> int:
    """The first axis on which a cell is outside; 3 where it is inside."""
    return next((k for k in range(3) if not 0 <= at[k] < EXTENTS[k]), 3)


def sizes() -> tuple[Any, Any]:
    return torch.tensor(SIZE), torch.tensor(LIMITS)


@pytest.mark.parametrize("count", [60, 0])
def test_each_point_has_its_voxel(count: int) -> None:
    points = cloud(count)
    coors = torch.full((count, 3), 7, dtype=torch.int32)
    kernels.dynamic_voxelize_forward(points, *sizes(), coors, NDim=3)
    older = torch.full((count, 3), 7, dtype=torch.int32)
    kernels.dynamic_voxelize_forward(points, older, SIZE, LIMITS, 3)
    assert torch.equal(coors, older)
    for row, point in enumerate(points.tolist()):
        out = outside(cell(point))
        wanted = cell(point)[::-1] if out == 3 else [-1] * (out + 1) + [7] * (2 - out)
        assert coors[row].tolist() == wanted


@pytest.mark.parametrize(("count", "most", "voxels"), [(200, 3, 100), (200, 1, 5), (40, 8, 48), (0, 3, 4)])
def test_the_first_points_of_the_first_voxels(count: int, most: int, voxels: int) -> None:
    points = cloud(count, seed=2)
    found: dict[tuple[int, ...], list[int]] = {}
    for row, point in enumerate(points.tolist()):
        at = tuple(cell(point)[::-1])
        if outside(cell(point)) == 3 and (at in found or len(found) < voxels):
            found.setdefault(at, []).append(row)
    wanted = torch.zeros(voxels, most, 4)
    for number, rows in enumerate(found.values()):
        wanted[number, : len(rows[:most])] = points[rows[:most]]
    for older in (False, True):
        held, coors = torch.zeros(voxels, most, 4), torch.zeros(voxels, 3, dtype=torch.int32)
        counts, number = torch.zeros(voxels, dtype=torch.int32), torch.zeros((), dtype=torch.long)
        if older:
            given = kernels.hard_voxelize_forward(points, held, coors, counts, SIZE, LIMITS, most, voxels, 3, True)
        else:
            given = kernels.hard_voxelize_forward(
                points, *sizes(), held, coors, counts, number, max_points=most, max_voxels=voxels, NDim=3,
                deterministic=True,
            )  # fmt: skip
            assert int(number) == len(found)
        assert given == len(found)
        assert coors[: len(found)].tolist() == [list(at) for at in found]
        assert counts[: len(found)].tolist() == [min(most, len(rows)) for rows in found.values()]
        assert torch.equal(held, wanted) and not counts[len(found) :].any()


@pytest.mark.parametrize("kind", ["max", "sum", "mean"])
@pytest.mark.parametrize("columns", [3, 4])
def test_features_by_voxel(kind: str, columns: int) -> None:
    draw = np.random.default_rng(3)
    coors = torch.tensor(draw.integers(-1, 2, (40, columns)), dtype=torch.int32)
    feats = torch.tensor(draw.integers(0, 4, (40, 5)).astype(np.float32))
    reduced, voxels, where, counts = kernels.dynamic_point_to_voxel_forward(feats, coors, kind)
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, at in enumerate(coors.tolist()):
        if min(at) >= 0:
            groups.setdefault(tuple(at), []).append(row)
    ordered = sorted(groups)
    assert voxels.tolist() == [list(at) for at in ordered] and voxels.dtype == coors.dtype
    assert counts.tolist() == [len(groups[at]) for at in ordered]
    places = {row: number for number, at in enumerate(ordered) for row in groups[at]}
    assert where.tolist() == [places.get(row, -1) for row in range(40)]
    grad = torch.rand(len(ordered), 5)
    back, wanted_back = torch.full((40, 5), 9.0), torch.zeros(40, 5)
    for number, at in enumerate(ordered):
        held = feats[groups[at]]
        wanted = {"max": held.amax(0), "sum": held.sum(0), "mean": held.mean(0)}[kind]
        assert torch.allclose(reduced[number], wanted)
        if kind == "max":
            for channel in range(5):
                first = next(row for row in groups[at] if feats[row, channel] == wanted[channel])
                wanted_back[first, channel] = grad[number, channel]
        else:
            wanted_back[groups[at]] = grad[number] / (len(held) if kind == "mean" else 1)
    kernels.dynamic_point_to_voxel_backward(back, grad, feats, reduced, where, counts, kind)
    assert torch.allclose(back, wanted_back)


def test_no_points_and_no_point_in_a_voxel() -> None:
    none = torch.zeros(0, 3, dtype=torch.int32)
    assert [len(each) for each in kernels.dynamic_point_to_voxel_forward(torch.zeros(0, 2), none, "max")] == [0] * 4
    out = kernels.dynamic_point_to_voxel_forward(torch.ones(2, 2), none.new_full((2, 3), -1), "sum")
    assert [len(each) for each in out] == [0, 0, 2, 0] and out[2].tolist() == [-1, -1]
    with pytest.raises(ValueError, match="median"):
        kernels.dynamic_point_to_voxel_forward(torch.ones(2, 2), none.new_full((2, 3), 0), "median")


def test_the_table_names_what_there_is() -> None:
    check_rows("voxels")
