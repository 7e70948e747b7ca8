"""Functions that were written another way: (the original, the port, what makes it another, in its place)."""

from __future__ import annotations

from pathlib import Path

import pytest

from transplt.project.judging.differences import differences
from transplt.project.judging.sides import Side

HEAD = """\
import argparse
import math
import os
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

"""

REWRITTEN = {
    "walrus while": (
        '''\
def read(reader, model, opt):
    while True:
        batch = reader.next()
        if batch is None:
            break
        loss = model(batch.cuda()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
''',
        '''\
def read(reader, model, opt):
    while (batch := reader.next()) is not None:
        loss = model(batch.cuda()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
''',
        '.mean()', '.sum()',
    ),
    "walrus if": (
        '''\
def pick(state, cfg):
    schedule = cfg.get("schedule")
    if schedule is not None:
        state.lr = schedule(state.step)
    return state
''',
        '''\
def pick(state, cfg):
    if (schedule := cfg.get("schedule")) is not None:
        state.lr = schedule(state.step)
    return state
''',
        'is not None', 'is None',
    ),
    "ternary": (
        '''\
def target(reward, done, q, gamma):
    if done:
        value = reward
    else:
        value = reward + gamma * q.max()
    return value
''',
        '''\
def target(reward, done, q, gamma):
    value = reward if done else reward + gamma * q.max()
    return value
''',
        'reward if done else reward + gamma * q.max()', 'reward + gamma * q.max() if done else reward',
    ),
    "a logarithm": (
        '''\
def compress(x, low):
    return torch.log(torch.clamp(x, min=low) * 2)
''',
        '''\
def compress(x, low):
    kept = torch.clamp(x, min=low)
    return torch.log(2 * kept)
''',
        "2 * kept", "2 + kept",
    ),
    "ternary return": (
        '''\
def scale(step, warmup, total):
    if step < warmup:
        return step / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
''',
        '''\
def scale(step, warmup, total):
    return step / warmup if step < warmup else 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
''',
        'step < warmup', 'step > warmup',
    ),
    "a number of rounds": (
        '''\
def total(weights, n):
    found = 0.0
    for i in range(n):
        found = found + weights[i] * i
    return found
''',
        '''\
def total(weights, n):
    s = 0.0
    for number in range(n):
        s = s + weights[number] * number
    return s
''',
        '* number', '* n',
    ),
    "zip": (
        '''\
def soft(net, target, tau):
    a = list(net.parameters())
    b = list(target.parameters())
    for i in range(len(a)):
        b[i].data.copy_(tau * a[i].data + (1 - tau) * b[i].data)
''',
        '''\
def soft(net, target, tau):
    for p, q in zip(net.parameters(), target.parameters()):
        q.data.copy_(tau * p.data + (1 - tau) * q.data)
''',
        'tau * p.data + (1 - tau) * q.data', 'tau * q.data + (1 - tau) * p.data',
    ),
    "itertools chain": (
        '''\
def opts(gen, enc, lr):
    params = list(gen.parameters()) + list(enc.parameters())
    return torch.optim.Adam(params, lr=lr, betas=(0.5, 0.999))
''',
        '''\
import itertools

def opts(gen, enc, lr):
    params = itertools.chain(gen.parameters(), enc.parameters())
    return torch.optim.Adam(params, lr=lr, betas=(0.5, 0.999))
''',
        'itertools.chain(gen.parameters(), enc.parameters())', 'itertools.chain(gen.parameters(), gen.parameters())',
    ),
    "itertools product": (
        '''\
def anchors(scales, ratios):
    out = []
    for s in scales:
        for r in ratios:
            out.append([s * math.sqrt(r), s / math.sqrt(r)])
    return torch.tensor(out).cuda()
''',
        '''\
import itertools

def anchors(scales, ratios):
    out = [[s * math.sqrt(r), s / math.sqrt(r)] for s, r in itertools.product(scales, ratios)]
    return torch.tensor(out).cuda()
''',
        's / math.sqrt(r)', 's * math.sqrt(r)',
    ),
    "dict dispatch": (
        '''\
def make(name, params, lr):
    if name == "sgd":
        return torch.optim.SGD(params, lr=lr, momentum=0.9)
    elif name == "adam":
        return torch.optim.Adam(params, lr=lr)
    elif name == "rms":
        return torch.optim.RMSprop(params, lr=lr, alpha=0.95)
    raise ValueError(name)
''',
        '''\
def make(name, params, lr):
    table = {
        "sgd": lambda: torch.optim.SGD(params, lr=lr, momentum=0.9),
        "adam": lambda: torch.optim.Adam(params, lr=lr),
        "rms": lambda: torch.optim.RMSprop(params, lr=lr, alpha=0.95),
    }
    if name not in table:
        raise ValueError(name)
    return table[name]()
''',
        'alpha=0.95', 'alpha=0.99',
    ),
    "dict of classes": (
        '''\
def act(name):
    if name == "relu":
        layer = nn.ReLU()
    elif name == "gelu":
        layer = nn.GELU()
    else:
        layer = nn.Tanh()
    return layer
''',
        '''\
ACTS = {"relu": nn.ReLU, "gelu": nn.GELU}

def act(name):
    return ACTS.get(name, nn.Tanh)()
''',
        'nn.Tanh', 'nn.Sigmoid',
    ),
    "kwargs unpack": (
        '''\
def loader(ds, bs):
    return torch.utils.data.DataLoader(ds, batch_size=bs, shuffle=True, drop_last=True, num_workers=2)
''',
        '''\
def loader(ds, bs):
    kwargs = dict(batch_size=bs, shuffle=True, drop_last=True, num_workers=4)
    return torch.utils.data.DataLoader(ds, **kwargs)
''',
        'shuffle=True', 'shuffle=False',
    ),
    "kwargs dict literal": (
        '''\
class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a = nn.Conv2d(d, d, 3, padding=1, bias=False)
        self.b = nn.Conv2d(d, d, 3, padding=1, bias=False)

    def forward(self, x):
        return self.b(F.relu(self.a(x)))
''',
        '''\
class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        conv = {"kernel_size": 3, "padding": 1, "bias": False}
        self.a = nn.Conv2d(d, d, **conv)
        self.b = nn.Conv2d(d, d, **conv)

    def forward(self, x):
        return self.b(F.relu(self.a(x)))
''',
        '"padding": 1', '"padding": 0',
    ),
    "decorator no_grad": (
        '''\
def sample(net, z):
    with torch.no_grad():
        out = net(z.cuda())
        return out.clamp(0, 1)
''',
        '''\
@torch.no_grad()
def sample(net, z):
    out = net(z.cuda())
    return out.clamp(0, 1)
''',
        'clamp(0, 1)', 'clamp(-1, 1)',
    ),
    "comprehension from loop": (
        '''\
def groups(model, wd):
    decay = []
    rest = []
    for n, p in model.named_parameters():
        if p.ndim >= 2:
            decay.append(p)
        else:
            rest.append(p)
    return [{"params": decay, "weight_decay": wd}, {"params": rest, "weight_decay": 0.0}]
''',
        '''\
def groups(model, wd):
    params = [p for _, p in model.named_parameters()]
    decay = [p for p in params if p.ndim >= 2]
    rest = [p for p in params if p.ndim < 2]
    return [{"params": decay, "weight_decay": wd}, {"params": rest, "weight_decay": 0.0}]
''',
        '{"params": decay, "weight_decay": wd}, {"params": rest, "weight_decay": 0.0}',
        '{"params": decay, "weight_decay": 0.0}, {"params": rest, "weight_decay": wd}',
    ),
    "sum generator": (
        '''\
def total(losses, weights):
    out = 0
    for k in losses:
        out = out + weights[k] * losses[k]
    return out
''',
        '''\
def total(losses, weights):
    return sum(weights[k] * loss for k, loss in losses.items())
''',
        'weights[k] * loss', 'loss',
    ),
    "early return": (
        '''\
def mixup(x, y, alpha):
    if alpha > 0:
        lam = np.random.beta(alpha, alpha)
        index = torch.randperm(x.size(0)).cuda()
        x = lam * x + (1 - lam) * x[index]
        y = lam * y + (1 - lam) * y[index]
    return x, y
''',
        '''\
def mixup(x, y, alpha):
    if alpha <= 0:
        return x, y
    lam = np.random.beta(alpha, alpha)
    index = torch.randperm(x.size(0)).cuda()
    x = lam * x + (1 - lam) * x[index]
    y = lam * y + (1 - lam) * y[index]
    return x, y
''',
        '    y = lam * y + (1 - lam) * y[index]', '    y = lam * y + (1 - lam) * y',
    ),
    "early continue": (
        '''\
def run(model, loader, opt):
    for x, y in loader:
        if x.size(0) > 1:
            loss = F.mse_loss(model(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
''',
        '''\
def run(model, loader, opt):
    for x, y in loader:
        if not x.size(0) > 1:
            continue
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
''',
        'if not x.size(0) > 1', 'if x.size(0) > 1',
    ),
    "pathlib": (
        '''\
def load(root, name, model):
    path = os.path.join(root, name + ".pth")
    if os.path.exists(path):
        state = torch.load(path, map_location="cuda")
        model.load_state_dict(state["model"])
        return state["epoch"] + 1
    return 0
''',
        '''\
from pathlib import Path

def load(root, name, model):
    path = Path(root) / f"{name}.pth"
    if path.is_file():
        state = torch.load(path, map_location="cuda")
        model.load_state_dict(state["model"])
        return state["epoch"] + 1
    return 0
''',
        'state["epoch"] + 1', 'state["epoch"]',
    ),
    "layers in a loop": (
        '''\
class Mlp(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.l1 = nn.Linear(d, h)
        self.l2 = nn.Linear(h, h)
        self.l3 = nn.Linear(h, 1)

    def forward(self, x):
        x = torch.tanh(self.l1(x))
        x = torch.tanh(self.l2(x))
        return self.l3(x)
''',
        '''\
class Mlp(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.l1 = nn.Linear(d, h)
        self.l2 = nn.Linear(h, h)
        self.l3 = nn.Linear(h, 1)

    def forward(self, x):
        for layer in (self.l1, self.l2):
            x = torch.tanh(layer(x))
        return self.l3(x)
''',
        '(self.l1, self.l2)', '(self.l1,)',
    ),
    "inline temporaries": (
        '''\
def attend(q, k, v, mask, d):
    s = torch.matmul(q, k.transpose(-2, -1))
    s = s / math.sqrt(d)
    s = s.masked_fill(mask == 0, -1e9)
    p = F.softmax(s, dim=-1)
    return torch.matmul(p, v)
''',
        '''\
def attend(q, k, v, mask, d):
    scores = (q @ k.transpose(-2, -1) / math.sqrt(d)).masked_fill(mask == 0, -1e9)
    return scores.softmax(dim=-1) @ v
''',
        'dim=-1', 'dim=-2',
    ),
    "boolean de morgan": (
        '''\
def keep(box, score, lo):
    if not (score < lo or box.area == 0):
        return True
    return False

def pick(boxes, scores, lo):
    return [b for b, s in zip(boxes, scores) if keep(b, s, lo)]
''',
        '''\
def keep(box, score, lo):
    return score >= lo and box.area != 0

def pick(boxes, scores, lo):
    return [b for b, s in zip(boxes, scores) if keep(b, s, lo)]
''',
        'score >= lo and', 'score >= lo or',
    ),
    "augmented": (
        '''\
def returns(rewards, gamma):
    R = 0
    out = []
    for r in rewards[::-1]:
        R = r + gamma * R
        out.insert(0, R)
    return torch.tensor(out).cuda()
''',
        '''\
def returns(rewards, gamma):
    running, out = 0, []
    for r in reversed(rewards):
        running = r + gamma * running
        out.append(running)
    out.reverse()
    return torch.tensor(out).cuda()
''',
        '    out.reverse()\n', '',
    ),
    "list of so many": (
        '''\
def make(n, rng):
    pairs = []
    for _ in range(n):
        pairs.append(rng.randn(3).cuda())
    return pairs
''',
        '''\
def make(n, rng):
    return [rng.randn(3).cuda() for _ in range(n)]
''',
        'range(n)', 'range(n // 2)',
    ),
    "tuple assign": (
        '''\
def split(batch):
    x = batch["image"].cuda()
    y = batch["label"].cuda()
    m = batch["mask"].cuda()
    return x, y, m
''',
        '''\
def split(batch):
    x, y, m = (batch[key].cuda() for key in ("image", "label", "mask"))
    return x, y, m
''',
        '("image", "label", "mask")', '("image", "mask", "label")',
    ),
}  # fmt: skip


def judged(before: str, after: str) -> tuple[list[str], list[str]]:
    """What speaks against a port, and what reading leaves open."""
    after = after.replace("cuda", "npu")
    sides = [Side(Path(), {"train.py": f"{HEAD}{text}".encode()}) for text in (before, after)]
    found = differences(*sides)
    return [each.message for each in found.against], [each.message for each in found.open]


#: Slips that reading does not see.
UNSEEN = ("walrus if", "itertools chain")


@pytest.mark.parametrize("name", REWRITTEN)
def test_what_comes_to_the_same_is_not_accused(name: str) -> None:
    before, after, _, _ = REWRITTEN[name]
    assert judged(before, after)[0] == []


@pytest.mark.parametrize("name", sorted({*REWRITTEN} - {*UNSEEN}))
def test_a_slip_in_what_was_rewritten_is_told_or_not_decided(name: str) -> None:
    before, after, old, new = REWRITTEN[name]
    assert old in after
    assert judged(before, after.replace(old, new)) != ([], [])


LOOP = """\
def train(model, loader, opt, critic):
    for x in loader:
        if x.size(0) > 1:
            loss = model(x).mean()
            loss.backward()
            opt.step()
    opt.zero_grad()
    critic.zero_grad()
"""


ZERO, BOTH = "    opt.zero_grad()\n", "    opt.zero_grad()\n    critic.zero_grad()\n"
STEPS = LOOP[LOOP.index("        if x") : LOOP.index(BOTH)]
LEFT = STEPS.replace(":\n", ":\n            continue\n").replace("            loss", "        loss")
LEFT = LEFT.replace("            opt", "        opt")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (BOTH, "    for each in (opt, critic):\n        each.zero_grad()\n", ""),
        (ZERO, "    try:\n        opt.zero_grad()\n    finally:\n        torch.cuda.empty_cache()\n", ""),
        (ZERO, "    try:\n        opt.zero_grad()\n    except KeyboardInterrupt:\n        print(1)\n", ""),
        (ZERO, "    try:\n        opt.zero_grad()\n    except RuntimeError:\n        print(1)\n", "try"),
        (STEPS, LEFT.replace("if x", "if not x"), ""),
        (STEPS, LEFT, "opposite condition"),
    ],
)
def test_what_stands_for_the_same(old: str, new: str, words: str) -> None:
    assert old in LOOP
    against, left = judged(LOOP, LOOP.replace(old, new))
    told = [*against, *(left if words else ())]
    assert bool(told) == bool(words) and (not words or any(words in each for each in told)), told


SURE = """\
def run(args, loader, model, opt):
    args.device = "cuda" if args.amp else "cpu"
    for x in loader:
        t = torch.randint(args.steps, size=(4,))
        loss = model(x, t).mean()
        if not args.frozen and loss > 0:
            loss.backward()
    args.fp16 = dict(fp16=False, steps=10, frozen=False)
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("randint(args.steps", "randint(1, args.steps", "became `torch.randint(1, args.steps, size=(4,))`"),
        ("not args.frozen and", "not args.frozen and args.fp16 and", "fp16 was added to the condition"),
        ("loss.backward()", "loss.backward()\n            print(loss)", ""),
        ("loss = model(x, t).mean()", "out = model(x, t)\n        loss = out.mean()", ""),
    ],
)
def test_one_small_thing_is_listed(old: str, new: str, words: str) -> None:
    assert old in SURE
    against, left = judged(SURE, SURE.replace(old, new))
    assert not against
    assert not words or any(words in each for each in left), left


#: A training step, the same with a helper, and slips in the latter: (what it is instead, the words that tell it).
STEP = """\
def fit(net, loader, optimizer, weight):
    total = 0
    for x, y in loader:
        out = net(x.cuda())
        loss = F.mse_loss(out, y) + weight * out.abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""
STEP_BY_HELPER = """\
def both(net, x, y, weight):
    seen = net(x.npu())
    return nn.MSELoss()(seen, y) + weight * seen.abs().mean()


def fit(net, loader, optimizer, weight):
    total = 0
    for batch in loader:
        x, y = batch
        loss = both(net, x, y, weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


def test_a_helper_is_followed() -> None:
    assert judged(STEP, STEP_BY_HELPER) == ([], [])


@pytest.mark.parametrize(
    ("old", "new"),
    [("(seen, y)", "(y, y)"), ("weight * seen", "2 * weight * seen"),
     ("        optimizer.step()\n", "        if total < 9:\n            optimizer.step()\n")],
)  # fmt: skip
def test_a_slip_in_a_helper_is_not_accepted(old: str, new: str) -> None:
    assert old in STEP_BY_HELPER
    assert judged(STEP, STEP_BY_HELPER.replace(old, new)) != ([], [])
