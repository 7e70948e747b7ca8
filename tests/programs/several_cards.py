# distributed: refused (parts of one model lie on two cards)
# amp: refused or converts (parts of one model lie on two cards)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8).to("cuda:0")
        self.second = nn.Linear(8, 1).to("cuda:1")

    def forward(self, x):
        return self.second(torch.relu(self.first(x.to("cuda:0"))).to("cuda:1"))


x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = Split()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    for a, b in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(a), b.to("cuda:1"))
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
