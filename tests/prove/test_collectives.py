"""What the traces of several ranks say about their collectives: hand-made traces, and small programs on two ranks."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.forked import torch_npu, warm
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.runner import ScriptRun, start
from transplt.proof.prove.collectives import CollectiveFault, collective_faults, standings

ROOT = Path("/project")
MAIN = "/project/train.py"


class Told:
    """A trace in the making: `Told(0).coll(3, "all_reduce", [4]).ends()`."""

    def __init__(self, rank: int, world: int = 2) -> None:
        self.rank, self.world, self.number = rank, world, 0
        self.events: list[dict[str, Any]] = [{"e": "begin", "pid": 10 + rank}]
        self.coll(1, "init_process_group", rank=rank)
        self.tell("group", 1, rank=rank, world=world, backend="hccl", ranks=self.ranks, name="default")

    @property
    def ranks(self) -> list[int]:
        return list(range(self.world))

    def tell(self, event: str, line: int, **fields: Any) -> Told:
        self.events.append({"e": event, "at": [MAIN, line], "t": float(len(self.events)), **fields})
        return self

    def coll(
        self, line: int, kind: str, shape: Any = None, *, ends: bool = True, error: str = "", **fields: Any
    ) -> Told:
        """One collective at a line of the program."""
        number, self.number = self.number, self.number + 1
        carried = {"shape": shape, "dtype": "float32" if shape is not None else None, "op": None, "root": None}
        head = {"n": number, "kind": kind, "group": self.ranks, "name": "default", "async": False, "by": []}
        self.tell("coll", line, **{**head, **carried, **fields})
        if ends or error:
            self.tell("coll_end", line, n=number, **({"error": error} if error else {}))
        return self

    def done(self) -> list[dict[str, Any]]:
        """The trace of a process that came to its end."""
        return self.tell("end", 99).events

    def raised(self, line: int, error: str) -> list[dict[str, Any]]:
        return self.tell("raised", line, error=error).tell("end", 99).events


def faults(*traces: list[dict[str, Any]], source: str = "", hung: bool = False) -> list[CollectiveFault]:
    return collective_faults(traces, ROOT, hung=hung, read=lambda path: source if path == MAIN else None)


# --- right programs --------------------------------------------------------------------------------------------------


def test_the_same_on_all_ranks() -> None:
    one, other = (Told(rank).coll(3, "all_reduce", [4]).coll(4, "barrier").done() for rank in (0, 1))
    assert faults(one, other) == []


def test_one_process() -> None:
    assert faults([{"e": "begin", "pid": 1}, {"e": "end", "at": None, "t": 1.0}]) == []
    assert faults(Told(0, world=1).coll(3, "all_reduce", [4]).done()) == []


def test_both_branches_of_a_condition() -> None:
    source = "if rank == 0:\n    x\n    broadcast()\nelse:\n    broadcast()\n"
    one = Told(0).coll(3, "broadcast", [4], root=0).coll(6, "barrier").done()
    other = Told(1).coll(5, "broadcast", [4], root=0).coll(6, "barrier").done()
    assert faults(one, other, source=source) == []


def test_a_dimension_of_one_is_the_same_shape() -> None:
    assert faults(Told(0).coll(3, "all_reduce", []).done(), Told(1).coll(3, "all_reduce", [1]).done()) == []


def test_an_operation_that_c_plus_plus_does_not_tell() -> None:
    one, other = Told(0).coll(3, "all_reduce", [4], op="SUM"), Told(1).coll(3, "all_reduce", [4])
    assert faults(one.done(), other.done()) == []


def test_the_limit_of_steps_is_no_missing_collective() -> None:
    one = Told(0).coll(3, "all_reduce", [4]).coll(3, "all_reduce", [4], ends=False).events
    other = Told(1).coll(3, "all_reduce", [4]).tell("limit", 4).done()
    assert faults(one, other) == []


def test_a_run_that_ran_out_of_time_while_a_rank_computed() -> None:
    one = Told(0).coll(3, "all_reduce", [4]).coll(3, "all_reduce", [4], ends=False).events
    other = Told(1).coll(3, "all_reduce", [4]).tell("backward", 2).events
    assert faults(one, other) == []
    assert standings([one, other], ROOT) == [
        "rank 0 is in all_reduce of float32 [4] at train.py:3", "rank 1 was last seen at train.py:2",
    ]  # fmt: skip


def test_a_rank_that_is_stopped_after_another_has_failed_alone() -> None:
    one = Told(0).coll(3, "all_reduce", [4]).coll(4, "barrier").events
    other = Told(1).coll(3, "all_reduce", [4]).raised(2, "ValueError: no")
    assert faults(one, other) == []


def test_messages_that_meet() -> None:
    one = Told(0).coll(3, "send", [4], root=1, tag=0).coll(5, "recv", [2], root=1, tag=0).done()
    other = Told(1).coll(4, "recv", [4], root=None, tag=0).coll(6, "send", [2], root=0, tag=0).done()
    assert faults(one, other) == []


def test_parts_of_different_size_that_fit() -> None:
    one = Told(0).coll(3, "all_to_all_single", sends=[1, 3], receives=[1, 2], rank_in_group=0).done()
    other = Told(1).coll(3, "all_to_all_single", sends=[2, 5], receives=[3, 5], rank_in_group=1).done()
    assert faults(one, other) == []


def test_processes_that_begin_twice() -> None:
    traces = [Told(rank).coll(3, "all_reduce", [size]).done() for size in (4, 5) for rank in (0, 1)]
    assert faults(*traces) == []


# --- mismatches ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mine", "theirs", "text"),
    [
        (
            {"shape": [3]}, {"shape": [4]},
            "all_reduce differs in shape: rank 0 calls all_reduce of float32 [3] at train.py:3, "
            "rank 1 calls all_reduce of float32 [4] at train.py:3",
        ),
        (
            {"shape": [3]}, {"shape": [3], "dtype": "float16"},
            "all_reduce differs in type: rank 0 calls all_reduce of float32 [3] at train.py:3, "
            "rank 1 calls all_reduce of float16 [3] at train.py:3",
        ),
        (
            {"shape": [3], "op": "SUM"}, {"shape": [3], "op": "MAX"},
            "all_reduce differs in operation: rank 0 calls all_reduce(SUM) of float32 [3] at train.py:3, "
            "rank 1 calls all_reduce(MAX) of float32 [3] at train.py:3",
        ),
    ],
)  # fmt: skip
def test_one_line_with_something_else(mine: dict[str, Any], theirs: dict[str, Any], text: str) -> None:
    (found,) = faults(Told(0).coll(3, "all_reduce", **mine).done(), Told(1).coll(3, "all_reduce", **theirs).done())
    assert (found.kind, found.text, found.ranks) == ("mismatch", text, (0, 1))
    assert [str(place) for place in found.places] == ["train.py:3", "train.py:3"]


def test_a_root_that_is_each_ranks_own() -> None:
    one, other = (Told(rank).coll(3, "broadcast", [3], root=rank).done() for rank in (0, 1))
    (found,) = faults(one, other)
    assert "differs in root: rank 0 calls broadcast(root 0)" in found.text


def test_other_ranks_in_a_new_group() -> None:
    one, other = (Told(rank).coll(3, "new_group", ranks=[rank]).done() for rank in (0, 1))
    (found,) = faults(one, other)
    assert found.text == (
        "new_group differs in ranks: rank 0 calls new_group at train.py:3 with ranks [0], "
        "rank 1 calls new_group at train.py:3 with ranks [1]"
    )


def test_what_gloo_says_is_told_too() -> None:
    error = "RuntimeError: op.preamble.length <= op.nbytes"
    one = Told(0).coll(3, "all_reduce", [3], error=error).raised(3, error)
    other = Told(1).coll(3, "all_reduce", [4], ends=False).events
    (found,) = faults(one, other)
    assert found.kind == "mismatch"
    assert found.text.endswith("; the call ends with RuntimeError: op.preamble.length <= op.nbytes")


def test_other_collectives_on_the_two_sides_of_a_condition() -> None:
    source = "a\nif rank == 0:\n    all_reduce()\nelse:\n    broadcast()\n"
    one = Told(0).coll(3, "all_reduce", [3], ends=False).events
    other = Told(1).coll(5, "broadcast", [3], root=0, ends=False).events
    (found,) = faults(one, other, source=source, hung=True)
    assert found.kind == "mismatch"
    assert found.text == (
        "rank 0 calls all_reduce of float32 [3] at train.py:3, rank 1 calls broadcast(root 0) of float32 [3] at "
        "train.py:5; the ranks take different branches at `if rank == 0:` at train.py:2"
    )


def test_parts_that_do_not_fit() -> None:
    one = Told(0).coll(3, "all_to_all_single", sends=[1, 3], receives=[1, 2], rank_in_group=0).done()
    other = Told(1).coll(3, "all_to_all_single", sends=[2, 5], receives=[4, 5], rank_in_group=1).done()
    (found,) = faults(one, other)
    assert found.text.startswith("all_to_all_single differs in shape")


# --- collectives that only some ranks reach --------------------------------------------------------------------------


CONDITIONAL = """\
rank = dist.get_rank()
for batch in loader:
    step(batch)
if rank == 0:
    dist.barrier()
dist.all_reduce(total)
"""


def test_a_collective_under_a_condition_on_the_rank() -> None:
    one = Told(0).coll(3, "all_reduce", [3]).coll(5, "barrier", ends=False).events
    other = Told(1).coll(3, "all_reduce", [3]).coll(6, "all_reduce", [1], ends=False).events
    (found,) = faults(one, other, source=CONDITIONAL, hung=True)
    assert found.kind == "skipped"
    assert found.text == (
        "rank 0 calls barrier at train.py:5, which rank 1 does not reach; it is inside `if rank == 0:` at "
        "train.py:4; rank 1 goes on to all_reduce of float32 [1] at train.py:6"
    )
    assert str(found.place) == "train.py:4"


@pytest.mark.parametrize(
    "condition",
    [
        "if r == 0:", "if first:", "if not self.rank:", "if os.environ['RANK'] == '0':", "while rank < 1:",
        "for _ in range(rank, 1):", "if dist.get_rank() == 0 and saves:",
    ],
)  # fmt: skip
def test_conditions_on_the_rank(condition: str) -> None:
    source = f"r = dist.get_rank()\nfirst = r == 0\n{condition}\n    dist.barrier()\nx\n"
    one = Told(0).coll(4, "barrier").done()
    (found,) = faults(one, Told(1).done(), source=source)
    assert (found.kind, str(found.condition)) == ("skipped", "train.py:3")


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def save():\n    if rank != 0:\n        return\n    dist.barrier()\n", 2),
        ("x\ny\nz\nrank == 0 and dist.barrier()\n", 4),
        ("x\ny\nz\ndist.barrier() if is_main else None\n", 4),
    ],
)
def test_other_ways_to_go_past_a_line(source: str, line: int) -> None:
    (found,) = faults(Told(0).coll(4, "barrier").done(), Told(1).done(), source=source)
    assert found.condition is not None and found.condition.line == line


def test_the_condition_stands_where_the_function_is_called() -> None:
    source = "def save():\n    dist.barrier()\nif rank == 0:\n    save()\n"
    one = Told(0).coll(2, "barrier", by=[[MAIN, 4]]).done()
    (found,) = faults(one, Told(1).done(), source=source)
    assert str(found.condition) == "train.py:3"


def test_a_collective_that_pairs_with_the_next_one_of_the_others() -> None:
    # Nothing fails: the sums are of different things, and the last one finds nobody.
    source = "if rank == 0:\n    all_reduce(a)\nall_reduce(b)\nall_reduce(c)\n"
    one = Told(0).coll(2, "all_reduce", [3]).coll(3, "all_reduce", [3]).coll(4, "all_reduce", [3], ends=False).events
    other = Told(1).coll(3, "all_reduce", [3]).coll(4, "all_reduce", [3]).done()
    (found,) = faults(one, other, source=source, hung=True)
    assert found.text == (
        "rank 0 calls all_reduce of float32 [3] at train.py:2, which rank 1 does not reach; it is inside `if rank == "
        "0:` at train.py:1; rank 1 goes on to all_reduce of float32 [3] at train.py:3"
    )


def test_loops_of_different_length() -> None:
    one, other = Told(0), Told(1)
    for _ in range(5):
        one.coll(3, "all_reduce", [3])
    for _ in range(4):
        other.coll(3, "all_reduce", [3])
    (found,) = faults(one.coll(3, "all_reduce", [3], ends=False).events, other.done(), hung=True)
    assert found.kind == "skipped"
    assert found.text == (
        "rank 0 calls all_reduce of float32 [3] at train.py:3 more often than rank 1 does (6 times on rank 0 and "
        "4 times on rank 1); rank 1 ended without an error"
    )


def test_a_longer_loop_that_meets_what_comes_behind_it() -> None:
    one = Told(0).coll(3, "all_reduce", [3]).coll(4, "barrier", ends=False).events
    other = Told(1).coll(3, "all_reduce", [3]).coll(3, "all_reduce", [3], ends=False).events
    (found,) = faults(one, other, hung=True)
    assert found.text == (
        "rank 1 calls all_reduce of float32 [3] at train.py:3 once more than rank 0 does (2 times on rank 1 and "
        "once on rank 0); rank 0 goes on to barrier at train.py:4"
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("for i in range(9 + rank):\n    x\n    all_reduce(x)\n", "inside `for i in range(9 + rank):` at train.py:1"),
        ("for x in y:\n    if rank and i > 5: break\n    all_reduce(x)\n", "behind `if rank and i > 5:` at train.py:2"),
        ("for x in y:\n    if i > 5: break\n    all_reduce(x)\n", ""),
        ("for x in y:\n    x\n    all_reduce(x)\n    if x > 5: break\n", ""),
        ("for i in range(9):\n    x\n    all_reduce(x)\n    if x > 5: break\n", "behind `if x > 5:` at train.py:4"),
        ("while True:\n    x\n    all_reduce(x)\n    if x > 5: return\n", "behind `if x > 5:` at train.py:4"),
        ("while True:\n    x\n    all_reduce(x)\n    if x > 5: continue\n", ""),
        ("for i in range(9):\n    if x: break\n    all_reduce(x)\n    if x > 5: break\n", ""),
    ],
)
def test_why_loops_are_of_different_length(source: str, text: str) -> None:
    one = Told(0).coll(3, "all_reduce", [3]).coll(3, "all_reduce", [3], ends=False).events
    other = Told(1).coll(3, "all_reduce", [3]).done()
    (found,) = faults(one, other, source=source, hung=True)
    assert "once more than rank 1 does (2 times on rank 0 and once on rank 1)" in found.text
    assert text in found.text and ("it is" in found.text) == bool(text)


def test_a_condition_that_is_not_about_ranks_is_named_where_it_parts_them() -> None:
    source = "x\nif loss < 1:\n    dist.barrier()\ndist.all_reduce(x)\n"
    one = Told(0).coll(3, "barrier", ends=False).events
    other = Told(1).coll(4, "all_reduce", [3], ends=False).events
    (found,) = faults(one, other, source=source, hung=True)
    assert "it is inside `if loss < 1:` at train.py:2" in found.text


def test_a_rank_that_raises_while_another_waits() -> None:
    one = Told(0).coll(3, "all_reduce", [4], ends=False).events
    other = Told(1).raised(2, "ValueError: no")
    (found,) = faults(one, other)
    assert (found.kind, found.text) == (
        "left",
        "rank 1 ended with ValueError: no at train.py:2; "
        "rank 0 waits in all_reduce of float32 [4] at train.py:3 for it",
    )
    assert (found.ranks, str(found.place)) == ((1, 0), "train.py:2")


def test_a_rank_that_never_joins() -> None:
    (found,) = faults(Told(0).coll(3, "all_reduce", [4], ends=False).events, hung=True)
    assert found.text.startswith("rank 1 never joined the group; rank 0 ")
    assert str(found.place) == "train.py:3"


# --- messages and hangs ----------------------------------------------------------------------------------------------


def test_a_message_that_nobody_receives() -> None:
    source = "if rank == 0:\n    dist.send(x, 1)\ndist.barrier()\n"
    one = Told(0).coll(2, "send", [4], root=1, tag=0, ends=False).events
    other = Told(1).coll(3, "barrier", ends=False).events
    barrier, message = faults(one, other, source=source, hung=True)
    assert (barrier.kind, message.kind) == ("skipped", "message")
    assert message.text == (
        "rank 0 calls send(to rank 1) of float32 [4] at train.py:2, which receives nothing from it: it is in "
        "barrier at train.py:3; it is inside `if rank == 0:` at train.py:1"
    )


def test_messages_of_different_size() -> None:
    one = Told(0).coll(2, "send", [4], root=1, tag=0).done()
    other = Told(1).coll(3, "recv", [5], root=0, tag=0).done()
    (found,) = faults(one, other)
    assert found.text == (
        "send differs in shape: rank 0 calls send(to rank 1) of float32 [4] at train.py:2, "
        "rank 1 calls recv(from rank 0) of float32 [5] at train.py:3"
    )


def test_a_hang_that_nothing_explains() -> None:
    one, other = (Told(rank).coll(3, "all_reduce", [4], ends=False).events for rank in (0, 1))
    (found,) = faults(one, other, hung=True)
    assert (found.kind, found.ranks) == ("hang", (0, 1))
    assert found.text == (
        "the ranks wait for each other: rank 0 is in all_reduce of float32 [4] at train.py:3; "
        "rank 1 is in all_reduce of float32 [4] at train.py:3"
    )


# --- programs --------------------------------------------------------------------------------------------------------


BEGIN = """\
import torch
import torch_npu
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("hccl")
rank = dist.get_rank()
torch.npu.set_device(rank)
x = torch.ones(3).npu()
dist.all_reduce(x)
"""
RIGHT = """\
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)).npu()
model = DistributedDataParallel(net, device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(8, 4).npu()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    if rank == 0:
        print(step, float(mean))
    dist.barrier()
work = dist.isend(x, 1) if rank == 0 else dist.irecv(x, 0)
work.wait()
part = dist.new_group([0, 1])
dist.broadcast(x, src=0, group=part, async_op=True).wait()
told = [None, None]
dist.all_gather_object(told, rank)
dist.destroy_process_group()
"""


def ran(folder: Path, body: str, *, nproc: int = 2) -> tuple[ScriptRun, list[CollectiveFault]]:
    script = folder / "train.py"
    script.write_text(BEGIN + body, encoding="utf-8")
    options = RunOptions(str(script), (), sys.executable, nproc=nproc, trace=Trace(), timeout=300)
    run = start(replace(options, torch_npu=torch_npu()), capture=True, echo=False, warm=warm())
    return run, collective_faults(run.traces, folder, hung=run.hung)


@pytest.mark.torch
def test_a_right_program(tmp_path: Path) -> None:
    run, found = ran(tmp_path, RIGHT)
    assert (run.code, run.hung, found) == (0, False, [])
    ranks = [[event for event in trace if event["e"] == "coll"] for trace in run.traces if len(trace) > 5]
    first = next(made for made in ranks if made[0]["rank"] == 0)
    assert len(ranks) == 2 and len({len(made) for made in ranks}) == 1
    line = BEGIN.count("\n") + RIGHT[: RIGHT.index("loss.backward()")].count("\n") + 1
    # The sum of the gradients, which DistributedDataParallel makes in C++: 4 * 4 + 4 + 4 + 4 + 4 + 1.
    sums = [each["shape"] for each in first if each["kind"] == "all_reduce" and each["at"][1] == line]
    assert sums == [[33]] * 3
    assert {"barrier", "send", "new_group", "broadcast", "all_gather_object"} <= {each["kind"] for each in first}


@pytest.mark.torch
@pytest.mark.slow
def test_ranks_that_reduce_different_shapes(tmp_path: Path) -> None:
    _, found = ran(tmp_path, "dist.all_reduce(torch.ones(3 + rank).npu())\ndist.barrier()\n")
    assert found[0].kind == "mismatch"
    assert "all_reduce differs in shape: rank 0 calls all_reduce(SUM) of float32 [3] at train.py:11" in found[0].text


@pytest.mark.torch
def test_a_program_that_hangs_is_stopped(tmp_path: Path) -> None:
    run, found = ran(tmp_path, "if rank == 0:\n    dist.barrier()\nx = x + 1\ndist.all_reduce(x)\ndist.all_reduce(x)\n")
    assert not run.timed_out and run.seconds < 120
    assert run.hung or "come with different calls" in str(run.processes)  # so says the vendor's over our HCCL
    assert found[0].kind == "skipped"
    assert found[0].text.startswith(
        "rank 0 calls barrier at train.py:12, which rank 1 does not reach; it is inside `if rank == 0:` at "
        "train.py:11"
    )


@pytest.mark.torch
@pytest.mark.slow
def test_a_rank_that_leaves_early(tmp_path: Path) -> None:
    body = "for step in range(3):\n    if rank == 1 and step == 2:\n        break\n    dist.all_reduce(x)\n"
    _, found = ran(tmp_path, body)
    assert found[0].kind == "skipped"
    assert "rank 0 calls all_reduce(SUM) of float32 [3] at train.py:14 once more than rank 1 does" in found[0].text
    assert "it is behind `if rank == 1 and step == 2:` at train.py:12" in found[0].text


SPAWNED = '''\
import os
import sys
import torch
import torch_npu
import torch.distributed as dist


def work(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
    dist.init_process_group("hccl", rank=rank, world_size=world)
    dist.all_reduce(torch.ones(2).npu())
    if rank == 1:
        raise ValueError("no data")
    dist.all_reduce(torch.ones(2).npu())


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (2,), nprocs=2)
'''


@pytest.mark.torch
@pytest.mark.slow
def test_spawned_ranks(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = tmp_path / "train.py"
    script.write_text(SPAWNED, encoding="utf-8")
    options = RunOptions(str(script), (str(port),), sys.executable, trace=Trace(), timeout=300)
    run = start(replace(options, torch_npu=torch_npu()), capture=True, echo=False)
    (found,) = collective_faults(run.traces, tmp_path, hung=run.hung)
    assert found.kind == "left"
    assert found.text.startswith("rank 1 ended with ValueError: no data at train.py:13; rank 0 ")
    assert "at train.py:14 for it" in found.text
