"""A small classifier of sequences: 60 steps, one printed loss each."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)
device = torch.device("cuda")


class Net(nn.Module):
    def __init__(self, words=40, width=16, classes=4):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 32)
        self.down = nn.Linear(32, classes)

    def forward(self, words):
        x = self.norm(self.embed(words).mean(dim=1))
        x = F.gelu(self.up(x))
        return self.down(x)


texts = torch.randint(0, 40, (60, 16, 9))
labels = texts.sum(dim=2) % 4
model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(60):
    words, wanted = texts[step % 6].to(device), labels[step % 6].to(device)
    loss = F.cross_entropy(model(words), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step + 1} loss {loss.item():.6f}")
