# distributed: converts
# same with W processes: yes
# amp: converts
# apex: converts
# run: --batch {batch}
"""Two networks in a class whose methods work out the losses, and another that takes all steps; one is frozen in turn."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pairs:
    def __init__(self, rate):
        self.device = torch.device("cuda")
        self.net_g = nn.Linear(6, 6).to(self.device)
        self.net_d = nn.Sequential(nn.Linear(12, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)).to(self.device)
        self.criterion = nn.MSELoss()
        self.optimizer_g = self.make(self.net_g, rate)
        self.optimizer_d = torch.optim.SGD(self.net_d.parameters(), lr=rate)

    def make(self, net, rate):
        return torch.optim.SGD(net.parameters(), lr=rate)

    def set_input(self, batch):
        self.left, self.right = [each.to(self.device) for each in batch]

    def judge(self, right, real):
        out = self.net_d(torch.cat((self.left, right), 1))
        return self.criterion(out, torch.full_like(out, float(real)))

    def backward_d(self):
        self.loss_d = (self.judge(self.made.detach(), False) + self.judge(self.right, True)) / 2
        self.loss_d.backward()

    def backward_g(self):
        self.loss_g = self.judge(self.made, True) + (self.made - self.right).abs().mean()
        self.loss_g.backward()

    @staticmethod
    def set_requires_grad(nets, flag=False):
        for net in nets:
            for parameter in net.parameters():
                parameter.requires_grad = flag

    def optimize_parameters(self):
        self.made = self.net_g(self.left)
        self.set_requires_grad([self.net_d], True)
        self.optimizer_d.zero_grad()
        self.backward_d()
        self.optimizer_d.step()
        self.set_requires_grad([self.net_d], False)
        self.optimizer_g.zero_grad()
        self.backward_g()
        self.optimizer_g.step()


parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
options = parser.parse_args()
torch.manual_seed(0)
drawn = torch.Generator().manual_seed(1)
data = TensorDataset(torch.randn(64, 6, generator=drawn), torch.randn(64, 6, generator=drawn))
model = Pairs(0.05)
for epoch in range(2):
    for batch in DataLoader(data, batch_size=options.batch):
        model.set_input(batch)
        model.optimize_parameters()
    print(epoch, float(model.loss_d), float(model.loss_g))
