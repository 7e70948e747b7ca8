"""Import forms and names of torch.npu; prints what the chosen version has of the emulated names."""

import json
import sys

import torch
import torch_npu.npu.amp

# isort: split
import torch.npu  # before torch 2.5, torch_npu is what brings it
from torch.npu import amp
from torch.npu.amp import GradScaler, autocast
from torch_npu.contrib.function import matmul_transpose  # noqa: F401
from torch_npu.npu.amp import GradScaler as SameScaler

assert torch.npu is torch_npu.npu and torch.npu.amp is amp is torch_npu.npu.amp
assert GradScaler is SameScaler is torch.npu.amp.GradScaler and autocast is torch_npu.npu.amp.autocast
import torch.npu.amp.grad_scaler as scalers  # noqa: E402
import torch.npu.memory  # noqa: E402
from torch.npu.random import get_rng_state  # noqa: E402, F401

assert scalers.GradScaler is GradScaler and torch.npu.memory.empty_cache is torch.npu.empty_cache
scaler = GradScaler(1024.0, 2.0, 0.5, 2000, False, True)  # `dynamic` comes before `enabled`
assert scaler.is_enabled() and not GradScaler(1024.0, 2.0, 0.5, 2000, True, False).is_enabled()
p = torch.ones(1).npu().requires_grad_()
optimizer = torch.optim.SGD([p], 0.1)
scaler.scale(p.sum()).backward()
scaler.step(optimizer)
scaler.update()
assert scaler.get_scale() == 1024.0 and abs(p.item() - 0.9) < 1e-6

messages = {}
for path in sys.argv[1:]:
    node = torch
    try:
        for part in path.split("."):
            node = getattr(node, part) if part != "torch_npu" else torch_npu
        messages[path] = ["there", ""]
    except AttributeError as error:
        messages[path] = [type(error).__name__, str(error)]
torch.npu.set_compile_mode(jit_compile=True)
assert not torch.npu.is_jit_compile_false()
torch.npu.matmul.allow_hf32 = True
torch.npu.conv.allow_hf32 = False
torch.npu.config.allow_internal_format = False
torch.npu.set_option({"ACL_OP_COMPILER_CACHE_MODE": "enable"})
with torch.npu.stream(torch.npu.Stream()):
    assert torch.npu.current_stream() != torch.npu.default_stream()
big = torch.ones(64 << 20).npu()
assert torch.npu.max_memory_allocated() >= torch.npu.memory_allocated() > 128 << 20
assert torch.npu.mem_get_info()[1] == torch.npu.get_device_properties(0).total_memory
assert torch.npu.memory_stats()["allocated_bytes.all.current"] > 0 and "MB" in torch.npu.memory_summary()
print(json.dumps(messages))
