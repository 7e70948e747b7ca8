"""A script whose model goes to its card late: in the loop over the epochs, behind the optimizer."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(self.norm(x))

    def energy(self, x):
        return self(x).pow(2).mean()


def prepared(model):
    return model.cuda()


def main():
    data = TensorDataset(torch.randn(32, 4))
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model.eval()
    for _ in range(2):
        prepared(model).train()
        for (x,) in DataLoader(data, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            model.energy(x.cuda()).backward()
            optimizer.step()
    print("done")


if __name__ == "__main__":
    main()
