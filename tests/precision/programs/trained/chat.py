"""Chat: a decoder with rotary positions and a fused attention, AdamW, a mask over what is not to be learnt."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(51)
device = torch.device("cuda")
WIDTH, HEADS, WORDS, LENGTH = 24, 3, 50, 10


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return x * cos + turned * sin


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.norm2 = nn.RMSNorm(WIDTH)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q = rotated(q, cos, sin)
        k = rotated(k, cos, sin)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Parameter(torch.randn(WORDS, WIDTH) * 0.05)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        places = torch.arange(words.shape[1], device=words.device)
        steps = 1.0 / 100 ** (torch.arange(0, 4, device=words.device) / 4)
        angles = places[:, None] * steps[None, :]
        angles = torch.cat((angles, angles), dim=-1)
        x = self.words(words)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin())
        x = self.norm(x)
        return F.linear(x, self.head)


text = torch.randint(1, WORDS, (3, 4, LENGTH + 1))
text[:, :, -3:-1] = 0
model = Model().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)
for step in range(3):
    batch = text[step].to(device)
    words, goal = batch[:, :-1], batch[:, 1:]
    goal = goal.masked_fill(goal == 0, -100)
    logits = model(words)
    loss = F.cross_entropy(logits.flatten(0, 1), goal.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
