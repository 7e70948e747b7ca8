# A trainer as a class: keeps a checkpoint after each epoch, and goes on from one where there is one.
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.features(x))


class Trainer:
    def __init__(self, folder):
        self.path = os.path.join(folder, "last.pt")
        self.model = Net().cuda()
        self.criterion = nn.CrossEntropyLoss().cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01, weight_decay=0.05)
        self.epoch = 0

    def load(self):
        if not os.path.isfile(self.path):
            return
        checkpoint = torch.load(self.path, map_location="cuda:0")
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.epoch = checkpoint["epoch"] + 1
        print("resumed at epoch", self.epoch)

    def save(self):
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
        }
        torch.save(state, self.path)

    def train_epoch(self, loader):
        self.model.train()
        for inputs, targets in loader:
            inputs, targets = inputs.cuda(non_blocking=True), targets.cuda(non_blocking=True)
            loss = self.criterion(self.model(inputs), targets)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        right = 0
        for inputs, targets in loader:
            right += (self.model(inputs.cuda()).argmax(1) == targets.cuda()).sum().item()
        return right / len(loader.dataset)

    def fit(self, train_loader, val_loader, epochs):
        while self.epoch < epochs:
            self.train_epoch(train_loader)
            print(f"epoch {self.epoch}: accuracy {self.evaluate(val_loader):.3f}")
            self.save()
            self.epoch += 1


def loaders():
    inputs = torch.randn(56, 10)
    targets = inputs[:, :3].argmax(1)
    train_set = TensorDataset(inputs[:40], targets[:40])
    val_set = TensorDataset(inputs[40:], targets[40:])
    return DataLoader(train_set, batch_size=8, shuffle=True), DataLoader(val_set, batch_size=8)


if __name__ == "__main__":
    torch.manual_seed(21)
    train_loader, val_loader = loaders()
    Trainer(".").fit(train_loader, val_loader, 1)
    # As after an interruption: a new trainer goes on from the file.
    trainer = Trainer(".")
    trainer.load()
    trainer.fit(train_loader, val_loader, 2)
