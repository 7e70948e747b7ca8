"""Random numbers: alike until training begins, then each rank's own, and never the same twice."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, npu_port, torch

pytestmark = pytest.mark.torch
#: Each host with the numbers of processes that are tried on it.
PLACES = [("cpu", 2), ("cpu", 4), ("npu", 3)]
#: What processes that nobody seeded may begin with: all that fits into 64 bits (a CPU's stream looks at the lower 32).
UNSEEDED = [2**63 + 2, 0, 2**64 - 1, 7]


def drawn() -> list[float]:
    """A number of each stream: torch's on the CPU and on the card, random's, NumPy's."""
    import numpy

    on_card = torch.rand(1, device=npu_port.card())
    return [torch.rand(1).item(), on_card.item(), random.random(), float(numpy.random.rand())]


def apart(ranks: list[list[float]]) -> bool:
    """No number occurs twice on any ranks, but the card's and the CPU's stream may be one."""
    numbers = [number for found in ranks for number in set(found)]
    return len(set(numbers)) == len(numbers)


def before_and_after_start() -> list[list[float]]:
    drawn()
    return [drawn(), *(npu_port.start() or [drawn(), drawn()])]


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize(("host", "world"), PLACES)
def test_all_ranks_go_on_with_what_rank_0_would_have_drawn(host: str, world: int, first: int) -> None:
    seeds = (UNSEEDED[first:] + UNSEEDED[:first])[:world]
    found = each_rank(before_and_after_start, world, host=host, seeds=seeds)
    (alone,) = each_rank(before_and_after_start, 1, host=host, seeds=seeds)
    assert apart([begin for begin, *_ in found])
    assert all(rank[1:] == alone[1:] for rank in found)
    assert found[0] == alone


def training(epochs: int) -> dict[str, list[list[float]]]:
    npu_port.start()
    found: dict[str, list[list[float]]] = {"weights": [], "noise": [], "evaluation": []}
    for _ in range(epochs):
        found["weights"].append(drawn())
        npu_port.own_draws()
        found["noise"].append(drawn())
        npu_port.own_draws()
        found["noise"].append(drawn())
        npu_port.same_draws()
        found["evaluation"].append(drawn())
    return found


@pytest.mark.parametrize(("host", "world"), PLACES)
def test_noise_of_training_is_each_ranks_own_and_new_in_each_epoch(host: str, world: int) -> None:
    found = each_rank(training, world, 3, host=host, seeds=UNSEEDED[:world])
    (alone,) = each_rank(training, 1, 3, host=host, seeds=UNSEEDED[:1])
    assert apart([noise for rank in found for noise in rank["noise"]])
    assert all(rank["weights"] == alone["weights"] for rank in found)
    assert all(rank["evaluation"] == alone["evaluation"] for rank in found)
    assert found[0] == alone


def asked_again() -> bool:
    npu_port.start()
    npu_port.own_draws()
    states = npu_port.stream_states()
    begun = npu_port.order_state()
    if npu_port.is_first():
        torch.rand(1)
    npu_port.own_draws()
    return repr(npu_port.stream_states()[2]) == repr(states[2]) and npu_port.order_state() == begun


def test_ranks_that_draw_their_own_go_on_with_it() -> None:
    assert each_rank(asked_again, 2) == [True, True]


def without_draws_of_rank_0() -> list[list[float]]:
    npu_port.start()
    noise = []
    for _ in range(3):
        npu_port.own_draws()
        if not npu_port.is_first():
            noise.append(drawn())
        npu_port.same_draws()
    return noise


def test_noise_does_not_repeat_where_rank_0_draws_nothing() -> None:
    _, *others = each_rank(without_draws_of_rank_0, 3)
    assert apart([noise for rank in others for noise in rank])


def seeded_training(seed: int) -> list[list[float]]:
    import numpy

    npu_port.start()
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)
    npu_port.own_draws()
    return [drawn(), [float(npu_port.next_order())]]


def test_a_seeded_run_draws_the_same_the_next_time() -> None:
    first = each_rank(seeded_training, 2, 5, seeds=[1, 2])
    assert first == each_rank(seeded_training, 2, 5, seeds=[3, 4])
    assert first != each_rank(seeded_training, 2, 6, seeds=[1, 2])
    assert first[0][1] == first[1][1]
    assert apart([noise for noise, _ in first])


def seeded_in_part(stream: str) -> list[Any]:
    """What a program draws that seeds one stream only, and what a source draws for it."""
    import numpy

    npu_port.start()
    {"torch": torch.manual_seed, "random": random.seed, "numpy": numpy.random.seed}[stream](3)
    npu_port.own_draws()
    draw = {"torch": lambda: torch.rand(1).item(), "random": random.random, "numpy": numpy.random.rand}[stream]
    source = (draw() for _ in range(2))
    return [[float(draw()) for _ in range(2)], [float(each) for each in npu_port.drawn_alike(source, 1)]]


@pytest.mark.parametrize("stream", ["torch", "random", "numpy"])
def test_a_program_has_the_same_draws_again_if_it_seeds_what_it_draws_from(stream: str) -> None:
    first = each_rank(seeded_in_part, 2, stream, seeds=[1, 2])
    assert first == each_rank(seeded_in_part, 2, stream, seeds=[3, 4])
    assert first[0][0] != first[1][0] and first[0][1] == first[1][1]


def orders_of_a_seed(times: int) -> list[int]:
    npu_port.start()
    numbers = []
    for _ in range(times):
        torch.manual_seed(3)
        npu_port.same_draws()
        numbers.append(npu_port.next_order())
    return numbers


def test_orders_do_not_repeat_when_the_streams_do() -> None:
    first, second = each_rank(orders_of_a_seed, 2, 4)
    assert first == second
    assert len(set(first)) == 4


def fetched(at_once: int) -> list[Any]:
    """Elements that draw from three streams, with draws of the process between them; then a draw of the process."""
    npu_port.start()
    npu_port.own_draws()
    before = npu_port.stream_states()
    source = ((torch.rand(1).item(), random.random()) for _ in range(6))
    elements = [(element, torch.rand(1).item())[0] for element in npu_port.drawn_alike(source, at_once)]
    npu_port.set_streams(before)
    undisturbed = [torch.rand(1).item() for _ in range(7)]
    npu_port.set_streams(before)
    found = []
    for _ in npu_port.drawn_alike(iter([1, 2, 3]), at_once):
        found.append(torch.rand(1).item())
    return [elements, undisturbed[:3] == found, torch.rand(1).item()]


@pytest.mark.parametrize("at_once", [1, 2, 6, 100])
def test_what_a_source_draws_is_alike_and_disturbs_nobody(at_once: int) -> None:
    first, second, third = each_rank(fetched, 3, at_once)
    assert first[0] == second[0] == third[0]
    assert len(first[0]) == len(set(first[0])) == 6
    assert first[1] and second[1] and third[1]
    assert len({first[2], second[2], third[2]}) == 3
