"""The fused optimizers: against torch.optim where it has them, against their papers' formulas where not."""

import math

import torch
import torch_npu
from torch_npu.optim import (
    NpuFusedAdadelta,
    NpuFusedAdam,
    NpuFusedAdamP,
    NpuFusedAdamW,
    NpuFusedBertAdam,
    NpuFusedLamb,
    NpuFusedRMSprop,
    NpuFusedRMSpropTF,
    NpuFusedSGD,
)

TARGET = torch.linspace(-2, 2, 12).reshape(3, 4)
START = torch.linspace(1, 3, 12).reshape(3, 4)


def gradient(p):
    return (p - TARGET) * 0.7 + 0.1 * p**2


def run(optimizer_of, steps=5, device="npu", clip=None):
    p = START.clone().to(device).requires_grad_()
    optimizer = optimizer_of([p])
    for _ in range(steps):
        optimizer.zero_grad()
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        p.grad.copy_(gradient(p.detach().cpu()).to(device))
        if clip is not None:
            optimizer.clip_grad_norm_fused_(clip)
        optimizer.step()
    return p.detach().cpu()


def by_formula(step, steps=5):
    """`step(p, g, state, t)` returns the new p; t counts from 1."""
    p, state = START.clone().double(), {}
    for t in range(1, steps + 1):
        p = step(p, gradient(p), state, t)
    return p.float()


def same(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def raises(kind, function):
    try:
        function()
    except kind:
        return
    raise AssertionError("did not raise")


PAIRS = (
    (NpuFusedAdam, torch.optim.Adam, {"lr": 0.1}),
    (NpuFusedAdam, torch.optim.Adam, {"lr": 0.1, "weight_decay": 0.2, "amsgrad": True}),
    (NpuFusedAdamW, torch.optim.AdamW, {"lr": 0.1}),
    (NpuFusedAdamW, torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.3, "betas": (0.8, 0.9)}),
    (NpuFusedSGD, torch.optim.SGD, {"lr": 0.1}),
    (NpuFusedSGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}),
    (NpuFusedSGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (NpuFusedAdadelta, torch.optim.Adadelta, {"weight_decay": 0.1}),
    (NpuFusedRMSprop, torch.optim.RMSprop, {"lr": 0.05}),
    (NpuFusedRMSprop, torch.optim.RMSprop, {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
)
for fused, plain, settings in PAIRS:
    same(run(lambda ps, f=fused, s=settings: f(ps, **s)), run(lambda ps, f=plain, s=settings: f(ps, **s), device="cpu"))


def moments(g, state, b1, b2):
    state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
    state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g
    return state["m"], state["v"]


def lamb(p, g, state, t, clip=False, adam=False):
    if clip:
        g = g / max(1.0, float(g.norm()))
    m, v = moments(g, state, 0.9, 0.999)
    u = m / (v.sqrt() + 1e-6) + 0.1 * p
    ratio = 1.0 if adam else min(float(p.norm()), 10.0) / float(u.norm())
    return p - 0.01 * ratio * u


same(run(lambda ps: NpuFusedLamb(ps, lr=0.01, weight_decay=0.1)), by_formula(lamb))
same(
    run(lambda ps: NpuFusedLamb(ps, lr=0.01, weight_decay=0.1, use_global_grad_norm=True)),
    by_formula(lambda *a: lamb(*a, clip=True)),
)
same(run(lambda ps: NpuFusedLamb(ps, lr=0.01, weight_decay=0.1, adam=True)), by_formula(lambda *a: lamb(*a, adam=True)))


def bert_adam(p, g, state, t):
    g = g * min(1.0, 1.0 / (float(g.norm()) + 1e-6))
    m, v = moments(g, state, 0.9, 0.999)
    x = (t - 1) / 10
    rate = 0.1 * (x / 0.2 if x < 0.2 else (x - 1) / (0.2 - 1))
    return p - rate * (m / (v.sqrt() + 1e-6) + 0.01 * p)


same(run(lambda ps: NpuFusedBertAdam(ps, lr=0.1, warmup=0.2, t_total=10)), by_formula(bert_adam))


def rmsprop_tf(p, g, state, t):
    v = state["v"] = state.get("v", torch.ones_like(p)) * 0.9 + 0.1 * g * g
    state["b"] = 0.9 * state.get("b", 0) + 0.05 * g / (v + 1e-10).sqrt()
    return p - state["b"]


same(run(lambda ps: NpuFusedRMSpropTF(ps, lr=0.05, momentum=0.9)), by_formula(rmsprop_tf))


def adamp(p, g, state, t):
    m, v = moments(g, state, 0.9, 0.999)
    step = (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
    decay = 1.0
    for rows in (3, 1):
        w, gg = p.reshape(rows, -1), g.reshape(rows, -1)
        if torch.nn.functional.cosine_similarity(gg, w).abs().max() < 0.1 / math.sqrt(w.shape[1]):
            unit = w / w.norm(dim=1, keepdim=True)
            flat = step.reshape(rows, -1)
            step = (flat - (flat * unit).sum(1, keepdim=True) * unit).reshape(p.shape)
            decay = 0.1
            break
    return p * (1 - 0.05 * 0.2 * decay) - 0.05 * step


same(run(lambda ps: NpuFusedAdamP(ps, lr=0.05, weight_decay=0.2)), by_formula(adamp))

# A gradient orthogonal to every row of the weights: AdamP's step has no part along them.
w = torch.randn(4, 6)
g = torch.randn(4, 6)
g = g - (g * w).sum(1, keepdim=True) / w.square().sum(1, keepdim=True) * w
p = w.clone().npu().requires_grad_()
p.grad = g.npu()
NpuFusedAdamP([p], lr=0.1).step()
moved = p.detach().cpu() - w
assert (moved * w).sum(1).abs().max() < 1e-4 and moved.abs().max() > 0.01


def clipped_sgd(p, g, state, t):
    return p - 0.1 * g * min(1.0, 0.5 / (float(g.norm()) + 1e-6))


same(run(lambda ps: NpuFusedSGD(ps, lr=0.1), clip=0.5), by_formula(clipped_sgd))

p = torch.ones(3).npu().requires_grad_()
optimizer = NpuFusedAdam([p])
p.grad = torch.tensor([3.0, 4.0, 0.0]).npu()
assert abs(float(optimizer.clip_grad_norm_fused_(1.0)) - 5) < 1e-5
torch.testing.assert_close(p.grad.cpu(), torch.tensor([0.6, 0.8, 0.0]))
raises(ValueError, lambda: optimizer.zero_grad(set_to_none=True))
raises(ValueError, lambda: NpuFusedSGD([p]))
q = torch.ones(2, dtype=torch.bfloat16).npu().requires_grad_()
q.grad = q.detach()
raises(TypeError, NpuFusedAdam([q]).step)
c = torch.ones(2).requires_grad_()
c.grad = c.detach()
raises(RuntimeError, NpuFusedAdam([c]).step)
optimizer.load_state_dict(optimizer.state_dict())
torch.optim.lr_scheduler.StepLR(optimizer, 1).step()
flat = torch_npu.utils.npu_combine_tensors([torch.ones(2).npu(), torch.zeros(3).npu()])
assert flat.tolist() == [1, 1, 0, 0, 0]
print("optimizers ok")
