"""Calls of scaled_dot_product_attention; each class and function is compared with its tuned form."""

import torch
import torch.nn.functional as F
from torch import nn


class Packed(nn.Module):
    """Query, key and value of one layer."""

    def __init__(self, dim=24, heads=4):
        super().__init__()
        self.heads, self.drop = heads, 0.3
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        batch, length, dim = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop if self.training else 0.0)
        return out.transpose(1, 2).reshape(batch, length, dim)


class Causal(nn.Module):
    """Layers of their own; more queries than keys or less, from two inputs."""

    def __init__(self, dim=24, heads=4):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)

    def forward(self, x, memory):
        q = self.q(x).view(x.shape[0], x.shape[1], self.heads, -1)
        k = self.k(memory).view(memory.shape[0], memory.shape[1], self.heads, -1).transpose(1, 2)
        v = self.v(memory).view(memory.shape[0], memory.shape[1], self.heads, -1).transpose(1, 2)
        return F.scaled_dot_product_attention(q.transpose(1, 2), k, v, is_causal=True, scale=0.25)


class Grouped(nn.Module):
    """Fewer heads of key and value than of the query; whether it is causal is asked at run time."""

    def __init__(self, dim=24, heads=4, fewer=2):
        super().__init__()
        self.heads, self.fewer, self.size = heads, fewer, dim // heads
        self.scale = self.size**-0.5 * 2.0
        self.q = nn.Linear(dim, heads * self.size)
        self.kv = nn.Linear(dim, 2 * fewer * self.size)

    def forward(self, x, causal):
        batch, length, dim = x.shape
        q = self.q(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k, v = self.kv(x).chunk(2, dim=-1)
        k = k.reshape(batch, length, self.fewer, self.size).transpose(1, 2)
        v = v.reshape(batch, length, self.fewer, self.size).transpose(1, 2)
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=self.scale, enable_gqa=True)


class Masked(nn.Module):
    """A mask whose True means kept."""

    def __init__(self, dim=24, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x, shift):
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).split(dim, dim=2)
        q = q.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)
        k = k.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)
        v = v.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)
        lower = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        band = torch.tril(torch.ones(length, length, dtype=torch.bool, device=x.device), diagonal=shift)
        first = F.scaled_dot_product_attention(q, k, v, lower)
        return first + F.scaled_dot_product_attention(query=q, key=k, value=v, attn_mask=band, scale=0.5)
