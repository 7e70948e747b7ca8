"""Speed, memory and profiles."""

from __future__ import annotations

import contextlib
import os
import time

import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler


def synchronize(device: str) -> None:
    if device.startswith("npu"):
        torch.npu.synchronize()


class Timer:
    def __init__(self, device: str) -> None:
        self.device = device
        self.reset()

    def reset(self) -> None:
        synchronize(self.device)
        self.start = time.perf_counter()

    def seconds(self) -> float:
        synchronize(self.device)
        return time.perf_counter() - self.start


def memory_report(device: str) -> str:
    if not device.startswith("npu"):
        return "memory: on the CPU"
    gib = 1024**3
    free, total = torch.npu.mem_get_info()
    stats = torch.npu.memory_stats()
    return (
        f"memory: {torch.npu.memory_allocated() / gib:.2f} GiB allocated, "
        f"{torch.npu.max_memory_allocated() / gib:.2f} GiB at most, "
        f"{torch.npu.memory_reserved() / gib:.2f} GiB reserved, {(total - free) / gib:.2f} of {total / gib:.2f} GiB in use, "
        f"{stats.get('num_alloc_retries', 0)} retries"
    )


@contextlib.contextmanager
def profiler(folder: str | None, device: str, rank: int):
    """A torch profiler that writes one trace a rank, or None without a folder."""
    if folder is None:
        yield None
        return
    os.makedirs(folder, exist_ok=True)
    activities = [ProfilerActivity.CPU]
    if device.startswith("npu"):
        activities.append(ProfilerActivity.CUDA)
    with profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=1, active=3),
        on_trace_ready=tensorboard_trace_handler(folder, worker_name=f"rank{rank}"),
        record_shapes=True,
    ) as prof:
        yield prof
    if rank == 0:
        key = "cuda_time_total" if device.startswith("npu") else "cpu_time_total"
        print(prof.key_averages().table(sort_by=key, row_limit=8))
