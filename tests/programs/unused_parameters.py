# distributed: converts
# same with W processes: yes
# amp: converts
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(5, 10)
        self.aux = nn.Linear(10, 2)
        self.head = nn.Linear(10, 2)
        self.unused = nn.Linear(3, 3)

    def forward(self, x, with_aux):
        x = torch.relu(self.stem(x))
        return self.head(x), self.aux(x) if with_aux else None


device = torch.device("cuda")
gen = torch.Generator().manual_seed(1)
train_set = TensorDataset(torch.randn(64, 5, generator=gen), torch.randint(0, 2, (64,), generator=gen))
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
model = Net().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    for step, (x, y) in enumerate(train_loader):
        x, y = x.to(device), y.to(device)
        out, aux = model(x, with_aux=step % 2 == 0)
        loss = criterion(out, y)
        if aux is not None:
            loss = loss + 0.4 * criterion(aux, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch %d loss %.4f" % (epoch, loss.item()))
