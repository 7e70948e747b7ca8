# distributed: refused or converts (a sampler of its own: DistributedSampler would lose its weights)
# amp: converts
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

gen = torch.Generator().manual_seed(0)
x, y = torch.randn(64, 4, generator=gen), (torch.rand(64, generator=gen) > 0.8).long()
weights = (1.0 / torch.bincount(y, minlength=2).float())[y]
sampler = WeightedRandomSampler(weights, num_samples=len(weights), replacement=True)
train_loader = DataLoader(TensorDataset(x, y), batch_size=8, sampler=sampler)
model = nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb.cuda()), yb.cuda())
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
