"""Train the character model; see README.md for the ways to start it."""

from __future__ import annotations

import argparse
import contextlib
import os
import random

import numpy as np
import torch
import torch_npu  # noqa: F401
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler

from textgen import checkpoint
from textgen.corpus import Vocabulary, Windows, load_text
from textgen.distributed import (
    Ranks,
    barrier,
    cleanup,
    device_for,
    free_port,
    mean_over_ranks,
    ranks_from_env,
    setup,
)
from textgen.model import ModelConfig, TextModel
from textgen.monitor import Timer, memory_report, profiler


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    data = parser.add_argument_group("data")
    data.add_argument("--corpus", help="text file; default: a synthetic one")
    data.add_argument("--samples", type=int, default=4096, help="windows in the synthetic corpus")
    data.add_argument("--workers", type=int, default=2)
    model = parser.add_argument_group("model")
    model.add_argument("--block", type=int, default=64)
    model.add_argument("--layers", type=int, default=2)
    model.add_argument("--heads", type=int, default=4)
    model.add_argument("--width", type=int, default=64)
    model.add_argument("--dropout", type=float, default=0.1)
    model.add_argument("--no-flash", dest="flash", action="store_false")
    training = parser.add_argument_group("training")
    training.add_argument("--epochs", type=int, default=5)
    training.add_argument("--batch-size", type=int, default=32, help="per GPU")
    training.add_argument("--lr", type=float, default=1e-3)
    training.add_argument("--warmup", type=int, default=20)
    training.add_argument("--accumulate", type=int, default=1)
    training.add_argument("--bf16", action="store_true", help="autocast to bfloat16 where the GPU can")
    training.add_argument("--compile", action="store_true")
    training.add_argument("--seed", type=int, default=1)
    machine = parser.add_argument_group("machine")
    machine.add_argument("--device", default="npu", help="npu, npu:N or cpu")
    machine.add_argument("--backend", default=None, choices=["hccl", "gloo"], help="default: hccl on GPUs, else gloo")
    machine.add_argument("--launcher", default="env", choices=["env", "spawn"])
    machine.add_argument("--nproc", type=int, default=None, help="with --launcher spawn; default: all GPUs")
    output = parser.add_argument_group("output")
    output.add_argument("--output", default="runs/text")
    output.add_argument("--resume", help="checkpoint to go on from")
    output.add_argument("--profile", metavar="DIR", help="write a trace of five steps")
    output.add_argument("--log-every", type=int, default=10)
    return parser.parse_args()


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.npu.manual_seed_all(seed)


def autocast_for(args: argparse.Namespace, device: str):
    """bf16 where the device has it, fp32 else."""
    if not args.bf16:
        return contextlib.nullcontext
    if device.startswith("npu"):
        if not torch.npu.is_bf16_supported():
            print("this GPU has no bfloat16, training in fp32")
            return contextlib.nullcontext
        return lambda: torch.autocast(device_type="npu", dtype=torch.bfloat16)
    return lambda: torch.autocast(device_type="cpu", dtype=torch.bfloat16)


def build_loader(args: argparse.Namespace, data: Windows, ranks: Ranks, device: str):
    if ranks.distributed:
        sampler = DistributedSampler(data, ranks.world_size, ranks.rank, shuffle=True, seed=args.seed, drop_last=True)
    else:
        sampler = RandomSampler(data, generator=torch.Generator().manual_seed(args.seed))
    loader = DataLoader(
        data,
        batch_size=args.batch_size,
        sampler=sampler,
        num_workers=args.workers,
        pin_memory=device.startswith("npu"),
        drop_last=True,
    )
    return loader, sampler


def train(args: argparse.Namespace, ranks: Ranks) -> None:
    device = device_for(ranks, args.device)
    device_type = device.split(":")[0]
    setup(ranks, args.backend)
    seed_everything(args.seed + ranks.rank)
    if device_type == "npu":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
        if ranks.main:
            print(f"training on {torch.npu.get_device_name(device)}")

    text = load_text(args.corpus, args.samples, args.block, args.seed)
    vocabulary = Vocabulary(text)
    data = Windows(vocabulary.encode(text), args.block)
    loader, sampler = build_loader(args, data, ranks, device)
    if len(loader) == 0:
        raise SystemExit("the corpus is smaller than one batch per GPU")

    torch.manual_seed(args.seed)  # the same weights on every rank
    cfg = ModelConfig(len(vocabulary), args.block, args.layers, args.heads, args.width, args.dropout, args.flash)
    model = TextModel(cfg).to(device)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=args.lr, betas=(0.9, 0.95), weight_decay=0.1, fused=True if device_type == "npu" else None
    )
    step = checkpoint.load(args.resume, model, optimizer, device, ranks) if args.resume else 0
    if args.compile:
        if device_type == "cuda" and torch.cuda.get_device_capability(device) < (7, 0):
            raise SystemExit("--compile needs a GPU of compute capability 7.0 or newer")
        model = torch.compile(model)
    if ranks.distributed:
        device_ids = [ranks.local_rank] if device_type == "npu" else None
        model = DDP(model, device_ids=device_ids, output_device=device_ids[0] if device_ids else None)

    autocast = autocast_for(args, device)
    timer = Timer(device)
    with profiler(args.profile, device, ranks.rank) as prof:
        for epoch in range(args.epochs):
            if isinstance(sampler, DistributedSampler):
                sampler.set_epoch(epoch)
            model.train()
            total, batches = 0.0, 0
            for batch, (ids, targets) in enumerate(loader):
                ids = ids.to(device, non_blocking=True)
                targets = targets.to(device, non_blocking=True)
                last = (batch + 1) % args.accumulate == 0 or batch + 1 == len(loader)
                sync = contextlib.nullcontext() if last or not ranks.distributed else model.no_sync()
                with sync:
                    with autocast():
                        _, loss = model(ids, targets)
                    (loss / args.accumulate).backward()
                if last:
                    lr = args.lr * min(1.0, (step + 1) / max(args.warmup, 1))
                    for group in optimizer.param_groups:
                        group["lr"] = lr
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    optimizer.zero_grad(set_to_none=True)
                    step += 1
                total += loss.item()
                batches += 1
                if prof is not None:
                    prof.step()
                if ranks.main and batch % args.log_every == 0:
                    print(f"epoch {epoch} batch {batch}/{len(loader)} loss {loss.item():.4f}", flush=True)
            mean = mean_over_ranks(total / batches, device, ranks)
            if ranks.main:
                print(f"epoch {epoch}: mean loss {mean:.4f}", flush=True)
            checkpoint.save(
                os.path.join(args.output, "last.pt"), model, optimizer, step, vars(args), vocabulary.chars, device, ranks
            )

    if ranks.main:
        print(f"{step} steps in {timer.seconds():.1f} s on {ranks.world_size} x {device_type}")
    for rank in range(ranks.world_size):
        if rank == ranks.rank:
            print(f"rank {rank}: {memory_report(device)}", flush=True)
        barrier(ranks)
    if device_type == "npu":
        torch.npu.reset_peak_memory_stats()
        torch.npu.empty_cache()
    cleanup(ranks)


def spawned(index: int, args: argparse.Namespace, nproc: int, port: int) -> None:
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        RANK=str(index),
        LOCAL_RANK=str(index),
        WORLD_SIZE=str(nproc),
    )
    train(args, ranks_from_env())


def main() -> None:
    args = parse_args()
    if args.launcher == "spawn":
        nproc = args.nproc or torch.npu.device_count() or 1
        mp.spawn(spawned, args=(args, nproc, free_port()), nprocs=nproc, join=True)
    else:
        train(args, ranks_from_env())


if __name__ == "__main__":
    main()
