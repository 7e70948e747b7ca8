"""When the fused optimizers pack their parameters: orders of passes and steps that they take, and those that they do
not, each also run on torch_npu itself.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from tests.distributed.running import emulated, migrated
from tests.harness import migrate

TUNE = (("fused-optimizer", ""),)
HEAD = """
import torch
from torch import nn


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh())
        self.real, self.kind = nn.Linear(4, 1), nn.Linear(4, 3)

    def forward(self, x):
        out = self.body(x)
        real = self.real(out)
        kind = self.kind(out)
        return real, kind


torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)).cuda()
D = Judge().cuda()
x, z = torch.randn(2, 8, 4).cuda()
"""
MADE = """
g_optimizer = torch.optim.Adam(G.parameters(), lr=0.1)
d_optimizer = torch.optim.Adam(D.parameters(), lr=0.1)
"""
BOTH_ZEROED = "def reset():\n    d_optimizer.zero_grad()\n    g_optimizer.zero_grad()\n\n\n"

#: Name -> what runs, as `step` goes from 0 to 3.
TAKEN = {
    "the usual order": """
        fake = G(z)
        loss = fake.square().mean()
        g_optimizer.zero_grad()
        loss.backward()
        g_optimizer.step()
        d_optimizer.zero_grad()
        real, kind = D(fake.detach())
        (real.mean() + kind.square().mean()).backward()
        d_optimizer.step()
        """,
    "all of D has gradients when it is zeroed first": """
        g_optimizer.zero_grad()
        fake = G(z)
        real, kind = D(fake)
        (real.mean() + kind.square().mean()).backward()
        g_optimizer.step()
        d_optimizer.zero_grad()
        real, kind = D(fake.detach())
        (kind.square().mean() - real.mean()).backward()
        d_optimizer.step()
        """,
    "an output is left out where no step follows": """
        d_optimizer.zero_grad()
        real, kind = D(x)
        (kind.square().mean() - real.mean()).backward()
        d_optimizer.step()
        g_optimizer.zero_grad()
        real, _ = D(G(z))
        real.mean().backward()
        g_optimizer.step()
        """,
    "an output that no loss is made of": """
        d_optimizer.zero_grad()
        real, kind = D(x)
        print(kind.shape)
        real.square().mean().backward()
        d_optimizer.step()
        """,
    "a step of G now and then": """
        d_optimizer.zero_grad()
        real, kind = D(x)
        fake, other = D(G(z).detach())
        (fake.mean() - real.mean() + kind.square().mean() + other.square().mean()).backward()
        d_optimizer.step()
        if step % 2 == 0:
            g_optimizer.zero_grad()
            real, _ = D(G(z))
            (-real.mean()).backward()
            g_optimizer.step()
        """,
    "gradients of several batches": """
        loss = G(z).square().mean()
        if step % 2 == 0:
            g_optimizer.zero_grad()
        loss.backward()
        if step % 2 == 1:
            g_optimizer.step()
        """,
    "through a value that was cut": """
        memory = G(z)
        memory.mean().backward()
        memory = memory.detach()
        g_optimizer.zero_grad()
        G(memory).square().mean().backward()
        g_optimizer.step()
        """,
    "a penalty of gradients": """
        d_optimizer.zero_grad()
        given = x.clone().requires_grad_()
        real, kind = D(given)
        (slope,) = torch.autograd.grad(real.sum(), given, create_graph=True)
        (real.mean() + kind.square().mean() + slope.square().mean()).backward()
        d_optimizer.step()
        """,
}
SPLIT = "comes between a forward pass and its backward pass"
#: Name -> what runs, the optimizer that stays, and why.
NOT_TAKEN = {
    "both are zeroed behind the forward passes": (
        """
        real, kind = D(x)
        fake, _ = D(G(z))
        loss = fake.mean() - real.mean() + kind.square().mean()
        reset()
        loss.backward()
        d_optimizer.step()
        fake, _ = D(G(z))
        loss = -fake.mean()
        reset()
        loss.backward()
        g_optimizer.step()
        """,
        "g_optimizer",
        f"its zero_grad (train.py:27) {SPLIT} (train.py:41), with gradients there and no step before",
    ),
    "twice back": (
        """
        loss = G(z).square().mean()
        loss.backward(retain_graph=True)
        g_optimizer.zero_grad()
        loss.backward()
        g_optimizer.step()
        """,
        "g_optimizer",
        SPLIT,
    ),
    "an output is left out before D is zeroed": (
        """
        g_optimizer.zero_grad()
        real, _ = D(G(z))
        (-real.mean()).backward()
        g_optimizer.step()
        d_optimizer.zero_grad()
        real, kind = D(x)
        (real.mean() + kind.square().mean()).backward()
        d_optimizer.step()
        """,
        "d_optimizer",
        "it would pack the parameters with gradients at train.py:31, and the layers of output 2 of D have none there",
    ),
    "the same, and a name for it that no loss is made of": (
        """
        real, unused = D(G(z))
        (-real.mean()).backward()
        d_optimizer.zero_grad()
        real, kind = D(x)
        (real.mean() + kind.square().mean()).backward()
        d_optimizer.step()
        """,
        "d_optimizer",
        "the layers of output 2 of D have none there",
    ),
    "an output is left out of every other step": (
        """
        d_optimizer.zero_grad()
        real, kind = D(x)
        (real.mean() + kind.square().mean()).backward()
        d_optimizer.step()
        d_optimizer.zero_grad()
        real, _ = D(z)
        (-real.mean()).backward()
        d_optimizer.step()
        """,
        "d_optimizer",
        "the layers of output 2 of D have no gradients at its step (train.py:34), but have some at another",
    ),
    "gradients of gradients": (
        """
        g_optimizer.zero_grad()
        G(z).square().mean().backward(create_graph=True)
        g_optimizer.step()
        """,
        "g_optimizer",
        "backward(create_graph=True) replaces gradients",
    ),
}


def program(body: str, made: str = MADE) -> str:
    both = BOTH_ZEROED if "reset()" in body else ""
    return f"{HEAD}{made}{both}for step in range(4):\n{textwrap.indent(textwrap.dedent(body), ' ' * 4)}"


@pytest.mark.parametrize("body", TAKEN.values(), ids=TAKEN)
def test_orders_that_the_fused_optimizers_take(body: str) -> None:
    result = migrate(program(body), path="train.py", tune=TUNE)
    assert result.data.count(b"torch_npu.optim.NpuFusedAdam(") == 2
    assert not [finding.message for finding in result.findings if finding.code == "NPU750" and finding.open]


@pytest.mark.parametrize(("body", "name", "why"), NOT_TAKEN.values(), ids=NOT_TAKEN)
def test_orders_that_they_do_not_take(body: str, name: str, why: str) -> None:
    result = migrate(program(body), path="train.py", tune=TUNE)
    assert f"{name} = torch.optim.Adam(" in result.data.decode()
    (said,) = {finding.message for finding in result.findings if finding.code == "NPU750" and finding.open}
    assert why in said
    assert all(finding.help for finding in result.findings if finding.code == "NPU750" and finding.open)


def test_another_function_that_goes_back_takes_nothing_from_what_was_seen() -> None:
    body, _, why = NOT_TAKEN["an output is left out before D is zeroed"]
    other = "def other():\n    G(z).mean().backward()\n\n\n"
    result = migrate(program(body, MADE + other), path="train.py", tune=TUNE)
    assert b"d_optimizer = torch.optim.Adam(" in result.data and b"g_optimizer = torch_npu" in result.data
    assert any(why.partition(" at ")[0] in finding.message for finding in result.findings)


def test_what_sgd_does_not_move_may_be_left_out_of_a_step() -> None:
    """Without momentum and decay, a parameter whose gradient is zero stays where it is."""
    body, _, _ = NOT_TAKEN["an output is left out of every other step"]
    plain = "d_optimizer = torch.optim.SGD(D.parameters(), lr=0.1{})\n"
    assert b"NpuFusedSGD(" in migrate(program(body, plain.format("")), tune=TUNE).data
    assert b"NpuFused" not in migrate(program(body, plain.format(", momentum=0.9")), tune=TUNE).data
    assert b"NpuFused" not in migrate(program(body, plain.format(", weight_decay=0.1")), tune=TUNE).data


SCALED = """
    loss = G(z).square().mean()
    g_optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(g_optimizer)
    scaler.update()
    """


@pytest.mark.parametrize(
    ("scaler", "body", "stays"),
    [
        ('torch.amp.GradScaler("cuda")', SCALED, True),
        ("torch.cuda.amp.GradScaler()", SCALED, True),
        ("torch.npu.amp.GradScaler()", SCALED, False),  # packs when it unscales
        (
            'torch.amp.GradScaler("cuda")',
            "g_optimizer.zero_grad()\n" + textwrap.dedent(SCALED).replace("g_optimizer.zero_grad()\n", ""),
            False,
        ),
    ],
)
def test_a_scaler_may_leave_out_the_first_step(scaler: str, body: str, stays: bool) -> None:
    made = f"g_optimizer = torch.optim.Adam(G.parameters(), lr=0.1)\nscaler = {scaler}\n"
    result = migrate(program(body, made), tune=TUNE)
    assert (b"NpuFused" not in result.data) is stays
    assert any("if the scaler skips the first step" in each.message for each in result.findings) is stays


@pytest.mark.parametrize(("amp", "stays"), [("off", False), ("native", True)])
def test_so_may_the_scaler_of_mixed_precision(amp: str, stays: bool) -> None:
    source = """
        import torch

        model = torch.nn.Linear(4, 4).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        for x, y in torch.utils.data.DataLoader(data):
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    assert (b"NpuFused" not in migrate(source, tune=TUNE, amp=amp).data) is stays


def test_a_step_that_is_not_in_sight_says_nothing_of_the_order() -> None:
    body = "loss = G(z).square().mean()\ng_optimizer.zero_grad()\nloss.backward()\nlibrary.after(loss)\n"
    assert b"NpuFused" in migrate(program(body), tune=TUNE).data


@pytest.mark.parametrize(
    "read", ['int(state["step"])', 'optimizer.state[p]["step"] + 1', 'optimizer.state[p]["exp_avg"].norm()']
)
def test_states_that_may_be_read(read: str) -> None:
    source = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\noptimizer = torch.optim.Adam(model.parameters())\n"
    assert b"NpuFused" in migrate(f"{source}print({read})\n", tune=TUNE).data
    result = migrate(f'{source}print(optimizer.state[p]["step"].item())\n', tune=TUNE)
    assert b"NpuFused" not in result.data
    assert "its step count is read as a tensor" in "".join(each.message for each in result.findings)


# --- on torch_npu itself ---------------------------------------------------------------------------------------------

_RUN = """
import json
import sys

import torch_npu

cases = json.load(open("cases.json"))
found = {}
for name, (head, body) in cases.items():
    ends = []
    for fused in ([], ["g_optimizer"], ["d_optimizer"]):
        text = head
        for each in fused:
            text = text.replace(f"{each} = torch.optim.Adam", f"{each} = torch_npu.optim.NpuFusedAdam")
        space = {"torch_npu": torch_npu}
        try:
            exec(text + body, space)
        except (KeyError, RuntimeError) as stop:
            ends.append(type(stop).__name__)
        else:
            every = [p.detach().cpu().flatten() for net in (space["G"], space["D"]) for p in net.parameters()]
            ends.append(torch.cat(every))
    found[name] = [
        end if isinstance(end, str) else "equal" if torch.allclose(end, ends[0], atol=1e-5) else "differs"
        for end in ends
    ]
print(json.dumps(found))
"""


@pytest.mark.torch
@pytest.mark.card
def test_what_torch_npu_makes_of_each_order(tmp_path: Path) -> None:
    bodies = {**TAKEN, **{name: body for name, (body, _, _) in NOT_TAKEN.items()}}
    cases = {}
    for name, body in bodies.items():
        head, loop, rest = program(body.replace("print(kind.shape)", "kind.shape")).partition("for step in")
        cases[name] = [head.replace(".cuda()", ".npu()"), loop + rest]
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    (tmp_path / "main.py").write_text(f"import torch\n{_RUN}", encoding="utf-8")
    found = json.loads(emulated(tmp_path, "main.py")[-1])
    fused = ("g_optimizer", "d_optimizer")
    for name, (plain, *ends) in found.items():
        stays = NOT_TAKEN[name][1] if name in NOT_TAKEN else ""
        assert plain == "equal"
        assert {each: end != "equal" for each, end in zip(fused, ends, strict=True)} == {
            each: each == stays for each in fused
        }, (name, ends)


@pytest.mark.torch
@pytest.mark.card
def test_a_gan_with_all_tunings_trains_as_it_did(tmp_path: Path) -> None:
    source = tmp_path / "train.py"
    body, _, _ = NOT_TAKEN["both are zeroed behind the forward passes"]
    source.write_text(program(f"{textwrap.dedent(body)}print(f'{{loss.item():.5f}}')\n"), encoding="utf-8")
    plain, tuned = migrated(source, tmp_path / "plain"), migrated(source, tmp_path / "tuned", "--tune", "all")
    written = (tuned / "train.py").read_text(encoding="utf-8")
    assert written.count("torch_npu.optim.NpuFusedAdam(D.parameters(), lr=0.1)") == 1
    assert written.count("torch.optim.Adam(G.parameters(), lr=0.1)") == 1
    assert emulated(tuned, "train.py") == emulated(plain, "train.py") != []
