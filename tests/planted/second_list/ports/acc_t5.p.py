"""Tiny T5 that reverses sequences; Accelerate for the device only, the rest by hand."""
import torch
import torch_npu  # noqa: F401
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset
from transformers import T5Config, T5ForConditionalGeneration, get_scheduler


class Reverse(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(4)
        self.x = torch.randint(3, 18, (n, 6), generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"input_ids": self.x[i], "labels": self.x[i].flip(0)}


class Average:
    """Polyak average of the last steps."""

    def __init__(self):
        self.n, self.mean = 0, None

    def add(self, params):
        flat = torch.cat([p.detach().flatten() for p in params])
        self.n += 1
        self.mean = flat.clone() if self.mean is None else self.mean + (flat - self.mean) / self.n


def main():
    accelerator = Accelerator()
    torch.manual_seed(6)
    torch.npu.manual_seed(6)
    cfg = T5Config(vocab_size=20, d_model=24, d_kv=8, d_ff=48, num_layers=1, num_heads=3, dropout_rate=0.0, decoder_start_token_id=0)
    model = T5ForConditionalGeneration(cfg)
    data = Reverse(72)
    loader = DataLoader(data, batch_size=12, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    lr_scheduler = get_scheduler("constant_with_warmup", optimizer=optimizer, num_warmup_steps=3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    average = Average()
    step = 0
    for epoch in range(3):
        running = torch.zeros((), device=accelerator.device)
        for batch in loader:
            outputs = model(**batch)
            optimizer.zero_grad()
            accelerator.backward(outputs.loss)
            accelerator.clip_grad_value_(model.parameters(), 0.1)
            optimizer.step()
            lr_scheduler.step()
            step += 1
            if step > 6:
                average.add(model.parameters())
            running += accelerator.reduce(outputs.loss.detach(), "mean")
        accelerator.print("epoch", epoch, "loss %.5f" % (running / len(loader)).item())
    accelerator.print("average norm loss %.5f" % average.mean.norm().item())


if __name__ == "__main__":
    main()
