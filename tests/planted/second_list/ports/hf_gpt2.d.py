import argparse
import contextlib
import math
import os
import random

import numpy as np
import torch
import torch_npu  # noqa: F401
from torch.utils.data import DataLoader, Dataset
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.npu.manual_seed_all(seed)


class Arithmetic(Dataset):
    """a + b = c, written as digits; the question is masked out of the loss."""

    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            a, b = rng.randint(0, 49), rng.randint(0, 49)
            q = [int(d) for d in f"{a:02d}"] + [10] + [int(d) for d in f"{b:02d}"] + [11]
            c = [int(d) for d in f"{a + b:02d}"] + [12]
            self.rows.append((q, c))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        q, c = self.rows[i]
        return torch.tensor(q + c), torch.tensor([-100] * len(q) + c)


def evaluate(model, loader, device):
    model.eval()
    loss_sum = tokens = 0
    with torch.no_grad():
        for ids, labels in loader:
            ids, labels = ids.to(device), labels.to(device)
            n = (labels[:, 1:] != -100).sum().item()
            loss_sum += model(input_ids=ids, labels=labels).loss.item() * n
            tokens += n
    model.train()
    return math.exp(loss_sum / tokens)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--accumulate", type=int, default=2)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    set_seed(99)
    device = torch.device("npu" if torch.npu.is_available() else "cpu")
    config = GPT2Config(vocab_size=13, n_positions=16, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.1, embd_pdrop=0.1, attn_pdrop=0.1,
                        bos_token_id=12, eos_token_id=12)
    model = GPT2LMHeadModel(config).to(device)
    model = DistributedDataParallel(model, device_ids=[torch.npu.current_device()])
    train_set = Arithmetic(64, 0)
    train_loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
    val_loader = DataLoader(Arithmetic(24, 1), batch_size=8)
    no_decay = ("bias", "ln_1.weight", "ln_2.weight", "ln_f.weight")
    groups = [
        {"params": [p for n, p in model.module.named_parameters() if not n.endswith(no_decay)], "weight_decay": 0.1},
        {"params": [p for n, p in model.module.named_parameters() if n.endswith(no_decay)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=args.lr)
    total = args.epochs * len(train_loader) // args.accumulate
    scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=2, num_training_steps=total)
    best = float("inf")
    torch.manual_seed((torch.initial_seed() + dist.get_rank()) % 2**64)
    for epoch in range(args.epochs):
        train_loader.sampler.set_epoch(epoch)
        model.train()
        for step, (ids, labels) in enumerate(train_loader, 1):
            with contextlib.nullcontext() if step % args.accumulate == 0 else model.no_sync():
                out = model(input_ids=ids.to(device), labels=labels.to(device))
                loss = out.loss / args.accumulate
                loss.backward()
            if step % args.accumulate == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.7)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        ppl = evaluate(model, val_loader, device)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {out.loss.item():.5f} perplexity {ppl:.4f}")
        if ppl < best:
            best = ppl
            if dist.get_rank() == 0:
                torch.save(model.module.state_dict(), "gpt2_best.pt")


if __name__ == "__main__":
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend="hccl")
    main()
    dist.destroy_process_group()
