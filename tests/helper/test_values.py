"""mean_over_ranks(), sum_over_ranks(): figures of all ranks; of_first(): what rank 0 alone decides."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, npu_port, torch

pytestmark = pytest.mark.torch
PLACES = [("cpu", 2), ("cpu", 3), ("npu", 2)]


def plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        assert not value.requires_grad
        return [str(value.dtype), value.device.type, value.tolist()]
    return value


def figures() -> list[Any]:
    npu_port.start()
    rank, card = npu_port.rank(), npu_port.card()
    loss = torch.tensor(1.0 + rank, device=card, requires_grad=True) * 1.0
    mean, total = npu_port.mean_over_ranks, npu_port.sum_over_ranks
    values = [
        mean(loss), mean(0.1 + rank), mean(rank), mean(torch.full((2, 2), 2.0 * rank, dtype=torch.float64)),
        mean(torch.tensor([1.0 + rank], dtype=torch.float16)), mean(0.5, 3), mean(1.0 + rank, rank),
        mean(loss, torch.tensor(rank + 1)), mean(math.nan if rank == 0 else 2.0, rank), mean(5.0, 0),
        mean(torch.tensor([math.inf, 1.0])), mean(torch.tensor([1, 2 + rank])), mean(0.1),
        total(loss), total(0.1), total(rank + 2**60), total(torch.tensor([True, rank == 0])),
        total(torch.tensor(200, dtype=torch.uint8, device=card) // 4),
        total(torch.tensor([rank, 2**40], device=card)), total(torch.tensor([0.5], dtype=torch.bfloat16)),
    ]  # fmt: skip
    assert float(loss.detach()) == 1.0 + rank
    return [plain(value) for value in values]


@pytest.mark.parametrize(("host", "world"), PLACES)
def test_figures_of_all_ranks(host: str, world: int) -> None:
    found = each_rank(figures, world, host=host)
    assert all(rank == found[0] for rank in found)
    middle, ranks, card = (world - 1) / 2, range(world), host
    single = "torch.float32"
    expected = [
        [single, card, 1 + middle], pytest.approx(0.1 + middle, rel=1e-15), middle,
        ["torch.float64", "cpu", [[2 * middle] * 2] * 2], ["torch.float16", "cpu", [1 + middle]], 0.5,
        pytest.approx(sum((1 + r) * r for r in ranks) / sum(ranks), rel=1e-15),
        [single, card, pytest.approx(sum((1 + r) ** 2 for r in ranks) / sum(r + 1 for r in ranks), rel=1e-6)],
        2.0, 0.0, [single, "cpu", [math.inf, 1.0]], [single, "cpu", [1.0, 2 + middle]], pytest.approx(0.1, rel=1e-15),
        [single, card, sum(1.0 + r for r in ranks)], pytest.approx(0.1 * world, rel=1e-15),
        sum(r + 2**60 for r in ranks), ["torch.int64", "cpu", [world, 1]], ["torch.uint8", card, 50 * world],
        ["torch.int64", card, [sum(ranks), world * 2**40]], ["torch.bfloat16", "cpu", [0.5 * world]],
    ]  # fmt: skip
    assert len(found[0]) == len(expected)
    for place, (value, wanted) in enumerate(zip(found[0], expected, strict=True)):
        assert value == wanted, place


def of_one() -> list[Any]:
    npu_port.start()
    loss = torch.tensor([2.0], requires_grad=True)
    copy = npu_port.mean_over_ranks(loss, 4)
    copy += 1
    others = npu_port.mean_over_ranks(0.3), npu_port.sum_over_ranks(3), npu_port.sum_over_ranks(loss)
    return [loss.tolist(), *map(plain, [copy, *others])]


def test_one_process_gets_its_own_value() -> None:
    single = "torch.float32"
    assert each_rank(of_one, 1) == [[[2.0], [single, "cpu", [3.0]], 0.3, 3, [single, "cpu", [2.0]]]]


def choices() -> list[Any]:
    npu_port.start()
    rank = npu_port.rank()
    tensor = npu_port.of_first(torch.tensor([rank, 7]))
    return [npu_port.of_first(f"run-{rank}"), npu_port.of_first([rank, {"a": None}]), plain(tensor)]


@pytest.mark.parametrize(("host", "world"), [("cpu", 1), *PLACES])
def test_what_rank_0_has_chosen(host: str, world: int) -> None:
    assert each_rank(choices, world, host=host) == [["run-0", [0, {"a": None}], ["torch.int64", "cpu", [0, 7]]]] * world


def rows() -> list[Any]:
    npu_port.start()
    rank, card = npu_port.rank(), npu_port.card()
    index = torch.tensor([rank, 4 + rank], device=card)
    tables = [torch.zeros(9, device=card), torch.zeros(9), torch.zeros(9, 1, dtype=torch.float64).numpy()]
    for table, at in zip(tables, (index, index.cpu(), index.tolist()), strict=True):
        table[at] = rank + 1.0
        npu_port.share_rows(table, at)
    return [table.reshape(-1).tolist() for table in tables]


@pytest.mark.parametrize(("host", "world"), [("cpu", 1), *PLACES])
def test_rows_that_all_ranks_write(host: str, world: int) -> None:
    """Of what several have written that of the last one stays."""
    row = [0.0] * 9
    for rank in range(world):
        row[rank] = row[4 + rank] = rank + 1.0
    assert each_rank(rows, world, host=host) == [[row] * 3] * world
