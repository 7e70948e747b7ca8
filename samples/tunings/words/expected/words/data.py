"""Sentences that can be learned: each word is the one before plus a step."""

import torch
from torch.utils.data import Dataset


class Sentences(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        first = torch.randint(20, (1,), generator=generator)
        words = (first + 3 * torch.arange(7)) % 20
        return words[:-1].float(), words[1:]
