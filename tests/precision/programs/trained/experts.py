"""Experts: each word goes to two of four networks, which a gate weighs; a second loss holds the gate to all of them."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(89)
device = torch.device("cuda")
EXPERTS, BEST, WIDTH, WORDS = 4, 2, 16, 24


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.into = nn.Parameter(torch.randn(EXPERTS, WIDTH, 24) * 0.2)
        self.out = nn.Parameter(torch.randn(EXPERTS, 24, WIDTH) * 0.2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        odds = self.gate(x).softmax(dim=-1)
        weights, chosen = odds.topk(BEST, dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        shares = torch.zeros_like(odds).scatter(-1, chosen, weights)
        hidden = F.gelu(torch.einsum("nd,edh->enh", x, self.into))
        each = torch.einsum("enh,ehd->end", hidden, self.out)
        mixed = (shares.t()[..., None] * each).sum(dim=0)
        used = (shares > 0).float().mean(dim=0)
        return mixed, EXPERTS * (used * odds.mean(dim=0)).sum()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6)
        self.experts = Experts()
        self.last = nn.RMSNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.words(words)
        mixed, balance = self.experts(self.norm(x).flatten(0, 1))
        x = x + mixed.view_as(x)
        return self.head(self.last(x)), balance


text = torch.randint(0, WORDS, (3, 4, 9))
model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.95))
for step in range(3):
    batch = text[step].to(device)
    logits, balance = model(batch[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    loss = loss + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
