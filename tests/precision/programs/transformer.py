"""Words: one causal encoder block with attention of its own, AdamW, clipped gradients."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)
device = torch.device("cuda")
FUSED = False


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if FUSED:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(width // self.heads)
            mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            weights = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
            mixed = torch.matmul(weights, v)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Encoder(nn.Module):
    def __init__(self, words: int = 50, width: int = 16) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, 2)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.head = nn.Linear(width, words)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.embed(words)
        x = x + self.attention(self.norm1(x))
        x = x + self.down(F.gelu(self.up(self.norm2(x))))
        return self.head(x)


text = torch.randint(0, 50, (3, 4, 13))
model = Encoder().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.01)
for step in range(3):
    batch = text[step].to(device)
    logits = model(batch[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 50), batch[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
