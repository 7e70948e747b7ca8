"""What is counted while training."""

import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.count = 0
        self.total = 0.0

    def update(self, value, n):
        self.count += n
        self.total += value * n

    def synchronize(self):
        """The number of samples and their mean over all ranks."""
        t = torch.tensor([self.count, self.total], dtype=torch.float32, device="npu")
        dist.all_reduce(t)
        count, total = t.tolist()
        return count, total / count
