"""Words: two causal blocks, AdamW with and without decay, a warm-up, gradients cut at a norm."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(31)
device = torch.device("cuda")
WIDTH, HEADS, WORDS, LENGTH = 16, 2, 40, 11


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.queries = nn.Linear(WIDTH, WIDTH)
        self.keys = nn.Linear(WIDTH, WIDTH)
        self.values = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        y = self.norm1(x)
        q = self.queries(y).view(batch, length, HEADS, -1).transpose(1, 2)
        k = self.keys(y).view(batch, length, HEADS, -1).transpose(1, 2)
        v = self.values(y).view(batch, length, HEADS, -1).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, WIDTH)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        places = torch.arange(words.shape[1], device=words.device)
        x = self.words(words) + self.places(places)
        hidden = torch.ones(words.shape[1], words.shape[1], dtype=torch.bool, device=words.device).triu(diagonal=1)
        for block in self.blocks:
            x = block(x, hidden)
        return self.head(self.norm(x))


text = torch.randint(0, WORDS, (3, 4, LENGTH + 1))
model = Model().to(device)
plain = [each for each in model.parameters() if each.dim() < 2]
decayed = [each for each in model.parameters() if each.dim() >= 2]
groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.98))
warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
for step in range(3):
    batch = text[step].to(device)
    optimizer.zero_grad(set_to_none=True)
    logits = model(batch[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    warm_up.step()
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
