"""Devices, seeds, meters, schedules."""
import logging
import math
import os
import random
import time

import numpy as np
import torch
import torch.backends.cudnn as cudnn


def select_device(name, no_cuda=False):
    """A torch.device for 'cuda', 'cuda:N' or 'cpu'; falls back to the CPU without a GPU."""
    if no_cuda or name == 'cpu':
        return torch.device('cpu')
    if not torch.npu.is_available():
        logging.warning('CUDA is not available, training on the CPU')
        return torch.device('cpu')
    device = torch.device(name)
    if device.type == 'npu':
        index = device.index if device.index is not None else 0
        if index >= torch.npu.device_count():
            raise SystemExit(f'{name} asked for, but there are only {torch.npu.device_count()} GPUs')
        torch.npu.set_device(index)
        device = torch.device('npu', index)
    return device


def describe(device):
    if device.type != 'npu':
        return f'CPU, {os.cpu_count()} cores, torch {torch.__version__}'
    props = torch.npu.get_device_properties(device)
    return f'{torch.npu.get_device_name(device)}, {props.total_memory / 1024 ** 3:.1f} GiB, torch {torch.__version__}'


def set_seed(seed, deterministic=False):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    if torch.npu.is_available():
        torch.npu.manual_seed(seed)
        torch.npu.manual_seed_all(seed)
    if deterministic:
        cudnn.deterministic = True
        cudnn.benchmark = False
    else:
        cudnn.benchmark = True


def time_sync(device):
    """Wall clock after all queued kernels are done."""
    if device.type == 'npu':
        torch.npu.synchronize(device)
    return time.perf_counter()


def memory_mb(device):
    if device.type != 'npu':
        return 0.0
    return torch.npu.max_memory_allocated(device) / 1024.0 / 1024.0


class AverageMeter:
    def __init__(self, name):
        self.name = name
        self.reset()

    def reset(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)

    def __str__(self):
        return f'{self.name} {self.avg:.4f}'


@torch.no_grad()
def accuracy(output, target, topk=(1,)):
    maxk = max(topk)
    _, pred = output.topk(maxk, dim=1)
    correct = pred.eq(target.view(-1, 1))
    return [correct[:, :k].any(dim=1).float().mean().item() * 100.0 for k in topk]


def cosine_lr(step, total, warmup, base):
    if step < warmup:
        return base * (step + 1) / max(warmup, 1)
    progress = (step - warmup) / max(total - warmup, 1)
    return base * 0.5 * (1.0 + math.cos(math.pi * progress))
