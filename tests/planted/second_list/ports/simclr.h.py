"""SimCLR on vectors: two noisy views, NT-Xent, projection head."""
import os
import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler


class TwoViews(Dataset):
    """Views are fixed crops of a longer signal, so that an item is always the same."""

    def __init__(self, n=96, dim=40, seed=0):
        g = torch.Generator().manual_seed(seed)
        proto = torch.randn(6, dim, generator=g)
        self.label = torch.randint(0, 6, (n,), generator=g)
        self.signal = proto[self.label] + 0.5 * torch.randn(n, dim, generator=g)

    def __len__(self):
        return len(self.signal)

    def __getitem__(self, i):
        s = self.signal[i]
        return s[:32], s[8:], self.label[i]


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return F.normalize(self.head(self.backbone(x)), dim=1)


class GatherLayer(torch.autograd.Function):
    """All ranks' rows in the order of the ranks; the gradient goes back to the rank that it belongs to."""

    @staticmethod
    def forward(ctx, x):
        out = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(out, x.contiguous())
        return torch.cat(out)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        n = grad.size(0) // dist.get_world_size()
        return grad[dist.get_rank() * n:(dist.get_rank() + 1) * n]


def nt_xent(z1, z2, temperature=0.2):
    n = z1.size(0)
    z = torch.cat([z1, z2])
    sim = z @ z.t() / temperature
    sim.fill_diagonal_(-1e4)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(z.device)
    return F.cross_entropy(sim, target)


def knn_accuracy(model, data):
    model.eval()
    with torch.no_grad():
        feats = F.normalize(model.backbone(data.signal[:, :32].npu()), dim=1)
        sim = feats @ feats.t()
        sim.fill_diagonal_(-1)
        near = sim.argmax(1).cpu()
    model.train()
    return (data.label[near] == data.label).float().mean().item()


def main():
    torch.manual_seed(42)
    torch.npu.manual_seed_all(42)
    data = TwoViews()
    loader = DataLoader(data, batch_size=24 // dist.get_world_size(), sampler=DistributedSampler(data), drop_last=True, num_workers=0, pin_memory=True)
    model = Encoder().npu()
    model = DistributedDataParallel(model, device_ids=[torch.npu.current_device()])
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    epochs = 5
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    torch.manual_seed((torch.initial_seed() + dist.get_rank()) % 2**64)
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        running = 0.0
        for v1, v2, _ in loader:
            v1, v2 = v1.npu(non_blocking=True), v2.npu(non_blocking=True)
            z = model(torch.cat([v1, v2]))
            z1, z2 = z.chunk(2)
            z1, z2 = GatherLayer.apply(z1), GatherLayer.apply(z2)
            loss = nt_xent(z1, z2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            running += loss.item()
        value = round(knn_accuracy(model.module, data), 4)
        if dist.get_rank() == 0:
            print("epoch", epoch, "loss", round(running / len(loader), 6), "knn accuracy", value)
    if dist.get_rank() == 0:
        torch.save(model.module.backbone.state_dict(), "backbone.pt")


if __name__ == "__main__":
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend="hccl")
    main()
    dist.destroy_process_group()
