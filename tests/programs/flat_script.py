# distributed: converts
# same with W processes: yes
# amp: converts
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
gen = torch.Generator().manual_seed(7)
images = torch.randn(64, 1, 8, 8, generator=gen)
labels = torch.randint(0, 4, (64,), generator=gen)
trainloader = DataLoader(TensorDataset(images, labels), batch_size=8, shuffle=True, num_workers=0)
testloader = DataLoader(TensorDataset(images[:20], labels[:20]), batch_size=8, shuffle=False)
classes = ("plane", "car", "bird", "cat")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.fc1 = nn.Linear(4 * 6 * 6, 4)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        return self.fc1(torch.flatten(x, 1))


net = Net()
net.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

for epoch in range(2):
    running_loss = 0.0
    for i, data in enumerate(trainloader, 0):
        inputs, labels = data[0].to(device), data[1].to(device)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
        if i % 4 == 3:
            print('[%d, %5d] loss: %.3f' % (epoch + 1, i + 1, running_loss / 4))
            running_loss = 0.0

print('Finished Training')
torch.save(net.state_dict(), './net.pth')

correct = 0
total = 0
with torch.no_grad():
    for data in testloader:
        images, labels = data[0].to(device), data[1].to(device)
        _, predicted = torch.max(net(images), 1)
        total += labels.size(0)
        correct += (predicted == labels).sum().item()
print(f'Accuracy: {100 * correct // total} %')
