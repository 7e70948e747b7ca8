# Images, batch normalization, weight decay, a schedule, an evaluation after each epoch: all in the module.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
images = torch.randn(64, 1, 8, 8)
labels = (images.mean((1, 2, 3)) > 0).long() + 2 * (images[:, 0, 0, 0] > 0).long()
train_loader = DataLoader(TensorDataset(images[:48], labels[:48]), batch_size=8, shuffle=True, pin_memory=True)
test_loader = DataLoader(TensorDataset(images[48:], labels[48:]), batch_size=6)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(6 * 36, 4)
        self.register_buffer("mean", images.mean())

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x - self.mean)))
        return self.fc(self.drop(x.flatten(1)))


net = Net().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)

for epoch in range(2):
    net.train()
    for x, y in train_loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()

    net.eval()
    correct = total = 0
    with torch.no_grad():
        for x, y in test_loader:
            x, y = x.to(device), y.to(device)
            correct += (net(x).argmax(1) == y).sum().item()
            total += len(y)
    print(f"epoch {epoch}: accuracy {correct / total:.4f}")

torch.save(net.state_dict(), "net.pt")
