"""Classifies sequences of tokens."""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

from trainer import Trainer


class Classifier(nn.Module):
    def __init__(self, words, width=16):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.mix = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        hidden = nn.functional.gelu(self.mix(self.embedding(tokens)))
        return self.head(self.norm(hidden.mean(dim=1)))


def build_loaders(args):
    tokens = torch.randint(0, 50, (192, 12))
    labels = (tokens.float().mean(dim=1) > 24.5).long()
    return {
        "train": DataLoader(TensorDataset(tokens[:160], labels[:160]), batch_size=args.batch_size, shuffle=True),
        "valid": DataLoader(TensorDataset(tokens[160:], labels[160:]), batch_size=args.batch_size),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-2)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--resume")
    parser.add_argument("--out", default="run")
    args = parser.parse_args()
    torch.manual_seed(3)
    Trainer(Classifier(50), build_loaders(args), args).fit()


if __name__ == "__main__":
    main()
