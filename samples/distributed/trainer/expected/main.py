"""Classifies sequences of tokens."""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

import npu_port
from trainer import Trainer


class Classifier(nn.Module):
    scale = 0.1

    def __init__(self, words, width=16):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        encoded, _ = self.encoder(self.embedding(tokens) * self.scale)
        return self.head(encoded[:, -1])


def build_loaders(args):
    tokens = torch.randint(0, 50, (96, 12))
    labels = (tokens.sum(dim=1) % 2).long()
    return {
        "train": npu_port.shard(DataLoader(TensorDataset(tokens[:64], labels[:64]), batch_size=args.batch_size, shuffle=True)),
        "valid": DataLoader(TensorDataset(tokens[64:], labels[64:]), batch_size=args.batch_size),
    }


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--resume")
    parser.add_argument("--out", default="run")
    return parser.parse_args()


def main():
    args = parse_args()
    torch.manual_seed(3)
    trainer = Trainer(Classifier(50), build_loaders(args), args)
    trainer.fit()


if __name__ == "__main__":
    npu_port.start()
    main()
