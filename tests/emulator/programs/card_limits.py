"""What the card refuses, changes and counts: one line of JSON, name -> [error, text], or what came out."""

# ruff: noqa: B023  # what is said is done at once

import json
import os
import sys
import warnings

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401
from torch import nn

told = {}


def say(name, action):
    try:
        told[name] = ["", str(action())]
    except (RuntimeError, MemoryError) as error:
        told[name] = [type(error).__name__, str(error)]


def of(dtype, *shape):
    return torch.ones(*shape, dtype=dtype).npu()


F64, C64, I64, F32 = torch.float64, torch.complex64, torch.int64, torch.float32
# --- casts ---
x = torch.ones(2).npu()
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    say("double", lambda: x.double().dtype)
    say("to float64", lambda: x.to(F64).dtype)
told["warned"] = ["", str(warned[0].message) if warned else ""]
say("to device and float64", lambda: x.to("npu", F64).dtype)
say("made float64", lambda: torch.zeros(2, dtype=F64, device="npu").dtype)
say("from the host", lambda: torch.zeros(2, dtype=F64).npu().dtype)
say("float64 to float64", lambda: of(F64, 2).double().dtype)
say("on the host", lambda: (torch.ones(2, 2, dtype=F64) @ torch.ones(2, 2, dtype=F64)).dtype)
leaf = torch.ones(2).npu().requires_grad_()
(leaf.double() * 2).sum().backward()
told["gradient through double"] = ["", f"{leaf.grad.tolist()} {leaf.grad.dtype}"]

# --- types ---
BF16 = torch.bfloat16
for label, dtype in (("float64", F64), ("complex64", C64), ("int64", I64), ("bfloat16", BF16), ("float32", F32)):
    square, batch = of(dtype, 2, 2), of(dtype, 3, 2, 2)
    say(f"mm {label}", lambda: square @ square)
    say(f"bmm {label}", lambda: torch.bmm(batch, batch))
    say(f"addmm {label}", lambda: torch.addmm(square, square, square))
    say(f"mv {label}", lambda: square @ square[0])
    say(f"add {label}", lambda: square + square)
    say(f"sum {label}", lambda: batch.sum(0))
for label, dtype in (("float64", F64), ("float32", F32)):
    say(f"linear {label}", lambda: nn.Linear(2, 2).to("npu", dtype)(of(dtype, 2, 2)))
    say(f"conv2d {label}", lambda: nn.Conv2d(1, 1, 2).to("npu", dtype)(of(dtype, 1, 1, 3, 3)))
    say(f"conv_transpose {label}", lambda: nn.ConvTranspose1d(1, 1, 2).to("npu", dtype)(of(dtype, 1, 1, 3)))
    say(f"batch_norm {label}", lambda: nn.BatchNorm1d(2).to("npu", dtype)(of(dtype, 4, 2)))
    say(f"layer_norm {label}", lambda: nn.LayerNorm(2).to("npu", dtype)(of(dtype, 4, 2)))
    say(f"group_norm {label}", lambda: nn.GroupNorm(1, 2).to("npu", dtype)(of(dtype, 4, 2)))
say("conv2d complex64", lambda: nn.functional.conv2d(of(C64, 1, 1, 3, 3), of(C64, 1, 1, 2, 2)).dtype)

# --- dimensions ---
nine, eight = of(F32, *[1] * 9), of(F32, *[1] * 8)
say("add of 9", lambda: nine + nine)
say("sum of 9", lambda: nine.sum(0))
say("cat of 9", lambda: torch.cat([nine, nine]))
say("mul of 8", lambda: (eight * eight).sum(0).dim())
say("views of 9", lambda: nine.permute(*range(8, -1, -1)).expand(2, *[1] * 8).dim())
say("9 on the host", lambda: (torch.ones([1] * 9) + 1).dim())

# --- weight norm ---
for made in (nn.utils.weight_norm, nn.utils.parametrizations.weight_norm):
    torch.manual_seed(0)
    layer = made(nn.Linear(3, 2))
    host = layer(torch.ones(1, 3))
    host.sum().backward()
    gradients = [each.grad.clone() for each in layer.parameters()]
    layer.zero_grad()
    layer.npu()
    card = layer(torch.ones(1, 3).npu())
    card.sum().backward()
    same = torch.allclose(card.cpu(), host) and all(
        torch.allclose(each.grad.cpu(), g) for each, g in zip(layer.parameters(), gradients, strict=True)
    )
    told[f"weight_norm {made.__module__}"] = ["", str(same)]

# --- calls ---
say("capability", torch.npu.get_device_capability)
os.environ["TORCH_NPU_DEVICE_CAPABILITY"] = "8.0"
say("capability set", torch.npu.get_device_capability)

# --- memory ---
first = torch.npu.memory_allocated()
big = torch.empty(1 << 20, dtype=torch.uint8, device="npu")
told["allocated"] = ["", str(torch.npu.memory_allocated() - first)]
view = big[10:].view(-1)
other = big.npu()
told["of views"] = ["", str(torch.npu.memory_allocated() - first)]
big.add_(1)
more = big + 1
told["of a result"] = ["", str(torch.npu.memory_allocated() - first)]
del big, view, other, more
told["freed"] = ["", str(torch.npu.memory_allocated() - first)]
told["peak"] = ["", str(torch.npu.max_memory_allocated() - first >= 2 << 20)]
free, total = torch.npu.mem_get_info()
told["free"] = ["", str(total - free == torch.npu.memory_allocated())]
torch.npu.reset_peak_memory_stats()
told["peak again"] = ["", str(torch.npu.max_memory_allocated() == torch.npu.memory_allocated())]
gib = 1 << 30
kept = []


def fill():
    for _ in range(20):
        kept.append(torch.empty(4 * gib, dtype=torch.uint8, device="npu"))


say("full", fill)
told["kept"] = ["", str(len(kept))]
say("other card", lambda: torch.empty(gib, dtype=torch.uint8, device="npu:1").device)
kept.clear()
say("free again", lambda: torch.empty(4 * gib, dtype=torch.uint8, device="npu").device)
torch.npu.set_per_process_memory_fraction(0.01)
say("fraction", lambda: torch.empty(gib, dtype=torch.uint8, device="npu").device)
torch.npu.set_per_process_memory_fraction(1.0)

# --- collectives ---
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1], RANK="0", WORLD_SIZE="1")
dist.init_process_group("hccl")
for label, dtype in (("float64", F64), ("uint8", torch.uint8), ("int64", I64), ("bool", torch.bool), ("float32", F32)):
    say(f"all_reduce {label}", lambda: dist.all_reduce(of(dtype, 2)))
    say(f"reduce {label}", lambda: dist.reduce(of(dtype, 2), 0))
    say(f"reduce_scatter_tensor {label}", lambda: dist.reduce_scatter_tensor(of(dtype, 2), of(dtype, 2)))
    say(f"broadcast {label}", lambda: dist.broadcast(of(dtype, 2), 0))
    say(f"all_gather {label}", lambda: dist.all_gather([of(dtype, 2)], of(dtype, 2)))
for name in ("BAND", "BOR", "BXOR", "MAX"):
    op = getattr(dist.ReduceOp, name)
    say(f"all_reduce {name}", lambda: dist.all_reduce(of(torch.int32, 2), op))
    say(f"reduce {name}", lambda: dist.reduce(of(torch.int32, 2), dst=0, op=op))
    pair = of(torch.int32, 2), of(torch.int32, 2)
    say(f"reduce_scatter_tensor {name}", lambda: dist.reduce_scatter_tensor(*pair, op=op))
say("all_reduce complex64", lambda: dist.all_reduce(of(C64, 2)))
say("broadcast complex64", lambda: dist.broadcast(of(C64, 2), 0))
wrapped = nn.parallel.DistributedDataParallel(nn.Embedding(2, 2).double().npu())
say("ddp float64", lambda: wrapped(of(I64, 1)).sum().backward())


class Turn(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Parameter(torch.ones(2, dtype=C64))


say("ddp complex64", lambda: nn.parallel.DistributedDataParallel(Turn().npu()))
from torch_npu._C._distributed_c10d import ProcessGroupHCCL  # noqa: E402

options = ProcessGroupHCCL.Options()
options.hccl_config = {"hccl_buffer_size": 300}
other = dist.new_group(backend="hccl", pg_options=options)
say("options", lambda: dist.all_reduce(of(F32, 2), group=other))
backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("npu"))
told["backend"] = ["", str(isinstance(backend, ProcessGroupHCCL))]
group = dist.new_group(backend="gloo")
say("gloo", lambda: dist.all_reduce(of(F32, 2), group=group))
say("gloo host", lambda: dist.all_reduce(torch.ones(2, dtype=F64), group=group))
dist.destroy_process_group()
print(json.dumps(told))
