import os

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F
from lightning.fabric import Fabric, seed_everything
from lightning.fabric.accelerators import Accelerator
from lightning.fabric.strategies import DDPStrategy, SingleDeviceStrategy
from torch.utils.data import DataLoader, TensorDataset

VOCAB, SEQ = 20, 12


class NPUAccelerator(Accelerator):
    """Lightning has no accelerator for NPUs; this is the least that it asks for."""

    name = "npu"

    def setup_device(self, device):
        torch.npu.set_device(device)

    def teardown(self):
        torch.npu.empty_cache()

    @staticmethod
    def parse_devices(devices):
        return list(range(devices)) if isinstance(devices, int) else devices

    @staticmethod
    def get_parallel_devices(devices):
        return [torch.device("npu", i) for i in devices]

    @staticmethod
    def auto_device_count():
        return torch.npu.device_count()

    @staticmethod
    def is_available():
        return torch.npu.is_available()


class NPUDDPStrategy(DDPStrategy):
    def _determine_ddp_device_ids(self):
        return None  # Lightning would open a CUDA stream otherwise


def npu_strategy():
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        return NPUDDPStrategy(accelerator=NPUAccelerator(), process_group_backend="hccl")
    return SingleDeviceStrategy(device=torch.device("npu", 0), accelerator=NPUAccelerator())


class TinyLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 24)
        layer = nn.TransformerEncoderLayer(24, 2, 48, dropout=0.1, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(24, VOCAB)

    def forward(self, x):
        mask = torch.triu(torch.full((x.size(1), x.size(1)), float("-inf"), device=x.device), 1)
        return self.head(self.enc(self.emb(x), mask=mask))


def param_groups(model, wd):
    decay, rest = [], []
    for name, p in model.named_parameters():
        (rest if p.ndim < 2 or "emb" in name else decay).append(p)
    return [{"params": decay, "weight_decay": wd}, {"params": rest, "weight_decay": 0.0}]


def main():
    fabric = Fabric(strategy=npu_strategy(), devices=int(os.environ.get("WORLD_SIZE", 1)))
    fabric.launch()
    seed_everything(23)
    start = torch.randint(0, VOCAB, (80, 1))
    tokens = (start + torch.randint(1, 3, (80, 1)) * torch.arange(SEQ + 1)) % VOCAB
    train, val = TensorDataset(tokens[:64]), TensorDataset(tokens[64:])
    train_loader = DataLoader(train, batch_size=8 // fabric.world_size, shuffle=True)
    val_loader = DataLoader(val, batch_size=8)
    model = TinyLM()
    optimizer = torch.optim.AdamW(param_groups(model, 0.1), lr=4e-3)
    model, optimizer = fabric.setup(model, optimizer)
    train_loader, val_loader = fabric.setup_dataloaders(train_loader, val_loader)
    accum, epochs = 2, 4
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(train_loader) // accum)
    for epoch in range(epochs):
        model.train()
        for i, (t,) in enumerate(train_loader):
            is_accum = (i + 1) % accum != 0
            with fabric.no_backward_sync(model, enabled=is_accum):
                loss = F.cross_entropy(model(t[:, :-1]).transpose(1, 2), t[:, 1:])
                fabric.backward(loss / accum)
            if not is_accum:
                fabric.clip_gradients(model, optimizer, max_norm=1.0)
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
        model.eval()
        losses = []
        with torch.no_grad():
            for (t,) in val_loader:
                losses.append(F.cross_entropy(model(t[:, :-1]).transpose(1, 2), t[:, 1:]))
        val_loss = fabric.all_reduce(torch.stack(losses).mean(), reduce_op="mean")
        fabric.print(f"epoch {epoch} val loss {val_loss.item():.5f} lr {optimizer.param_groups[0]['lr']:.6f}")
    fabric.save("lm.ckpt", {"model": model, "optimizer": optimizer})


if __name__ == "__main__":
    main()
