"""SimCLR on vectors: two noisy views, NT-Xent, projection head."""
import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class TwoViews(Dataset):
    """Views are fixed crops of a longer signal, so that an item is always the same."""

    def __init__(self, n=96, dim=40, seed=0):
        g = torch.Generator().manual_seed(seed)
        proto = torch.randn(6, dim, generator=g)
        self.label = torch.randint(0, 6, (n,), generator=g)
        self.signal = proto[self.label] + 0.5 * torch.randn(n, dim, generator=g)

    def __len__(self):
        return len(self.signal)

    def __getitem__(self, i):
        s = self.signal[i]
        return s[:32], s[8:], self.label[i]


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return F.normalize(self.head(self.backbone(x)), dim=1)


def nt_xent(z1, z2, temperature=0.2):
    n = z1.size(0)
    z = torch.cat([z1, z2])
    sim = z @ z.t() / temperature
    sim.fill_diagonal_(-1e4)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(z.device)
    return F.cross_entropy(sim, target)


def knn_accuracy(model, data):
    model.eval()
    with torch.no_grad():
        feats = F.normalize(model.backbone(data.signal[:, :32].npu()), dim=1)
        sim = feats @ feats.t()
        sim.fill_diagonal_(-1)
        near = sim.argmax(1).cpu()
    model.train()
    return (data.label[near] == data.label).float().mean().item()


def main():
    torch.manual_seed(42)
    torch.npu.manual_seed_all(42)
    data = TwoViews()
    loader = DataLoader(data, batch_size=24, shuffle=True, drop_last=True, num_workers=0, pin_memory=True)
    model = Encoder().npu()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    scaler = torch.npu.amp.GradScaler()
    epochs = 5
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    for epoch in range(epochs):
        running = 0.0
        for v1, v2, _ in loader:
            v1, v2 = v1.npu(non_blocking=True), v2.npu(non_blocking=True)
            with torch.autocast("npu", dtype=torch.float16):
                z = model(torch.cat([v1, v2]))
                z1, z2 = z.chunk(2)
                loss = nt_xent(z1, z2)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            running += loss.item()
        print("epoch", epoch, "loss", round(running / len(loader), 6), "knn accuracy", round(knn_accuracy(model, data), 4))
    torch.save(model.backbone.state_dict(), "backbone.pt")


if __name__ == "__main__":
    main()
