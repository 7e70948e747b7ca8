"""Classifies sequences of tokens; goes on where a checkpoint stopped."""

import argparse

import torch
import torch_npu  # noqa: F401
from torch.utils.data import DataLoader, TensorDataset
from apex import amp
from apex.optimizers import NpuFusedAdamW

from checkpoint import load, save
from engine import evaluate, train_one_epoch
from model import Classifier


def build_loaders(args):
    tokens = torch.randint(0, 50, (192, 12))
    labels = (tokens.float().mean(dim=1) > 24.5).long()
    train = DataLoader(TensorDataset(tokens[:160], labels[:160]), batch_size=args.batch_size, shuffle=True)
    valid = DataLoader(TensorDataset(tokens[160:], labels[160:]), batch_size=args.batch_size)
    return train, valid


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--resume")
    args = parser.parse_args()

    torch.manual_seed(3)
    device = torch.device("npu")
    train_loader, valid_loader = build_loaders(args)
    model = Classifier(50).to(device)
    optimizer = NpuFusedAdamW(model.parameters(), lr=args.lr)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale="dynamic", combine_grad=True)
    start = load(args.resume, model, optimizer) if args.resume else 0

    for epoch in range(start, args.epochs):
        loss = train_one_epoch(model, train_loader, optimizer, device, accumulate=2)
        accuracy = evaluate(model, valid_loader, device)
        print(f"epoch {epoch}: loss {loss:.4f} accuracy {accuracy:.3f}")
        save("last.pt", model, optimizer, epoch)


if __name__ == "__main__":
    main()
