"""Norms, rotary embeddings, gated layers and masks."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    def __init__(self, dim=16, eps=1e-3):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float()).type_as(x)
        return output * self.weight


class LlamaNorm(nn.Module):
    def __init__(self, dim=16, eps=1e-3):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)


class DividedNorm(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x / torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + 1e-3) * self.scale


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def rotary(q, k, cos, sin, unsqueeze_dim):
    cos = cos.unsqueeze(unsqueeze_dim)
    sin = sin.unsqueeze(unsqueeze_dim)
    q_embed = (q * cos) + (rotate_half(q) * sin)
    k_embed = sin * rotate_half(k) + cos * k
    return q_embed, k_embed


class Gated(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.w12 = nn.Linear(dim, 2 * dim)
        self.w3 = nn.Linear(dim, dim)

    def forward(self, x):
        x12 = self.w12(x)
        x1, x2 = x12.chunk(2, dim=-1)
        return self.w3(F.silu(x1) * x2)


def gated(x):
    gate, up = torch.chunk(x, 2, 1)
    return up * F.silu(gate)


def scores(q, k, mask):
    att = (q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
    att = att.masked_fill(mask, float("-inf"))
    return F.softmax(att, dim=-1)


def scores_in_place(x, mask):
    x = x * 1.0
    x.masked_fill_(mask, -math.inf)
    return torch.softmax(x, dim=-1)


def added(x, causal):
    mask = torch.full((x.shape[-1], x.shape[-1]), float("-inf"), dtype=x.dtype, device=x.device)
    if causal:
        mask = torch.triu(mask, diagonal=1)
    scores = x + mask
    return torch.softmax(scores, dim=-1)


def best(logits, limit):
    logits = logits * 2.0
    value = torch.topk(logits, limit)[0]
    logits[logits < value[:, [-1]]] = -float("Inf")
    return F.softmax(logits, dim=-1)


def without_nan(x):
    x = x.log()
    x[torch.isnan(x)] = 0
    return x


def clipped(x):
    x = x.clone()
    view = x[:, 1:]
    view[view < 0] = -1
    return x


def labels(x):
    x = x.clone()
    x[(x == 3) | (x > 7)] = -100
    return x
