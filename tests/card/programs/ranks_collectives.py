"""All that torch.distributed sends over HCCL between two ranks, beside what it has to give; exits with 0."""

import datetime
import os
import warnings
from typing import Any

import torch
import torch.distributed as dist

warnings.simplefilter("ignore")
dist.init_process_group("hccl", timeout=datetime.timedelta(minutes=40))
RANK, WORLD = dist.get_rank(), dist.get_world_size()
torch.npu.set_device(RANK)
OTHER = 1 - RANK
MOVED = [
    torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.bool, torch.complex64,
]  # fmt: skip
REDUCED = [
    torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
]  # fmt: skip


def of(rank: int, size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """What `rank` brings, on the CPU."""
    return torch.arange(1 + rank, 1 + rank + size).to(dtype)


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.device.type == "npu", found.device
    assert found.dtype == expected.dtype and torch.equal(found.cpu(), expected), (found.cpu(), expected)


def refused(call: Any, words: str) -> None:
    try:
        call()
    except RuntimeError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


# What is moved, in every type.
for dtype in MOVED:
    mine, theirs = of(RANK, 4, dtype), of(OTHER, 4, dtype)
    both = torch.cat([of(0, 4, dtype), of(1, 4, dtype)])
    x = mine.npu()
    dist.broadcast(x, 1)
    same(x, of(1, 4, dtype))
    parts = [torch.zeros(4, dtype=dtype).npu() for _ in range(WORLD)]
    dist.all_gather(parts, mine.npu())
    same(torch.cat(parts), both)
    whole = torch.zeros(8, dtype=dtype).npu()
    dist.all_gather_into_tensor(whole, mine.npu())
    same(whole, both)
    x = torch.zeros(4, dtype=dtype).npu()
    dist.scatter(x, list(both.npu().split(4)) if RANK == 0 else None, 0)
    same(x, both[4 * RANK : 4 * RANK + 4])
    out = [torch.zeros(2, dtype=dtype).npu() for _ in range(WORLD)]
    dist.all_to_all(out, list(mine.npu().split(2)))
    same(torch.cat(out), torch.cat([of(rank, 4, dtype)[2 * RANK : 2 * RANK + 2] for rank in range(WORLD)]))
    x = torch.zeros(4, dtype=dtype).npu()
    dist.all_to_all_single(x, mine.npu())
    same(x, torch.cat([of(rank, 4, dtype)[2 * RANK : 2 * RANK + 2] for rank in range(WORLD)]))
    x = torch.zeros(4, dtype=dtype).npu()
    if RANK == 0:
        dist.send(mine.npu(), 1)
        dist.recv(x, 1)
    else:
        dist.recv(x, 0)
        dist.send(mine.npu(), 0)
    same(x, theirs)
    if dtype is not torch.complex64:
        parts = [torch.zeros(4, dtype=dtype).npu() for _ in range(WORLD)]
        dist.gather(mine.npu(), parts if RANK == 1 else None, 1)
        if RANK == 1:
            same(torch.cat(parts), both)

# What is reduced.
OPERATIONS = {
    dist.ReduceOp.SUM: torch.add, dist.ReduceOp.PRODUCT: torch.mul, dist.ReduceOp.MAX: torch.maximum,
    dist.ReduceOp.MIN: torch.minimum,
}  # fmt: skip
for dtype in REDUCED:
    for operation, function in OPERATIONS.items():
        if operation == dist.ReduceOp.PRODUCT and dtype is torch.bfloat16:
            refused(lambda: dist.all_reduce(torch.ones(2, dtype=torch.bfloat16).npu(), dist.ReduceOp.PRODUCT), "EI0003")
            continue
        expected = function(of(0, 4, dtype), of(1, 4, dtype))
        x = of(RANK, 4, dtype).npu()
        dist.all_reduce(x, operation)
        same(x, expected)
        x = of(RANK, 4, dtype).npu()
        dist.reduce(x, 1, operation)
        same(x, expected if RANK == 1 else of(0, 4, dtype))
        x = torch.zeros(2, dtype=dtype).npu()
        dist.reduce_scatter_tensor(x, of(RANK, 4, dtype).npu(), operation)
        same(x, expected[2 * RANK : 2 * RANK + 2])
        x = torch.zeros(2, dtype=dtype).npu()
        dist.reduce_scatter(x, list(of(RANK, 4, dtype).npu().split(2)), operation)
        same(x, expected[2 * RANK : 2 * RANK + 2])
for dtype in (torch.uint8, torch.bool):
    x = of(RANK, 3, dtype).npu()
    dist.all_reduce(x)
    same(x, torch.add(of(0, 3, dtype), of(1, 3, dtype)))
x = of(RANK, 4).npu()
dist.all_reduce(x, dist.ReduceOp.AVG)
same(x, (of(0, 4) + of(1, 4)) / 2)
x = torch.complex(of(RANK, 2), of(RANK + 5, 2)).npu()
dist.all_reduce(x)
same(x, torch.complex(of(0, 2) + of(1, 2), of(5, 2) + of(6, 2)))

# Parts of different sizes.
sizes = [3, 1]
parts = [torch.zeros(size).npu() for size in sizes]
dist.all_gather(parts, of(RANK, sizes[RANK]).npu())
for rank, part in enumerate(parts):
    same(part, of(rank, sizes[rank]))
x = torch.zeros(sizes[RANK]).npu()
dist.reduce_scatter(x, list(of(RANK, 4).npu().split(sizes)))
same(x, (of(0, 4) + of(1, 4)).split(sizes)[RANK])
sends, takes = ([1, 3], [1, 2]) if RANK == 0 else ([2, 5], [3, 5])
x = torch.zeros(sum(takes)).npu()
dist.all_to_all_single(x, of(RANK, sum(sends)).npu(), takes, sends)
same(x, torch.cat([of(0, 4).split([1, 3])[RANK], of(1, 7).split([2, 5])[RANK]]))
out = [torch.zeros(size).npu() for size in takes]
dist.all_to_all(out, list(of(RANK, sum(sends)).npu().split(sends)))
same(torch.cat(out), x.cpu())
x = torch.zeros(0).npu()
dist.all_reduce(x)
x = torch.zeros(2 * WORLD, 3).npu()
dist.all_gather_into_tensor(x, of(RANK, 6).reshape(2, 3).npu())
same(x, torch.cat([of(0, 6), of(1, 6)]).reshape(4, 3))

# Several at once.
pair = [of(RANK, 3).npu(), of(RANK + 3, 2).npu()]
with dist.distributed_c10d._coalescing_manager(device=torch.device("npu", RANK)):
    for each in pair:
        dist.all_reduce(each)
same(torch.cat(pair), torch.cat([of(0, 3) + of(1, 3), of(3, 2) + of(4, 2)]))
pair = [torch.zeros(6).npu(), torch.zeros(4).npu()]
with dist.distributed_c10d._coalescing_manager(device=torch.device("npu", RANK)):
    dist.all_gather_into_tensor(pair[0], of(RANK, 3).npu())
    dist.all_gather_into_tensor(pair[1], of(RANK, 2).npu())
same(torch.cat(pair), torch.cat([of(0, 3), of(1, 3), of(0, 2), of(1, 2)]))
pair = [torch.zeros(1).npu(), torch.zeros(2).npu()]
with dist.distributed_c10d._coalescing_manager(device=torch.device("npu", RANK)):
    dist.reduce_scatter_tensor(pair[0], of(RANK, 2).npu())
    dist.reduce_scatter_tensor(pair[1], of(RANK, 4).npu())
same(pair[0], (of(0, 2) + of(1, 2))[RANK : RANK + 1])
same(pair[1], (of(0, 4) + of(1, 4))[2 * RANK : 2 * RANK + 2])
got, sent = torch.zeros(3).npu(), of(RANK, 3).npu()
works = dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, OTHER), dist.P2POp(dist.irecv, got, OTHER)])
for work in works:
    work.wait()
same(got, of(OTHER, 3))

# In the background.
x, y = of(RANK, 3).npu(), of(RANK, 3).npu() * 2
first, second = dist.all_reduce(x, async_op=True), dist.all_reduce(y, async_op=True)
z = torch.ones(3).npu() + 1
second.wait()
first.wait()
same(x * 2, y.cpu())
same(z, torch.full((3,), 2.0))
work = dist.isend(of(RANK, 2).npu(), OTHER)
x = torch.zeros(2).npu()
dist.irecv(x, OTHER).wait()
work.wait()
assert work.is_completed()
same(x, of(OTHER, 2))
x = of(RANK, 2).npu()
stream = torch.npu.Stream()
with torch.npu.stream(stream):
    work = dist.all_reduce(x, async_op=True)
    work.wait()
stream.synchronize()
same(x, of(0, 2) + of(1, 2))
future = dist.all_reduce(of(RANK, 2).npu(), async_op=True).get_future().then(lambda done: done.value()[0] / 2)
same(future.wait(), (of(0, 2) + of(1, 2)) / 2)

# Objects.
found: list[Any] = [None, None]
dist.all_gather_object(found, {"rank": RANK})
assert found == [{"rank": 0}, {"rank": 1}]
told: list[Any] = [RANK, "x" * RANK]
dist.broadcast_object_list(told, 1)
assert told == [1, "x"]
gathered: list[Any] = [None, None]
dist.gather_object(RANK, gathered if RANK == 0 else None, 0)
assert RANK or gathered == [0, 1]
mine: list[Any] = [None]
dist.scatter_object_list(mine, ["a", "bc"] if RANK == 0 else None, 0)
assert mine == [["a", "bc"][RANK]]
if RANK == 0:
    dist.send_object_list([3, {"a": 1}], 1)
else:
    taken: list[Any] = [None, None]
    dist.recv_object_list(taken, 0)
    assert taken == [3, {"a": 1}]

# Groups: of all, of one, in another order of calls, split, ended and made anew.
everybody, alone = dist.new_group([0, 1]), [dist.new_group([rank]) for rank in range(WORLD)]
x, y = of(RANK, 2).npu(), of(RANK, 2).npu()
dist.all_reduce(x, group=everybody)
dist.all_reduce(y, group=alone[RANK])
same(x, of(0, 2) + of(1, 2))
same(y, of(RANK, 2))
two = dist.new_group([0, 1])
x, y = of(RANK, 2).npu(), of(RANK, 2).npu()
dist.all_reduce(y.clone(), group=two)
groups = (everybody, two) if RANK == 0 else (two, everybody)
works = [dist.all_reduce(x if group is everybody else y, group=group, async_op=True) for group in groups]
for work in works:
    work.wait()
same(x + y, 2 * (of(0, 2) + of(1, 2)))
mesh = dist.device_mesh.init_device_mesh("npu", (1, 2), mesh_dim_names=("outer", "inner"))
x = of(RANK, 2).npu()
dist.all_reduce(x, group=mesh["inner"].get_group())
same(x, of(0, 2) + of(1, 2))
dist.destroy_process_group(everybody)
dist.barrier(two)
dist.barrier()

# What torch_npu or HCCL refuses.
refused(lambda: dist.all_reduce(torch.ones(2)), "No backend type associated with device type cpu")
refused(lambda: dist.all_reduce(torch.ones(2, dtype=torch.float64).npu()), "Unsupported data type at::kDouble")
flags = torch.ones(2).bool().npu()
refused(lambda: dist.reduce_scatter_tensor(flags[:1], flags), "Unsupported data type")
refused(lambda: dist.reduce(torch.ones(2, dtype=torch.complex64).npu(), 0), "Unsupported data type for HCCL")
refused(lambda: dist.all_reduce(torch.ones(2).int().npu(), dist.ReduceOp.BAND), "Cannot use ReduceOp.BAND with HCCL")
refused(lambda: dist.all_reduce(torch.ones(4, 4).npu()[:, 1]), "Tensors must be contiguous")
refused(lambda: dist.broadcast(torch.ones(2).to(torch.float8_e5m2).npu(), 0), "EI0003")

dist.destroy_process_group()
os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
dist.init_process_group("hccl")
x = of(RANK, 2).npu()
dist.all_reduce(x)
same(x, of(0, 2) + of(1, 2))
dist.destroy_process_group()
