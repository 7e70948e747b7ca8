"""A single-card script whose every step can be compared: losses in full, samples seen, one checkpoint."""

import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    """Synthetic points; each process notes which ones it was asked for."""

    def __init__(self, count, folder):
        generator = torch.Generator().manual_seed(1)
        self.x = torch.randn(count, 8, generator=generator)
        self.y = self.x.sum(dim=1, keepdim=True).tanh()
        self.folder = folder

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        with open(os.path.join(self.folder, f"seen-{os.getpid()}.txt"), "a") as seen:
            seen.write(f"{index}\n")
        return self.x[index], self.y[index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--folder", default=".")
    parser.add_argument("--resume")
    args = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Points(args.samples, args.folder), batch_size=args.batch_size, shuffle=args.shuffle)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).cuda()
    if args.resume:
        model.load_state_dict(torch.load(args.resume, map_location="cuda"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.MSELoss()
    for epoch in range(args.epochs):
        for step, (x, y) in enumerate(loader):
            loss = criterion(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"loss {epoch} {step} {loss.item():.9e}")
        torch.save(model.state_dict(), os.path.join(args.folder, "model.pt"))
        print(f"saved {epoch}")


if __name__ == "__main__":
    main()
