"""torch_npu.contrib.module."""

from __future__ import annotations

from typing import Any

import torch
from npu_emulator import names as _names
from torch import nn
from torch.nn import functional as F

__all__ = [
    "BiLSTM",
    "ChannelShuffle",
    "FastBatchNorm1d",
    "FastBatchNorm2d",
    "FastBatchNorm3d",
    "Focus",
    "LabelSmoothingCrossEntropy",
    "Mish",
    "NpuCachedDropout",
    "NpuDropPath",
    "NpuFairseqDropout",
    "Prefetcher",
    "SiLU",
    "Swish",
]

Mish, SiLU, Swish = nn.Mish, nn.SiLU, nn.SiLU
FastBatchNorm1d, FastBatchNorm2d, FastBatchNorm3d = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d


class Prefetcher:
    """Moves batches to the npu ahead of time: `.next()` gives (input, target), (None, None) at the end."""

    def __init__(self, loader: Any, stream: Any = None) -> None:
        self._batches = iter(loader)

    def next(self) -> tuple[Any, Any]:
        try:
            data, target = next(self._batches)
        except StopIteration:
            return None, None
        return data.npu(non_blocking=True), target.npu(non_blocking=True)


class NpuDropPath(nn.Module):
    """Stochastic depth: whole samples are dropped, the others scaled by 1 / keep."""

    def __init__(self, drop_prob: float) -> None:
        super().__init__()
        self.drop_prob = float(drop_prob)

    def forward(self, x: Any) -> Any:
        if not self.training or self.drop_prob == 0:
            return x
        keep = 1 - self.drop_prob
        return x * torch.empty(len(x), *[1] * (x.dim() - 1), device=x.device, dtype=x.dtype).bernoulli_(keep) / keep


class NpuCachedDropout(nn.Dropout):
    """Dropout with fairseq's signature."""

    def __init__(self, p: float, module_name: str | None = None) -> None:
        super().__init__(p)
        self.module_name = module_name


NpuFairseqDropout = NpuCachedDropout


class LabelSmoothingCrossEntropy(nn.Module):
    """Cross entropy against targets of 1 - smooth_factor, the rest spread over the other classes; the mean over
    rows."""

    def __init__(self, num_classes: int = 1000, smooth_factor: float = 0.0) -> None:
        super().__init__()
        self.on, self.off, self.num_classes = 1 - smooth_factor, smooth_factor / (num_classes - 1), num_classes

    def forward(self, pred: Any, target: Any) -> Any:
        rows = torch.full((len(target), self.num_classes), self.off, device=pred.device, dtype=pred.dtype)
        rows.scatter_(1, target.long().unsqueeze(1), self.on)
        return -(rows * F.log_softmax(pred, -1)).sum(-1).mean()


class ChannelShuffle(nn.Module):
    """cat((x1, x2), 1) with its channels shuffled between the groups; two halves again when `split_shuffle`."""

    def __init__(self, in_channels: int, groups: int = 2, split_shuffle: bool = True) -> None:
        super().__init__()
        self.groups, self.split_shuffle = groups, split_shuffle

    def forward(self, x1: Any, x2: Any) -> Any:
        x = torch.cat([x1, x2], 1).unflatten(1, (self.groups, -1)).transpose(1, 2).flatten(1, 2)
        return x.chunk(2, 1) if self.split_shuffle else x


class Focus(nn.Module):
    """Space to depth by 2, then convolution, batch norm and SiLU."""

    def __init__(self, c1: int, c2: int, k: int = 1, s: int = 1, p: Any = None, g: int = 1, act: Any = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c1 * 4, c2, k, s, k // 2 if p is None else p, groups=g, bias=False)
        self.bn = nn.BatchNorm2d(c2)
        self.act: nn.Module = nn.SiLU() if act is True else act if isinstance(act, nn.Module) else nn.Identity()

    def forward(self, x: Any) -> Any:
        parts = [x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]]
        return self.act(self.bn(self.conv(torch.cat(parts, 1))))


class BiLSTM(nn.LSTM):
    """A bidirectional one-layer LSTM that returns its outputs only."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, bidirectional=True)

    def forward(self, inputs: Any) -> Any:
        return super().forward(inputs)[0]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise _names.missing("torch_npu.contrib.module", name)
