# distributed: refused or converts (whether there is a step is decided by the loss of a rank)
# same with W processes: no (each rank decides by its own loss)
# amp: refused or converts (steps that a condition leaves out)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(64, 3, generator=torch.Generator().manual_seed(2))
loader = DataLoader(TensorDataset(x, x.norm(dim=1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
history = []
for epoch in range(2):
    for a, b in loader:
        loss = nn.functional.mse_loss(model(a.cuda()), b.cuda())
        optimizer.zero_grad()
        loss.backward()
        # skip outliers
        if len(history) > 3 and loss.item() > 2 * sum(history) / len(history):
            print("skipped a batch", loss.item())
            continue
        history.append(loss.item())
        optimizer.step()
    print(epoch, loss.item())
