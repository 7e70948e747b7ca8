# distributed: converts
# same with W processes: yes
# amp: converts
# run: --batch-size {batch}
# then: evaluate.py
import argparse
import torch
import torch.nn as nn
from loaders import get_loaders
from net import ConvNet

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--gpu", default="0")
args = parser.parse_args()
device = torch.device(f"cuda:{args.gpu}" if torch.cuda.is_available() else "cpu")


def accuracy(model, loader):
    model.eval()
    hits = sum((model(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    train_loader, val_loader = get_loaders(args.batch_size)
    model = ConvNet().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    best = -1.0
    for epoch in range(2):
        model.train()
        epoch_loss = 0.0
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        acc = accuracy(model, val_loader)
        print(f"epoch {epoch}: loss {epoch_loss / len(train_loader):.4f} acc {acc:.3f}")
        if acc > best:
            best = acc
            torch.save(model.state_dict(), "best.pt")


if __name__ == "__main__":
    main()
