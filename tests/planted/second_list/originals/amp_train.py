import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset


class MLPMixer(nn.Module):
    def __init__(self, tokens=8, dim=16, classes=5):
        super().__init__()
        self.ln1 = nn.LayerNorm(dim)
        self.tok = nn.Sequential(nn.Linear(tokens, 16), nn.GELU(), nn.Linear(16, tokens))
        self.ln2 = nn.LayerNorm(dim)
        self.ch = nn.Sequential(nn.Linear(dim, 32), nn.GELU(), nn.Linear(32, dim))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = x + self.tok(self.ln1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.ch(self.ln2(x))
        return self.head(x.mean(1))


def get_loaders():
    y = torch.randint(0, 5, (128,))
    x = torch.randn(128, 8, 16) + torch.randn(5, 16)[y].unsqueeze(1) * 0.5
    train = TensorDataset(x[:96], y[:96])
    val = TensorDataset(x[96:], y[96:])
    return DataLoader(train, batch_size=8, shuffle=True), DataLoader(val, batch_size=16)


def train(model, loader, optimizer, scaler, scheduler, accum=2, max_norm=0.3):
    model.train()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    losses = []
    for i, (x, y) in enumerate(loader):
        x, y = x.cuda(), y.cuda()
        with autocast():
            out = model(x)
            loss = criterion(out, y) / accum
        scaler.scale(loss).backward()
        losses.append(loss.item() * accum)
        if (i + 1) % accum == 0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            scheduler.step()
    return sum(losses) / len(losses)


def validate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad(), autocast():
        for x, y in loader:
            right += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
    return right / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(3407)
    torch.backends.cudnn.benchmark = True
    train_loader, val_loader = get_loaders()
    model = MLPMixer().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=18)
    scaler = GradScaler(init_scale=1024.0)
    for epoch in range(3):
        loss = train(model, train_loader, optimizer, scaler, scheduler)
        acc = validate(model, val_loader)
        print(f"epoch {epoch} loss {loss:.4f} accuracy {acc:.4f}")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()}, "ckpt.pt")
