"""A script that draws its data and its split. FIRST is the seed its process has by itself, SEED one that it sets."""

import os
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.default_generator.manual_seed(int(os.environ["FIRST"]))


def main():
    # torch.manual_seed(int(os.environ["SEED"]))
    train, _ = random_split(TensorDataset(torch.randn(16, 2), torch.randn(16, 1)), [8, 8])
    model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1)).cuda()
    os.write(1, f"drawn {model[0].bias.sum().item()} {np.random.rand()} {random.random()}\n".encode())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(train, batch_size=4, shuffle=True):
        optimizer.zero_grad()
        (model(x.cuda()) - y.cuda()).pow(2).mean().backward()
        optimizer.step()
    os.write(1, f"seed {torch.initial_seed()}\n".encode())


if __name__ == "__main__":
    main()
