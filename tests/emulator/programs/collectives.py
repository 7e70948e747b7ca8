"""hccl collectives, DDP, SyncBatchNorm, FSDP, ZeRO on two ranks."""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("hccl")
r = int(os.environ["LOCAL_RANK"])
torch.npu.set_device(r)
assert dist.get_world_size() == 2
total = 0
failed = []


def say(*a):
    sys.stdout.write(" ".join(map(str, a)) + "\n")
    sys.stdout.flush()  # one write: the two ranks do not mix lines


def T(name, f):
    global total
    total += 1
    try:
        v = f()
        say(r, name, "ok", v if v is not None else "")
    except Exception as e:
        failed.append(name)
        say(r, name, "FAIL", type(e).__name__, str(e)[:200])


def ar():
    x = torch.ones(3, device="npu") * (r + 1)
    dist.all_reduce(x)
    assert x.tolist() == [3.0] * 3
    return x.device


T("all_reduce", ar)


def arm():
    x = torch.ones(1).npu() * r
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    assert x.item() == 1


T("all_reduce max", arm)


def bc():
    x = torch.full((2,), float(r)).npu()
    dist.broadcast(x, 1)
    assert x.tolist() == [1.0, 1.0]


T("broadcast", bc)


def ag():
    o = [torch.zeros(2).npu() for _ in range(2)]
    dist.all_gather(o, torch.full((2,), float(r)).npu())
    assert o[1].tolist() == [1, 1]


T("all_gather", ag)


def agt():
    o = torch.zeros(4).npu()
    dist.all_gather_into_tensor(o, torch.full((2,), float(r)).npu())
    assert o.tolist() == [0, 0, 1, 1]


T("all_gather_into_tensor", agt)


def rs():
    o = torch.zeros(2).npu()
    dist.reduce_scatter_tensor(o, torch.ones(4).npu())
    assert o.tolist() == [2, 2]


T("reduce_scatter_tensor", rs)


def red():
    x = torch.ones(1).npu()
    dist.reduce(x, 0)
    if r == 0:
        assert x.item() == 2


T("reduce", red)


def sr():
    x = torch.full((2,), float(r)).npu()
    if r == 0:
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
        assert x.tolist() == [0, 0]


T("send/recv", sr)
T("barrier", dist.barrier)


def obj():
    o = [None, None]
    dist.all_gather_object(o, {"r": r})
    assert o[1] == {"r": 1}
    loss = [r]
    dist.broadcast_object_list(loss, src=1)
    assert loss == [1]


T("object collectives", obj)


def cpu():
    try:
        dist.all_reduce(torch.ones(1))
    except RuntimeError as e:
        return "raised: " + str(e)[:80]
    raise AssertionError("did not raise")


T("cpu tensor", cpu)


def gb():
    assert dist.get_backend() == "hccl"


T("get_backend", gb)


def ng():
    g = dist.new_group([0, 1])
    x = torch.ones(1).npu()
    dist.all_reduce(x, group=g)
    assert x.item() == 2


T("new_group", ng)


def asy():
    x = torch.ones(1).npu()
    w = dist.all_reduce(x, async_op=True)
    w.wait()
    assert x.item() == 2


T("async", asy)


def ddp(**kw):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).npu()
    d = DDP(m, **kw)
    o = torch.optim.SGD(d.parameters(), 0.1)
    torch.manual_seed(r + 1)
    for _ in range(3):
        o.zero_grad()
        d(torch.randn(3, 4).npu()).pow(2).sum().backward()
        o.step()
    w = m[0].weight.detach().clone()
    o = [torch.zeros_like(w) for _ in range(2)]
    dist.all_gather(o, w)
    assert torch.equal(o[0], o[1]), (o[0] - o[1]).abs().max()
    return w.device


T("DDP device_ids", lambda: ddp(device_ids=[r]))
T("DDP no ids", lambda: ddp())
T("DDP unused", lambda: ddp(device_ids=[r], find_unused_parameters=True))
T("DDP bucket view", lambda: ddp(device_ids=[r], gradient_as_bucket_view=True))
T("DDP static", lambda: ddp(device_ids=[r], static_graph=True))


def hook():
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    m = nn.Linear(3, 2).npu()
    d = DDP(m, device_ids=[r])
    d.register_comm_hook(None, fp16_compress_hook)
    d(torch.randn(2, 3).npu()).sum().backward()


T("DDP comm hook", hook)


def sbn():
    m = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))).npu()
    d = DDP(m, device_ids=[r])
    d(torch.randn(4, 3).npu()).sum().backward()


T("SyncBatchNorm", sbn)


def amp():
    m = nn.Linear(3, 2).npu()
    d = DDP(m, device_ids=[r])
    s = torch.npu.amp.GradScaler()
    o = torch.optim.SGD(d.parameters(), 0.1)
    with torch.autocast("npu"):
        loss = d(torch.randn(2, 3).npu()).float().sum()
    s.scale(loss).backward()
    s.step(o)
    s.update()


T("DDP amp", amp)


def join():
    m = DDP(nn.Linear(3, 2).npu(), device_ids=[r])
    with m.no_sync():
        m(torch.randn(2, 3).npu()).sum().backward()
    m(torch.randn(2, 3).npu()).sum().backward()


T("no_sync", join)


def fsdp():
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

    whole = nn.Linear(4, 4).npu()
    dist.broadcast(whole.weight.data, 0)
    dist.broadcast(whole.bias.data, 0)
    x = torch.randn(2, 4).npu()
    expected = whole(x).detach()
    m = FSDP(whole, device_id=torch.npu.current_device())
    for _ in range(2):  # gathered, given back, gathered again
        assert torch.equal(m(x), expected)
    m(x).sum().backward()


T("FSDP1", fsdp)


def fsdp2():
    from torch.distributed.fsdp import fully_shard

    m = nn.Linear(4, 4).npu()
    dist.broadcast(m.weight.data, 0)
    dist.broadcast(m.bias.data, 0)
    x = torch.randn(2, 4).npu()
    expected = m(x).detach()
    fully_shard(m)
    for _ in range(2):
        assert torch.equal(m(x), expected)
    m(x).sum().backward()


T("FSDP2", fsdp2)


def sampler():
    ds = torch.utils.data.TensorDataset(torch.randn(8, 2))
    s = torch.utils.data.distributed.DistributedSampler(ds)
    dl = torch.utils.data.DataLoader(ds, batch_size=2, sampler=s)
    s.set_epoch(1)
    list(dl)


T("DistributedSampler", sampler)


def zero():
    from torch.distributed.optim import ZeroRedundancyOptimizer as Z

    m = DDP(nn.Linear(3, 2).npu(), device_ids=[r])
    o = Z(m.parameters(), torch.optim.Adam, lr=0.1)
    m(torch.randn(2, 3).npu()).sum().backward()
    o.step()


T("ZeRO", zero)
dist.barrier()
dist.destroy_process_group()
say(f"ddp rank {r}: {total - len(failed)}/{total}; failed: {', '.join(failed) or 'none'}")
