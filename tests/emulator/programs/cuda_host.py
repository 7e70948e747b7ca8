"""What a program for CUDA sees on the stand-in, line by line as on a GPU. Prints `cuda host: ok`."""

from __future__ import annotations

import copy
import io

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def refuses(action, *words: str) -> None:
    try:
        action()
    except (RuntimeError, TypeError, AttributeError, ImportError, AssertionError) as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError("did not raise")


def import_torch_npu() -> None:
    import torch_npu  # noqa: F401


# what is there
assert torch.cuda.is_available() and torch.backends.cuda.is_built() and torch.version.cuda
assert torch.cuda.device_count() == 8 and torch.cuda.current_device() == 0 and torch.cuda.is_bf16_supported()
assert torch.cuda.get_device_capability() == (8, 0) and "A100" in torch.cuda.get_device_name(0)
assert torch.cuda.get_device_properties(0).major == 8 and torch.backends.cudnn.is_available()
assert torch.distributed.is_nccl_available()
refuses(import_torch_npu, "torch_npu")
refuses(lambda: torch.ones(1).npu(), "npu")
refuses(lambda: torch.zeros(1, device="npu"), "Expected one of cpu, cuda")
refuses(lambda: torch.zeros(1, device="cuda:99"), "invalid device ordinal")

# tensors and devices
x = torch.ones(3, device="cuda")
assert type(x) is torch.Tensor and x.is_cuda and not x.cpu().is_cuda and x.get_device() == 0
assert x.device == torch.device("cuda", 0) and str(x.device) == "cuda:0" and x.type() == "torch.cuda.FloatTensor"
assert repr(x) == "tensor([1., 1., 1.], device='cuda:0')" and x.cuda() is x and x.to("cuda") is x
y = torch.randn(2, 3, device=torch.device("cuda:1"))
assert y.get_device() == 1 and y.to(x.device).device == x.device and torch.zeros_like(y).get_device() == 1
refuses(lambda: x + y, "same device")
refuses(lambda: x + torch.ones(3), "same device")
refuses(x.numpy, "can't convert cuda:0 device type tensor to numpy")
assert isinstance(x, torch.cuda.FloatTensor) and torch.cuda.LongTensor([1]).device.type == "cuda"
assert x.cpu().type(torch.cuda.HalfTensor).dtype == torch.half and x.cpu().type("torch.cuda.FloatTensor").is_cuda
with torch.cuda.device(1):
    assert torch.zeros(1, device="cuda").get_device() == 1 and torch.ones(1).cuda().get_device() == 1
with torch.device("cuda"):
    assert torch.zeros(1).is_cuda
torch.set_default_tensor_type("torch.cuda.FloatTensor")
assert torch.zeros(1).is_cuda
torch.set_default_tensor_type("torch.FloatTensor")
assert not torch.zeros(1).is_cuda

# random numbers
torch.cuda.manual_seed(3)
first = torch.rand(2, device="cuda")
torch.cuda.manual_seed_all(3)
assert torch.equal(first, torch.rand(2, device="cuda"))
state = torch.cuda.get_rng_state()
first = torch.rand(2, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(first, torch.rand(2, device="cuda"))
torch.manual_seed(0)
on_host = torch.rand(1)
torch.manual_seed(0)
torch.rand(1, device="cuda")
assert torch.equal(on_host, torch.rand(1))  # the host's generator is another
assert torch.rand(2, device="cuda", generator=torch.Generator("cuda").manual_seed(1)).is_cuda

# a step of training
layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(144, 5)]
model = nn.Sequential(*layers).cuda()
assert next(model.parameters()).is_cuda and isinstance(model[0].weight, nn.Parameter)
optimizer, scaler = torch.optim.Adam(model.parameters(), 1e-3), torch.amp.GradScaler("cuda")
for _ in range(2):
    inputs, labels = torch.randn(8, 3, 8, 8, device="cuda"), torch.randint(0, 5, (8,), device="cuda")
    with torch.autocast("cuda"):
        out = model(inputs)
        loss = nn.functional.cross_entropy(out, labels)
    assert out.dtype == torch.half and loss.dtype == torch.float32
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
assert nn.utils.clip_grad_norm_(model.parameters(), 1.0).is_cuda and copy.deepcopy(model)[0].weight.is_cuda
with torch.cuda.amp.autocast(dtype=torch.bfloat16):
    assert (torch.ones(2, 2).cuda() @ torch.ones(2, 2).cuda()).dtype == torch.bfloat16
query = torch.randn(2, 4, 5, 8, device="cuda", requires_grad=True)
nn.functional.scaled_dot_product_attention(query, query, query, is_causal=True).sum().backward()
assert query.grad.is_cuda
attend, kept = nn.functional.scaled_dot_product_attention, torch.rand(2, 1, 5, 5) > 0.4
kept[..., 0] = True  # a mask of booleans keeps what is true, and is added as no number
for mask in (kept, torch.zeros(kept.shape).masked_fill(~kept, float("-inf"))):
    masked = attend(query, query, query, attn_mask=mask.cuda()).cpu()
    assert torch.allclose(masked, attend(*[query.detach().cpu()] * 3, attn_mask=kept), atol=1e-6)
lstm, encoder = nn.LSTM(4, 5, 2).cuda(), nn.TransformerEncoderLayer(8, 2, batch_first=True).cuda().eval()
lstm(torch.randn(3, 2, 4).cuda())[0].sum().backward()
assert encoder(torch.randn(2, 3, 8).cuda()).is_cuda

# streams, events, memory
stream, begin, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
assert isinstance(stream, torch.Stream) and stream != torch.cuda.current_stream()
begin.record()
with torch.cuda.stream(stream):
    assert torch.cuda.current_stream() == stream
    (x * 2).record_stream(stream)
torch.cuda.current_stream().wait_stream(stream)
end.record()
torch.cuda.synchronize()
assert begin.elapsed_time(end) >= 0 and torch.cuda.current_stream() == torch.cuda.default_stream()
used = torch.cuda.memory_allocated()
assert torch.cuda.max_memory_allocated() >= used >= 0
assert torch.cuda.mem_get_info()[1] == torch.cuda.get_device_properties(0).total_memory and torch.cuda.memory_summary()
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
torch.cuda.nvtx.range_push("step")
torch.cuda.nvtx.range_pop()
accelerator = torch.accelerator
assert accelerator.is_available() and accelerator.current_accelerator() == torch.device("cuda")
assert accelerator.device_count() == 8 and accelerator.current_device_index() == 0
accelerator.synchronize()
accelerator.set_device_index(1)
assert torch.cuda.current_device() == 1
torch.cuda.set_device("cuda:0")

# checkpoints and loaders
file = io.BytesIO()
torch.save(model.state_dict(), file)
for where, device in ((None, "cuda:0"), ("cpu", "cpu"), ({"cuda:0": "cuda:1"}, "cuda:1"), ("cuda:1", "cuda:1")):
    file.seek(0)
    assert str(torch.load(file, map_location=where)["0.weight"].device) == device
file.seek(0)
assert str(torch.load(file, map_location=lambda storage, place: storage.cuda(1))["0.weight"].device) == "cuda:1"
for (batch,) in DataLoader(TensorDataset(torch.arange(4.0)), 2, pin_memory=True):
    assert batch.is_pinned() and batch.cuda(non_blocking=True).is_cuda
for cards in ([0], [0, 1]):
    assert nn.DataParallel(nn.Linear(3, 2).cuda(), device_ids=cards)(torch.ones(4, 3)).shape == (4, 2)
print("cuda host: ok")
