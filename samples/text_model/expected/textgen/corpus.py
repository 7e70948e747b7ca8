"""A text to learn from, and windows of it as a Dataset."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from torch.utils.data import Dataset

WORDS = (
    "the a small large old quiet river mountain bird fisherman boat village road winter morning light "
    "sings walks crosses watches finds loses remembers carries over under beside beyond slowly again never"
).split()


def synthetic_corpus(length: int, seed: int = 0) -> str:
    """Around `length` characters from a random but fixed Markov chain over words."""
    rng = random.Random(seed)
    followers = {word: rng.sample(WORDS, 4) for word in WORDS}
    word, size, out = rng.choice(WORDS), 0, []
    while size < length:
        out.append(word)
        size += len(word) + 1
        if rng.random() < 0.1:
            out[-1] += "."
        word = rng.choice(followers[word.rstrip(".")])
    return " ".join(out)


class Vocabulary:
    def __init__(self, text: str) -> None:
        self.chars = sorted(set(text))
        self.index = {c: i for i, c in enumerate(self.chars)}

    def __len__(self) -> int:
        return len(self.chars)

    def encode(self, text: str) -> torch.Tensor:
        return torch.tensor([self.index[c] for c in text if c in self.index], dtype=torch.long)

    def decode(self, ids: list[int]) -> str:
        return "".join(self.chars[i] for i in ids)


class Windows(Dataset):
    """Non-overlapping windows of `block` characters with the next characters as the target."""

    def __init__(self, ids: torch.Tensor, block: int) -> None:
        self.ids = ids
        self.block = block

    def __len__(self) -> int:
        return (len(self.ids) - 1) // self.block

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        at = i * self.block
        chunk = self.ids[at : at + self.block + 1]
        return chunk[:-1], chunk[1:]


def load_text(path: str | None, samples: int, block: int, seed: int) -> str:
    if path is not None:
        return Path(path).read_text(encoding="utf-8")
    return synthetic_corpus(samples * block, seed)
