"""Domain adaptation: zip of two loaders, features of source and target drawn together."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


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
    source_loader = DataLoader(source, batch_size=8, shuffle=True)
    target_loader = DataLoader(target, batch_size=8, shuffle=True)
    net = Net().cuda()
    optimizer = torch.optim.NAdam(net.parameters(), lr=4e-3)
    for epoch in range(4):
        net.train()
        total = 0.0
        for (xs, ys), (xt, _) in zip(source_loader, target_loader):
            xs, ys, xt = xs.cuda(), ys.cuda(), xt.cuda()
            logits, fs, ft = net(xs, xt)
            loss = F.cross_entropy(logits, ys) + 0.3 * moment_gap(fs, ft)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        net.eval()
        with torch.no_grad():
            x, y = target.tensors
            acc = (net(x.cuda(), x.cuda())[0].argmax(1).cpu() == y).float().mean().item()
        print("epoch", epoch, "loss %.5f" % (total / len(source_loader)), "target accuracy %.4f" % acc)


if __name__ == "__main__":
    main()
