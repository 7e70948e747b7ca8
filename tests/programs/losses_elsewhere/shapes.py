import torch
import torch.nn as nn
from torch.utils.data import Dataset


class Boxes(Dataset):
    def __init__(self):
        gen = torch.Generator().manual_seed(9)
        self.images = torch.rand(64, 1, 6, 6, generator=gen)
        self.boxes = torch.rand(64, 4, generator=gen)
        self.scores = (torch.rand(64, 1, generator=gen) > 0.5).float()

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return self.images[i], self.boxes[i], self.scores[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU())
        self.box = nn.Linear(16, 4)
        self.score = nn.Linear(16, 1)

    def forward(self, x):
        x = self.body(x)
        return self.box(x), self.score(x)
