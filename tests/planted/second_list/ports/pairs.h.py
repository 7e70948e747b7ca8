"""Domain adaptation: zip of two loaders, features of source and target drawn together."""
import os
import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler


def domain(n, shift, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    x = torch.randn(n, 8, generator=g) * 0.6 + shift
    x[torch.arange(n), y] += 2.0
    return TensorDataset(x, y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 12))
        self.cls = nn.Linear(12, 3)

    def forward(self, s, t):
        fs, ft = self.body(s), self.body(t)
        return self.cls(fs), fs, ft


def moment_gap(a, b):
    """Each source sample with the target sample beside it."""
    return ((a - b) ** 2).mean()


def main():
    torch.manual_seed(64)
    source, target = domain(64, 0.0, 1), domain(64, 0.7, 2)
    source_loader = DataLoader(source, batch_size=8, sampler=DistributedSampler(source))
    target_loader = DataLoader(target, batch_size=8, sampler=DistributedSampler(target, seed=1))
    net = Net().npu()
    net = DistributedDataParallel(net, device_ids=[torch.npu.current_device()])
    optimizer = torch.optim.NAdam(net.parameters(), lr=4e-3)
    torch.manual_seed((torch.initial_seed() + dist.get_rank()) % 2**64)
    for epoch in range(4):
        source_loader.sampler.set_epoch(epoch)
        target_loader.sampler.set_epoch(epoch)
        net.train()
        total = 0.0
        for (xs, ys), (xt, _) in zip(source_loader, target_loader):
            xs, ys, xt = xs.npu(), ys.npu(), xt.npu()
            logits, fs, ft = net(xs, xt)
            loss = F.cross_entropy(logits, ys) + 0.3 * moment_gap(fs, ft)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean_loss = loss.detach().clone()
            dist.all_reduce(mean_loss)
            mean_loss /= dist.get_world_size()
            total += mean_loss.item()
        net.eval()
        with torch.no_grad():
            x, y = target.tensors
            acc = (net(x.npu(), x.npu())[0].argmax(1).cpu() == y).float().mean().item()
        if dist.get_rank() == 0:
            print("epoch", epoch, "loss %.5f" % (total / len(source_loader)), "target accuracy %.4f" % acc)


if __name__ == "__main__":
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend="hccl")
    main()
    dist.destroy_process_group()
