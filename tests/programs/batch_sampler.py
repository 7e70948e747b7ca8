# distributed: refused or converts (a batch_sampler of its own)
# amp: converts
import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset


class BalancedBatchSampler(Sampler):
    def __init__(self, labels, per_class):
        self.groups = [torch.nonzero(labels == c).flatten() for c in labels.unique()]
        self.per_class = per_class

    def __iter__(self):
        for _ in range(len(self)):
            yield torch.cat([g[torch.randperm(len(g))[:self.per_class]] for g in self.groups]).tolist()

    def __len__(self):
        return 6


gen = torch.Generator().manual_seed(0)
x, y = torch.randn(64, 5, generator=gen), torch.arange(64) % 4
loader = DataLoader(TensorDataset(x, y), batch_sampler=BalancedBatchSampler(y, 2))
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(model(xb.cuda()), yb.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
