"""start(): how the processes of a run find together, and how they end."""

from __future__ import annotations

import atexit
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, npu_port, run_ranks, torch

pytestmark = pytest.mark.torch
HOSTS = ("cpu", "npu")


def about_itself() -> tuple[int, int, bool, str, str]:
    npu_port.start()
    npu_port.start()
    npu_port.wait()
    backend = torch.distributed.get_backend()
    return npu_port.rank(), npu_port.world_size(), npu_port.is_first(), backend, str(npu_port.card())


@pytest.mark.parametrize("world", [1, 2, 8])
def test_each_rank_has_its_number(world: int) -> None:
    assert each_rank(about_itself, world) == [(rank, world, rank == 0, "gloo", "cpu") for rank in range(world)]


@pytest.mark.parametrize("world", [1, 3])
def test_each_rank_has_its_card(world: int) -> None:
    found = each_rank(about_itself, world, host="npu")
    assert found == [(rank, world, rank == 0, "hccl", f"npu:{rank}") for rank in range(world)]


@pytest.mark.parametrize("host", HOSTS)
def test_without_a_launcher_it_is_a_group_of_one_process(host: str) -> None:
    ((*found, backend, _),) = each_rank(about_itself, 1, host=host, launched=False)
    assert (found, backend) == ([0, 1, True], "hccl" if host == "npu" else "gloo")


def without_a_group() -> list[Any]:
    npu_port.wait()
    npu_port.own_draws()
    npu_port.same_draws()
    npu_port.alike(torch.zeros(1))
    return [npu_port.rank(), npu_port.world_size(), npu_port.is_first()]


def test_what_does_not_start_is_one_process() -> None:
    assert each_rank(without_a_group, 2) == [[0, 1, True]] * 2


def in_a_group_of_its_own() -> list[Any]:
    torch.distributed.init_process_group("gloo")
    group = torch.distributed.group.WORLD
    npu_port.start()
    first = torch.rand(1).item()
    npu_port.alike(torch.zeros(2, device=npu_port.card()))
    return [torch.distributed.group.WORLD is group, npu_port.world_size(), first]


@pytest.mark.parametrize("host", HOSTS)
def test_a_group_that_is_there_is_used(host: str) -> None:
    """Gloo takes no tensors of cards."""
    (kept, world, drawn), second = each_rank(in_a_group_of_its_own, 2, host=host)
    assert (kept, world) == (True, 2)
    assert second == [kept, world, drawn]


def started_again() -> float:
    npu_port.start()
    npu_port.own_draws()
    npu_port.start()
    return float(torch.rand(1))


def test_to_start_again_changes_nothing() -> None:
    first, second = each_rank(started_again, 2)
    assert first != second


def of_a_child(function: Any) -> Any:
    """What a function returns in a child that `multiprocessing` starts, which has torchrun's variables."""
    context = multiprocessing.get_context("fork")
    queue: Any = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(function()))
    child.start()
    found = queue.get()
    child.join()
    return found


def with_a_worker() -> Any:
    found = of_a_child(lambda: [npu_port.start(), torch.distributed.is_initialized(), npu_port.world_size()])
    npu_port.start()
    return found


def test_children_do_not_join() -> None:
    assert each_rank(with_a_worker, 2) == [[None, False, 1]] * 2


def with_a_rank() -> Any:
    return of_a_child(in_a_group_of_its_own)


def test_children_that_are_ranks_do() -> None:
    first, second = each_rank(with_a_rank, 2)
    assert first == second


def ends(folder: str, way: str) -> None:
    """Note whether there is still a group when all else of the end is done."""
    path = Path(folder, str(os.environ["RANK"]))
    atexit.register(lambda: path.write_text(str(torch.distributed.is_initialized())))
    npu_port.start()
    if way == "forks" and not (child := os.fork()):
        atexit._run_exitfuncs()
        os._exit(0)
    if way == "forks":
        os.waitpid(child, 0)
        assert torch.distributed.is_initialized() and path.read_text() == "True"
    if way == "fails" and npu_port.rank() == 1:
        raise ValueError("on this rank")
    npu_port.wait()


@pytest.mark.parametrize("way", ["ends", "forks"])
@pytest.mark.parametrize("host", HOSTS)
def test_a_clean_end_leaves_the_group(tmp_path: Path, host: str, way: str) -> None:
    if (host, way) == ("npu", "forks"):
        pytest.skip("torch_npu itself shuts its groups down at the end of a forked child, which aborts there")
    each_rank(ends, 2, str(tmp_path), way, host=host)
    assert [(tmp_path / str(rank)).read_text() for rank in range(2)] == ["False", "False"]


def test_an_exception_ends_at_once(tmp_path: Path) -> None:
    ended = run_ranks(ends, 2, str(tmp_path), "fails")
    assert ended.codes[1] == 1 and ended.codes[0] != 0
    assert "ValueError: on this rank" in ended.outputs[1]
    assert (tmp_path / "1").read_text() == "True"
