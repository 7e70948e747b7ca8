# distributed: refused or converts (an IterableDataset shares itself out)
# same with W processes: no (who reads what is up to the data)
# amp: converts
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        gen = torch.Generator().manual_seed(0)
        for _ in range(self.n):
            x = torch.randn(4, generator=gen)
            yield x, x.sum().unsqueeze(0)


loader = DataLoader(Stream(64), batch_size=8)
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
