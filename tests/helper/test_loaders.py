"""shard(): all ranks together read what one process reads, each a share, in the same number of steps."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, npu_port, torch

pytestmark = pytest.mark.torch
WORLDS = [2, 3, 4]


class Squares:
    """Eleven samples; a sample is its number, so that what was read can be told."""

    length = 11

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        return index


def weighted() -> Any:
    return torch.utils.data.WeightedRandomSampler([1.0, 9.0] * 5, 17)


class Shuffled:
    """A sampler of somebody's own, which draws from `random` and NumPy when it is asked."""

    def __iter__(self) -> Iterator[int]:
        import numpy

        order = list(range(10))
        random.shuffle(order)
        return iter(order + numpy.random.randint(0, 10, 2).tolist())

    def __len__(self) -> int:
        return 12


class Endless:
    """A sampler without a length."""

    def __iter__(self) -> Iterator[int]:
        while True:
            yield int(torch.randint(11, ()))


def loader(**options: Any) -> Any:
    made = {name: option() for name, option in options.items() if callable(option)}
    return torch.utils.data.DataLoader(Squares(), **{**options, **made})


def read(loader: Any) -> list[list[int]]:
    return [batch.tolist() if hasattr(batch, "tolist") else [batch] for batch in loader]


def epochs(options: dict[str, Any], times: int) -> list[list[list[int]]]:
    """The batches of so many epochs; ranks draw their own noise."""
    npu_port.start()
    npu_port.own_draws()
    shared = npu_port.shard(loader(**options))
    found = []
    for _ in range(times):
        torch.rand(1)
        found.append(read(shared))
        assert len(found[-1]) == len(shared)
    return found


def together(ranks: list[list[list[int]]]) -> list[int]:
    """The samples of one epoch in the order in which ranks that take turns read them."""
    flat = [list(chain.from_iterable(batches)) for batches in ranks]
    assert len({len(samples) for samples in flat}) == 1
    return list(chain.from_iterable(zip(*flat, strict=True)))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world", WORLDS)
def test_in_sequence_each_rank_takes_every_nth(world: int, workers: int) -> None:
    options = {"batch_size": 2, "num_workers": workers, "persistent_workers": workers > 0}
    found = each_rank(epochs, world, options, 2)
    for epoch in range(2):
        order = together([rank[epoch] for rank in found])
        padding = -len(Squares()) % world
        assert order == [*range(11), *range(padding)]


@pytest.mark.parametrize(
    ("options", "samples"),
    [
        ({"shuffle": True}, 11),
        ({"sampler": weighted}, 17),
        ({"sampler": [3, 1]}, 2),
        ({"sampler": [5]}, 1),
    ],
)
@pytest.mark.parametrize("world", WORLDS)
def test_a_share_of_the_order_that_the_sampler_draws(world: int, options: dict[str, Any], samples: int) -> None:
    found = each_rank(epochs, world, {"batch_size": 2, **options}, 3)
    orders = [together([rank[epoch] for rank in found]) for epoch in range(3)]
    for order in orders:
        assert len(order) == samples + -samples % world
        assert order[samples:] == order[: -samples % world]
        if "shuffle" in options:
            assert sorted(order[:samples]) == list(range(11))
    assert (orders[0] != orders[1] != orders[2] != orders[0]) == (samples > 2)


@pytest.mark.parametrize("world", [2, 4])
def test_drop_last_leaves_out_what_does_not_make_a_batch_on_each_rank(world: int) -> None:
    found = each_rank(epochs, world, {"batch_size": 2, "shuffle": True, "drop_last": True}, 2)
    for epoch in range(2):
        batches = [batch for rank in found for batch in rank[epoch]]
        assert [len(rank[epoch]) for rank in found] == [11 // world // 2] * world
        assert all(len(batch) == 2 for batch in batches)
        assert len(set(chain.from_iterable(batches))) == len(batches) * 2


@pytest.mark.parametrize("options", [{"shuffle": True}, {}])
def test_too_little_for_a_batch_on_each_rank_is_said_with_numbers(options: dict[str, Any]) -> None:
    assert each_rank(sizes, 2, options) == [[1, 1, SAID]] * 2


SAID = (
    "shard(): 11 samples leave 2 ranks without a batch of 6 each, and drop_last drops smaller ones: take a batch_size "
    "of at most 5, or fewer ranks"
)


def sizes(options: dict[str, Any]) -> list[Any]:
    npu_port.start()
    found: list[Any] = [len(npu_port.shard(loader(batch_size=6, **options)))]
    found.append(len(npu_port.shard(loader(batch_size=5, drop_last=True, **options))))
    try:
        npu_port.shard(loader(batch_size=6, drop_last=True, **options))
    except ValueError as error:
        found.append(str(error))
    return found


@pytest.mark.parametrize("world", [2, 3])
def test_without_batches(world: int) -> None:
    found = each_rank(epochs, world, {"batch_size": None, "shuffle": True}, 1)
    assert sorted(set(together([rank[0] for rank in found]))) == list(range(11))


def of_its_own() -> Any:
    return torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(Squares()), 3, False)


@pytest.mark.parametrize("world", WORLDS)
def test_whole_batches_of_a_batch_sampler(world: int) -> None:
    found = each_rank(epochs, world, {"batch_sampler": of_its_own}, 2)
    for epoch in range(2):
        batches = list(chain.from_iterable(zip(*(rank[epoch] for rank in found), strict=True)))
        assert sorted(chain.from_iterable(batches[:4])) == list(range(11))
        assert batches[4:] == batches[: len(batches) - 4]
    assert found[0][0] != found[0][1]


class Classes:
    """A sampler of somebody's own, in whose batches of three all samples are of one class (number // 3)."""

    def __iter__(self) -> Iterator[int]:
        first = torch.randperm(3).tolist()
        return iter([3 * number + each for number in first for each in range(3)])

    def __len__(self) -> int:
        return 9


@pytest.mark.parametrize(("drop_last", "batches"), [(False, 2), (True, 1)])
def test_whole_batches_of_a_sampler_of_ones_own(drop_last: bool, batches: int) -> None:
    found = each_rank(epochs, 2, {"sampler": Classes, "batch_size": 3, "drop_last": drop_last}, 4)
    for epoch in range(4):
        given = [batch for rank in found for batch in rank[epoch]]
        assert len(given) == 2 * batches
        assert all(len({sample // 3 for sample in batch}) == 1 and len(batch) == 3 for batch in given)
        assert len({batch[0] for batch in given}) == (2 if drop_last else 3)


def test_a_sampler_of_ones_own_may_draw_from_any_stream() -> None:
    found = each_rank(epochs, 2, {"sampler": Shuffled, "batch_size": 2}, 3)
    orders = [[*chain.from_iterable(zip(*(rank[epoch] for rank in found), strict=True))] for epoch in range(3)]
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert all(sorted(set(chain.from_iterable(order[:5]))) == list(range(10)) for order in orders)


def begun_of_an_endless_order() -> list[int]:
    npu_port.start()
    npu_port.own_draws()
    batches = iter(npu_port.shard(loader(batch_size=3, sampler=Endless())))
    return [int(sample) for _ in range(2000) for sample in next(batches)]


def test_an_endless_sampler() -> None:
    first, second = each_rank(begun_of_an_endless_order, 2)
    assert first != second
    assert set(first) == set(second) == set(range(11))


def loaders_of_one_epoch() -> list[list[list[int]]]:
    npu_port.start()
    npu_port.own_draws()
    found = []
    for _ in range(2):
        first, second = npu_port.shard(loader(shuffle=True)), npu_port.shard(loader(shuffle=True))
        pairs = [(int(a), int(b)) for a, b in zip(first, second, strict=True)]
        found += [[[a] for a, _ in pairs], [[b] for _, b in pairs]]
    return found


def test_two_loaders_and_loaders_made_anew_have_orders_of_their_own() -> None:
    found = each_rank(loaders_of_one_epoch, 2)
    orders = [together([rank[place] for rank in found]) for place in range(4)]
    assert all(sorted(order[:11]) == list(range(11)) for order in orders)
    assert len({tuple(order) for order in orders}) == 4


def with_a_generator() -> list[list[list[int]]]:
    npu_port.start()
    npu_port.own_draws()
    generator = torch.Generator()
    generator.manual_seed(5)
    shared = npu_port.shard(loader(shuffle=True, batch_size=2, generator=generator))
    return [read(shared), read(shared)]


def test_a_generator_of_the_loaders_own_orders_as_it_does_for_one_process() -> None:
    (alone,) = each_rank(with_a_generator, 1)
    found = each_rank(with_a_generator, 2)
    for epoch in range(2):
        assert together([rank[epoch] for rank in found])[:11] == list(chain.from_iterable(alone[epoch]))


def what_it_looks_like() -> dict[str, bool]:
    npu_port.start()
    data, utils = Squares(), torch.utils.data

    class Mine(utils.DataLoader):  # type: ignore[name-defined, misc]
        mark = 0

    original = Mine(data, batch_size=4, shuffle=True, collate_fn=list, pin_memory=False, timeout=0)
    original.mark = 7
    before = dict(vars(original))
    shared = npu_port.shard(original)
    in_order = npu_port.shard(Mine(data))
    shared.sampler.set_epoch(3)
    of_a_batch_sampler = npu_port.shard(Mine(data, batch_sampler=of_its_own()))
    return {
        "class": type(shared) is Mine and shared.mark == 7,
        "dataset": shared.dataset is data and len(shared.dataset) == 11,
        "arguments": shared.batch_size == 4 and shared.collate_fn is list and not shared.drop_last,
        "sampler": isinstance(shared.sampler, utils.distributed.DistributedSampler),
        "length": len(shared.sampler) == shared.sampler.num_samples == 4 and shared.sampler.total_size == 12,
        "place": (shared.sampler.num_replicas, shared.sampler.rank) == (3, npu_port.rank()),
        "drawn": shared.sampler.shuffle and not in_order.sampler.shuffle,
        "batches": type(shared.batch_sampler) is utils.BatchSampler and len(shared) == 1,
        "original": shared is not original and dict(vars(original)) == before,
        "again": npu_port.shard(shared) is shared and npu_port.shard(of_a_batch_sampler) is of_a_batch_sampler,
        "batch sampler": of_a_batch_sampler.batch_sampler.batch_size == 3 and len(of_a_batch_sampler) == 2,
        "twice": len(list(shared)) == len(list(shared)) == 1,
    }


def test_it_looks_like_the_loader_that_it_shares_out() -> None:
    for found in each_rank(what_it_looks_like, 3):
        assert [name for name, holds in found.items() if not holds] == []


def begun_before() -> list[Any]:
    """A loader that keeps its workers, and has read already; a sampler that is told the epoch."""
    npu_port.start()
    npu_port.own_draws()

    class Rotated(Shuffled):
        epoch = 0

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

        def __iter__(self) -> Iterator[int]:
            return iter([(self.epoch + number) % 11 for number in range(4)])

        def __len__(self) -> int:
            return 4

    original = loader(sampler=Rotated(), num_workers=1, persistent_workers=True)
    begun = read(original)
    shared = npu_port.shard(original)
    shared.sampler.set_epoch(8)
    return [begun, read(shared), read(shared)]


def test_a_loader_that_has_read_already_and_a_sampler_that_knows_the_epoch() -> None:
    begun = [[0], [1], [2], [3]]
    assert each_rank(begun_before, 2) == [[begun, [[8], [10]], [[8], [10]]], [begun, [[9], [0]], [[9], [0]]]]


def the_one_itself(launched: bool) -> bool:
    npu_port.start()
    original = loader(shuffle=True)
    return npu_port.shard(original) is original


@pytest.mark.parametrize("launched", [True, False])
def test_with_one_process_it_is_the_loader_itself(launched: bool) -> None:
    assert each_rank(the_one_itself, 1, launched, launched=launched) == [True]


def refused() -> list[str]:
    npu_port.start()

    class Keeps(torch.utils.data.DataLoader):  # type: ignore[name-defined, misc]
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.kept = super().__iter__()

    texts = []
    for taken in ([1, 2], Keeps(Squares())):
        try:
            npu_port.shard(taken)
        except TypeError as error:
            texts.append(str(error))
    return texts


def test_what_it_does_not_take() -> None:
    for texts in each_rank(refused, 2):
        assert texts == [
            "shard() takes a torch DataLoader, not a list",
            "shard() cannot share out a Keeps, which keeps its own iterator",
        ]


def numbers(length: int, noise: bool) -> Any:
    """An iterable dataset of so many samples, in the order that `random` draws, with noise of torch and NumPy."""

    class Numbers(torch.utils.data.IterableDataset):  # type: ignore[name-defined, misc]
        epoch = 0

        def __iter__(self) -> Iterator[Any]:
            import numpy

            order = list(range(length))
            random.shuffle(order)
            for number in order:
                yield number, float(torch.rand(1)) + float(numpy.random.rand()) if noise else 0.0

        def __len__(self) -> int:
            return length

    return Numbers()


def streamed(workers: int, persistent: bool) -> list[Any]:
    npu_port.start()
    npu_port.own_draws()
    data = numbers(11, noise=True)
    original = torch.utils.data.DataLoader(
        data, batch_size=2, num_workers=workers, collate_fn=list, persistent_workers=persistent
    )
    shared = npu_port.shard(original)
    found = [list(shared), list(shared), list(npu_port.shard(original))]
    copied = copy.copy(shared.dataset)  # as workers that are spawned get it
    assert (copied.source, copied.rank, copied.ranks) == (data, npu_port.rank(), npu_port.world_size())
    shared.dataset.epoch = 5
    looks = isinstance(shared.dataset, type(data)) and shared.dataset.epoch == data.epoch == 5
    return [*found, looks and len(shared.dataset) == 11 // npu_port.world_size(), npu_port.shard(shared) is shared]


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (1, False), (2, True)])
@pytest.mark.parametrize("world", [2, 3])
def test_an_iterable_dataset_is_split_sample_by_sample(world: int, workers: int, persistent: bool) -> None:
    """Each worker reads the whole stream, as it does for one process."""
    found = each_rank(streamed, world, workers, persistent)
    each, orders = 11 // world, []
    for epoch in range(3):
        samples = [list(chain.from_iterable(rank[epoch])) for rank in found]
        assert [len(share) for share in samples] == [each * max(workers, 1)] * world
        for number in set(range(11)):
            assert sum(number == sample for share in samples for sample, _ in share) <= max(workers, 1)
        noise = [noise for share in samples for _, noise in share]
        assert len(set(noise)) == len(noise)
        orders.append([sample for sample, _ in chain.from_iterable(samples)])
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert all(rank[3:] == [True, True] for rank in found)


def without_a_length() -> list[Any]:
    npu_port.start()

    class Stream(torch.utils.data.IterableDataset):  # type: ignore[name-defined, misc]
        def __iter__(self) -> Iterator[int]:
            return iter(range(7))

    shared = npu_port.shard(torch.utils.data.DataLoader(Stream(), batch_size=2))
    try:
        return [len(shared), read(shared)]
    except TypeError:
        return [None, read(shared)]


def test_an_iterable_dataset_without_a_length() -> None:
    assert each_rank(without_a_length, 2) == [[None, [[0, 2], [4]]], [None, [[1, 3], [5]]]]


def noise_of_workers() -> Callable[..., Any] | list[float]:
    npu_port.start()
    npu_port.own_draws()

    class Noisy(Squares):
        def __getitem__(self, index: int) -> Any:
            return float(torch.rand(1))

    shared = npu_port.shard(torch.utils.data.DataLoader(Noisy(), shuffle=True, num_workers=1, batch_size=None))
    return [*shared, *shared]


def test_workers_draw_noise_of_their_ranks_own() -> None:
    found = [noise for rank in each_rank(noise_of_workers, 2) for noise in rank]
    assert len(set(found)) == len(found) == 24


def in_one_order(options: dict[str, Any]) -> list[list[list[int]]]:
    npu_port.start()
    npu_port.own_draws()
    made = loader(**options)
    torch.rand(1 + npu_port.rank())
    return [read(npu_port.in_one_order(made)) for _ in range(2)]


@pytest.mark.parametrize("options", [{"shuffle": True}, {"shuffle": True, "drop_last": True}, {"sampler": Shuffled}])
def test_all_ranks_go_through_all_in_one_order(options: dict[str, Any]) -> None:
    first, second = each_rank(in_one_order, 2, {"batch_size": 2, **options})
    assert first == second and first[0] != first[1]
    assert len(first[0]) == len(loader(**{"batch_size": 2, **options}))
