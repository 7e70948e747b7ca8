"""average(): the mean of the gradients over the ranks."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, npu_port, torch

pytestmark = pytest.mark.torch
HOSTS = ("cpu", "npu")


def trained(steps: int) -> list[list[float]]:
    """Parameters after each step, with a share of six samples on each rank."""
    npu_port.start()
    torch.manual_seed(0)
    device = npu_port.card()
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = torch.randn(12, 4)[npu_port.rank() :: npu_port.world_size()].to(device)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        npu_port.average(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        found.append([float(p) for tensor in model.parameters() for p in tensor.flatten()])
    return found


@pytest.mark.parametrize(("host", "world"), [("cpu", 2), ("cpu", 3), ("cpu", 4), ("npu", 2)])
def test_ranks_train_as_one_process_with_all_the_data(host: str, world: int) -> None:
    (alone,) = each_rank(trained, 1, 4, host=host)
    found = each_rank(trained, world, 4, host=host)
    assert all(rank == found[0] for rank in found)
    for mine, theirs in zip(found[0], alone, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-5, abs=1e-7)


def of_many_kinds(card: bool) -> list[Any]:
    """Gradients of rank + 1 of several types and layouts, in two optimizers and three groups, after average()."""
    npu_port.start()
    rank, device = npu_port.rank(), npu_port.card() if card else torch.device("cpu")

    def parameter(*shape: int, dtype: Any = None, gradient: Any = 1.0) -> Any:
        made = torch.nn.Parameter(torch.zeros(shape, dtype=dtype, device=device))
        if gradient is not None:
            made.grad = torch.full(shape, gradient * (rank + 1), dtype=dtype, device=device)
        return made

    shared, spread = parameter(2), parameter(1, 3, 2, 2)
    # A card makes no channels_last, and keeps the strides of what was made on the CPU.
    spread_out = (torch.arange(12.0) * (rank + 1)).reshape(1, 3, 2, 2).to(memory_format=torch.channels_last)
    spread.grad = spread_out.to(device)
    parameters = [
        shared, parameter(), parameter(3, dtype=torch.float16), parameter(2, dtype=torch.bfloat16), spread,
        parameter(2, dtype=torch.float64, gradient=0.1), parameter(2, gradient=None),
        parameter(2, gradient=None if rank else 4.0), parameter(2, gradient=None if rank != 1 else 4.0),
        parameter(2, gradient=math.inf if rank == 1 else 1.0), parameter(1, gradient=math.nan if rank == 0 else 1.0),
        parameter(0), parameter(2, dtype=torch.complex64, gradient=1j),
        parameter(1, dtype=torch.complex128, gradient=1j),
    ]  # fmt: skip
    objects = [p.grad for p in parameters]
    first = torch.optim.SGD([{"params": parameters[:4]}, {"params": parameters[4:]}], lr=0.1)
    second = torch.optim.SGD([shared], lr=0.1)
    npu_port.average(first, second)
    assert all(p.grad is before for p, before in zip(parameters, objects, strict=True) if before is not None)
    kept = [p for p in parameters if p.grad is not None]
    assert all((p.grad.dtype, p.grad.shape, p.grad.device) == (p.dtype, p.shape, p.device) for p in kept)
    return [p.grad if p.grad is None else p.grad.tolist() for p in parameters]


@pytest.mark.parametrize(("host", "card"), [("cpu", False), ("npu", True), ("npu", False)])
def test_every_kind_of_gradient(host: str, card: bool) -> None:
    found = each_rank(of_many_kinds, 2, card, host=host)
    assert repr(found[0]) == repr(found[1])
    shared, scalar, half, short, spread, double, none, of_first, of_second, *others = found[0]
    infinite, nan, empty, imaginary, wide = others
    assert (shared, scalar, half, short) == ([1.5, 1.5], 1.5, [1.5] * 3, [1.5] * 2)
    assert spread == [[[[1.5 * (6 * 0 + 4 * c + 2 * y + x) for x in range(2)] for y in range(2)] for c in range(3)]]
    assert double == [(0.1 + 0.2) / 2] * 2 or double == pytest.approx([0.15] * 2, rel=1e-15)
    assert none is None
    assert (of_first, of_second) == ([2.0, 2.0], [4.0, 4.0])
    assert infinite == [math.inf] * 2 and math.isnan(nan[0])
    assert (empty, imaginary, wide) == ([], [1.5j] * 2, [1.5j])


def large() -> list[Any]:
    """More than is sent at once, one of them in two optimizers: the values, and how many numbers went each time."""
    npu_port.start()
    sent = []
    add = torch.distributed.all_reduce
    torch.distributed.all_reduce = lambda tensor, *options: [sent.append(tensor.numel()), add(tensor, *options)]
    parameters = [torch.nn.Parameter(torch.zeros(size)) for size in (9, 4_000_000, 5, 4_000_000, 3)]
    for number, parameter in enumerate(parameters):
        parameter.grad = torch.full_like(parameter, number + 10.0 * npu_port.rank())
    npu_port.average(torch.optim.SGD(parameters, lr=1.0), torch.optim.SGD(parameters[:2], lr=1.0))
    return [[value for p in parameters for value in (float(p.grad[0]), float(p.grad[-1]))], sent]


def test_more_than_is_sent_at_once() -> None:
    (values, sent), second = each_rank(large, 2)
    assert values == [value for number in range(5) for value in [number + 5.0] * 2]
    assert sent == [5, 4_000_014, 4_000_003]
    assert second == [values, sent]


def sparse() -> str:
    npu_port.start()
    embedding = torch.nn.Embedding(4, 2, sparse=True)
    if npu_port.is_first():
        embedding(torch.tensor([1])).sum().backward()
    try:
        npu_port.average(torch.optim.SGD(embedding.parameters(), lr=0.1))
    except RuntimeError as error:
        return str(error)
    return ""


def test_sparse_gradients_are_refused_on_all_ranks() -> None:
    assert each_rank(sparse, 2) == ["average() takes no sparse gradients: parameter 0, (4, 2)"] * 2


def one_process() -> list[Any]:
    parameter = torch.nn.Parameter(torch.zeros(1))
    npu_port.average(torch.optim.SGD([parameter], lr=0.1))
    return [parameter.grad]


def test_one_process_has_nothing_to_average() -> None:
    assert each_rank(one_process, 1) == [[None]]
