"""CARAFE, attention from pixel to pixel and kernels that move pixels in torch, against loops from their definitions."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.helper.kernels.rows import check_rows, close, kernels, np, numbers, torch

pytestmark = pytest.mark.torch
larger, across, moves = kernels("carafe"), kernels("spatial_attention"), kernels("pixel_moves")


def test_each_row_names_a_function_that_takes_its_arguments() -> None:
    check_rows("spatial", "carafe", "spatial_attention", "pixel_moves")


def linear_in(found: Any, given: Any, run: Any, grad: Any) -> None:
    """`found` is the gradient of sum(grad * run(given)), which is linear: two elements, and the sum over all."""
    close((found * given).sum(), (grad * run(given)).sum())
    for place in (tuple(0 for _ in given.shape), tuple(side - 1 for side in given.shape)):
        moved = torch.zeros_like(given)
        moved[place] = 1
        close(found[place], (grad * run(moved)).sum())


# --- CARAFE ----------------------------------------------------------------------------------------------------------


def reassembled(features: Any, masks: Any, size: int, groups: int, factor: int) -> Any:
    batch, channels, height, width = features.shape
    out, half = np.zeros((batch, channels, height * factor, width * factor)), (size - 1) // 2
    for n, c, y, x, i, j in itertools.product(
        range(batch), range(channels), range(height * factor), range(width * factor), range(size), range(size)
    ):
        row, column = y // factor + i - half, x // factor + j - half
        if 0 <= row < height and 0 <= column < width:
            mask = ((c // (channels // groups)) * size + i) * size + j
            out[n, c, y, x] += float(features[n, c, row, column] * masks[n, mask, y, x])
    return out


@pytest.mark.parametrize(("size", "groups", "factor"), [(3, 2, 2), (5, 1, 1), (1, 4, 3)])
def test_carafe(size: int, groups: int, factor: int) -> None:
    features, masks = numbers(2, 4, 3, 4), numbers(2, groups * size * size, 3 * factor, 4 * factor, seed=1)
    wanted = reassembled(features, masks, size, groups, factor)
    into = {"kernel_size": size, "group_size": groups, "scale_factor": factor}
    output = torch.full(wanted.shape, 5.0, dtype=features.dtype)
    larger.carafe_naive_forward(features, masks, output, **into)
    close(output, wanted)
    output.zero_()
    rfeatures, routput, rmasks = torch.zeros_like(features), torch.zeros_like(output), torch.zeros_like(masks)
    larger.carafe_forward(features, masks, rfeatures, routput, rmasks, output, **into)
    close(output, wanted)
    close(rfeatures, features.permute(0, 2, 3, 1))
    grad = numbers(*wanted.shape, seed=2)
    to_features, to_masks = torch.ones_like(features), torch.ones_like(masks)
    scratch = [torch.zeros_like(each) for each in (grad, grad, features, masks)]
    larger.carafe_backward(grad, rfeatures, masks, *scratch, to_features, to_masks, **into)

    def run(one: Any, two: Any) -> Any:
        found = torch.zeros_like(output)
        larger.carafe_naive_forward(one, two, found, **into)
        return found

    linear_in(to_features, features, lambda one: run(one, masks), grad)
    linear_in(to_masks, masks, lambda two: run(features, two), grad)
    added = [torch.ones_like(features), torch.ones_like(masks)]
    larger.carafe_naive_backward(grad, features, masks, *added, **into)
    close(added[0], to_features + 1)
    close(added[1], to_masks + 1)


# --- from pixel to pixel ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("mask_high", "mask_wide"), [(5, 7), (3, 3), (9, 5)])
def test_masks_of_psanet(kind: int, mask_high: int, mask_wide: int) -> None:
    high, wide, half_high, half_wide = 3, 4, (mask_high - 1) // 2, (mask_wide - 1) // 2
    given = numbers(2, mask_high * mask_wide, high, wide)
    wanted = np.full((2, high * wide, high, wide), 6.0)
    back = np.full(given.shape, 8.0)
    grad = numbers(2, high * wide, high, wide, seed=1)
    for n, y, x, i, j in itertools.product(range(2), range(high), range(wide), range(mask_high), range(mask_wide)):
        row, column = i + y - half_high, j + x - half_wide
        if 0 <= row < high and 0 <= column < wide:
            here = (n, y * wide + x, row, column) if kind else (n, row * wide + column, y, x)
            wanted[here] = given[n, i * mask_wide + j, y, x]
            back[n, i * mask_wide + j, y, x] = grad[here]
    output = torch.full(wanted.shape, 6.0, dtype=given.dtype)
    sizes = {"h_feature": high, "w_feature": wide, "h_mask": mask_high, "w_mask": mask_wide,
             "half_h_mask": half_high, "half_w_mask": half_wide}  # fmt: skip
    across.psamask_forward(given, output, psa_type=kind, num_=2, **sizes)
    close(output, wanted)
    found = torch.full(back.shape, 8.0, dtype=given.dtype)
    across.psamask_backward(grad, found, psa_type=kind, num_=2, **sizes)
    close(found, back)


def crossing(height: int, width: int, y: int, x: int) -> list[tuple[int, int]]:
    return [(y, each) for each in range(width)] + [(each, x) for each in range(height) if each != y]


@pytest.mark.parametrize(("height", "width"), [(3, 5), (4, 2), (1, 3)])
def test_criss_cross_attention(height: int, width: int) -> None:
    t, f, g = (numbers(2, 3, height, width, seed=seed) for seed in range(3))
    wanted = np.zeros((2, height + width - 1, height, width))
    weight = numbers(*wanted.shape, seed=4)
    summed = np.zeros(g.shape)
    for n, y, x in itertools.product(range(2), range(height), range(width)):
        for place, (row, column) in enumerate(crossing(height, width, y, x)):
            wanted[n, place, y, x] = float(t[n, :, y, x] @ f[n, :, row, column])
            summed[n, :, y, x] += (weight[n, place, y, x] * g[n, :, row, column]).numpy()
    found, out = torch.ones(wanted.shape, dtype=t.dtype), torch.ones_like(g)
    across.ca_forward(t, f, found)
    close(found, wanted + 1)
    across.ca_map_forward(weight, g, out)
    close(out, summed + 1)

    def product(one: Any, two: Any) -> Any:
        buffer = torch.zeros_like(found)
        across.ca_forward(one, two, buffer)
        return buffer

    def total(one: Any, two: Any) -> Any:
        buffer = torch.zeros_like(g)
        across.ca_map_forward(one, two, buffer)
        return buffer

    grad, grad_out = numbers(*wanted.shape, seed=5), numbers(*g.shape, seed=6)
    dt, df, dw, dg = (torch.zeros_like(each) for each in (t, f, weight, g))
    across.ca_backward(grad, t, f, dt, df)
    linear_in(dt, t, lambda one: product(one, f), grad)
    linear_in(df, f, lambda two: product(t, two), grad)
    across.ca_map_backward(grad_out, weight, g, dw, dg)
    linear_in(dw, weight, lambda one: total(one, g), grad_out)
    linear_in(dg, g, lambda two: total(weight, two), grad_out)
    close(across.criss_cross_forward(t, f), wanted)
    close(across.criss_cross_map_forward(weight, g), summed)
    returned = *across.criss_cross_backward(grad, t, f), *across.criss_cross_map_backward(grad_out, weight, g)
    for one, two in zip(returned, (dt, df, dw, dg), strict=True):
        close(one, two)


# --- moved pixels ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["top", "bottom", "left", "right"])
def test_corner_pooling(side: str) -> None:
    image = (numbers(2, 2, 5, 6) * 3).round()  # with ties
    grad = numbers(2, 2, 5, 6, seed=1)
    wanted, back = np.zeros(image.shape), np.zeros(image.shape)
    for n, c, y, x in itertools.product(range(2), range(2), range(5), range(6)):
        way = {"top": [(each, x) for each in range(4, y - 1, -1)], "bottom": [(each, x) for each in range(y + 1)],
               "left": [(y, each) for each in range(5, x - 1, -1)], "right": [(y, each) for each in range(x + 1)]}[side]
        best = max(way, key=lambda place, n=n, c=c: (float(image[n, c, place[0], place[1]]), -way.index(place)))  # type: ignore[misc]
        wanted[n, c, y, x] = image[n, c, best[0], best[1]]
        back[n, c, best[0], best[1]] += float(grad[n, c, y, x])
    close(getattr(moves, f"{side}_pool_forward")(image), wanted)
    close(getattr(moves, f"{side}_pool_backward")(image, grad), back)
    one = image[:, :, :1, :1]
    close(getattr(moves, f"{side}_pool_backward")(one, one), one)


def test_shifts_in_time() -> None:
    given, shift = numbers(2, 4, 6, 3), torch.tensor([[1, -2], [0, 9]], dtype=torch.int32)
    wanted = np.full(given.shape, 7.0)
    for n, t, c in itertools.product(range(2), range(4), range(6)):
        to = t + int(shift[n, c // 3])
        if 0 <= to < 4:
            wanted[n, to, c] = given[n, t, c]
    output = torch.full_like(given, 7.0)
    moves.tin_shift_forward(given, shift, output)
    close(output, wanted)


def test_windows_of_chosen_pixels() -> None:
    image, rows, columns = numbers(1, 3, 5, 6), torch.tensor([0, 4, 2]), torch.tensor([5, 0, 3])
    col = torch.zeros(3 * 3 * 2, 3, dtype=image.dtype)
    moves.masked_im2col_forward(image, rows, columns, col, kernel_h=3, kernel_w=2, pad_h=1, pad_w=1)
    wanted = np.zeros(col.shape)
    for c, i, j, m in itertools.product(range(3), range(3), range(2), range(3)):
        y, x = int(rows[m]) - 1 + i, int(columns[m]) - 1 + j
        if 0 <= y < 5 and 0 <= x < 6:
            wanted[(c * 3 + i) * 2 + j, m] = image[0, c, y, x]
    close(col, wanted)
    target, values = torch.zeros(1, 2, 5, 6, dtype=image.dtype), numbers(2, 3, seed=1)
    moves.masked_col2im_forward(values, rows, columns, target, height=5, width=6, channels=2)
    close(target[0, :, rows, columns], values)
    assert int((target != 0).sum()) == 6
    again = torch.zeros_like(col), torch.zeros_like(target)
    moves.masked_im2col_rows(image, rows, columns, 3, 2, 1, 1, again[0])
    moves.masked_col2im_rows(values, rows, columns, 5, 6, 2, again[1])
    close(again[0], col)
    close(again[1], target)
    nothing = torch.zeros(18, 0, dtype=image.dtype)
    moves.masked_im2col_forward(image, rows[:0], columns[:0], nothing, 3, 2, 1, 1)
