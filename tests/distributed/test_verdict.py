"""Whether a program is made distributed as a whole, and how its gradients are exchanged."""

from __future__ import annotations

import textwrap

import pytest

from tests.distributed.test_pairs import codes, distributed, left, output, script
from transplt.program import passes

WRAPPED = "= npu_port.wrap("
AVERAGED = "npu_port.average(optimizer)"
STARTED = "npu_port.start()"
OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"


def loop(body: str, head: str = "for epoch in range(3):\n    for x in loader:\n") -> str:
    return head + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8)


def refused(source: str) -> str:
    """Why a program was left whole."""
    result = distributed(source)
    assert b"npu_port" not in result.data
    messages = [finding.message for finding in result.findings if "was not made distributed" in finding.message]
    assert messages
    return messages[0].partition(": ")[2]


# --- how gradients are exchanged -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "model(x).backward()\noptimizer.step()",
        "loss = net.loss(model(x))\nloss.backward()\noptimizer.step()",
        "loss = net.loss(model(x), model(x.flip(0)))\nloss.backward()\noptimizer.step()",
        "with torch.no_grad():\n    model.encode(x)\nmodel(x).backward()\noptimizer.step()",
        "model(x).backward()\nmodel(x).backward()\noptimizer.step()",
        "model(x).backward()\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1)\noptimizer.step()",
    ],
)
def test_one_call_of_the_wrapper_for_each_backward_pass(body: str) -> None:
    found = output(script(loop=loop(body)))
    assert WRAPPED in found and AVERAGED not in found


@pytest.mark.parametrize(
    "body",
    [
        "model.energy(x).backward()\noptimizer.step()",
        "model.forward(x).backward()\noptimizer.step()",
        "a, b = model(x), model(x)\na.backward()\nb.backward()\noptimizer.step()",
        "y = model(x)\ny.mean().backward(retain_graph=True)\ny.std().backward()\noptimizer.step()",
    ],
)
def test_what_the_wrapper_does_not_see_is_averaged(body: str) -> None:
    found = output(script(loop=loop(body)))
    assert WRAPPED not in found and f"        {AVERAGED}\n        optimizer.step()\n" in found


PARTS = "def parts(y):\n    yield y.mean()\n    yield y.std()\n\n\n"


@pytest.mark.parametrize(
    "body",
    [
        "y = model(x)\nfor loss in parts(y):\n    loss.backward(retain_graph=True)\noptimizer.step()",
        "losses = [each for each in parts(model(x))]\nback(losses)\noptimizer.step()",
    ],
)
def test_losses_that_a_generator_gives_go_back_through_one_forward_pass(body: str) -> None:
    back = "def back(losses):\n    for loss in losses:\n        loss.backward(retain_graph=True)\n\n\n"
    found = output(script(head=PARTS + back, loop=loop(body)))
    assert WRAPPED not in found and f"        {AVERAGED}\n        optimizer.step()\n" in found


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (PARTS, "sum(parts(model(x))).backward()\noptimizer.step()"),
        ("def losses():\n    for x in loader:\n        yield model(x)\n\n\n",
         "for loss in losses():\n    loss.backward()\n    optimizer.step()"),
    ],
)  # fmt: skip
def test_a_generator_that_gives_one_loss_for_each_forward_pass(head: str, body: str) -> None:
    assert WRAPPED in output(script(head=head, loop=loop(body)))


SURGERY = """\
y, grads = model(x), []
for loss in (y.mean(), y.std()):
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    grads.append([p.grad.clone() for p in model.parameters()])
for p, *each in zip(model.parameters(), *grads):
    {0}
optimizer.step()"""


@pytest.mark.parametrize(
    ("change", "anew"),
    [
        ("p.grad = net.merged(each)", True),
        ("p.grad.copy_(net.merged(each))", True),
        ("p.grad.data.copy_(net.merged(each))", True),
        ("p.grad = p.grad.clamp(-1, 1)", False),
        ("p.grad = None", False),
    ],
)
def test_the_mean_is_that_of_gradients_that_were_put_together(change: str, anew: bool) -> None:
    result = distributed(script(loop=loop(SURGERY.format(change))))
    assert (f"        {AVERAGED}\n        optimizer.step()\n" in result.data.decode()) is anew
    assert ("NPU353" in codes(result, applied=False)) is anew


def test_gradients_are_averaged_before_they_are_clipped() -> None:
    found = output(
        script(
            loop=loop(
                """
                loss = model.energy(x)
                loss.backward()
                if net.clips:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
                optimizer.step()
                """
            )
        )
    )
    assert f"        loss.backward()\n        {AVERAGED}\n        if net.clips:\n" in found


def test_gradients_are_averaged_before_a_rank_looks_for_overflows() -> None:
    found = output(
        script(
            head="scaler = torch.cuda.amp.GradScaler()",
            loop=loop(
                """
                scaler.scale(model.energy(x)).backward()
                scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
                """
            ),
        )
    )
    assert f"backward()\n        {AVERAGED}\n        scaler.unscale_(optimizer)\n" in found


def test_a_closure_averages_what_decides_its_step() -> None:
    found = output(
        script(
            loop=loop(
                """
                def closure():
                    loss = model(x)
                    loss.backward()
                    return loss
                optimizer.step(closure)
                """
            )
        )
    )
    assert (
        "            loss.backward()\n            npu_port.average(optimizer)\n"
        "            mean_loss = npu_port.mean_over_ranks(loss)\n            return mean_loss\n"
        "        optimizer.step(closure)\n"
    ) in found and found.count(AVERAGED) == 1


FIT = """\
class Fit{bases}:
    def __init__(self):
        self.model = net().cuda()
        self.optimizer = torch.optim.LBFGS({trained}.parameters())

    def closure(self):
        loss = self.model(self.x).sum()
        loss.backward()
        return loss

    def run(self):
        for epoch in range(3):
            for self.x in loader:
                self.optimizer.step(self.closure)
"""


def test_a_closure_may_be_a_method() -> None:
    fit = FIT.format(bases="", trained="self.model")
    found = output(script(model=fit, loop="Fit().run()").replace(OPTIMIZER, ""))
    assert (
        "        loss.backward()\n        npu_port.average(self.optimizer)\n"
        "        mean_loss = npu_port.mean_over_ranks(loss)\n        return mean_loss\n"
    ) in found and WRAPPED not in found


@pytest.mark.parametrize(
    ("bases", "trained", "alike"),
    [("", "self.model", True), ("(Base)", "self.model", True), ("(torch.nn.Module)", "self", False)],
)
def test_ranks_begin_alike_where_a_class_makes_the_model(bases: str, trained: str, alike: bool) -> None:
    """A class of modules goes to the card later, with its optimizer in it."""
    fit = FIT.format(bases=bases, trained=trained)
    found = output(script(model=f"from project import Base\n\n{fit}", loop="Fit().run()").replace(OPTIMIZER, ""))
    assert ("npu_port.alike(self.optimizer)\n" in found) is alike


def test_a_network_that_is_not_called_is_averaged_with_the_others() -> None:
    third = "encoder = net.encoder.cuda()\nsecond = torch.optim.SGD(encoder.parameters(), lr=0.1)"
    body = "encoder.encode(model(x)).backward()\noptimizer.step()\nsecond.step()"
    found = output(script(head=third, loop=loop(body)))
    assert f"        {AVERAGED}\n        optimizer.step()\n" in found and WRAPPED not in found
    assert "        npu_port.average(second)\n        second.step()\n" in found
    assert "\nnpu_port.alike(second, optimizer)\n" in found


@pytest.mark.parametrize("freezes", ["for p in model.head.parameters():\n    p.requires_grad = False", ""])
def test_what_is_frozen_after_the_wrap(freezes: str) -> None:
    body = "model(x).backward()\noptimizer.step()"
    found = output(script(head="", loop=f"{freezes}\n{loop(body)}" if freezes else loop(body)))
    assert (AVERAGED in found) is bool(freezes) and (WRAPPED in found) is not bool(freezes)


def test_a_network_that_exists_in_training_only() -> None:
    source = script(model="model = None\nif net.trains:\n    model = net().cuda()")
    source = source.replace("model(x).backward()", "model(x).backward(); optimizer.step()")
    assert AVERAGED in output(source)


@pytest.mark.parametrize(
    ("model", "wrapped"),
    [
        ("model = net().cuda()\nmodel.head = torch.nn.Linear(3, 3).cuda()", True),
        ("model = net().cuda()\nmodel.classifier[6] = torch.nn.Linear(3, 3).cuda()", True),
        ("model = net().cuda()\nmodel.body.head = net.head().cuda()", True),
        ("model = net().cuda()\nmodel.depth = 3", True),
    ],
)
def test_a_layer_that_is_put_in_before_training_is_in_the_wrapper(model: str, wrapped: bool) -> None:
    source = script(model=model, loop=loop("model(x).backward()\noptimizer.step()"))
    assert f"{model.splitlines()[-1].replace('.cuda()', '.npu()')}\nmodel = npu_port.wrap(model)\n" in output(source)


GROWS = """
    for stage in range(3):
        {}
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in loader:
            model(x).backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("grows", "averaged"),
    [
        ("model.head = torch.nn.Linear(3, 3).cuda()", True),
        ("model.module.head = torch.nn.Linear(3, 3).cuda()", True),
        ("model.layers[stage] = torch.nn.Sequential(torch.nn.Linear(3, 3))", True),
        ("model.stage = stage", False),
        ("model.layers[stage] = None", False),
        ("model.scale = torch.ones(3)", False),
        ("net.head = torch.nn.Linear(3, 3)", False),
    ],
)
def test_a_layer_that_is_put_in_while_training(grows: str, averaged: bool) -> None:
    found = output(script(loop=textwrap.dedent(GROWS).strip("\n").format(grows)))
    assert (AVERAGED in found, WRAPPED in found) == (averaged, not averaged)


def test_data_parallel_stays_around_what_is_averaged() -> None:
    """What asks for `.module` goes on doing so; each rank computes on its own card."""
    model = "model = torch.nn.DataParallel(net(), device_ids=[0, 1]).cuda()"
    found = output(script(model=model, loop=loop("model.module.energy(x).backward()\noptimizer.step()")))
    assert "model = npu_port.OneCardDataParallel(net(), device_ids=[0, 1]).npu()\n" in found
    assert f"model.module.energy(x).backward()\n        {AVERAGED}\n" in found


def test_data_parallel_in_a_trainer_of_another_file() -> None:
    trainer = """
        import torch

        class Trainer:
            def __init__(self, model, loader, device_ids):
                self.model = model.cuda()
                if len(device_ids) > 1:
                    self.model = torch.nn.DataParallel(model, device_ids=device_ids)
                self.loader = loader
                self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

            def train(self):
                for x in self.loader:
                    self.model(x).backward()
                    self.optimizer.step()
    """
    main = """
        import torch
        from torch.utils.data import DataLoader

        from project import dataset, net
        from trainer import Trainer

        Trainer(net(), DataLoader(dataset, shuffle=True), list(range(torch.cuda.device_count()))).train()
    """
    files = {"train.py": textwrap.dedent(main), "trainer.py": textwrap.dedent(trainer)}
    result = distributed(files["trainer.py"], path="trainer.py", files=files)
    assert "npu_port.average(self.optimizer)" in result.data.decode()
    assert "npu_port.OneCardDataParallel(model, device_ids=device_ids)" in result.data.decode()


SEVERAL = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(4)])
        self.last = 3

    def forward(self, x, task=0):
        {}
        return x
"""


@pytest.mark.parametrize(
    ("body", "unused"),
    [
        ("for layer in self.layers:\n    if random.random() < 0.3:\n        continue\n    x = layer(x)", True),
        ("for layer in self.layers:\n    if torch.rand(1) > 0.3:\n        x = layer(x)", True),
        ("for i, layer in enumerate(self.layers):\n    mask = x > i\n    if mask.any():\n        x = layer(x)", True),
        ("x = random.choice(self.layers)(x)", True),
        ("x = self.layers[random.randrange(4)](x)", True),
        ("x = self.layers[task](x)", True),
        ("x = sum(layer(x) for layer in self.layers if random.random() < 0.5)", True),
        ("for i in range(4):\n    if random.random() < 0.5:\n        x = self.layers[i](x)", True),
        ("for layer in self.layers:\n    x = layer(x)", False),
        ("for i in range(4):\n    x = self.layers[i](x)", False),
        ("for layer in self.layers:\n    y = layer(x)\n    if random.random() < 0.5:\n        x = y", False),
        ("for i, layer in enumerate(self.layers):\n    x = layer(x)\n    if i == self.last:\n        break", False),
        ("for i, layer in enumerate(self.layers):\n    x = layer(x) if i > 0 else x * 2\n    x = layer(x)", False),
        ("for layer in self.layers:\n    if isinstance(layer, Net):\n        continue\n    x = layer(x)", False),
        ("x = self.layers[0](self.layers[1](x))", False),
        ("x = sum(layer(x) for layer in self.layers)", False),
        ("x = self.layers[self.last](x)", False),
    ],
)
def test_one_of_several_layers_that_a_forward_pass_may_leave_out(body: str, unused: bool) -> None:
    head = "import random\n\n" + SEVERAL.format(textwrap.indent(body, " " * 8).lstrip())
    source = script(head=head, model="model = Net().cuda()", loop=loop("model(x).backward()\noptimizer.step()"))
    found = output(source)
    assert WRAPPED in found and ("find_unused_parameters=True" in found) is unused


def test_a_layer_that_a_part_of_the_model_may_leave_out() -> None:
    parts = "import random\n\n" + SEVERAL.format("x = random.choice(self.layers)(x)").replace("class Net", "class Part")
    whole = "class Net(torch.nn.Module):\n    def __init__(self):\n        self.part = Part()\n\n"
    whole += "    def forward(self, x):\n"
    build = "        return self.part(x)\n\ndef build():\n    return Net()"
    source = script(head=parts + whole + build, model="model = build().cuda()", loop=loop("model(x).backward()"))
    assert "npu_port.wrap(model, find_unused_parameters=True)" in output(source)


def test_a_model_that_leaves_layers_out_and_runs_twice_is_averaged() -> None:
    """The wrapper would take the layers of one pass for those that the other one left out."""
    head = "import random\n\n" + SEVERAL.format("x = random.choice(self.layers)(x)")
    body = loop("(model(x) + model(x)).backward()\noptimizer.step()")
    found = output(script(head=head, model="model = Net().cuda()", loop=body))
    assert AVERAGED in found and WRAPPED not in found


MODEL = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 3)
        self.b = torch.nn.Linear(3, 3)

    def forward(self, x):
        {body}
"""
TWO_HEADS = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def forward(self, x, second=False):
        return self.b(x) if second else self.a(x)
"""


def test_heads_that_are_made_in_one_statement() -> None:
    source = script(head=TWO_HEADS, model="model = Net().cuda()", loop=loop("model(x).backward()\noptimizer.step()"))
    assert "npu_port.wrap(model, find_unused_parameters=True)" in output(source)


OWN_STEP = """\
class Own(torch.optim.{}):
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad, alpha=-0.1)
"""


@pytest.mark.parametrize("base", ["Optimizer", "SGD"])
def test_the_step_of_an_own_optimizer_is_a_step(base: str) -> None:
    source = script(head=OWN_STEP.format(base), loop=loop("model(x).backward()\noptimizer.step()"))
    found = output(source.replace("torch.optim.SGD(model", "Own(model"))
    assert WRAPPED in found


DROPPED = """\
x = self.a(x)
if self.training:
    if {}:
        return x
    return x + self.b(x)
return x + self.b(x) / 2"""


@pytest.mark.parametrize(
    ("body", "unused"),
    [
        ("return self.b(self.a(x))", False),
        ("return self.a(x)", True),
        ("return self.b(self.a(x)) if x.sum() > 0 else self.a(x)", True),
        ("return self.b(self.a(x)) if self.training else self.a(x)", True),
        ("x = self.a(x)\nif random.random() < 0.5:\n    return x\nreturn x + self.b(x)", True),
        (DROPPED.format("random.random() < 0.5"), True),
        (DROPPED.format("x.shape[0] < 2"), False),
        ("x = self.a(x)\nif random.random() < 0.5:\n    return self.b(x) * 2\nreturn self.b(x)", False),
    ],
)
def test_a_layer_that_a_forward_pass_may_leave_out(body: str, unused: bool) -> None:
    head = MODEL.format(body=textwrap.indent(body, " " * 8).lstrip())
    source = script(head=f"import random\n\n{head}", model="model = Net().cuda()")
    found = output(source.replace("model(x).backward()", "model(x).backward(); optimizer.step()"))
    assert WRAPPED in found and ("find_unused_parameters=True" in found) is unused


@pytest.mark.parametrize(("test", "unused"), [("random.random() < 0.5", True), ("x.shape[0] < 2", False)])
def test_a_block_that_its_forward_pass_may_leave_out(test: str, unused: bool) -> None:
    """Stochastic depth: a part of the model, several layers in one, and a return in front of them."""
    part = MODEL.format(body=textwrap.indent(DROPPED.format(test), " " * 8).lstrip()).replace("class Net", "class Part")
    part = part.replace("torch.nn.Linear(3, 3)", "torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())")
    head = "import random\n\n" + part + "\n\n" + SEVERAL.format("for each in self.layers:\n            x = each(x)")
    head = head.replace("torch.nn.Linear(3, 3) for", "Part() for")
    found = output(script(head=head, model="model = Net().cuda()", loop=loop("model(x).backward()\noptimizer.step()")))
    assert WRAPPED in found and ("find_unused_parameters=True" in found) is unused


@pytest.mark.parametrize(
    ("beside", "averaged"),
    [
        ("criterion(model(x), model.b)", True),
        ("model(x) * model.b.weight.exp().mean()", True),
        ("criterion(model(x))", False),
        ("model(x) * net.b", True),  # whatever has a parameter of that name
    ],
)
def test_a_parameter_that_the_loss_reads_beside_the_forward_pass(beside: str, averaged: bool) -> None:
    """A wrapper that looks for unused parameters takes it for one, and stops when it gets a gradient."""
    head = MODEL.format(body="return self.a(x)")
    body = loop(f"({beside}).backward()\noptimizer.step()")
    found = output(script(head=head, model="model = Net().cuda()", loop=body))
    assert (AVERAGED in found, WRAPPED in found) == (averaged, not averaged)


def test_a_program_too_long_to_follow_is_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "_MOST_VISITS", 5)
    found = output(script(loop=loop("model(x).backward()\noptimizer.step()")))
    assert AVERAGED in found and WRAPPED not in found


EPISODES = """
    import torch
    from torch import nn

    from project import batch, game


    class Game:
        def reset(self):
            return game.reset()

        def step(self, action):
            return game.act(action), game.reward(), game.over()


    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)
            {buffer}

        def forward(self, x):
            return self.layer(x)


    def play(policy):
        for _ in range(10):
            world = Game()
            state = world.reset()
            {plays}


    policy = Policy().cuda()
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    for step in range(100):
        policy(batch(step)).backward()
        optimizer.step()
        play(policy)
"""
BUFFER = 'self.register_buffer("noise", torch.zeros(4))'
PLAYS = """while True:
                state, reward, done = world.step(policy(state))
                if done:
                    break"""


@pytest.mark.parametrize(
    ("buffer", "plays", "averaged"),
    [
        (BUFFER, PLAYS, True),
        (BUFFER, PLAYS.replace("True", "not done"), True),
        ("", PLAYS, False),  # a forward pass without a backward pass sends nothing else
        (BUFFER, PLAYS.replace("if done", "if game.paused"), False),
        (BUFFER, "state = policy(state)", False),
    ],
)
def test_episodes_of_an_environment_are_of_another_length_on_each_rank(buffer: str, plays: str, averaged: bool) -> None:
    found = output(EPISODES.replace("{buffer}", buffer).replace("{plays}", plays))
    assert ("npu_port.average(optimizer)" in found) is averaged
    assert ("npu_port.wrap(policy)" in found) is not averaged


def test_episodes_without_gradients_send_no_buffers() -> None:
    played = EPISODES.replace("    def play", "    @torch.no_grad()\n    def play")
    assert "npu_port.wrap(policy)" in output(played.replace("{buffer}", BUFFER).replace("{plays}", PLAYS))


# --- programs that are left whole ------------------------------------------------------------------------------------


def test_a_program_on_no_card() -> None:
    assert refused(script(model="model = net()")).startswith("this program puts nothing on a card")
    on_cpu = 'device = torch.device("cpu")\nmodel = net().to(device)'
    assert refused(script(model=on_cpu)).startswith("this program puts nothing on a card")


@pytest.mark.parametrize(
    "body",
    [
        "loss = model(x)\nif x.max() > 0:\n    loss.backward()\n    optimizer.step()",
        "loss = model(x)\nif torch.isnan(loss):\n    continue\nloss.backward()\noptimizer.step()",
        "loss = model(x)\nwhile loss > 1:\n    loss.backward()\n    optimizer.step()\n    loss = model(x)",
        "try:\n    model(x).backward()\n    optimizer.step()\nexcept RuntimeError:\n    continue",
        "model(x).backward()\noptimizer.step()\nif (x > 0).all():\n    break",
        "try:\n    y = model(x)\nexcept RuntimeError:\n    continue\ny.backward()\noptimizer.step()",
        "try:\n    y = model(x)\nexcept RuntimeError:\n    y = model(x[:1])\n    y.backward()\noptimizer.step()",
        "model(x).backward()\noptimizer.step()\nif x.sum() > 0:\n    sys.exit()",
        "model(x).backward()\noptimizer.step()\nif time.time() > 3 and x.sum() > 0:\n    break",
        'model(x).backward()\noptimizer.step()\nif x.sum() > 3:\n    torch.save(x, "x.pt")\n    sys.exit(3)',
    ],
)
def test_steps_that_not_every_rank_makes(body: str) -> None:
    assert "differ between ranks" in refused(script(head="import sys\nimport time", loop=loop(body)))


@pytest.mark.parametrize(
    ("chosen", "refused_for"),
    [
        ("optimizers[random.randrange(2)].step()", True),
        ("k = random.randrange(2)\noptimizers[k].step()", True),
        ("opt = random.choice(optimizers)\nopt.step()", True),
        ("optimizers[int(x.sum()) % 2].step()", True),
        ("optimizers[epoch % 2].step()", False),
        ("optimizers[0].step()", False),
        ("for one in optimizers:\n    one.step()", False),
        ("optimizers[net.turn()].step()", False),
    ],
)
def test_which_optimizer_steps_is_drawn(chosen: str, refused_for: bool) -> None:
    source = script(head="import random", loop=loop(f"model(x).backward()\n{chosen}"))
    source = source.replace(OPTIMIZER, f"{OPTIMIZER}\noptimizers = [optimizer, {OPTIMIZER.partition(' = ')[2]}]")
    if refused_for:
        assert refused(source).startswith("ranks may step different optimizers here")
    else:
        assert "npu_port.start()" in output(source)


@pytest.mark.parametrize(
    ("made", "passed", "late"),
    [
        ("self.a = torch.nn.LazyLinear(3)", "return self.a(x)", True),
        (
            "self.a = None",
            "if self.a is None:\n            self.a = torch.nn.Linear(3, 3)\n        return self.a(x)",
            True,
        ),
        ("self.a = torch.nn.Linear(3, 3)", "self.seen = torch.zeros(3)\n        return self.a(x)", False),
        ("self.a = torch.nn.Linear(3, 3)", "self.last = self.a(x)\n        return self.last", False),
    ],
)
def test_layers_that_are_made_in_a_forward_pass(made: str, passed: str, late: bool) -> None:
    cls = f"class Net(torch.nn.Module):\n    def __init__(self):\n        {made}\n\n"
    cls += f"    def forward(self, x):\n        {passed}"
    source = script(head=cls, model="model = Net().cuda()", loop=loop("model(x).backward()\noptimizer.step()"))
    if late:
        assert refused(source).startswith("this layer gets its weights in the first forward pass")
    else:
        assert WRAPPED in output(source)


@pytest.mark.parametrize(
    "body",
    [
        "model(x).backward()\nif net.clips:\n    optimizer.step()",
        "loss = model(x)\nloss.backward()\nif loss.item() > 9:\n    break\noptimizer.step()",  # the mean of all ranks
        "loss = model(x)\nif torch.isnan(loss):\n    raise ValueError(x)\nloss.backward()\noptimizer.step()",
        "model(x).backward()\noptimizer.step()\nif (x > 0).all():\n    print(x)",
        "model(x).backward()\nif len(x) > 1:\n    optimizer.step()",
        "try:\n    model(x).backward()\n    optimizer.step()\nexcept KeyboardInterrupt:\n    break",
        "try:\n    model(x).backward()\nexcept RuntimeError:\n    print(x)\n    raise\noptimizer.step()",
        "model(x).backward()\noptimizer.step()\ntry:\n    net.show(x)\nexcept RuntimeError:\n    print(x)",
        "try:\n    y = next(net.more)\nexcept StopIteration:\n    break\nmodel(y).backward()\noptimizer.step()",
        "model(x).backward()\noptimizer.step()\nif x.isnan().any():\n    print(x)\n    sys.exit(1)",
        'model(x).backward()\noptimizer.step()\nif x.sum() > 0:\n    continue\nname = "x.pt"\ntorch.save(x, name)',
    ],
)
def test_conditions_that_all_ranks_decide_alike(body: str) -> None:
    assert STARTED in output(script(loop=loop(body)))


@pytest.mark.parametrize(
    "behind",
    [
        "bad += 1\nif bad > 3:\n    break",
        "bad += 1",
        "rest.append(x)\nif len(rest) > 3:\n    break",
        "net.bad = 1",
        "model(x).backward()",
    ],
)
def test_a_round_that_some_ranks_leave_before_they_have_counted(behind: str) -> None:
    """What a later round sees of the rest of a round: how often a rank came there."""
    body = f"model(x).backward()\noptimizer.step()\nif x.sum() > 0:\n    continue\n{behind}"
    shown = "\n    if bad > 5:\n        break"
    assert "differ between ranks" in refused(script(head="bad, rest = 0, []", loop=loop(body) + shown))


@pytest.mark.parametrize(
    ("test", "end", "line"),
    [
        ("time.time() > net.end", "break", "if npu_port.of_first(time.time() > net.end):"),
        ("net.end < time.time() - begin", "break", "if npu_port.of_first(net.end < time.time() - begin):"),
        ("time.time() > 3", "sys.exit(3)", "if time.time() > 3:"),
        ("time.time() > 3", 'torch.save(x, "x.pt")\n    sys.exit(3)', "    npu_port.wait()  # rank 0 has written it"),
        ("time.time() > 3", "print(begin)", "if time.time() > 3:"),
        ("time.time() > 3 and step > 3", "break", "if npu_port.of_first(time.time() > 3 and step > 3):"),
    ],
)
def test_the_clock_of_rank_0_ends_a_training(test: str, end: str, line: str) -> None:
    head = "import sys\nimport time\nbegin = time.time()\nstep = 0"
    found = output(script(head=head, loop=loop(f"model(x).backward()\noptimizer.step()\nif {test}:\n    {end}")))
    assert f"        {line}\n" in found


@pytest.mark.parametrize(
    ("figure", "test", "line"),
    [
        ("kl = model(x).detach().mean()", "kl > 3", "npu_port.mean_over_ranks(kl) > 3"),
        ("kl = torch.mean(x).cpu()", "net.on and kl > net.k", "net.on and npu_port.mean_over_ranks(kl) > net.k"),
        ("kls = [x.mean()]", "np.mean(kls) >= 3", "npu_port.mean_over_ranks(np.mean(kls)) >= 3"),
        ("pass", "3 < x.mean() and x[0] is None", "3 < npu_port.mean_over_ranks(x.mean()) and x[0] is None"),
    ],
)
def test_the_mean_over_the_ranks_ends_a_training(figure: str, test: str, line: str) -> None:
    body = f"model(x).backward()\noptimizer.step()\n{figure}\nif {test}:\n    break"
    assert f"        if {line}:\n" in output(script(head="import numpy as np", loop=loop(body)))


@pytest.mark.parametrize(
    ("figure", "test"),
    [
        ("kl = x.sum()", "kl > 3"),
        ("kl = x.mean(1)", "kl[0] > 3"),
        ("kl = x.mean()", "kl == 3"),
        ("kl = x.mean()", "kl > 3 and x.max() > 3"),
        ("kl, worst = x.mean(), x.max()", "kl > worst"),
        ("kl = x.mean() if net.means else x.sum()", "kl > 3"),
    ],
)
def test_what_no_mean_over_the_ranks_decides(figure: str, test: str) -> None:
    body = f"model(x).backward()\noptimizer.step()\n{figure}\nif {test}:\n    break"
    assert "differ between ranks" in refused(script(loop=loop(body)))


@pytest.mark.parametrize("targets", ["kept[0]", "kept[0], kept[1]", "(net.a, kept[1])"])
@pytest.mark.parametrize("given", ["3", "3, net.action"])
def test_a_parameter_that_is_drawn_where_nobody_gives_it(targets: str, given: str) -> None:
    """As an agent draws its action, whose figures rows of tensors keep."""
    act = "def act(x, action=None):\n    if action is None:\n        action = torch.rand(2)\n    return x * action"
    body = f"{targets} = act({given})\nmodel(x).backward()\noptimizer.step()\nif kept.max() > 3:\n    break"
    source = script(head=f"kept = torch.zeros(2)\n\n\n{act}", loader="loader = net.rows()", loop=loop(body))
    assert "differ between ranks" in refused(source)


def test_a_parameter_that_nothing_is_drawn_into() -> None:
    act = "def act(x, action=None):\n    if action is None:\n        action = torch.ones(2)\n    return x * action"
    body = "kept[0], kept[1] = act(3)\nmodel(x).backward()\noptimizer.step()\nif kept.max() > 3:\n    break"
    source = script(head=f"kept = torch.zeros(2)\n\n\n{act}", loader="loader = net.rows()", loop=loop(body))
    assert STARTED in output(source)


@pytest.mark.parametrize("head", ["enumerate(loader)", "tqdm(enumerate(loader))", "tqdm(enumerate(loader), total=9)"])
def test_the_number_of_a_batch_is_alike_on_all_ranks(head: str) -> None:
    body = "if i < done:\n    continue\nmodel(x).backward()\noptimizer.step()"
    steps = loop(body).replace("for x in loader", f"for i, x in {head}")
    assert STARTED in output(script(head="from tqdm import tqdm\ndone = 3", loop=steps))


@pytest.mark.parametrize(("made", "why"), [("net.make_env()", "differ between ranks"), ("net.made()", "")])
def test_an_environment_that_the_program_calls_so(made: str, why: str) -> None:
    name = "env" if why else "stream"
    body = f"model(x).backward()\noptimizer.step()\n_, done = {name}.step(3)\nif done:\n    break"
    source = script(head=f"{name} = {made}", loop=loop(body))
    assert (why in refused(source)) if why else STARTED in output(source)


def test_a_model_that_is_none_at_first_is_made_where_it_is_handed_over_from() -> None:
    source = """
        import torch
        from torch.utils.data import DataLoader

        from project import dataset, net


        class Trainer:
            model = None

            def __init__(self, model):
                self.model = None
                self.model = model
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def fit(self):
                for x in DataLoader(dataset, shuffle=True):
                    self.model(x).backward()
                    self.optimizer.step()


        if __name__ == "__main__":
            built = net().cuda()
            Trainer(built).fit()
    """
    assert "    built = npu_port.wrap(built)\n" in output(source)


RETRY = """
    import torch
    from torch.utils.data import DataLoader

    from project import dataset, net


    def train(model, optimizer):
        for x in DataLoader(dataset, shuffle=True):
            model(x.cuda()).backward()
            optimizer.step()


    def main():
        model = net().cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        try:
            train(model, optimizer)
        except torch.cuda.OutOfMemoryError:
            {0}


    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize("handler", ["train(model, optimizer)", "torch.cuda.empty_cache(); train(model, optimizer)"])
def test_a_retry_behind_an_exception_of_one_rank(handler: str) -> None:
    assert "differ between ranks" in refused(RETRY.format(handler))


@pytest.mark.parametrize("handler", ["raise", "sys.exit(1)", "print(model)"])
def test_a_handler_that_ends_the_program(handler: str) -> None:
    assert STARTED in output(RETRY.format(handler))


def test_a_handler_behind_which_the_caller_goes_on() -> None:
    again = RETRY.format("print(model)").replace("        main()", "        for fold in range(3):\n            main()")
    assert "differ between ranks" in refused(again)


def test_a_validation_score_decides_alike_on_all_ranks() -> None:
    found = output(
        script(
            head="scheduler = net.ReduceLROnPlateau()\nbest = 0",
            loop=loop("model(x).backward()\noptimizer.step()")
            + "\n    score = sum(float(model(y)) for y in dataset)\n    scheduler.step(score)\n"
            + "    if score < best:\n        break\n    best = score",
        )
    )
    assert STARTED in found


def test_a_loss_that_a_function_of_one_step_returns_is_the_mean_of_all_ranks() -> None:
    head = """
        def step(x):
            loss = model(x)
            loss.backward()
            optimizer.step()
            return loss.item()
    """
    found = output(script(head=head, loop=loop("shown = step(x)\nif shown < 0.1:\n    break")))
    assert "    mean_loss = npu_port.mean_over_ranks(loss)\n" in found and "    return mean_loss.item()\n" in found


def test_a_learning_rate_that_hangs_on_a_figure_of_one_rank() -> None:
    body = "y = model(x)\nhits += (y > 0).sum().item()\ny.backward()\noptimizer.step()"
    source = script(
        head="scheduler = net.ReduceLROnPlateau()\nhits = 0", loop=loop(body) + "\n    scheduler.step(hits)"
    )
    assert "learning rate" in refused(source)


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("from sync import patch_replication_callback\npatch_replication_callback(net)", "patch_replication_callback"),
        ("from sync import DataParallelWithCallback\nnet = DataParallelWithCallback(net)", "DataParallelWithCallback"),
        ("class Mine(torch.nn.DataParallel):\n    pass", "Mine"),
    ],
)
def test_relatives_of_data_parallel(head: str, why: str) -> None:
    assert refused(script(head=head)).startswith(why)


def test_parameters_that_are_changed_by_hand() -> None:
    source = """\
        import torch

        w = torch.zeros(3).cuda().requires_grad_()
        for i in range(3):
            (w - 1).pow(2).sum().backward()
            w.data -= 0.1 * w.grad
    """
    assert "by hand" in refused(textwrap.dedent(source))


@pytest.mark.parametrize(("device", "whole"), [('torch.device("cpu")', True), ("net.device", False)])
def test_a_part_that_is_given_the_cpu(device: str, whole: bool) -> None:
    head = "class Net(torch.nn.Module):\n    def __init__(self, card, loss_device):\n        super().__init__()\n"
    source = script(head=f"{head}loss_device = {device}", model="model = Net(net.card, loss_device).cuda()")
    found = distributed(source.replace("model(x).backward()", "model(x).backward(); optimizer.step()"))
    assert (b"npu_port" not in found.data) is whole


# --- what acts is no effect of rank 0 alone --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        ("optimizer.step()", "value = optimizer.step()"),
        ("next(net)", "value = next(net)"),
        ("net.evaluate(model)", "value = net.evaluate(model)"),
    ],
)
def test_what_acts_in_a_print_is_done_by_all_ranks(shown: str, line: str) -> None:
    found = output(script(loop=loop(f"model(x).backward()\nprint({shown})")))
    assert f"        {line}\n        if npu_port.is_first():\n            print(value)\n" in found.replace(
        "net.evaluate(model.module)", "net.evaluate(model)"
    )


@pytest.mark.parametrize("shown", ["len(x)", "f'{x.mean():.3f}'", "model.module", "epoch + 1", "'{}'.format(epoch)"])
def test_what_only_gives_a_value_stays_in_the_print(shown: str) -> None:
    assert "value = " not in output(script(loop=loop(f"model(x).backward()\nprint({shown})")))


def test_the_mean_of_a_loss_stands_outside_of_the_condition() -> None:
    shown = "if epoch % 2 == 0:\n    print(epoch)\n    print(loss.item())"
    found = output(script(loop=loop(f"loss = model(x)\nloss.backward()\noptimizer.step()\n{shown}")))
    lines = [line.strip() for line in found.splitlines()]
    assert lines.index("mean_loss = npu_port.mean_over_ranks(loss)") < lines.index("print(mean_loss.item())")
    reduces = next(line for line in found.splitlines() if "mean_over_ranks" in line)
    under = [line for line in found.splitlines() if "is_first()" in line]
    assert under and all(len(line) - len(line.lstrip()) >= len(reduces) - len(reduces.lstrip()) for line in under)


def test_a_file_that_is_kept_open_is_written_by_rank_0() -> None:
    found = output(script(head='log = open("log.txt", "w")', tail='log.write("done")'))
    assert 'log = open("log.txt" if npu_port.is_first() else os.devnull, "w")\n' in found


# --- other scripts ---------------------------------------------------------------------------------------------------


def test_code_that_other_scripts_run_needs_no_process_group() -> None:
    data = textwrap.dedent("""\
        from torch.utils.data import DataLoader

        from project import dataset


        def loader():
            print("made")
            return DataLoader(dataset, shuffle=True)
    """)
    train = script(loader="import data\nloader = data.loader()")
    files = {"train.py": train, "test.py": "import data\n\nfor x in data.loader():\n    print(x)\n"}
    found = distributed(data, path="data.py", files=files).data.decode()
    assert "    return npu_port.shard(DataLoader(dataset, shuffle=True))\n" in found
    assert '    if npu_port.is_first():\n        print("made")\n' in found and STARTED not in found
    assert found == distributed(data, path="data.py", files={"train.py": train}).data.decode()
    assert not distributed(files["test.py"], path="test.py", files={"train.py": train, "data.py": data}).changed


def test_a_bare_model_in_code_that_other_scripts_run() -> None:
    steps = """
        import torch


        def train(model, optimizer, loader):
            for x in loader:
                model(x).backward()
                optimizer.step()
            torch.save(model.state_dict(), "m.pt")
            model.describe()
    """
    main = script(head="from steps import train", loop="for epoch in range(3):\n    train(model, optimizer, loader)")
    shared = {"train.py": main, "other.py": "import steps\nfrom project import net\n\nsteps.train(net, net.step, [])\n"}
    found = distributed(steps, path="steps.py", files=shared).data.decode()
    assert '        torch.save(npu_port.bare(model).state_dict(), "m.pt")\n' in found
    assert "    npu_port.bare(model).describe()\n" in found and "        model(x).backward()\n" in found
    alone = distributed(steps, path="steps.py", files={"train.py": main}).data.decode()
    assert '        torch.save(model.module.state_dict(), "m.pt")\n    model.module.describe()\n' in alone


def test_what_prints_before_the_start_is_behind_it() -> None:
    found = output(
        script(
            head="""
        def parse():
            print("options")
            return net.options()


        options = parse()
    """
        )
    )
    assert f"\n{STARTED}\n\noptions = parse()\n" in found


def test_a_refusal_is_one_finding_and_nothing_is_written() -> None:
    result = distributed(script(loop=loop("if x.sum() > 0:\n    model(x).backward()\n    optimizer.step()")))
    assert left(result) == ["NPU332"]


def test_a_method_whose_value_no_loss_sees_does_not_count() -> None:
    assert WRAPPED in output(script(loop=loop("net.log(model.describe())\nmodel(x).backward()\noptimizer.step()")))


@pytest.mark.parametrize(
    "written", ['net.table.to_csv("a.csv")', 'net.path.write_text("x")', 'import cv2\ncv2.imwrite("a.png", x)']
)
def test_files_that_are_written_in_one_call(written: str) -> None:
    found = output(script(tail=written))
    assert f"if npu_port.is_first():\n    {written.splitlines()[-1]}\n" in found


# --- what is on a card ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "move",
    [
        "model = net()  # .cuda()",
        "inputs = [3]\nmodel = net()",  # the letters of a card, and none
        "model = net()\ntorch.cuda.manual_seed_all(1)",
        'device = torch.device("cpu")\nmodel = net().to(device)',
        "model = net()\nprint(torch.cuda.is_available())",
    ],
)
def test_nothing_is_on_a_card(move: str) -> None:
    assert "on a card" in refused(script(model=move, loop=loop("model(x).backward()\noptimizer.step()")))


@pytest.mark.parametrize(
    "move",
    [
        "model = net().cuda()",
        'device = "cuda" if torch.cuda.is_available() else "cpu"\nmodel = net().to(device)',
        "from project import args\nmodel = net().to(args.device)",
        "torch.set_default_tensor_type(torch.cuda.FloatTensor)\nmodel = net()",
        "model = net().to(torch.accelerator.current_accelerator())",
    ],
)
def test_something_is_on_a_card(move: str) -> None:
    assert WRAPPED in output(script(model=move, loop=loop("model(x).backward()\noptimizer.step()")))


# --- branches ---------------------------------------------------------------------------------------------------------


def test_of_two_branches_with_a_backward_pass_one_runs() -> None:
    body = "loss = model(x)\nif net.half:\n    scaler.scale(loss).backward()\nelse:\n    loss.backward()\n"
    assert WRAPPED in output(script(loop=loop(body + "optimizer.step()"), head="scaler = torch.amp.GradScaler('cuda')"))


def test_a_backward_pass_behind_one_in_a_branch_goes_through_the_model_again() -> None:
    body = "loss = model(x)\nif net.half:\n    loss.std().backward(retain_graph=True)\nelse:\n    pass\n"
    body += "loss.mean().backward()\n"
    assert AVERAGED in output(script(loop=loop(body + "optimizer.step()")))


# --- optimizers over what is no model ---------------------------------------------------------------------------------


def test_an_optimizer_over_a_tensor_is_averaged() -> None:
    source = script(
        model="image = torch.zeros(3, device='cuda', requires_grad=True)",
        loop=loop("(x * image).sum().backward()\noptimizer.step()"),
    )
    found = output(source.replace("model.parameters()", "[image]"))
    assert AVERAGED in found and "optimizer = torch.optim.SGD([image], lr=0.1)\nnpu_port.alike(optimizer)\n" in found


# --- parts without gradients ------------------------------------------------------------------------------------------


def test_a_part_that_runs_under_no_grad_is_unused() -> None:
    encoder = """
        class Encoder(torch.nn.Module):
            def __init__(self, body):
                super().__init__()
                self.body = torch.nn.Sequential(*body)
                self.head = torch.nn.Linear(8, 2)

            def forward(self, x):
                with torch.no_grad():
                    features = self.body(x)
                return self.head(features)
        """
    body = loop("model(x).sum().backward()\noptimizer.step()")
    found = output(script(head=encoder, model="model = Encoder(net).cuda()", loop=body))
    assert "find_unused_parameters=True" in found
    found = output(
        script(
            head=encoder.replace("with torch.no_grad():", "if True:"), model="model = Encoder(net).cuda()", loop=body
        )
    )
    assert "find_unused_parameters=True" not in found


GROWS = """\
for epoch in range(3):
    {}
    for x in loader:
        model(x).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("method", "call", "averaged"),
    [
        ("self.layers.append(torch.nn.Linear(3, 3))", "model.grow()", True),
        ("self.top = torch.nn.Linear(3, 3)", "model.grow()", True),
        ("layer = torch.nn.Linear(3, 3)\n        self.layers.append(layer)", "model.grow()", True),
        ("pass", "model.layers.append(torch.nn.Linear(3, 3))", True),
        ("self.top = torch.nn.Linear(3, 3)", "pass", False),
        ("self.rounds = 1", "model.grow()", False),
        ("self.seen.append(1)", "model.grow()", False),
    ],
)
def test_a_model_that_grows_behind_its_wrapper(method: str, call: str, averaged: bool) -> None:
    """The wrapper would exchange nothing for what is new."""
    head = SEVERAL.format("for each in self.layers:\n            x = each(x)")
    head += f"\n    def grow(self):\n        {method}\n"
    found = output(script(head=head, model="model = Net().cuda()", loop=GROWS.format(call)))
    assert (AVERAGED in found) is averaged and (WRAPPED in found) is not averaged


def test_what_a_model_has_grown_is_drawn_by_rank_0() -> None:
    head = SEVERAL.format("for each in self.layers:\n            x = each(x)")
    head += "\n    def grow(self):\n        self.layers.append(torch.nn.Linear(3, 3))\n        return self.layers[-1]\n"
    added = 'optimizer.add_param_group({"params": model.grow().parameters()})\n'
    found = output(script(head=head, model="model = Net().cuda()", loop=GROWS.format(added)))
    assert f"    {added}    npu_port.alike(optimizer)\n" in found
    found = output(script(head=head, model="model = Net().cuda()", loop=f"{added}{GROWS.format('pass')}"))
    assert f"{added}npu_port.alike" not in found, "in front of the training all draw alike"


# --- what does not differ between ranks -------------------------------------------------------------------------------


def test_steps_that_are_counted_around_a_loader_that_is_asked() -> None:
    loop_ = """\
        batches = iter(loader)
        drops = 0
        for step in range(30):
            if step in (10, 20):
                drops += 1
                optimizer.param_groups[0]["lr"] = 0.1 ** drops
            x = next(batches)
            model(x).backward()
            optimizer.step()
        """
    assert WRAPPED in output(script(loop=loop_))


def test_what_is_read_from_a_loader_in_a_counted_loop_differs() -> None:
    loop_ = """\
        batches = iter(loader)
        for step in range(30):
            x = next(batches)
            if x.max() > 0:
                model(x).backward()
            optimizer.step()
        """
    assert "differ between ranks" in refused(script(loop=loop_))


def test_an_object_does_not_differ_because_a_method_is_given_what_does() -> None:
    agent = """
        class Agent:
            def __init__(self, model, optimizer):
                self.model, self.optimizer, self.rate = model, optimizer, 0.1

            def update(self, x):
                self.model(x).backward()
                self.optimizer.step()
        """
    loop_ = """\
        agent = Agent(model, optimizer)
        for epoch in range(3):
            optimizer.param_groups[0]["lr"] = agent.rate / (epoch + 1)
            for x in loader:
                agent.update(x)
        """
    assert STARTED in output(script(head=agent, loop=loop_))


def test_parameters_that_are_collected_in_a_loop_are_those_of_the_model() -> None:
    collect = """\
        model = net().cuda()
        trained = []
        for parameter in filter(lambda p: p.requires_grad, model.parameters()):
            trained.append(parameter)
        """
    source = script(model=collect, loop=loop("model(x).backward()\noptimizer.step()"))
    assert WRAPPED in output(source.replace("SGD(model.parameters()", "SGD(trained"))


# --- DataParallel -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", ['device == "cuda"', "torch.cuda.is_available()", "net.use_cuda"])
def test_parallel_on_every_card_is_wrapped_where_it_stands(test: str) -> None:
    model = f"device = 'cuda'\nmodel = net().cuda()\nif {test}:\n    model = torch.nn.DataParallel(model)"
    found = output(
        script(
            model=model,
            loop=loop("model(x).backward()\noptimizer.step()"),
            tail="torch.save(model.state_dict(), 'm.pt')",
        )
    )
    assert "    model = npu_port.wrap(model)\n" in found
    assert "torch.save(model.state_dict(), 'm.pt')" in found  # names that begin with "module." as before


def test_parallel_on_several_cards_is_wrapped_behind_the_condition() -> None:
    model = "model = net().cuda()\nif torch.cuda.device_count() > 1:\n    model = torch.nn.DataParallel(model)"
    found = output(
        script(
            model=model,
            loop=loop("model(x).backward()\noptimizer.step()"),
            tail="torch.save(model.state_dict(), 'm.pt')",
        )
    )
    assert "\nmodel = npu_port.wrap(model)\n" in found and "torch.save(model.module.state_dict(), 'm.pt')" in found


# --- what is loaded from the net --------------------------------------------------------------------------------------


def test_a_function_that_loads_from_the_net_does_so_under_a_lock() -> None:
    head = """
        import urllib.request


        def data(path):
            print("loading", path)
            with open(path, "wb") as file:
                file.write(urllib.request.urlopen("http://host/" + path).read())
            return open(path).read()
        """
    body = loop("model(x).backward()\noptimizer.step()")
    found = output(script(head=head, loader="text = data('a.txt')\nloader = DataLoader(text, batch_size=8)", loop=body))
    lock = 'with npu_port.first_on_host("downloads"):'
    assert f'    print("loading", path)\n    {lock}\n        with open(path, "wb") as file:\n' in found
    assert "\ntext = data('a.txt')\n" in found and "os.devnull" not in found


def test_a_model_that_saves_itself_does_so_once() -> None:
    head = """
        class Net(torch.nn.Module):
            def forward(self, x):
                print(x.shape)
                return x

            def save(self, path):
                torch.save(self.state_dict(), path)
        """
    body = loop("model(x).backward()\noptimizer.step()")
    found = output(script(head=head, model="model = Net().cuda()", loop=body, tail="model.save('m.pt')"))
    assert "        if npu_port.is_first():\n            torch.save(self.state_dict(), path)" in found
    assert "        print(x.shape)\n        return x" in found


# --- equal parameters at the start ------------------------------------------------------------------------------------


def test_parameters_are_sent_from_where_they_are_on_their_card() -> None:
    body = loop("model.energy(x).backward()\noptimizer.step()")
    found = output(script(model="model = net()", loop="model.cuda()\n" + body))
    assert "model.npu()\nnpu_port.alike(optimizer)\n" in found


def test_a_module_that_makes_its_own_optimizer_is_not_on_a_card_yet() -> None:
    head = """
        class Layer(torch.nn.Linear):
            def __init__(self, size):
                super().__init__(size, size)
                self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1)

            def learn(self, x):
                self.forward(x).sum().backward()
                self.optimizer.step()
        """
    source = script(
        head=head,
        model="layers = [Layer(8).cuda(), Layer(8).cuda()]",
        loop=loop("for layer in layers:\n    layer.learn(x)"),
    )
    found = output(source.replace("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n", ""))
    assert "npu_port.average(self.optimizer)\n" in found and "npu_port.alike(" not in found


# --- methods that run nothing of a model ------------------------------------------------------------------------------

HIDDEN = """
    class Net(torch.nn.Module):
        def begin(self, size):
            weight = next(self.parameters())
            return (weight.new_zeros(size), torch.zeros(size).to(weight.device))

        def encode(self, x):
            return self.layer(x)
    """


@pytest.mark.parametrize(("method", "how"), [("begin", WRAPPED), ("encode", AVERAGED)])
def test_a_method_that_fills_tensors_runs_nothing(method: str, how: str) -> None:
    body = loop(f"state = model.{method}(x)\nloss = model(x, state)\nloss.backward()\noptimizer.step()")
    assert how in output(script(head=HIDDEN, model="model = Net().cuda()", loop=body))


@pytest.mark.parametrize("forward", ["model(x)", "model.energy(x)"])
def test_parameters_changed_by_hand_beside_an_optimizer(forward: str) -> None:
    body = f"""
        {forward}.backward()
        if net.adam:
            optimizer.step()
        else:
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-0.1)
        """
    source = script(loop=loop(body))
    if forward == "model(x)":
        assert WRAPPED in output(source)
    else:
        assert "changed by hand" in refused(source)


def test_a_model_of_two_names_is_wrapped_behind_what_sets_up_either() -> None:
    model = """\
        plain = net()
        model = plain
        if torch.cuda.is_available():
            model = torch.nn.DataParallel(plain)
            model = model.cuda()
        plain.head.apply(net.init)
        """
    found = output(script(model=model, loop=loop("model(x).backward()\noptimizer.step()")))
    assert "plain.head.apply(net.init)\nmodel = npu_port.wrap(model)\n" in found


# --- outputs that are thrown away -------------------------------------------------------------------------------------

HEADS = """
    class Net(torch.nn.Module):
        def forward(self, x):
            body = self.body(x)
            real, label = self.real(body), self.label(body)
            label = self.label(body)
            return self.real(body), label
    """


@pytest.mark.parametrize(("given", "how"), [("y, _", AVERAGED), ("y, label", WRAPPED), ("_, y", AVERAGED)])
def test_the_layers_of_an_output_that_is_thrown_away_get_no_gradients(given: str, how: str) -> None:
    head = HEADS.replace("            real, label = self.real(body), self.label(body)\n", "")
    body = loop(f"{given} = model(x)\ny.sum().backward()\noptimizer.step()")
    assert how in output(script(head=head, model="model = Net().cuda()", loop=body))


def test_a_state_that_is_thrown_away_is_made_by_the_same_layers() -> None:
    head = """
        class Net(torch.nn.Module):
            def forward(self, x, state):
                out, state = self.rnn(x, state)
                return self.last(out), state
        """
    body = loop("y, _ = model(x, None)\ny.sum().backward()\noptimizer.step()")
    assert WRAPPED in output(script(head=head, model="model = Net().cuda()", loop=body))


# --- optimizers of the program's own ---------------------------------------------------------------------------------

OWN = """
class Own({base}):
    def __init__(self, model):
        self.inner = torch.optim.SGD(model.parameters(), lr=0.1)
        {init}

    def step(self):
        {step}
        self.inner.step()
"""
EITHER = f"if own:\n    optimizer = Own(model)\nelse:\n    {OPTIMIZER}"
ENERGY = "optimizer.zero_grad()\nmodel.energy(x).backward()\noptimizer.step()"


def own(base: str = "torch.optim.Optimizer", init: str = "pass", step: str = "pass") -> str:
    source = script(head="own = True\n" + OWN.format(base=base, init=init, step=step), loop=loop(ENERGY))
    assert OPTIMIZER in source
    return source.replace(OPTIMIZER, EITHER)


def test_one_of_torch_or_one_of_the_program_steps_with_the_mean() -> None:
    """The step of the own class is found by itself; where the other one may stand, that is a step as well."""
    found = output(own())
    assert found.count("npu_port.average(self.inner)") == 1 and found.count(AVERAGED) == 1


def test_an_own_class_without_groups_among_them_leaves_the_program_whole() -> None:
    assert "may be a Own, which has no parameter groups" in refused(own(base="object"))


HOOKED = "[m.register_forward_pre_hook(self.keep) for m in model.modules()]"
WRITTEN = "[p.grad.data.copy_(self.kept @ p.grad) for p in self.parameters]"


def test_curvature_of_one_rank_leaves_the_program_whole() -> None:
    assert "changes gradients by values that its hooks store from the batches of one rank" in refused(
        own(init=HOOKED, step=WRITTEN)
    )


@pytest.mark.parametrize(("init", "step"), [(HOOKED, "pass"), ("pass", WRITTEN), (HOOKED, "print(self.grad.norm())")])
def test_hooks_or_written_gradients_alone_do_not(init: str, step: str) -> None:
    assert AVERAGED in output(own(init=init, step=step))


# --- how much is kept ------------------------------------------------------------------------------------------------

KEEPER = """
import random


class Buffer:
    def __init__(self):
        self.kept = []

    def store(self, item):
        self.kept.append(item)

    def size(self):
        return len(self.kept)


memory, rest = Buffer(), []
"""
PLAY = {
    "a condition": "while random.random() < 0.9:\n    memory.store(x)",
    "a break": "for _ in range(9):\n    memory.store(x)\n    if random.random() < 0.1:\n        break",
    "a list": "while random.random() < 0.9:\n    rest.append(x)",
    "counted": "for _ in range(9):\n    memory.store(x)",
    "always": "rest.append(x)",
}


@pytest.mark.parametrize(
    ("play", "test", "by"),
    [
        ("a condition", "memory.size() > 20", "kept from line"),
        ("a condition", "len(memory.kept) > 20", "kept from line"),
        ("a break", "memory.size() > 20", "kept from line"),
        ("a list", "len(rest) > 20", "rest from line"),
        ("a list", "memory.size() > 20", ""),
        ("counted", "memory.size() > 20", ""),
        ("always", "len(rest) > 20", ""),
        ("always", "len(x) > 20", ""),
    ],
)
def test_steps_that_hang_on_how_much_a_rank_has_kept(play: str, test: str, by: str) -> None:
    source = script(head=KEEPER, loop=loop(f"{PLAY[play]}\nif {test}:\n    model(x).backward()\n    optimizer.step()"))
    if by:
        assert by in refused(source)
    else:
        assert STARTED in output(source)


def test_a_refused_try_says_why() -> None:
    body = "try:\n    model(x).backward()\n    optimizer.step()\nexcept RuntimeError:\n    continue"
    assert "an exception that one rank catches may not occur on the others" in refused(script(loop=loop(body)))


SCORED_BY = """
class Scores:
    def score(self, model, x):
        return model(x).sum()


scores, other = Scores(), net()
"""


@pytest.mark.parametrize(
    ("head", "inside", "averaged"),
    [
        (SCORED_BY, "scores.score(model, x).backward()\nscores.score(other, x)", True),
        (SCORED_BY, "model(x).backward()\nwith torch.no_grad():\n    scores.score(other, x)", False),
        ("weigher = net()", "model(x).backward()", False),
        ("", "optimizer.add_param_group({'params': net.weigher.parameters()})\nmodel(x).backward()", True),
        ("", "optimizer.add_param_group({'params': model.head.parameters()})\nmodel(x).backward()", False),
    ],
)  # fmt: skip
def test_what_a_wrapper_would_not_see_is_averaged(head: str, inside: str, averaged: bool) -> None:
    found = output(script(head=head, loop=loop(f"{inside}\noptimizer.step()")))
    assert ("npu_port.average(optimizer)" in found) is averaged


PACED = """
class Pace:
    def __init__(self):
        self.part = 1.0

    def observe(self, x):
        self.part = 0.9 * self.part + 0.1 * x


class Trainer:
    def __init__(self):
        self.pace = Pace()

    def train(self):
        for x in loader:
            model(x).backward()
            optimizer.step()
            self.pace.observe({0})
            if self.pace.part > 3:
                break


Trainer().train()
"""


@pytest.mark.parametrize(("observed", "refused"), [("net.judge(x)", True), ("1.0", False)])
def test_what_an_object_of_an_object_holds_may_differ(observed: str, refused: bool) -> None:
    assert (left(distributed(script(loop=PACED.format(observed)))) == ["NPU332"]) is refused


@pytest.mark.parametrize(
    ("made", "ordered"),
    [("DataLoader(net.other, 8, shuffle=True)", True), ("DataLoader(net.other, 8)", False),
     ("DataLoader(net.other, batch_sampler=net.sampler())", True)],
)  # fmt: skip
def test_what_all_ranks_go_through_has_one_order(made: str, ordered: bool) -> None:
    valid = "with torch.no_grad():\n    for y in valid:\n        net.judge(model(y))"
    source = script(loader=f"loader = DataLoader(dataset, 8, True)\nvalid = {made}", loop=loop(
        "model(x).backward()\noptimizer.step()") + "\n" + textwrap.indent(valid, " " * 4))  # fmt: skip
    assert ("for y in npu_port.in_one_order(valid):" in output(source)) is ordered


@pytest.mark.parametrize(
    ("chosen", "refused"),
    [("order[: int(net.part * len(order))]", False), ("order[: int(part * len(order))]", True),
     ("order[: int(part * len(order))].tolist()", True), ("np.random.permutation(order)", False)],
)  # fmt: skip
def test_data_of_other_lengths_on_the_ranks(chosen: str, refused: bool) -> None:
    body = (f"order = np.arange(64)\nused = {chosen}\nfor x in DataLoader(Subset(dataset, used), 8, True):\n"
            "    model(x).backward()\n    optimizer.step()\n    part = 0.9 * part + 0.1 * net.judge(x)")  # fmt: skip
    head = "import numpy as np\nfrom torch.utils.data import Subset\npart = 1.0"
    source = script(head=head, loader="", loop=f"for epoch in range(3):\n{textwrap.indent(body, ' ' * 4)}")
    assert ("NPU332" in left(distributed(source))) is refused
