import torch
import torch_npu  # noqa: F401
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.npu.set_compile_mode(jit_compile=False)
torch.npu.config.allow_internal_format = False


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.state_dict().items():
            self.shadow[k].mul_(self.decay).add_(v, alpha=1 - self.decay)

    def copy_to(self, model):
        model.load_state_dict(self.shadow)


class Denoiser(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 48), nn.Tanh(), nn.Linear(48, 8))
        self.dec = nn.Sequential(nn.Linear(8, 48), nn.Tanh(), nn.Linear(48, d))

    def forward(self, x):
        return self.dec(self.enc(x))


def build_signals(n):
    t = torch.linspace(0, 6.28, 32)
    phase = torch.rand(n, 1) * 6.28
    freq = torch.randint(1, 4, (n, 1))
    return torch.sin(freq * t + phase)


torch.manual_seed(21)
device = torch.device("npu")
signals = build_signals(128)
train_loader = DataLoader(TensorDataset(signals[:96]), batch_size=16, shuffle=True, pin_memory=True, drop_last=True)
val_loader = DataLoader(TensorDataset(signals[96:]), batch_size=16)

model = Denoiser().to(device)
ema = EMA(model, 0.9)
optimizer = torch_npu.optim.NpuFusedAdam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 3], gamma=0.3)
mse = nn.MSELoss()

for epoch in range(4):
    model.train()
    for (x,) in train_loader:
        x = x.to(device, non_blocking=True)
        noisy = x + 0.3 * torch.randn_like(x)
        loss = mse(model(noisy), x)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.02)
        optimizer.step()
        ema.update(model)
    scheduler.step()

    backup = {k: v.clone() for k, v in model.state_dict().items()}
    ema.copy_to(model)
    model.eval()
    with torch.no_grad():
        val = sum(mse(model(x.to(device)), x.to(device)).item() for (x,) in val_loader) / len(val_loader)
    print(f"epoch {epoch} loss {loss.item():.6f} ema val loss {val:.6f}")
    model.load_state_dict(backup)

torch.save({"model": model.state_dict(), "ema": ema.shadow}, "denoiser.pt")
