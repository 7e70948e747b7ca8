"""A script whose data is fetched where it is not there yet. Rank 1 asks for it as soon as rank 0 has begun to write."""

import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

FILE = "fetched.txt"


class Points(Dataset):
    def __init__(self, path, download=False):
        if download:
            with open(path, "x") as file:
                file.flush()
                time.sleep(0.5)
                for value in range(16):
                    file.write(f"{value}\n")
        with open(path) as file:
            self.lines = file.read().split()
        assert len(self.lines) == 16, "read while it was written"

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        return torch.tensor([float(self.lines[index])])


def main():
    model = torch.nn.Linear(1, 1).cuda()
    while os.environ.get("LOCAL_RANK") == "1" and not os.path.exists(FILE):
        time.sleep(0.01)
    if not os.path.exists(FILE):
        Points(FILE, download=True)
    data = Points(FILE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for x in DataLoader(data, batch_size=4, shuffle=True):
        optimizer.zero_grad()
        model(x.cuda()).mean().backward()
        optimizer.step()
    print("done")


if __name__ == "__main__":
    main()
