"""Lazy modules move to the card before they have a shape; the profiler of torch.autograd prints a table."""

import torch
import torch_npu  # noqa: F401

kind = "npu"
x = torch.ones(2, 3, device=kind)
for lazy in (
    torch.nn.LazyLinear(4).to(kind),
    torch.nn.LazyLinear(4).to(torch.device(kind, 0)),
    getattr(torch.nn.LazyLinear(4), kind)(),
    torch.nn.LazyLinear(4, device=kind),
    torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.LazyLinear(4)).to(device=kind),
):
    assert lazy(x).device.type == kind and lazy(x).shape == (2, 4)
half = torch.nn.LazyLinear(4).to(kind, torch.float16)
assert (half.weight.dtype, half.weight.device.type) == (torch.float16, kind)
pictures = torch.nn.Sequential(torch.nn.LazyConv2d(4, 3), torch.nn.LazyBatchNorm2d()).to(kind)
assert pictures(torch.ones(2, 3, 8, 8, device=kind)).device.type == kind
try:
    torch.nn.LazyLinear(4).to(kind).weight + 1
except ValueError as error:
    assert "uninitialized parameter" in str(error)
else:
    raise AssertionError("a parameter without a shape cannot be added to")

with torch.autograd.profiler.profile(use_device=kind, record_shapes=True) as profile:
    (x @ x.t()).sum().item()
for sort_by in (f"{kind}_time_total", f"self_{kind}_time_total", "cpu_time_total", None):
    table = profile.key_averages().table(sort_by=sort_by, row_limit=50)  # all: how long each took is chance
    assert "aten::mm" in table and "Self CPU" in table, table
with torch.autograd.profiler.profile(enabled=False) as profile:
    x + 1
with torch.autograd.profiler.profile(use_device="cpu2") as profile:
    x + 1
assert "aten::add" in profile.key_averages().table(sort_by="cpu_time_total")
print("lazy and profiled: ok")
