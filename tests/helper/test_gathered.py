"""all_gather(): rows of all ranks, and their gradients."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, npu_port, torch

pytestmark = pytest.mark.torch


def gathered() -> list[Any]:
    from transplt.helper.gathered import all_gather

    npu_port.start()
    rank, world = npu_port.rank(), npu_port.world_size()
    rows = torch.arange(4.0, device=npu_port.card()).reshape(2, 2) + 10 * rank
    rows.requires_grad_()
    out = all_gather(rows.t(), None)  # not contiguous
    (out * (rank + 1) * torch.arange(2.0 * world, device=out.device)[:, None]).sum().backward()
    return [out.tolist(), rows.grad.tolist()]


@pytest.mark.parametrize(("host", "world"), [("cpu", 1), ("cpu", 3), ("npu", 2)])
def test_rows_and_gradients_of_all_ranks(host: str, world: int) -> None:
    everything = [[10.0 * rank + row, 10.0 * rank + row + 2] for rank in range(world) for row in (0, 1)]
    total = sum(rank + 1 for rank in range(world))
    for rank, (out, gradient) in enumerate(each_rank(gathered, world, host=host)):
        assert out == everything
        assert gradient == [[total * 2 * rank, total * (2 * rank + 1)]] * 2
