"""Remarks that are true: on sums as losses, learning rates, memories; layers without gradients, bars around data."""

from __future__ import annotations

import textwrap

import pytest

from tests.distributed.test_pairs import distributed, left, script
from transplt.base.finding import FileResult

STEPS = "for epoch in range(3):\n    for x in loader:\n        model(x).backward()\n        optimizer.step()\n"


def said(result: FileResult, code: str) -> list[str]:
    return [finding.message for finding in result.findings if finding.code == code]


# --- sums as losses ---------------------------------------------------------------------------------------------------

SUM = "torch.nn.functional.mse_loss(model(x), x, reduction='sum')"
TEST = """\
def test(model, loader):
    total = 0
    with torch.no_grad():
        for x in loader:
            total += {}

"""


@pytest.mark.parametrize(
    ("head", "call"),
    [
        (TEST.format(SUM), "test(model, net.other)"),
        (TEST.format(SUM).replace("with torch.no_grad()", "if 1"), "with torch.no_grad():\n    test(model, net.other)"),
        ("", f"with torch.no_grad():\n    print({SUM})"),
        ("judge = torch.nn.MSELoss(reduction='sum')", "with torch.no_grad():\n    print(judge(model(x), x))"),
    ],
)
def test_a_sum_that_only_evaluates_is_not_spoken_of(head: str, call: str) -> None:
    result = distributed(script(head=head, loop=STEPS + textwrap.indent(call, "    ")))
    assert not any("is a sum, but" in finding.message for finding in result.findings)


@pytest.mark.parametrize(
    ("head", "loss"),
    [
        ("", SUM),
        ("judge = torch.nn.MSELoss(reduction='sum')", "judge(model(x), x)"),
        (f"def judge(model, x):\n    return {SUM}", "judge(model, x)"),
        (TEST.format("judge(model(x), x)") + "judge = torch.nn.MSELoss(reduction='sum')", "judge(model(x), x)"),
    ],
)
def test_a_sum_that_trains_is(head: str, loss: str) -> None:
    assert "NPU346" in left(distributed(script(head=head, loop=STEPS.replace("model(x)", loss))))


JUDGE = "judge = torch.nn.MSELoss(reduction='sum')\n"
ELBO = f"def elbo(y, x):\n    a = {SUM.replace('model(x)', 'y')}\n    return a + y.mean(), a.detach()\n\n\n"


@pytest.mark.parametrize(
    ("head", "loss", "told"),
    [
        ("", f"loss = {SUM} / len(x)", False),
        ("", f"loss = {SUM} / 3 / x.size(0)", False),
        ("", f"n = x.shape[0]\nloss = model(x).mean() + 0.1 * {SUM} / n", False),
        ("", f"loss = {SUM} / net.args.batch_size", False),
        (JUDGE, "loss = judge(model(x), x) / len(x)", False),
        (ELBO, "total, a = elbo(model(x), x)\nloss = total / (net.BATCH * 2)", False),
        ("", f"loss = {SUM} / 2", True),
        ("", f"loss = {SUM} / len(dataset)", True),
        ("", f"loss = {SUM} / net.num_batches", True),
        (JUDGE, "loss = judge(model(x), x) / len(x) + judge(model(x), x + 1)", True),
        (ELBO, "loss, a = elbo(model(x), x)\nprint(a / len(x))", True),
    ],
)
def test_a_sum_that_is_divided_by_the_size_of_its_batch_is_a_mean(head: str, loss: str, told: bool) -> None:
    body = textwrap.indent(f"{loss}\nloss.backward()\noptimizer.step()\n", " " * 8)
    result = distributed(script(head=head, loop=f"for epoch in range(3):\n    for x in loader:\n{body}"))
    assert ("NPU346" in left(result)) is told


# --- learning rates ---------------------------------------------------------------------------------------------------


def test_one_remark_on_the_rate_of_an_optimizer_of_two_models() -> None:
    made = "model, other = net().cuda(), net().cuda()"
    both = "SGD([*model.parameters(), *other.parameters()]"
    source = script(model=made, loop=STEPS).replace("SGD(model.parameters()", both)
    assert len(said(distributed(source), "NPU348")) == 1


# --- memories and layers without gradients ----------------------------------------------------------------------------

MEMORY = """\
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        self.first = torch.nn.Linear(2, 2)
        self.late = torch.nn.Sequential(torch.nn.Linear(2, 2))
        {}
        self.register_buffer("queue", torch.randn(2, 8))

    def forward(self, x):
        with torch.no_grad():
            key = self.late(x)
        return self.one(self.two(self.first(x))) @ key.T
"""
PAIRS = "for p, q in zip(self.first.parameters(), self.late.parameters()):\n            {}.requires_grad = False"


@pytest.mark.parametrize(
    ("frozen", "unused"),
    [
        (PAIRS.format("q"), False),
        (PAIRS.format("p"), True),
        ("for p in self.late.parameters():\n            p.requires_grad = False", False),
        ("for p in self.late.parameters():\n            p.requires_grad = True", True),
        ("self.late.requires_grad_(False)", False),
        ("self.first.requires_grad_(False)", True),
        ("pass", True),
    ],
)
def test_a_part_that_is_frozen_from_the_start_waits_for_no_gradients(frozen: str, unused: bool) -> None:
    result = distributed(script(head=MEMORY.format(frozen), model="model = Model().cuda()", loop=STEPS))
    assert ("find_unused_parameters=True" in result.data.decode()) is unused
    assert [each.partition(": ")[2][:12] for each in said(result, "NPU353")] == ["the wrapper "]


def test_a_memory_without_a_wrapper_is_that_of_each_rank() -> None:
    head = MEMORY.format("pass").replace("def forward", "def loss")
    loop = STEPS.replace("model(x)", "model.loss(x)")
    result = distributed(script(head=head, model="model = Model().cuda()", loop=loop))
    assert [each.partition(": ")[2][:9] for each in said(result, "NPU353")] == ["each rank"]


@pytest.mark.parametrize(
    ("model", "whose"),
    [
        ("model = net().cuda()\nbank = Model().cuda()", "each rank"),  # no wrapper sends its buffers
        ("model = Model().cuda()", "the wrapp"),
        ("model = torch.nn.Sequential(net(), Model()).cuda()", "the wrapp"),
        ("model = net().cuda()", "the wrapp"),  # who makes it is not seen
    ],
)
def test_whose_a_memory_is(model: str, whose: str) -> None:
    result = distributed(script(head=MEMORY.format("pass"), model=model, loop=STEPS))
    assert [each.partition(": ")[2][:9] for each in said(result, "NPU353")] == [whose]


CODEBOOK = """\
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.register_buffer("embed", torch.randn(4, 2))
        self.register_buffer("running_mean", torch.zeros(2))

    def forward(self, x):
        {}
        return self.layer(x) + self.embed[0]

    def learn(self, data=None):
        {}
"""


@pytest.mark.parametrize(
    ("forward", "learn", "told"),
    [
        ("self.embed.mul_(0.9).add_(x.mean(0), alpha=0.1)", "pass", True),
        ("code = self.layer(x); self.embed.data.copy_(code)", "pass", True),
        ("self.learn(x.detach())", "self.embed.data.copy_(data[:4])", True),
        ("self.learn()", "self.embed.mul_(0.9)", False),  # alike on all ranks
        ("self.running_mean.add_(x.mean(0))", "pass", False),
        ("x = x + self.embed.sum()", "self.embed.data.copy_(data[:4])", False),  # who calls it is not the forward pass
        ("pass", "pass", False),
    ],
)
def test_a_buffer_that_learns_from_a_batch(forward: str, learn: str, told: bool) -> None:
    result = distributed(script(head=CODEBOOK.format(forward, learn), model="model = Model().cuda()", loop=STEPS))
    assert [each.partition(": ")[2][:12] for each in said(result, "NPU353")] == ["the wrapper "] * told


# --- bars around data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bar", ["click.progressbar(loader, label='x')", "alive_it(loader)", "net.bar(loader)"])
def test_a_loader_that_is_read_through_an_open_bar(bar: str) -> None:
    loop = f"for epoch in range(3):\n    with {bar} as bar:\n        for x in bar:\n            model(x).backward()"
    result = distributed(script(head="import click\nfrom alive_progress import alive_it", loop=loop))
    assert not left(result) and "\nloader = npu_port.shard(loader)\n" in result.data.decode()


def test_a_network_that_steps_in_some_rounds_accumulates_nothing() -> None:
    """Each pass has its own step, as in a WGAN."""
    loop = """\
for epoch in range(3):
    for i, x in enumerate(loader):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        if i % 3 == 0:
            second.zero_grad()
            critic(x).sum().backward()
            second.step()
"""
    made = "model = net().cuda()\ncritic = net().cuda()\nsecond = torch.optim.SGD(critic.parameters(), lr=0.1)"
    assert left(distributed(script(model=made, loop=loop))) == []


@pytest.mark.parametrize(
    ("same", "distance", "remarked"),
    [
        ("y[:, None] == y[None, :]", "torch.cdist(emb, emb)", True),
        ("y.unsqueeze(0) == y.unsqueeze(1)", "emb @ emb.t()", True),
        ("y[:, None] != y[None]", "(emb[:, None] - emb[None, :]).norm(dim=2)", True),
        # Against what is no sample of the batch; positions; no distance.
        ("y[:, None] == classes[None, :]", "(emb[:, None] - centers[None, :]).norm(dim=2)", False),
        ("torch.arange(8)", "position[:, None] - position[None, :]", False),
        ("y[:, None] == y[None, :]", "emb.norm()", False),
        ("y[3] == y", "emb @ emb.t()", False),
        ("torch.stack([y[i] == y for i in rows])", "emb @ emb.t()", True),
        ("torch.stack([y[i] == y for i in rows])", "emb @ memory.t()", False),
    ],
)
def test_the_hardest_of_a_batch(same: str, distance: str, remarked: bool) -> None:
    loop = f"""\
for epoch in range(3):
    for x, y in loader:
        emb = model(x)
        same = {same}
        distance = {distance}
        (distance * same).max(1).values.mean().backward()
        optimizer.step()
"""
    assert bool(said(distributed(script(loop=loop)), "NPU353")) is remarked


@pytest.mark.parametrize(
    ("loss", "remarked"),
    [
        ("loss = emb.mean()", False),
        ("kept.append((emb @ emb.t()).fill_diagonal_(0))\n        loss = sum(kept)", True),
        ("near = emb @ emb.t() - torch.eye(8)\n        loss = near.mean()", True),
    ],
)
def test_what_only_evaluates_compares_all_of_its_data(loss: str, remarked: bool) -> None:
    loop = f"""\
for epoch in range(3):
    for x in loader:
        emb = model(x)
        {loss}
        loss.backward()
        optimizer.step()
    found = net.extract(model)
    best = (found @ found.t() - 2 * torch.eye(len(found))).argmax(1)
"""
    assert bool(said(distributed(script(loop=loop)), "NPU353")) is remarked


# --- writers of TensorBoard -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("base", "told"), [("SummaryWriter", True), ("net.Writer", False), ("object", False)])
def test_a_writer_of_the_programs_own_is_made_on_each_rank(base: str, told: bool) -> None:
    head = f"from torch.utils.tensorboard import SummaryWriter\n\n\nclass Writer({base}):\n    pass\n"
    steps = f"writer = Writer('logs')\n{STEPS}    writer.add_scalar('epoch', epoch)"
    result = distributed(script(head=head, loop=steps))
    assert bool(said(result, "NPU352")) is told and b"writer = Writer('logs')\n" in result.data


# --- what is an action ------------------------------------------------------------------------------------------------

EXPERIMENT = """
class Experiment:
    def __init__(self):
        made = net()
        if net.use_multi_gpu:
            made = torch.nn.DataParallel(made, device_ids=net.cards)
        self.model = made.cuda()


model = Experiment().model
"""


@pytest.mark.parametrize(
    ("model", "loop", "code", "opens"),
    [
        ("", STEPS.replace("loader", "net.batches()"), "NPU340", True),
        ("", STEPS.replace("model(x)", SUM), "NPU346", True),
        ("", STEPS + "        if net.odd(x):\n            model(x).sum().item()", "NPU348", False),
        (EXPERIMENT, STEPS, "NPU507", False),  # one card of it in each process
    ],
)
def test_what_makes_it_another_training_is_an_action(model: str, loop: str, code: str, opens: bool) -> None:
    result = distributed(script(model=f"model = net().cuda()\n{model}", loop=loop))
    assert b"npu_port.start()" in result.data
    assert [finding.code for finding in result.findings if finding.open] == [code] * opens
