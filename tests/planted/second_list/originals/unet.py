import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(2, o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = conv(1, 8), conv(8, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.u1 = conv(16, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        return self.out(self.u1(torch.cat([a, self.up(b)], 1)))


def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    inter = (p * target).sum((1, 2, 3))
    return 1 - ((2 * inter + eps) / (p.sum((1, 2, 3)) + target.sum((1, 2, 3)) + eps)).mean()


def criterion(logits, target):
    return F.binary_cross_entropy_with_logits(logits, target) + dice_loss(logits, target)


def shapes(n):
    g = torch.Generator().manual_seed(5)
    ys, xs = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    c = torch.rand(n, 2, 1, 1, generator=g) * 10 + 3
    r = torch.rand(n, 1, 1, generator=g) * 3 + 2
    mask = (((ys - c[:, 0]) ** 2 + (xs - c[:, 1]) ** 2) < r ** 2).float().unsqueeze(1)
    return TensorDataset(mask + 0.6 * torch.randn(mask.shape, generator=g), mask)


class Segmenter:
    def __init__(self, patience=3):
        self.device = torch.device("cuda", 0)
        self.model = UNet().to(self.device)
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=2e-2)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, "min", factor=0.3, patience=0, threshold=0.2)
        self.patience, self.bad, self.best = patience, 0, float("inf")

    def run(self, loader, train):
        self.model.train(train)
        total, n, inter, union = 0.0, 0, 0.0, 0.0
        for x, y in loader:
            x, y = x.to(self.device), y.to(self.device)
            with torch.set_grad_enabled(train):
                logits = self.model(x)
                loss = criterion(logits, y)
            if train:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            else:
                pred = logits > 0
                inter += (pred & (y > 0)).sum().item()
                union += (pred | (y > 0)).sum().item()
            total += loss.item() * len(x)
            n += len(x)
        return total / n, inter / max(union, 1)

    def fit(self, train_loader, val_loader, epochs=6):
        for epoch in range(epochs):
            tl, _ = self.run(train_loader, True)
            vl, iou = self.run(val_loader, False)
            self.scheduler.step(vl)
            print(f"epoch {epoch}: train loss {tl:.5f} val loss {vl:.5f} iou {iou:.4f} lr {self.optimizer.param_groups[0]['lr']:.5f}")
            if vl < self.best - 0.02:
                self.best, self.bad = vl, 0
                self.best_state = copy.deepcopy(self.model.state_dict())
            else:
                self.bad += 1
                if self.bad >= self.patience:
                    print("early stop at epoch", epoch)
                    break
        self.model.load_state_dict(self.best_state)


def main():
    torch.manual_seed(11)
    data = shapes(56)
    train_set, val_set, test_set = random_split(data, [32, 16, 8], generator=torch.Generator().manual_seed(0))
    seg = Segmenter()
    seg.fit(DataLoader(train_set, 8, shuffle=True), DataLoader(val_set, 8))
    loss, iou = seg.run(DataLoader(test_set, 8), False)
    print(f"test loss {loss:.5f} iou {iou:.4f}")
    torch.save(seg.model.state_dict(), "unet.pth")


if __name__ == "__main__":
    main()
