# distributed: refused or converts (steps are counted, not epochs: batches come from next())
# same with W processes: yes
# amp: converts
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def infinite(loader):
    while True:
        for batch in loader:
            yield batch


x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
loader = DataLoader(TensorDataset(x, x.flip(1)), batch_size=8, shuffle=True, drop_last=True)
batches = infinite(loader)
model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
iters = 0
while iters < 12:
    a, b = next(batches)
    loss = nn.functional.mse_loss(model(a.cuda()), b.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    iters += 1
    if iters % 4 == 0:
        print(iters, loss.item())
        torch.save({"iter": iters, "model": model.state_dict()}, f"step{iters}.pt")
