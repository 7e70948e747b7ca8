# distributed: converts
# same with W processes: yes
# amp: converts
# apex: refused or converts (two optimizers, one after the other)
# apex O1: refused or converts (two optimizers, one after the other)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 12), nn.ReLU())
        self.fc = nn.Linear(12, 3)

    def forward(self, x):
        return self.fc(self.features(x))


def get_loader():
    gen = torch.Generator().manual_seed(0)
    return DataLoader(TensorDataset(torch.randn(64, 6, generator=gen), torch.randint(0, 3, (64,), generator=gen)),
                      batch_size=8, shuffle=True)


def main():
    train_loader = get_loader()
    model = Backbone().cuda()
    criterion = nn.CrossEntropyLoss()
    for param in model.features.parameters():
        param.requires_grad = False
    optimizer = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
    for epoch in range(1):
        train(model, train_loader, criterion, optimizer)
    # fine-tune all of it
    for param in model.parameters():
        param.requires_grad = True
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1):
        train(model, train_loader, criterion, optimizer)
    torch.save(model.state_dict(), "finetuned.pt")


def train(model, loader, criterion, optimizer):
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
