"""Values of all ranks: figures such as a loss, an accuracy, a count; and what rank 0 alone decides."""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed

from transplt.helper.ranks import add_up, exchange_device, world_size

__all__ = ["mean_over_ranks", "of_first", "share_rows", "sum_over_ranks"]


def mean_over_ranks(value: torch.Tensor | float, count: torch.Tensor | float | None = None) -> Any:
    """The mean over the ranks of a number, or of a tensor of any shape; every rank has to come here.

    `count`, if given, is how many samples this rank's value is the mean of, so that the result is the mean over all
    samples, and 0 where there are none. A tensor becomes a detached tensor of its type on its device, a number a float.
    With one process it is the value itself.
    """
    if world_size() == 1:
        return value.detach().clone() if isinstance(value, torch.Tensor) else value
    given = value.detach() if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=torch.float64)
    wide = given if given.dtype in (torch.float64, torch.complex64, torch.complex128) else given.float()
    weight = 1.0 if count is None else float(count)
    # A rank without samples may have a mean of nan.
    parts = wide.reshape(-1) * weight if weight else torch.zeros_like(wide).reshape(-1)
    sums = add_up(torch.cat([parts, parts.new_full((1,), weight)]))
    means = sums[:-1] / sums[-1] if sums[-1] != 0 else torch.zeros_like(sums[:-1])
    if not isinstance(value, torch.Tensor):
        return float(means)
    return means.reshape(given.shape).to(given.dtype if given.is_floating_point() else means.dtype)


def sum_over_ranks(value: torch.Tensor | float) -> Any:
    """The sum over the ranks of a number, or of a tensor of any shape (of bools: int64); every rank has to come here.

    A tensor becomes a detached tensor of its type on its device, an int an int, a float a float.
    """
    if not isinstance(value, torch.Tensor):
        if world_size() == 1:
            return value
        kind = torch.float64 if isinstance(value, float) else torch.int64
        return add_up(torch.tensor([value], dtype=kind)).item()
    given = value.detach().long() if value.dtype == torch.bool else value.detach()
    if world_size() == 1:
        return given.clone()
    exact = given.dtype in (torch.float64, torch.complex64, torch.complex128)
    wide = given if exact else given.float() if given.is_floating_point() else given.long()
    return add_up(wide.clone()).to(given.dtype)


def of_first(value: Any) -> Any:
    """Rank 0's value on all ranks: the name of a folder, what was chosen; every rank has to come here.

    Whatever can be pickled, an object of its own on the other ranks. With one process it is the value itself.
    """
    if world_size() == 1:
        return value
    sent = [value]
    distributed.broadcast_object_list(sent, 0, device=exchange_device())
    return sent[0]


def share_rows(table: Any, index: Any) -> None:
    """All ranks take the rows of `table` at `index` that each of them has just written; every rank has to come here.

    A tensor or an array of the same shape on all ranks; `index` holds numbers of samples, which may be others on each
    rank. What several ranks have written is that of the last one, as of several rows of one batch.
    """
    if world_size() == 1:
        return
    mine = [value.detach().cpu() if isinstance(value, torch.Tensor) else value for value in (index, table[index])]
    parts: list[Any] = [None] * world_size()
    distributed.all_gather_object(parts, mine)
    for places, rows in parts:
        if isinstance(table, torch.Tensor):
            with torch.no_grad():
                table[places] = torch.as_tensor(rows).to(table.device)
        else:
            table[places] = rows
