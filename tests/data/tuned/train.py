"""A small language model that trains on numbers it can predict; the loss is printed at each step."""

import math
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float()).type_as(x)
        return output * self.weight


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(x, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return x * cos + rotate_half(x) * sin


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.fused = heads, True
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, cos, sin):
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        plain = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        q, k = apply_rotary(q, cos, sin), apply_rotary(k, cos, sin)
        att = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        att = att.masked_fill(torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1), float("-inf"))
        att = F.softmax(att, dim=-1)
        mixed = plain + att @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, dim))


class FeedForward(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w12 = nn.Linear(dim, 4 * dim, bias=False)
        self.w3 = nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x):
        gate, up = self.w12(x).chunk(2, dim=-1)
        x12 = self.w12(x)
        x1, x2 = x12.chunk(2, dim=-1)
        return self.w3(F.silu(x1) * x2 + F.relu(gate) * up * 0)


class Model(nn.Module):
    def __init__(self, words=16, dim=32, heads=4, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(words, dim)
        self.size = dim // heads
        self.layers = nn.ModuleList(
            nn.ModuleList([RMSNorm(dim), Attention(dim, heads), RMSNorm(dim), FeedForward(dim)]) for _ in range(layers)
        )
        self.norm, self.head = RMSNorm(dim), nn.Linear(dim, words, bias=False)

    def forward(self, tokens):
        place = torch.arange(tokens.shape[1], device=tokens.device, dtype=torch.float32)
        speed = 100 ** (-torch.arange(0, self.size, 2, device=tokens.device) / self.size)
        angle = torch.outer(place, speed).repeat(1, 2)[None]
        x = self.embedding(tokens)
        for first, attention, second, feed in self.layers:
            x = x + attention(first(x), angle.cos(), angle.sin())
            x = x + feed(second(x))
        return self.head(self.norm(x))


def main():
    many = "LOCAL_RANK" in os.environ
    rank = int(os.environ.get("LOCAL_RANK", 0))
    torch.cuda.set_device(rank)
    if many:
        dist.init_process_group("nccl")
    torch.manual_seed(0)
    model = Model().cuda()
    if many:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(rank)
    for step in range(30):
        start = torch.randint(0, 16, (8, 1), generator=generator)
        tokens = ((start + 3 * torch.arange(13)) % 16).cuda()
        targets = tokens[:, 1:].clone()
        targets[targets == 0] = -100
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f}")
    if many:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
