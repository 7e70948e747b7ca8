"""Real backends of torch.compile on npu tensors: prints those that work."""

import sys

import torch
import torch.nn as nn

real_compile = torch.compile.__wrapped__
working = []
for backend in ("eager", "aot_eager"):
    torch._dynamo.reset()
    model = real_compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()).npu(), backend=backend)
    y = model(torch.randn(2, 4).npu())
    y.sum().backward()
    assert y.device.type == "npu"
    assert all(p.grad.device.type == "npu" for p in model.parameters())
    working.append(backend)
print("compile:", *working)
sys.exit(0)
