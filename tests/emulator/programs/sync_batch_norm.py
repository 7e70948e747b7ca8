"""SyncBatchNorm on an unevenly split batch equals BatchNorm on the joined one; two ranks."""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn

dist.init_process_group("hccl")
r = int(os.environ["LOCAL_RANK"])
torch.npu.set_device(r)
torch.manual_seed(0)
x = torch.randn(6, 4, 3)
w = torch.randn(6, 4, 3)
ref = nn.BatchNorm1d(4)
xr = x.clone().requires_grad_()
yr = ref(xr)
(yr * w).sum().backward()
m = nn.SyncBatchNorm(4).npu()
n = 2 if r == 0 else 4
sl = slice(0, 2) if r == 0 else slice(2, 6)
xn = x[sl].npu().requires_grad_()
y = m(xn)
(y * w[sl].npu()).sum().backward()
gw = m.weight.grad.clone()
dist.all_reduce(gw)
same = [
    torch.allclose(y.cpu(), yr[sl], atol=1e-5),
    torch.allclose(xn.grad.cpu(), xr.grad[sl], atol=1e-4),
    torch.allclose(gw.cpu(), ref.weight.grad, atol=1e-4),
    torch.allclose(m.running_var.cpu(), ref.running_var, atol=1e-5),
]
sys.stdout.write(f"syncbn rank {r}: {sum(same)}/{len(same)} (output, input gradient, weight gradient, running_var)\n")
sys.stdout.flush()
dist.destroy_process_group()
sys.exit(not all(same))
