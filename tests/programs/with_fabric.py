# distributed: left
# start: no (the package is missing)
import torch
from lightning.fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

fabric = Fabric(accelerator="cuda", devices=1)
fabric.launch()
x = torch.randn(64, 4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model, optimizer = fabric.setup(model, optimizer)
dataloader = fabric.setup_dataloaders(DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8))
model.train()
for epoch in range(2):
    for a, b in dataloader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(a), b)
        fabric.backward(loss)
        optimizer.step()
