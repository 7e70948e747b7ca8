"""A layer of attention over words and places."""

import torch
import torch.nn as nn


@torch.jit.script
def scaled(scores, width: int):
    return scores / width**0.5


class WordModel(nn.Module):
    def __init__(self, words, width, length):
        super().__init__()
        self.width = width
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        self.query = nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, words)
        self.register_buffer("mask", torch.triu(torch.ones(length, length), diagonal=1).bool())

    def forward(self, words):
        places = torch.arange(0, words.size(1), dtype=torch.long, device=words.device)
        x = self.words(words.long()) + self.places(places)
        q, k, v = self.query(x).chunk(3, dim=-1)
        scores = scaled(q @ k.transpose(1, 2), self.width).masked_fill(self.mask, -1e4)
        return self.head(x + scores.softmax(-1) @ v)
