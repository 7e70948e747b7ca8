import os
import torch
import torch_npu  # noqa: F401
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler


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

torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(backend="hccl")

signals = build_signals(128)
train_set = TensorDataset(signals[:96])
train_loader = DataLoader(train_set, batch_size=16, sampler=DistributedSampler(train_set))
val_loader = DataLoader(TensorDataset(signals[96:]), batch_size=16)

model = Denoiser().to(device)
model = DistributedDataParallel(model, device_ids=[torch.npu.current_device()])
ema = EMA(model.module, 0.9)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 3], gamma=0.3)
mse = nn.MSELoss()

torch.manual_seed((torch.initial_seed() + dist.get_rank()) % 2**64)
for epoch in range(4):
    train_loader.sampler.set_epoch(epoch)
    model.train()
    for (x,) in train_loader:
        x = x.to(device)
        noisy = x + 0.3 * torch.randn_like(x)
        loss = mse(model(noisy), x)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.02)
        optimizer.step()
        ema.update(model.module)
    scheduler.step()

    backup = {k: v.clone() for k, v in model.module.state_dict().items()}
    ema.copy_to(model.module)
    model.eval()
    with torch.no_grad():
        val = sum(mse(model(x.to(device)), x.to(device)).item() for (x,) in val_loader) / len(val_loader)
    mean_loss = loss.detach().clone()
    dist.all_reduce(mean_loss)
    mean_loss /= dist.get_world_size()
    if dist.get_rank() == 0:
        print(f"epoch {epoch} loss {mean_loss.item():.6f} ema val loss {val:.6f}")
    model.module.load_state_dict(backup)

if dist.get_rank() == 0:
    torch.save({"model": model.module.state_dict(), "ema": ema.shadow}, "denoiser.pt")

dist.destroy_process_group()
