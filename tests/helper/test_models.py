"""wrap(), bare(), alike(), buffers_of_first(): models that are the same on all ranks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, npu_port, torch

pytestmark = pytest.mark.torch
HOSTS = ("cpu", "npu")


def wrapped() -> list[Any]:
    npu_port.start()
    torch.manual_seed(npu_port.rank())
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    ddp = npu_port.wrap(model.to(npu_port.card()), broadcast_buffers=False, find_unused_parameters=False)
    (ddp(torch.ones(2, 3, device=npu_port.card())).sum() * (1 + npu_port.rank())).backward()
    kinds = [type(ddp).__name__, ddp.broadcast_buffers, npu_port.wrap(ddp) is ddp, npu_port.bare(ddp) is ddp.module]
    card, on_card = npu_port.card(), [npu_port.bare(ddp.module) is ddp.module]
    on_card += [next(ddp.parameters()).device == card, ddp.device_ids == (None if card.type == "cpu" else [card.index])]
    return [kinds + on_card, [p.grad.tolist() for p in ddp.parameters()], [p.tolist() for p in ddp.parameters()]]


@pytest.mark.parametrize("launched", [True, False])
@pytest.mark.parametrize("host", HOSTS)
def test_one_process_is_wrapped_as_well(host: str, launched: bool) -> None:
    ((found, _, _),) = each_rank(wrapped, 1, host=host, launched=launched)
    assert found == ["DistributedDataParallel", False, True, True, True, True, True]


@pytest.mark.parametrize("host", HOSTS)
def test_a_wrapped_model_is_on_the_card_and_alike(host: str) -> None:
    first, second = each_rank(wrapped, 2, host=host)
    assert first == second
    assert first[0] == ["DistributedDataParallel", False, True, True, True, True, True]


def chosen(place: str) -> list[Any]:
    """A model that a script put on the CPU, or left there in part, and what two steps make of it."""
    npu_port.start()
    torch.manual_seed(npu_port.rank())
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    model[1].to(npu_port.card() if place == "in part" else "cpu")
    ddp = npu_port.wrap(model)
    device = next(ddp.parameters()).device
    (ddp(torch.ones(2, 3, device=device)).sum() * (1 + npu_port.rank())).backward()
    npu_port.mean_over_ranks(ddp(torch.ones(2, 3, device=device)).mean())
    return [ddp.module is model, device.type, [p.grad.tolist() for p in ddp.parameters()]]


@pytest.mark.parametrize(("place", "kind"), [("on the CPU", "cpu"), ("in part", "npu")])
@pytest.mark.parametrize(("ranks", "launched"), [(1, False), (1, True), (2, True)])
def test_a_model_stays_on_the_cpu_that_a_script_chose(place: str, kind: str, ranks: int, launched: bool) -> None:
    found = each_rank(chosen, ranks, place, host="npu", launched=launched)
    assert found[0] == found[-1] and found[0][:2] == [True, kind]


def data_parallel() -> list[bool]:
    npu_port.start()
    model = torch.nn.Linear(1, 1)
    parallel = torch.nn.DataParallel(model)
    return [npu_port.bare(parallel) is model, npu_port.wrap(parallel).module is model, npu_port.bare(model) is model]


def test_data_parallel_gives_way() -> None:
    assert each_rank(data_parallel, 2) == [[True, True, True]] * 2


def held(card: bool) -> list[list[Any]]:
    """What alike() makes of tensors that begin otherwise on each rank: before, after, and where they lie."""
    npu_port.start()
    rank, device = npu_port.rank(), npu_port.card() if card else torch.device("cpu")
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).to(device)
    other = torch.nn.Parameter(torch.full((2, 3), 1.0 + rank, device=device))
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            tensor.fill_(7 + rank)
    optimizer = torch.optim.SGD([{"params": [other]}, {"params": model[0].weight}], lr=0.1)
    tensors = [
        torch.full((2, 3), rank, dtype=torch.int64), torch.tensor([rank == 0, rank == 1]), torch.tensor(1.5 + rank),
        torch.arange(6.0).reshape(2, 3).t() + rank, torch.full((3,), 2.0**-20 + rank, dtype=torch.float16),
        torch.full((2, 2), complex(rank, 1)), torch.full((2,), 200 - rank, dtype=torch.uint8), torch.zeros(0),
        torch.full((2,), 0.1 + rank, dtype=torch.float64), torch.full((4,), 1.0 + rank)[::2],
    ]  # fmt: skip
    tensors = [tensor.to(device) for tensor in tensors]
    image = torch.full((2,), 3.0 + rank, device=device, requires_grad=True)
    every = [*model.parameters(), *model.buffers(), other, *tensors, image]
    places = [tensor.data_ptr() for tensor in every]
    before = [tensor.tolist() for tensor in every]
    npu_port.alike(model, optimizer, *tensors, image)
    assert places == [tensor.data_ptr() for tensor in every]
    assert all(tensor.device == device for tensor in every) and image.requires_grad and image.grad_fn is None
    return [before, [tensor.tolist() for tensor in every]]


@pytest.mark.parametrize(("host", "card", "world"), [("cpu", False, 3), ("npu", True, 2), ("npu", False, 2)])
def test_all_take_what_rank_0_has_wherever_it_lies(host: str, card: bool, world: int) -> None:
    found = each_rank(held, world, card, host=host)
    for before, after in found:
        assert after == found[0][0]
        assert (before == after) == (before is found[0][0])


def alike_refuses() -> str:
    npu_port.start()
    try:
        npu_port.alike({"weight": torch.zeros(1)})
    except TypeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("world", [1, 2])
def test_what_alike_does_not_take(world: int) -> None:
    assert each_rank(alike_refuses, world) == ["alike() takes models, optimizers and tensors, not a dict"] * world


def statistics() -> list[Any]:
    npu_port.start()
    model = torch.nn.BatchNorm1d(2).to(npu_port.card())
    model(torch.rand(4, 2, device=npu_port.card()) + npu_port.rank())
    with torch.no_grad():
        model.weight.fill_(npu_port.rank())
    own = model.running_mean.tolist()
    npu_port.buffers_of_first(model)
    return [own, model.running_mean.tolist(), int(model.num_batches_tracked), model.weight.tolist()]


@pytest.mark.parametrize("host", HOSTS)
def test_buffers_follow_rank_0_and_parameters_do_not(host: str) -> None:
    (first, *_), (second, mean, steps, weight) = found = each_rank(statistics, 2, host=host)
    assert first != second
    assert mean == first == found[0][1]
    assert (steps, weight) == (1, [1.0, 1.0])
