# distributed: refused (nothing of the program is on a card)
# amp: refused (nothing of the program is on a card)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.linspace(-1, 1, 64).unsqueeze(1)
loader = DataLoader(TensorDataset(x, x.pow(3)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    for xs, ys in loader:
        loss = (model(xs) - ys).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
