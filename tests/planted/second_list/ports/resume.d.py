import os

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

CKPT = "checkpoint.pth.tar"


class RegNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(6, 32)
        self.bn = nn.BatchNorm1d(32)
        self.l2 = nn.Linear(32, 1)

    def forward(self, x):
        return self.l2(torch.tanh(self.bn(self.l1(x)))).squeeze(1)


def build():
    model = RegNet().npu()
    model = DistributedDataParallel(model, device_ids=[torch.npu.current_device()])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    return model, optimizer, scheduler


def save(model, optimizer, scheduler, epoch, best):
    if dist.get_rank() == 0:
        torch.save({"epoch": epoch + 1, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(), "best": best}, CKPT)


def load(model, optimizer, scheduler):
    ckpt = torch.load(CKPT, map_location="npu")
    model.load_state_dict(ckpt["state_dict"])
    optimizer.load_state_dict(ckpt["optimizer"])
    scheduler.load_state_dict(ckpt["scheduler"])
    return ckpt["epoch"], ckpt["best"]


def run(x, y, until):
    torch.manual_seed(0)
    model, optimizer, scheduler = build()
    start, best = 0, float("inf")
    dist.barrier()  # rank 0 has written it
    if os.path.isfile(CKPT):
        start, best = load(model.module, optimizer, scheduler)
        if dist.get_rank() == 0:
            print("resumed at epoch", start, "best loss %.6f" % best)
    torch.manual_seed((torch.initial_seed() + dist.get_rank()) % 2**64)
    for epoch in range(start, until):
        model.train()
        g = torch.Generator().manual_seed(epoch)
        for idx in torch.randperm(64, generator=g).split(16):
            xb, yb = x[idx].npu(), y[idx].npu()
            loss = F.smooth_l1_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            val = F.smooth_l1_loss(model(x[64:].npu()), y[64:].npu()).item()
        best = min(best, val)
        if dist.get_rank() == 0:
            print("epoch %d loss %.6f lr %.5f" % (epoch, val, optimizer.param_groups[0]["lr"]))
        save(model.module, optimizer, scheduler, epoch, best)


if __name__ == "__main__":
    torch.manual_seed(31)
    x = torch.randn(96, 6)
    y = (x[:, 0] * x[:, 1] + x[:, 2]).sin()
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend="hccl")
    run(x, y, 3)   # interrupted here
    run(x, y, 6)   # started again
    dist.destroy_process_group()
