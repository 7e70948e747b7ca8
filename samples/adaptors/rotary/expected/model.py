import torch
import torch.nn.functional as F

from rotary import Rotary


class Attention(torch.nn.Module):
    def __init__(self, width=32, heads=4, length=16):
        super().__init__()
        self.heads = heads
        self.rotary = Rotary(width // heads, length)
        self.mix = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)

    def forward(self, x, positions):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.mix(x).chunk(3, dim=-1))
        q, k = self.rotary(q, positions), self.rotary(k, positions)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Model(torch.nn.Module):
    def __init__(self, words=64, width=32):
        super().__init__()
        self.embed = torch.nn.Embedding(words, width)
        self.attention = Attention(width)
        self.head = torch.nn.Linear(width, words)

    def forward(self, tokens, positions):
        x = self.embed(tokens)
        return self.head(x + self.attention(x, positions))
