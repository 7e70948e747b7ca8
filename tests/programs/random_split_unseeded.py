# distributed: refused or converts (nobody seeds: each rank would split the data in its own way)
# same with W processes: no (nobody seeds)
# amp: converts
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

x = torch.arange(80.0).unsqueeze(1) / 80
train_set, val_set = random_split(TensorDataset(x, x ** 2), [64, 16])
model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for a, b in DataLoader(train_set, batch_size=8, shuffle=True):
        loss = (model(a.cuda()) - b.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = sum((model(a.cuda()) - b.cuda()).pow(2).mean().item() for a, b in DataLoader(val_set, batch_size=16))
    print(epoch, loss.item(), val)
