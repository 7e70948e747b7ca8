"""Small programs on the emulated NPU: with mixed precision they train as in float32, and no optimizer is starved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.distributed.running import emulated, migrated

pytestmark = pytest.mark.torch

HEAD = """\
import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.optimizer import register_optimizer_step_post_hook

torch.manual_seed(0)
taken, losses = {}, []


def count(optimizer, args, kwargs):
    taken[len(optimizer.param_groups[0]["params"])] = taken.get(len(optimizer.param_groups[0]["params"]), 0) + 1


register_optimizer_step_post_hook(count)
data = [torch.randn(8, 6) for _ in range(24)]


def net(*sizes):
    layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), nn.Tanh())]
    return nn.Sequential(*layers[:-1]).cuda()


"""
END = '\nprint("RESULT " + json.dumps({"steps": taken, "losses": losses}))\n'
GAN_HEAD = """
G, D = net(3, 8, 6), net(6, 8, 8, 1)
optG = torch.optim.SGD(G.parameters(), lr=0.05)
optD = torch.optim.SGD(D.parameters(), lr=0.05)
"""
PROGRAMS = {
    "generator_first": GAN_HEAD
    + """
for real in data:
    real = real.cuda()
    fake = G(torch.ones(8, 3).cuda())
    optG.zero_grad()
    g_loss = F.softplus(-D(fake)).mean()
    g_loss.backward()
    optG.step()
    optD.zero_grad()
    d_loss = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
    d_loss.backward()
    optD.step()
    losses += [g_loss.item(), d_loss.item()]
""",
    "two_passes": GAN_HEAD
    + """
for real in data:
    D.zero_grad()
    errD_real = F.softplus(-D(real.cuda())).mean()
    errD_real.backward()
    fake = G(torch.ones(8, 3).cuda())
    errD_fake = F.softplus(D(fake.detach())).mean()
    errD_fake.backward()
    optD.step()
    G.zero_grad(); errG = F.softplus(-D(fake)).mean(); errG.backward(); optG.step()
    losses += [errD_real.item(), errG.item()]
""",
    "methods": """
class Trainer:
    def __init__(self):
        self.G, self.D = net(3, 8, 6), net(6, 8, 8, 1)
        self.g_opt = torch.optim.SGD(self.G.parameters(), lr=0.05)
        self.d_opt = torch.optim.SGD(self.D.parameters(), lr=0.05)

    def train_d(self, real):
        self.d_opt.zero_grad()
        with torch.no_grad():
            fake = self.G(torch.ones(8, 3).cuda())
        loss = F.relu(1 - self.D(real)).mean() + F.relu(1 + self.D(fake)).mean()
        loss.backward()
        self.d_opt.step()
        losses.append(loss.item())

    def train_g(self):
        self.g_opt.zero_grad()
        loss = -self.D(self.G(torch.ones(8, 3).cuda())).mean()
        loss.backward()
        self.g_opt.step()
        losses.append(loss.item())


trainer = Trainer()
for real in data:
    trainer.train_d(real.cuda())
    trainer.train_g()
""",
    "one_loss_of_two": """
body, head = net(6, 8, 8, 4), net(4, 2)
first = torch.optim.SGD(body.parameters(), lr=0.05)
second = torch.optim.SGD(head.parameters(), lr=0.05)
for x in data:
    first.zero_grad(); second.zero_grad()
    loss = (head(body(x.cuda())) - 1).pow(2).mean()
    loss.backward(); first.step(); second.step()
    losses.append(loss.item())
""",
    "function_before_its_optimizer": """
def train():
    for x in data:
        optimizer.zero_grad()
        loss = (model(x.cuda()) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


model = net(6, 8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
train()
""",
    "variational": """
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = net(6, 8, 4), net(2, 8, 6)

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, 1)
        return self.decoder(mu + 0.1 * (0.5 * logvar).exp()), mu, logvar


model = VAE()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)


@torch.no_grad()
def evaluate():
    correct = 0
    for x in data[:4]:
        out, _, _ = model(x.cuda())
        correct += ((out > 0) == (x.cuda() > 0)).float().mean().item()
    return correct / 4


for i, x in enumerate(data):
    out, mu, logvar = model(x.cuda())
    loss = F.mse_loss(out, x.cuda()) - 0.5 * torch.mean(1 + logvar - mu.pow(2) - logvar.exp())
    (loss / 2).backward()
    if i % 2:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0); optimizer.step(); optimizer.zero_grad()
    losses.append(loss.item())
evaluate()
""",
}


def result(folder: Path) -> dict[str, object]:
    line = next(line for line in emulated(folder, "train.py") if line.startswith("RESULT "))
    found: dict[str, object] = json.loads(line.removeprefix("RESULT "))
    return found


#: Runs every script of its folder: most of what a short one costs is importing torch.
ALL = """\
import runpy
import sys

for name in sys.argv[1:]:
    runpy.run_path(f"{name}.py", run_name="__main__")
"""


def results(folder: Path, programs: dict[str, Path]) -> dict[str, dict[str, object]]:
    """What scripts printed that ran one after the other in one process."""
    folder.mkdir()
    (folder / "all.py").write_text(ALL, encoding="utf-8")
    for name, where in programs.items():
        (folder / f"{name}.py").write_bytes((where / "train.py").read_bytes())
    lines = [line for line in emulated(folder, "all.py", *programs) if line.startswith("RESULT ")]
    return dict(zip(programs, (json.loads(line.removeprefix("RESULT ")) for line in lines), strict=True))


def test_all_train_as_in_float32(tmp_path: Path) -> None:
    """The scale is fixed, so that no step is left out while it settles."""
    plain, half = {}, {}
    for name in sorted(PROGRAMS):
        source = tmp_path / name / "train.py"
        source.parent.mkdir()
        source.write_text(HEAD + PROGRAMS[name] + END, encoding="utf-8")
        plain[name] = migrated(source, tmp_path / name / "plain")
        half[name] = migrated(source, tmp_path / name / "out", "--amp", "native", "--loss-scale", "1024")
        assert "autocast" in (half[name] / "train.py").read_text(encoding="utf-8"), name
    before, after = results(tmp_path / "before", plain), results(tmp_path / "after", half)
    for name in PROGRAMS:
        assert after[name]["steps"] == before[name]["steps"], name
        pairs = zip(after[name]["losses"], before[name]["losses"], strict=True)  # type: ignore[call-overload]
        assert max(abs(a - b) for a, b in pairs) < 0.02, name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["generator_first", "two_passes", "methods", "one_loss_of_two"])
def test_no_optimizer_is_starved(name: str, tmp_path: Path) -> None:
    """With a scale that settles, both leave out as many steps, but for a few of the first."""
    source = tmp_path / "train.py"
    source.write_text(HEAD + PROGRAMS[name] + END, encoding="utf-8")
    steps = result(migrated(source, tmp_path / "out", "--amp", "native"))["steps"]
    assert isinstance(steps, dict)
    assert len(steps) == 2 and min(steps.values()) >= 20 and max(steps.values()) - min(steps.values()) <= 2
