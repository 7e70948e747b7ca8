"""A snippet for each code of mixed precision (`--amp`) and of the tunings (`--tune`)."""

from __future__ import annotations

from tests.executed.snippet import Snippet

#: Eight steps in float16 or bfloat16 against float32.
_HALF = 2e-2
#: Kernels and optimizers that round in another order.
_FUSED = 1e-5
_STEPS = """
from torch import nn

torch.manual_seed(1)
data = [(torch.randn(8, 4), torch.randn(8, 2)) for _ in range(8)]
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()
for x, y in data:
    optimizer.zero_grad()
    loss = criterion(model(x.to("cuda")), y.to("cuda"))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
"""
_WEIGHTS = "result = [each.detach().float() for each in model.parameters()]\n"
_SAVED = (
    "torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, 'last.pt')\n"
    "checkpoint = torch.load('last.pt')\nmodel.load_state_dict(checkpoint['model'])\n"
    "optimizer.load_state_dict(checkpoint['optimizer'])\n"
)
_NATIVE = {"amp": "native"}
_APEX = {"amp": "apex", "opt_level": "O1"}
#: NVIDIA apex is not installed where the tests run: its formulas, from its documentation.
_APEX_BEFORE = """
import sys, types
import torch
_apex, _layers, _optimizers = (types.ModuleType(n) for n in ("apex", "apex.normalization", "apex.optimizers"))
_layers.FusedLayerNorm, _optimizers.FusedSGD = torch.nn.LayerNorm, torch.optim.SGD
sys.modules.update({each.__name__: each for each in (_apex, _layers, _optimizers)})
"""
_LOADER = """
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
dataset = TensorDataset(torch.randn(SIZE, 4), torch.randn(SIZE, 2))
loader = DataLoader(dataset, batch_size=8OPTIONS)
model = nn.Linear(4, 2).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.to("cuda")), y.to("cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def _tuned(names: str, code: str, tolerance: float = 0.0, **more: object) -> Snippet:
    pairs = tuple((name, value) for name, _, value in (each.partition("=") for each in names.split(",")))
    return Snippet(code, tolerance=tolerance, settings={"tune": pairs}, **more)  # type: ignore[arg-type]


def _loaded(size: int = 32, options: str = "") -> str:
    return _LOADER.replace("SIZE", str(size)).replace("OPTIONS", options) + _WEIGHTS


THEMES: dict[str, Snippet] = {
    "NPU740": Snippet(_STEPS + _WEIGHTS, tolerance=_HALF, settings={**_NATIVE, "amp_dtype": "bfloat16"}),
    "NPU741": Snippet(_STEPS + _WEIGHTS, tolerance=_HALF, settings=_NATIVE),
    "NPU744": Snippet(_STEPS + _SAVED + _WEIGHTS, tolerance=_HALF, settings=_NATIVE),
    "NPU746": Snippet(_STEPS + _SAVED + _WEIGHTS, tolerance=_HALF, settings=_APEX),
    "NPU747": Snippet(_STEPS + _WEIGHTS, tolerance=_HALF, settings=_APEX),
    "NPU748": Snippet(
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--lr', type=float, default=0.1)\nargs = parser.parse_args()\n"
        + _STEPS.replace("lr=0.1", "lr=args.lr")
        + _WEIGHTS,
        tolerance=_HALF,
        settings={**_NATIVE, "amp_flag": True},
        arguments=("--amp",),
        original_arguments=(),
    ),
    "NPU749": Snippet(
        "from apex.normalization import FusedLayerNorm\nfrom apex.optimizers import FusedSGD\n"
        + _STEPS.replace("nn.Tanh()", "FusedLayerNorm(8)").replace("torch.optim.SGD(", "FusedSGD(")
        + _WEIGHTS,
        tolerance=0.1,  # a bias that stays near zero
        settings=_APEX,
        before=_APEX_BEFORE,
    ),
    "NPU750": _tuned(
        "fused-optimizer",
        """
from torch.optim import AdamW

torch.manual_seed(1)
model = torch.nn.Linear(8, 8).to("cuda")
optimizer = AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
for x in torch.randn(10, 4, 8).to("cuda"):
    optimizer.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
    optimizer.step()
"""
        + _WEIGHTS,
        _FUSED,
    ),
    "NPU751": _tuned(
        "fused-optimizer,fused-clip",
        """
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(1)
model = torch.nn.Linear(8, 8).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(10, 4, 8).to("cuda"):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    clip_grad_norm_(model.parameters(), max_norm=0.1)
    optimizer.step()
"""
        + _WEIGHTS,
        _FUSED,
    ),
    "NPU752": _tuned("compile-mode", _STEPS + _WEIGHTS),
    "NPU753": _tuned("internal-format", _STEPS + _WEIGHTS),
    "NPU754": _tuned(
        "hf32",
        "torch.backends.cuda.matmul.allow_tf32 = True\ntorch.backends.cudnn.allow_tf32 = False\n"
        "x = torch.randn(3, 3, generator=torch.Generator().manual_seed(1)).cuda()\nresult = x @ x",
    ),
    "NPU755": _tuned(
        "ddp-arguments",
        """
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.register_buffer("mask", torch.ones(8))

    def forward(self, x):
        return self.fc(x) * self.mask


def main(card):
    torch.cuda.set_device(card)
    torch.manual_seed(1)
    model = DistributedDataParallel(Net().cuda(card), device_ids=[card])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(5, 4, 8).cuda():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return [each.detach() for each in model.parameters()]


dist.init_process_group("nccl")
result = main(dist.get_rank())
dist.destroy_process_group()
""",
        ranks=2,
    ),
    "NPU756": _tuned("data-loader", _loaded(options=", num_workers=1")),
    "NPU757": _tuned("drop-last", _loaded(options=", shuffle=True")),
    "NPU758": _tuned(
        "non-blocking",
        _loaded(options=", pin_memory=True").replace("for x, y in loader:\n", "for x, y in loader:\n"
        "        x, y = x.cuda(), y.cuda()\n"),
    ),
    "NPU760": _tuned(
        "fusion-attention",
        """
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim=24, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        batch, length, dim = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).reshape(batch, length, dim)


torch.manual_seed(1)
model = Attention()
x = torch.randn(2, 5, 24, requires_grad=True)
model, x = model.to("cuda"), x.to("cuda")
y = model(x)
y.square().sum().backward()
result = [y, model.qkv.weight.grad]
""",
        _FUSED,
    ),
    "NPU761": _tuned(
        "rms-norm",
        """
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return normed.type_as(x) * self.weight


torch.manual_seed(1)
norm = RMSNorm(16).to("cuda")
y = norm(torch.randn(3, 16).to("cuda"))
y.square().sum().backward()
result = [y, norm.weight.grad]
""",
        _FUSED,
    ),
    "NPU762": _tuned(
        "rotary",
        """
def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin):
    cos = cos.unsqueeze(1)
    sin = sin.unsqueeze(1)
    return (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)


torch.manual_seed(1)
q, k, angles = torch.randn(2, 4, 5, 8).cuda(), torch.randn(2, 4, 5, 8).cuda(), torch.rand(2, 5, 8).cuda()
result = apply_rotary_pos_emb(q, k, angles.cos(), angles.sin())
""",
        _FUSED,
    ),
    "NPU763": _tuned(
        "swiglu",
        """
import torch.nn.functional as F
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w12 = nn.Linear(dim, 2 * hidden)
        self.w3 = nn.Linear(hidden, dim)

    def forward(self, x):
        x12 = self.w12(x)
        x1, x2 = x12.chunk(2, dim=-1)
        return self.w3(F.silu(x1) * x2)


torch.manual_seed(1)
net = FeedForward(6, 8).to("cuda")
y = net(torch.randn(3, 6).to("cuda"))
y.square().sum().backward()
result = [y, net.w12.weight.grad]
""",
        _FUSED,
    ),
    "NPU764": _tuned(
        "finite-masks",
        """
def weights(scores, mask):
    scores = scores.masked_fill(mask, float("-inf"))
    return torch.softmax(scores, dim=-1)


torch.manual_seed(1)
mask = torch.ones(4, 6, dtype=torch.bool).triu(1)
result = weights(torch.randn(4, 6).cuda(), mask.cuda())
""",
    ),
    "NPU765": _tuned(
        "masked-assignment",
        """
def targets(batch):
    labels = batch["labels"].clone()
    labels[labels == 0] = -100
    return torch.flatten(labels)


result = targets({"labels": torch.arange(6).view(2, 3).cuda() % 3})
""",
    ),
    "NPU768": _tuned(
        "window-roll",
        """
def shifted(x, size):
    B, H, W, C = size
    x = x.view(B, H, W, C)
    return torch.roll(x, shifts=(-3, -3), dims=(1, 2))


result = shifted(torch.arange(2 * 6 * 6 * 3.0).cuda(), (2, 6, 6, 3))
""",
    ),
    "NPU769": _tuned(
        "channel-shuffle",
        """
def shuffled(x, groups):
    b, c, h, w = x.size()
    return x.view(b, groups, c // groups, h, w).transpose(1, 2).contiguous().view(b, c, h, w)


result = shuffled(torch.arange(2 * 8 * 3 * 3.0).view(2, 8, 3, 3).cuda(), 4)
""",
    ),
    "NPU770": _tuned(
        "float32",
        """
import torch.distributed as dist


def mean(total, count):
    t = torch.tensor([count, total], dtype=torch.float64, device="cuda")
    dist.all_reduce(t)
    count, total = t.tolist()
    return total / count


dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
result = mean(2.5, 3)
dist.destroy_process_group()
""",
        1e-7,
        ranks=2,
    ),
    "NPU771": _tuned(
        "int32",
        """
from torch import nn


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(100, 8)
        self.places = nn.Embedding(16, 8)

    def forward(self, x):
        at = torch.arange(0, x.shape[1], dtype=torch.long, device=x.device)
        return self.tokens(x.long()) + self.places(at)


torch.manual_seed(1)
net = Tokens().to("cuda")
y = net(torch.arange(10).view(2, 5).to("cuda"))
y.square().sum().backward()
result = [y, net.tokens.weight.grad, net.places.weight.grad]
""",
    ),
    "NPU780": _tuned("step-time", _loaded()),
    "NPU781": _tuned("profiler=2-4", _loaded()),
    "NPU782": _tuned("max-steps=100", _loaded()),
}
