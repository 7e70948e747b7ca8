"""check_ranks(): what differs between ranks is named, on all of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, npu_port, torch

pytestmark = pytest.mark.torch
HOSTS = ("cpu", "npu")


def checked(difference: str, every: int = 1, calls: int = 1) -> list[str]:
    """What the checks of so many calls say when rank 1 has this difference."""
    npu_port.start()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 2))
    model.register_buffer("bank", torch.zeros(3))
    model = model.to(npu_port.card())
    other = torch.nn.Parameter(torch.zeros(0, 2))
    optimizer = torch.optim.Adam([{"params": model.parameters()}, {"params": [other], "lr": 0.5}], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    scaler = torch.amp.GradScaler(npu_port.card().type, enabled=False)
    model[1](torch.rand(4, 2, device=npu_port.card()) + npu_port.rank())
    if npu_port.rank() == 1:
        with torch.no_grad():
            if difference == "parameter":
                model[2].weight[1, 1] += 2.0**-24
            elif difference == "zero":
                model[0].weight.zero_()[0, 0] = -0.0
            elif difference == "buffer":
                model.bank[2] = 1
            elif difference == "lr":
                optimizer.param_groups[1]["lr"] *= 1 + 2**-52
            elif difference == "scheduler":
                scheduler.best = 3.0
            elif difference == "order":
                npu_port.next_order()
            elif difference == "fewer":
                optimizer.param_groups[1]["params"].clear()
    if difference == "zero" and npu_port.rank() != 1:
        with torch.no_grad():
            model[0].weight.zero_()
    if difference == "wrapped":
        model = npu_port.wrap(model)
        npu_port.bare(model).bank.fill_(npu_port.rank())
    texts = []
    for _ in range(calls):
        try:
            npu_port.check_ranks(model, optimizer, scheduler, scaler, every=every)
            texts.append("")
        except RuntimeError as error:
            texts.append(str(error))
    return texts


@pytest.mark.parametrize(
    ("difference", "name"),
    [
        ("parameter", "Sequential.2.weight of rank 1 is"),
        ("zero", "Sequential.0.weight of rank 1 is"),
        ("buffer", "Sequential.bank of rank 1 is"),
        ("lr", "Adam[1].lr of rank 1 is"),
        ("scheduler", "ReduceLROnPlateau.best of rank 1 is"),
        ("order", "the order of data of rank 1 is"),
        ("fewer", "Adam.params[1][0] of rank 1 is"),
    ],
)
def test_the_first_that_differs_is_named_on_all_ranks(difference: str, name: str) -> None:
    for (text,) in each_rank(checked, 3, difference):
        assert text == f"ranks differ: {name} not that of rank 0"


@pytest.mark.parametrize("host", HOSTS)
def test_what_may_differ(host: str) -> None:
    assert each_rank(checked, 2, "none", host=host) == [[""], [""]]
    assert each_rank(checked, 2, "wrapped", host=host) == [[""], [""]]
    assert each_rank(checked, 2, "parameter", host=host) != [[""], [""]]


def test_every_so_manieth_call() -> None:
    first, second = each_rank(checked, 2, "lr", 3, 7)
    assert first == second
    assert [bool(text) for text in first] == [False, False, True, False, False, True, False]
    assert each_rank(checked, 2, "lr", 0, 3) == [[""] * 3] * 2
    assert each_rank(checked, 1, "lr", 1, 1) == [[""]]


def unevenly() -> Any:
    npu_port.start()
    if npu_port.is_first():
        npu_port.check_ranks(every=2)
    npu_port.check_ranks(every=2 - npu_port.rank())


def test_ranks_that_have_asked_unequally_often() -> None:
    from tests.helper.in_ranks import run_ranks

    ended = run_ranks(unevenly, 2)
    assert all("the number of checks of rank 1 is not that of rank 0" in text for text in ended.outputs)
