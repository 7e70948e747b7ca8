# A regression in functions, with arguments: train() gives the mean loss, test() the mean error.
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def make_data():
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(62, 12, generator=generator)
    y = x[:, :1] * 2 - x[:, 1:2] + 0.1 * torch.randn(62, 1, generator=generator)
    return TensorDataset(x[:50], y[:50]), TensorDataset(x[50:], y[50:])


def train(model, device, loader, optimizer):
    model.train()
    total = 0.0
    for data, target in loader:
        data = data.to(device)
        target = target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = nn.functional.mse_loss(output, target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def test(model, device, loader):
    model.eval()
    error = 0.0
    with torch.no_grad():
        for data, target in loader:
            output = model(data.to(device))
            error += nn.functional.mse_loss(output, target.to(device), reduction="sum").item()
    return error / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()

    torch.manual_seed(11)
    torch.cuda.manual_seed_all(11)
    device = torch.device("cuda")
    train_set, test_set = make_data()
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=5)
    model = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    for epoch in range(args.epochs):
        loss = train(model, device, train_loader, optimizer)
        scheduler.step()
        print(f"epoch {epoch}: loss {loss:.5f}, error {test(model, device, test_loader):.5f}")


if __name__ == "__main__":
    main()
