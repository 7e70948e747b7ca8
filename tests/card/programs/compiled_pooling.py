"""Pools of volumes and images as columns by the older interface of operators, which `jit_compile=True` takes."""

from __future__ import annotations

import torch
import torch_npu  # noqa: F401
from torch.nn import functional

torch.manual_seed(0)
torch.npu.set_compile_mode(jit_compile=True)
FUNCTIONS = {
    "max": lambda volume: functional.max_pool3d(volume, 3, 2, 1),
    "max, rounded up": lambda volume: functional.max_pool3d(volume, (2, 3, 2), (2, 1, 2), (1, 1, 0), ceil_mode=True),
    "mean": lambda volume: functional.avg_pool3d(volume, (2, 3, 4), (1, 2, 2), (0, 1, 2)),
    "mean, rounded up": lambda volume: functional.avg_pool3d(volume, 3, 2, 1, True, False),
    "columns": lambda volume: functional.unfold(volume[:, :, 0], (2, 3), (1, 2), (1, 0), (2, 1)),
}
for name, function in FUNCTIONS.items():
    volume, results = torch.randn(2, 3, 6, 7, 8), []
    for device in ("cpu", "npu"):
        leaf = volume.detach().to(device).requires_grad_()
        result = function(leaf)
        result.square().sum().backward()
        results.append((result.detach().cpu(), leaf.grad.cpu()))
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-4), name
