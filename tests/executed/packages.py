"""Snippets for `-sim`: what takes the place of apex, bitsandbytes and flash_attn.

The packages need CUDA and are not installed; before an original stand their formulas in plain PyTorch, from their
documentation and sources (scripts/similar_rules.py names them).
"""

from __future__ import annotations

import textwrap

from tests.executed.snippet import Snippet

_EIGHT = "the original's state in 8 bits is not modelled"
#: Sums in another order, over five steps.
_FUSED = 1e-5
#: How to put a reference where the package would be: `put("apex.optimizers", FusedSGD=...)`.
_PUT = """
import sys, types
import torch

def put(name, **members):
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        full = ".".join(parts[:end])
        if full not in sys.modules:
            sys.modules[full] = types.ModuleType(full)
            sys.modules[full].__path__ = []
            if end > 1:
                setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], sys.modules[full])
    vars(sys.modules[name]).update(members)
"""
_NORMS = """
class Norm(torch.nn.Module):
    def __init__(self, shape, eps=1e-5, elementwise_affine=True, centred=True):
        super().__init__()
        self.eps, self.centred = eps, centred
        self.weight = torch.nn.Parameter(torch.ones(shape))
        self.bias = torch.nn.Parameter(torch.zeros(shape)) if centred else None

    def forward(self, x):
        if self.centred:
            x = x - x.mean(-1, keepdim=True)
        y = x / torch.sqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight
        return y if self.bias is None else y + self.bias

def RMSNorm(shape, eps=1e-5, elementwise_affine=True):
    return Norm(shape, eps, elementwise_affine, centred=False)

class GroupNorm(torch.nn.Module):
    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, act=""):
        super().__init__()
        self.groups, self.eps = num_groups, eps
        self.weight, self.bias = (torch.nn.Parameter(f(num_channels)) for f in (torch.ones, torch.zeros))

    def forward(self, x):
        parts = x.reshape(x.shape[0], self.groups, -1)
        parts = parts - parts.mean(-1, keepdim=True)
        parts = parts / torch.sqrt(parts.square().mean(-1, keepdim=True) + self.eps)
        return parts.reshape(x.shape) * self.weight.view(1, -1, 1, 1) + self.bias.view(1, -1, 1, 1)
"""
_OPTIMIZERS = """
class Steps(torch.optim.Optimizer):
    def __init__(self, params, **given):
        super().__init__(params, given)
        self.number = 0

    @torch.no_grad()
    def step(self):
        self.number += 1
        for group in self.param_groups:
            for parameter in group["params"]:
                self.one(parameter, parameter.grad, self.state[parameter], group)

class Adam(Steps):
    decoupled = False

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False):
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def one(self, parameter, grad, state, group):
        (b1, b2), decay = group["betas"], group["weight_decay"]
        if self.decoupled:
            parameter.mul_(1 - group["lr"] * decay)
        else:
            grad = grad + decay * parameter
        state["m"] = b1 * state.get("m", 0) + (1 - b1) * grad
        state["v"] = b2 * state.get("v", 0) + (1 - b2) * grad.square()
        m, v = state["m"] / (1 - b1**self.number), state["v"] / (1 - b2**self.number)
        parameter.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))

class AdamW(Adam):
    decoupled = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False):
        super().__init__(params, lr, betas, eps, weight_decay)

class FusedAdam(Adam):
    decoupled = True

    def __init__(self, params, lr=1e-3, bias_correction=True, betas=(0.9, 0.999), eps=1e-8, adam_w_mode=True,
                 weight_decay=0.0):
        super().__init__(params, lr, betas, eps, weight_decay)

class SGD(Steps):
    def __init__(self, params, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
        super().__init__(params, lr=lr, momentum=momentum, dampening=dampening, decay=weight_decay, nesterov=nesterov)

    def one(self, parameter, grad, state, group):
        grad = grad + group["decay"] * parameter
        if group["momentum"]:
            first = "b" not in state
            state["b"] = grad if first else group["momentum"] * state["b"] + (1 - group["dampening"]) * grad
            grad = grad + group["momentum"] * state["b"] if group["nesterov"] else state["b"]
        parameter.sub_(group["lr"] * grad)

class Adagrad(Steps):
    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10):
        super().__init__(params, lr=lr, decay=weight_decay, eps=eps)

    def one(self, parameter, grad, state, group):
        grad = grad + group["decay"] * parameter
        state["s"] = state.get("s", 0) + grad.square()
        parameter.sub_(group["lr"] * grad / (state["s"].sqrt() + group["eps"]))

def FusedAdagrad(params, lr=1e-2, eps=1e-10, weight_decay=0.0):
    return Adagrad(params, lr, 0, weight_decay, 0, eps)

class RMSprop(Steps):
    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False):
        super().__init__(params, lr=lr, alpha=alpha, eps=eps, decay=weight_decay)

    def one(self, parameter, grad, state, group):
        grad = grad + group["decay"] * parameter
        state["s"] = group["alpha"] * state.get("s", 0) + (1 - group["alpha"]) * grad.square()
        parameter.sub_(group["lr"] * grad / (state["s"].sqrt() + group["eps"]))
"""
_DENSE = """
class Dense(torch.nn.Module):
    def __init__(self, in_features, out_features, bias=True, return_residual=False):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(out_features, in_features))
        self.bias = torch.nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        return x @ self.weight.t() + self.bias
"""
_CLIP = """
def clip(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    grads = [each.grad for each in parameters]
    norm = sum((each.abs() ** norm_type).sum() for each in grads) ** (1 / norm_type)
    for each in grads:
        each.mul_(torch.clamp(max_norm / (norm + 1e-6), max=1.0))
    return norm
"""
_LOSS = """
class Loss(torch.nn.Module):
    def __init__(self, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__()
        self.ignored, self.smoothing = ignore_index, label_smoothing

    def forward(self, logits, labels):
        logs = logits - logits.logsumexp(-1, keepdim=True)
        kept = labels != self.ignored
        picked = logs[kept].gather(1, labels[kept].unsqueeze(1)).squeeze(1)
        return -((1 - self.smoothing) * picked + self.smoothing * logs[kept].mean(-1)).mean()
"""
_PARALLEL = """
import torch.distributed as dist

class Parallel(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for parameter in module.parameters():
            dist.broadcast(parameter.data, 0)
            parameter.register_hook(self.mean)

    def mean(self, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad / dist.get_world_size()

    def forward(self, x):
        return self.module(x)

class Sync(torch.nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        sums = torch.stack([x.sum(0), x.square().sum(0), torch.full_like(x[0], len(x))])
        dist.all_reduce(sums)
        mean, square = sums[0] / sums[2], sums[1] / sums[2]
        return (x - mean) / torch.sqrt(square - mean.square() + self.eps)

def convert(module, process_group=None):
    sync = lambda each: Sync(each.num_features) if "Batch" in type(each).__name__ else each
    return torch.nn.Sequential(*map(sync, module))
"""

_NORM_USE = """
torch.manual_seed(1)
layer = NAME(16, eps=1e-4).to("cuda")
x = torch.randn(3, 16).to("cuda").requires_grad_()
y = layer(x)
(y * torch.arange(float(y.numel())).view(y.shape).to("cuda")).sum().backward()
result = [y, x.grad, layer.weight.grad, sorted(layer.state_dict())]
"""
_STEPS_USE = """
torch.manual_seed(1)
model = torch.nn.Linear(4, 3).to("cuda")
optimizer = NAME(model.parameters(), ARGUMENTS)
for x in torch.randn(5, 8, 4).to("cuda"):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
result = [each.detach() for each in model.parameters()]
"""
_DENSE_USE = """
torch.manual_seed(1)
weight, bias, x = torch.randn(3, 4), torch.randn(3), torch.randn(2, 4)
layer = NAME(4, 3)
layer.load_state_dict({"weight": weight, "bias": bias})
layer = layer.to("cuda")
result = [layer(x.to("cuda")), sorted(layer.state_dict())]
"""
_GROUP = 'import torch.distributed as dist\ndist.init_process_group("nccl")\ntorch.cuda.set_device(dist.get_rank())\n'
_GROUP_END = "dist.destroy_process_group()\n"


def _steps(arguments: str) -> str:
    return _STEPS_USE.replace("ARGUMENTS", arguments)


def _snippet(name: str, reference: str, member: str, use: str, ranks: int = 0, note: str = "") -> Snippet:
    """`member` of the reference stands where the package has `name`."""
    module, _, last = name.rpartition(".")
    before = _PUT + textwrap.dedent(reference) + f'put("{module}", {last}={member})\n'
    return Snippet(
        f"from {module} import {last}\n" + use.replace("NAME", last), tolerance=_FUSED, ranks=ranks, before=before,
        note=note,
    )  # fmt: skip


def _all() -> dict[str, Snippet]:
    rows: list[tuple[str, str, str, str]] = []
    for module in ("apex.normalization", "apex.normalization.fused_layer_norm"):
        rows.append((f"{module}.FusedLayerNorm", _NORMS, "Norm", _NORM_USE))
        rows.append((f"{module}.FusedRMSNorm", _NORMS, "RMSNorm", _NORM_USE))
    for module in ("apex.contrib.layer_norm", "apex.contrib.layer_norm.layer_norm"):
        rows.append((f"{module}.FastLayerNorm", _NORMS, "Norm", _NORM_USE))
    for module in ("apex.contrib.group_norm", "apex.contrib.group_norm.group_norm"):
        use = _NORM_USE.replace("NAME(16, ", "NAME(2, 4, ").replace("randn(3, 16)", "randn(3, 4, 5, 5)")
        rows.append((f"{module}.GroupNorm", _NORMS, "GroupNorm", use))
    for module in ("apex.optimizers", "apex.optimizers.fused_adam"):
        rows.append((f"{module}.FusedAdam", _OPTIMIZERS, "FusedAdam", _steps("lr=0.01, weight_decay=0.1")))
    for module in ("apex.optimizers", "apex.optimizers.fused_sgd"):
        rows.append((f"{module}.FusedSGD", _OPTIMIZERS, "SGD", _steps("0.1, 0.9, weight_decay=0.1, nesterov=True")))
    rows.append(("apex.optimizers.FusedAdagrad", _OPTIMIZERS, "FusedAdagrad", _steps("0.1, 1e-8, 0.1")))
    uses = {
        "AdamW": _steps("0.01, (0.8, 0.99), 1e-7, 0.1"), "Adam": _steps("0.01, (0.8, 0.99), 1e-7"),
        "SGD": _steps("0.1, 0.9, 0.1, 0.1"), "RMSprop": _steps("0.01, 0.9, 1e-7, 0.1"),
        "Adagrad": _steps("0.1, 0, 0.1, 0, 1e-8"),
    }  # fmt: skip
    for kind, use in uses.items():
        paged = ("Paged",) if kind.startswith("Adam") else ()
        for name in (f"{page}{kind}{bits}" for page in ("", *paged) for bits in ("", "8bit", "32bit")):
            rows.append((f"bitsandbytes.optim.{name}", _OPTIMIZERS, kind, use))
    for module in ("apex.fused_dense", "flash_attn.ops.fused_dense"):
        rows.append((f"{module}.FusedDense", _DENSE, "Dense", _DENSE_USE))
    clipped = "weight = torch.arange(6.0).to('cuda').requires_grad_()\nweight.square().sum().backward()\n"
    rows.append(
        (
            "apex.contrib.clip_grad.clip_grad_norm_", _CLIP, "clip",
            clipped + "norm = NAME([weight], 1.0)\nresult = [norm, weight.grad]\n",
        )
    )  # fmt: skip
    labels = "torch.manual_seed(1)\nlogits = torch.randn(4, 5).to('cuda').requires_grad_()\n"
    labels += "loss = NAME(ignore_index=2, label_smoothing=0.1)(logits, torch.tensor([0, 2, 4, 1]).to('cuda'))\n"
    rows.append(
        (
            "flash_attn.losses.cross_entropy.CrossEntropyLoss", _LOSS, "Loss",
            labels + "loss.backward()\nresult = [loss, logits.grad]\n",
        )
    )  # fmt: skip
    found = {row[0]: _snippet(*row, note=_EIGHT if row[0].endswith("8bit") else "") for row in rows}
    trained = "torch.manual_seed(1)\nmodel = NAME(torch.nn.Linear(4, 2).cuda())\n"
    trained += "model(torch.full((2, 4), 1.0 + dist.get_rank()).cuda()).square().sum().backward()\n"
    trained += "result = [each.grad for each in model.parameters()]\n"
    inputs = "x = torch.arange(12.0).view(4, 3).cuda() * (1 + dist.get_rank())\n"
    many = {
        "DistributedDataParallel": ("Parallel", trained),
        "SyncBatchNorm": ("Sync", inputs + "result = NAME(3).cuda()(x).detach()\n"),
        "convert_syncbn_model": (
            "convert",
            inputs + "layers = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.ReLU()).cuda()\n"
            "result = NAME(layers)(x).detach()\n",
        ),
    }  # fmt: skip
    for name, (member, use) in many.items():
        full = f"apex.parallel.{name}"
        found[full] = _snippet(full, _PARALLEL, member, _GROUP + use + _GROUP_END, ranks=2)
    return found


PACKAGES = _all()
