"""The fused optimizers as the tunings use them: they train and clip as those of PyTorch do; and their limits."""

import copy

import torch
import torch_npu

STEPS = 20
PAIRS = (
    ("Adam", {"lr": 0.02}),
    ("Adam", {"lr": 0.02, "weight_decay": 0.1, "amsgrad": True, "betas": (0.8, 0.95), "eps": 1e-6}),
    ("AdamW", {"lr": 0.02}),
    ("AdamW", {"lr": 0.02, "weight_decay": 0.2, "amsgrad": True}),
    ("SGD", {"lr": 0.002}),
    ("SGD", {"lr": 0.002, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.002, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.002, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.01}),
    ("RMSprop", {"lr": 0.01, "alpha": 0.9}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True, "weight_decay": 0.01}),
)


def network():
    torch.manual_seed(3)
    layers = torch.nn.Linear(6, 16), torch.nn.LayerNorm(16), torch.nn.Tanh(), torch.nn.Linear(16, 3)
    return torch.nn.Sequential(*layers).npu()


def groups(model, settings):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    return [{"params": decayed}, {"params": plain, "lr": settings["lr"] / 2}]


def train(model, optimizer, clip=None, steps=STEPS, first=0, fresh=False):
    """The parameters after some steps, as numbers; `fresh` sets gradients to None in between."""
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.5)
    for step in range(steps):
        torch.manual_seed(first + step)
        x = torch.randn(32, 6).npu()
        optimizer.zero_grad(set_to_none=True) if fresh else optimizer.zero_grad()
        (model(x) - x[:, :3]).square().mean().mul(20).backward()
        if clip is not None:
            clip(model, optimizer)
        optimizer.step()
        scheduler.step()
    return [p.detach().cpu() for p in model.parameters()]


def same(a, b):
    for left, right in zip(a, b, strict=True):
        torch.testing.assert_close(left, right, rtol=2e-4, atol=2e-5)


def raises(kind, function):
    try:
        function()
    except kind:
        return
    raise AssertionError("did not raise")


for name, settings in PAIRS:
    fused, plain = getattr(torch_npu.optim, f"NpuFused{name}"), getattr(torch.optim, name)
    one, other = network(), network()
    before = [p.detach().cpu() for p in one.parameters()]
    result = train(one, fused(one.parameters(), **settings))
    same(result, train(other, plain(other.parameters(), **settings), fresh=True))
    assert max(float((a - b).abs().max()) for a, b in zip(before, result, strict=True)) > 0.01, name
    one, other = network(), network()
    same(
        train(one, fused(groups(one, settings), **settings)),
        train(other, plain(groups(other, settings), **settings)),
    )

# Clipping: the same norm and the same gradients, for each kind of norm, above and below the limit.
for norm_type in (2.0, 1, float("inf")):
    for limit in (0.05, 1e6):
        norms = ([], [])

        def by_torch(model, optimizer, at=norms[0], limit=limit, kind=norm_type):
            at.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), limit, norm_type=kind)))

        def by_fused(model, optimizer, at=norms[1], limit=limit, kind=norm_type):
            at.append(float(optimizer.clip_grad_norm_fused_(limit, norm_type=kind)))

        one, other = network(), network()
        same(
            train(one, torch_npu.optim.NpuFusedSGD(one.parameters(), lr=0.005), by_fused),
            train(other, torch.optim.SGD(other.parameters(), lr=0.005), by_torch),
        )
        torch.testing.assert_close(torch.tensor(norms[0]), torch.tensor(norms[1]), rtol=1e-3, atol=1e-4)

# Clipping after a GradScaler's unscale_.
results = []
for fused in (True, False):
    model = network()
    kind = torch_npu.optim.NpuFusedSGD if fused else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=0.1)
    scaler = torch.npu.amp.GradScaler(init_scale=1024.0)
    for step in range(5):
        torch.manual_seed(step)
        x = torch.randn(32, 6).npu()
        optimizer.zero_grad()
        scaler.scale((model(x) - x[:, :3]).square().mean()).backward()
        scaler.unscale_(optimizer)
        if fused:
            optimizer.clip_grad_norm_fused_(0.1)
        else:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
    results.append([p.detach().cpu() for p in model.parameters()])
same(*results)

# A checkpoint of either goes on with the other.
for name, settings in (("Adam", {"lr": 0.02}), ("AdamW", {"lr": 0.02}), ("SGD", {"lr": 0.002, "momentum": 0.9})):
    fused, plain = getattr(torch_npu.optim, f"NpuFused{name}"), getattr(torch.optim, name)
    for first, second in ((fused, plain), (plain, fused)):
        model = network()
        optimizer = first(model.parameters(), **settings)
        train(model, optimizer, steps=8)
        weights, state = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
        expected = train(model, optimizer, steps=5, first=8)
        model = network()
        model.load_state_dict(weights)
        optimizer = second(model.parameters(), **settings)
        optimizer.load_state_dict(state)
        same(train(model, optimizer, steps=5, first=8), expected)

# The limits that the tuning looks for.
model = network()
optimizer = torch_npu.optim.NpuFusedAdam(model.parameters(), lr=0.01)
raises(ValueError, lambda: optimizer.zero_grad(set_to_none=True))
train(model, optimizer, steps=2)
model.zero_grad(set_to_none=False)
train(model, optimizer, steps=1)
model.zero_grad()
raises(RuntimeError, lambda: train(model, optimizer, steps=1))


def closure():
    loss = network()(torch.ones(4, 6).npu()).sum()
    loss.backward()
    return loss


raises(RuntimeError, lambda: torch_npu.optim.NpuFusedSGD(network().parameters(), lr=0.1).step(closure))
print("tuned optimizers ok")
