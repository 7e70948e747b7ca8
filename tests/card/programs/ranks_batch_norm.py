"""SyncBatchNorm and DistributedDataParallel on two cards: each step is that of the whole batch on one CPU."""

from __future__ import annotations

import copy
import os

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401
from torch import nn

rank = int(os.environ["RANK"])
torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("hccl")
torch.manual_seed(0)
whole = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 36, 4))
shared = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(whole)).npu()
shared = nn.parallel.DistributedDataParallel(shared, device_ids=[torch.npu.current_device()])
optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (whole, shared)]

for _ in range(3):
    images, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 4, (8,))
    mine = slice(4 * rank, 4 * rank + 4)
    for optimizer in optimizers:
        optimizer.zero_grad()
    expected = nn.functional.cross_entropy(whole(images), labels)
    expected.backward()
    part = nn.functional.cross_entropy(shared(images[mine].npu()), labels[mine].npu())
    part.backward()
    mean = part.detach().clone()
    dist.all_reduce(mean)
    assert abs(mean.item() / 2 - expected.item()) < 1e-4, (mean.item() / 2, expected.item())
    for optimizer in optimizers:
        optimizer.step()

for one, other in zip(whole.state_dict().values(), shared.module.state_dict().values(), strict=True):
    torch.testing.assert_close(other.cpu(), one, rtol=1e-4, atol=1e-4)
dist.destroy_process_group()
