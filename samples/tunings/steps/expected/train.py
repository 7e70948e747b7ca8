"""Train a classifier of points on one GPU, or on several with torchrun."""

import argparse
import os
import time

import torch
import torch_npu  # noqa: F401
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from net import Mixer

torch.npu.set_compile_mode(jit_compile=False)
torch.npu.config.allow_internal_format = False

torch.npu.matmul.allow_hf32 = True
torch.npu.conv.allow_hf32 = False


def make_data(count):
    generator = torch.Generator().manual_seed(1)
    points = torch.rand(count, 2, generator=generator) * 2 - 1
    return TensorDataset(points, (points[:, 0] > 0).long() * 2 + (points[:, 1] > 0).long())


def make_optimizer(name, model, lr):
    if name == "sgd":
        return torch_npu.optim.NpuFusedSGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
    return torch_npu.optim.NpuFusedAdamW(model.parameters(), lr=lr, weight_decay=0.05)


def train_one_epoch(model, loader, optimizer, epoch, clip):
    """One pass over the data."""
    global train_steps
    model.train()
    timed_steps = 0
    for step, (points, labels) in enumerate(loader):
        if train_steps >= 24:
            break
        if timed_steps == 5:
            torch.npu.synchronize()
            timed_from = time.perf_counter()
        timed_steps += 1
        profiler.step()
        points, labels = points.npu(non_blocking=True), labels.npu(non_blocking=True)
        # forward, backward
        loss = F.cross_entropy(model(points), labels)
        optimizer.zero_grad()
        loss.backward()
        norm = optimizer.clip_grad_norm_fused_(max_norm=clip)
        optimizer.step()
        train_steps += 1
        print(f"loss {epoch} {step} {loss.item():.5f} norm {norm.item():.4f}")
    if timed_steps > 5:
        torch.npu.synchronize()
        step_time = (time.perf_counter() - timed_from) / (timed_steps - 5)
        print(f"step time {step_time * 1000:.1f} ms, {loader.batch_size / step_time:.1f} samples/s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--optimizer", choices=["adamw", "sgd"], default="adamw")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--clip", type=float, default=0.5)
    parser.add_argument("--resume", default="")
    parser.add_argument("--output", default="last.pt")
    args = parser.parse_args()

    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("hccl")
    torch.manual_seed(0)
    data = make_data(160)
    sampler = DistributedSampler(data) if world > 1 else None
    loader = DataLoader(data, batch_size=16, sampler=sampler, shuffle=sampler is None, drop_last=True)

    model = Mixer().npu()
    if world > 1:
        model = DistributedDataParallel(model, device_ids=[torch.npu.current_device()])
    optimizer = make_optimizer(args.optimizer, model, args.lr)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    start = 0
    if args.resume:
        state = torch.load(args.resume, map_location="npu")
        bare = model.module if world > 1 else model
        bare.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        start = state["epoch"] + 1

    global train_steps
    train_steps = 0
    global profiler
    profiler = torch_npu.profiler.profile(
        activities=[torch_npu.profiler.ProfilerActivity.CPU, torch_npu.profiler.ProfilerActivity.NPU],
        schedule=torch_npu.profiler.schedule(wait=2, warmup=1, active=3, repeat=1),
        on_trace_ready=torch_npu.profiler.tensorboard_trace_handler("npu_profile"),
    )
    profiler.start()
    for epoch in range(start, args.epochs):
        if train_steps >= 24:
            break
        if sampler is not None:
            sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer, epoch, args.clip)
        scheduler.step()
        if not dist.is_initialized() or dist.get_rank() == 0:
            bare = model.module if world > 1 else model
            state = {
                "model": bare.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "epoch": epoch,
            }
            torch.save(state, args.output)
    profiler.stop()
    print("trained")
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
