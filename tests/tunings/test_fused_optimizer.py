"""NPU750: optimizers that become the fused ones, and the reasons for which they stay."""

from __future__ import annotations

import pytest

from tests.harness import codes, migrate
from tests.tunings.tuned import check_tuned, check_untuned

TUNE = "fused-optimizer"
HEAD = """
    import torch
    from torch import nn

    model = nn.Linear(2, 2).cuda()
    """
LOOP = """
    for x in batches:
        optimizer.zero_grad()
        model(x.cuda()).sum().backward()
        optimizer.step()
    """


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.optim.Adam(model.parameters())", "Adam(model.parameters())"),
        ("torch.optim.AdamW(model.parameters(), 1e-3, (0.9, 0.99), 1e-6, 0.1, True)",) * 2,
        ("torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)",) * 2,
        ("torch.optim.Adadelta(params=model.parameters(), rho=0.8)",) * 2,
        ("torch.optim.RMSprop(model.parameters(), centered=True)",) * 2,
        ("torch.optim.Adam(model.parameters(), lr=0.1, fused=True)", "Adam(model.parameters(), lr=0.1)"),
        ("torch.optim.Adam(model.parameters(), foreach=None, lr=0.1)", "Adam(model.parameters(), lr=0.1)"),
        ("torch.optim.Adam(model.parameters(), maximize=False, capturable=False)", "Adam(model.parameters())"),
        ("torch.optim.adam.Adam(model.parameters())", "Adam(model.parameters())"),
        ("torch.optim.SGD([{'params': model.parameters()}, {'params': head.parameters(), 'lr': 1.0}], lr=0.1)",) * 2,
        ("torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()))",) * 2,
    ],
)
def test_classes_and_arguments(before: str, after: str) -> None:
    written = f"torch_npu.optim.NpuFused{after.removeprefix('torch.optim.')}"
    check_tuned(
        TUNE,
        f"{HEAD}optimizer = {before}\n{LOOP}".replace("\n    ", "\n"),
        f"{HEAD}optimizer = {written}\n{LOOP}".replace("\n    ", "\n")
        .replace(".cuda()", ".npu()")
        .replace("import torch\n", "import torch\nimport torch_npu  # noqa: F401\n"),
    )


@pytest.mark.parametrize(
    ("second", "stays"),
    [
        ("itertools.chain(model.parameters(), head.parameters())", True),
        ("list(model.parameters()) + list(head.parameters())", True),
        ("[{'params': model.encoder.parameters()}, {'params': head.parameters()}]", True),
        ("itertools.chain(head.parameters(), head.parameters())", False),
    ],
)
def test_two_optimizers_that_share_parameters_stay(second: str, stays: bool) -> None:
    source = f"""
        import itertools
        import torch

        model = torch.nn.Linear(2, 2).cuda()
        head = torch.nn.Linear(2, 2).cuda()
        first = torch.optim.Adam(model.parameters())
        second = torch.optim.Adam({second})
        for x in batches:
            first.zero_grad()
            model(x.cuda()).sum().backward()
            first.step()
            second.zero_grad()
            head(model(x.cuda())).sum().backward()
            second.step()
        """
    result = migrate(source, tune=((TUNE, ""),))
    assert (b"NpuFused" not in result.data) is stays
    assert any("another optimizer holds the same parameters" in item.message for item in result.findings) is stays


def test_optimizers_of_parts_of_one_model_are_fused() -> None:
    source = """
        import torch
        from nets import Net

        model = Net().cuda()
        first = torch.optim.Adam(model.encoder.parameters())
        second = torch.optim.Adam(model.decoder.parameters())
        for x in batches:
            first.zero_grad()
            second.zero_grad()
            model(x.cuda()).sum().backward()
            first.step()
            second.step()
        """
    assert migrate(source, tune=((TUNE, ""),)).data.count(b"NpuFusedAdam") == 2


def test_imports_that_nothing_uses_any_more_go() -> None:
    check_tuned(
        TUNE,
        """
        import torch
        import torch.optim as optim
        from torch.optim import AdamW, lr_scheduler

        model = torch.nn.Linear(2, 2).cuda()
        optimizer = AdamW(
            model.parameters(),
            lr=1e-3,  # the rate
            fused=True,
        )
        scheduler = lr_scheduler.StepLR(optimizer, 1)
        other = optim.SGD(head.parameters(), lr=0.1)
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from torch.optim import lr_scheduler

        model = torch.nn.Linear(2, 2).npu()
        optimizer = torch_npu.optim.NpuFusedAdamW(
            model.parameters(),
            lr=1e-3,  # the rate
        )
        scheduler = lr_scheduler.StepLR(optimizer, 1)
        other = torch_npu.optim.NpuFusedSGD(head.parameters(), lr=0.1)
        """,
    )


def test_an_import_that_others_take_from_here_stays() -> None:
    result = migrate(
        """
        import torch
        from torch.optim import Adam

        __all__ = ["Adam"]
        optimizer = Adam(torch.nn.Linear(2, 2).cuda().parameters())
        """,
        tune=((TUNE, ""),),
    )
    assert b"from torch.optim import Adam\n" in result.data


def test_zeroing_through_functions_and_objects() -> None:
    check_tuned(
        TUNE,
        """
        import torch


        def one_pass(net, opt, batches):
            for x in batches:
                opt.zero_grad(set_to_none=True)
                net(x.cuda()).sum().backward()
                opt.step()


        class Trainer:
            def __init__(self, net):
                self.net = net
                self.optim = torch.optim.Adam(net.parameters())

            def run(self, x):
                self.net.zero_grad()
                self.net(x.cuda()).sum().backward()
                self.optim.step()


        model = torch.nn.Linear(2, 2).cuda()
        one_pass(model, torch.optim.SGD(model.parameters(), lr=0.1), [])
        """,
        """
        import torch
        import torch_npu  # noqa: F401


        def one_pass(net, opt, batches):
            for x in batches:
                opt.zero_grad()
                net(x.npu()).sum().backward()
                opt.step()


        class Trainer:
            def __init__(self, net):
                self.net = net
                self.optim = torch_npu.optim.NpuFusedAdam(net.parameters())

            def run(self, x):
                self.net.zero_grad(set_to_none=False)
                self.net(x.npu()).sum().backward()
                self.optim.step()


        model = torch.nn.Linear(2, 2).npu()
        one_pass(model, torch_npu.optim.NpuFusedSGD(model.parameters(), lr=0.1), [])
        """,
    )


def test_a_factory_in_another_file() -> None:
    main = "from build import make\n" + HEAD.replace("\n    ", "\n") + "optimizer = make(model)"
    source = """
        import torch


        def make(model):
            return torch.optim.Adam(model.parameters())
        """
    step = {"train.py": f"{main}\noptimizer.step()\n"}
    assert b"NpuFusedAdam" in migrate(source, path="build.py", files=step, tune=((TUNE, ""),)).data
    closed = {"train.py": f"{main}\noptimizer.step(closure)\n"}
    result = migrate(source, path="build.py", files=closed, tune=((TUNE, ""),))
    assert b"NpuFused" not in result.data
    assert "NPU750" in codes(result, applied=False)


STAYS = [
    ("torch.optim.Adam(model.parameters(), maximize=True)", "", "no argument maximize"),
    ("torch.optim.Adam(*arguments)", "", "from a tuple"),
    ("torch.optim.Adam(model.parameters(), **settings)", "", "from a tuple or a dict"),
    ("torch.optim.SGD(model.parameters())", "", "no default for lr"),
    ("torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1))", "", "a tensor"),
    ("torch.optim.Adam([latent])", "", "no module holds"),
    ("torch.optim.Adam(model.parameters())", "optimizer.step(closure)", "closure"),
    ("torch.optim.Adam(model.parameters())", "optimizer.zero_grad(flag)", "arguments of zero_grad are unknown"),
    ("torch.optim.Adam(model.parameters())", "optimizer.add_param_group(group)", "join the optimizer later"),
    ("torch.optim.Adam(model.parameters())", "run(optimizer)", "handed to run"),
    ("torch.optim.Adam(model.parameters())", "optimizer.register_step_post_hook(f)", "register_step_post_hook is used"),
    ("torch.optim.Adam(model.parameters())", "every = [optimizer]", "container"),
    ("torch.optim.Adam(model.parameters())", "every['a'] = optimizer", "cannot be traced"),
    ("torch.optim.Adam(model.parameters())", "net.zero_grad()", "sets gradients to None"),
    ("torch.optim.Adam(model.parameters())", "for p in model.parameters():\n    p.grad = None", "is replaced"),
    ("torch.optim.Adam(model.parameters())", "for p in model.parameters():\n    p.data = p.data + 1", "is replaced"),
    ("torch.optim.Adam(model.parameters())", "for p in model.parameters():\n    p.requires_grad = on", "unfrozen"),
    (
        "torch.optim.Adam(model.parameters())",
        "for p in model.body.parameters():\n    p.requires_grad_(True)",
        "frozen and unfrozen",
    ),
    (
        "torch.optim.Adam(model.parameters())",
        "class Two(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.head, self.body = None, nn.Linear(2, 2)\n"
        "        self.aux = nn.Linear(2, 2)\n"
        "        self.never = nn.Linear(2, 2)\n"
        "    def forward(self, x, more=False):\n"
        "        return self.aux(self.body(x)) if more else self.body(x)\n"
        "two = Two()",
        "some steps skip a layer of Two",
    ),
    ("torch.optim.Adam(model.parameters())", "model.cpu()", "moves parameters"),
    ("torch.optim.Adam(model.parameters())", "torch.save(model.eval().cpu(), path)", "moves parameters"),
    ("torch.optim.Adam(model.parameters())", "model.train(False).to('cpu')", "moves parameters"),
    ("torch.optim.Adam(model.parameters())", "model.load_state_dict(weights, assign=True)", "replaces parameters"),
    (
        "torch.optim.Adam(model.parameters())",
        "nn.utils.vector_to_parameters(values, model.parameters())",
        "replaces parameters",
    ),
    ("torch.optim.Adam([latent] + list(noise.values()))", "", "no module holds"),
    ("torch.optim.Adam(model.parameters())", "model.layers[0].requires_grad_(True)", "frozen and unfrozen"),
    ("torch.optim.Adam(model.parameters())", "model.layers.weight.requires_grad = True", "frozen and unfrozen"),
    (
        "torch.optim.Adam(model.parameters())",
        "for p in model.parameters():\n    setattr(p, 'requires_grad', True)",
        "frozen and unfrozen",
    ),
    ("torch.optim.Adam(model.parameters())", "model.share_memory()", "shares parameters between processes"),
    (
        "torch.optim.Adam(model.parameters())",
        "for p in model.parameters():\n    p.share_memory_()",
        "shares parameters between processes",
    ),
    ("torch.optim.Adam(model.parameters())", "model = nn.Linear(2, 2).cuda().double()", "neither float32"),
    ("torch.optim.Adam(model.parameters())", "model = nn.Linear(2, 2, dtype=torch.bfloat16)", "neither float32"),
    ("torch.optim.Adam(model.parameters())", "model = Net().to(device, torch.bfloat16)", "neither float32"),
    ("torch.optim.Adam(model.parameters())", "model = Net.from_pretrained(name, torch_dtype=dtype)", "neither float32"),
    ("torch.optim.Adam(model.parameters())", "torch.set_default_dtype(torch.float64)", "neither float32"),
    ("torch.optim.Adam(model.parameters())", "head = nn.Linear(2, 2).to('cuda:1').to('cuda:0')", "several cards"),
    ("torch.optim.Adam(model.parameters())", "optimizer.state[p] = {}", "state is rewritten"),
    ("torch.optim.Adam(model.parameters())", "optimizer.state.clear()", "state is rewritten"),
    ("torch.optim.Adam(model.parameters())", "optimizer.param_groups[0]['params'] = new", "param_groups is rewritten"),
    ("torch.optim.Adam(model.parameters())", "optimizer.param_groups.append(group)", "param_groups is rewritten"),
    ("torch.optim.Adam(model.parameters())", "del model.weight.grad", "gradient is replaced"),
    ("torch.optim.Adam(model.parameters())", "model.weight.grad.data = new", "gradient is replaced"),
    (
        "torch.optim.Adam(model.parameters())",
        "while True:\n    loss.backward()\n    model.weight.data = model.weight.data.clamp(-1, 1)",
        "a parameter is replaced",
    ),
    ("torch.optim.Adam(model.parameters())", "model.to('cpu')", "moves parameters"),
    ("torch.optim.Adam(model.parameters())", "model.bfloat16()", "moves parameters"),
    ("torch.optim.Adam(model.parameters())", "words = nn.Embedding(9, 9, sparse=True)", "sparse"),
    ("torch.optim.Adam(model.parameters())", "net = DDP(model, find_unused_parameters=True)", "find_unused"),
    ("torch.optim.Adam(model.parameters())", "net = DDP(model, gradient_as_bucket_view=True)", "bucket_view"),
    ("torch.optim.Adam(model.parameters())", "other = torch.optim.Adam(model.parameters())", "another optimizer"),
    ("torch.optim.Adam(model.parameters())", "import deepspeed", "DeepSpeed"),
    ("torch.optim.Adam(model.parameters())", "import horovod.torch as hvd", "Horovod"),
    ("torch.optim.Adam(model.parameters())", "import transformers as t\nt.Trainer(model)", "Trainer of transformers"),
    ("torch.optim.Adam(model.parameters())", "import trl\n\nclass Mine(trl.SFTTrainer):\n    pass", "Trainer of trl"),
    ("torch.optim.Adam(model.parameters())", "from torch.distributed.fsdp import fully_shard", "sharded"),
]


#: What it is handed to can be the reason.
HANDED = [
    ("def run(o):\n    o.step(closure)\n\nrun(optimizer)", "closure"),
    ("def run(a, *, o):\n    o.step(closure)\n\nrun(1, o=optimizer)", "closure"),
    ("def run(o):\n    f(o)\n\ndef f(o):\n    o.add_param_group(group)\n\nrun(optimizer)", "join the optimizer"),
    ("class Run:\n    def __call__(self, o):\n        o.step(closure)\n\nrun = Run()\nrun(optimizer)", "closure"),
    ("class Run:\n    def __init__(self, o):\n        o.step(closure)\n\nRun(optimizer)", "closure"),
    ("def run(*o):\n    o[0].step()\n\nrun(optimizer)", "passed to run in a way that cannot be traced"),
    ("from theirs import run\nrun(1, o=optimizer)", "handed to run, which was not found"),
    ("writer.write(optimizer)", "handed to writer.write, which was not found"),
    ("scaler.step(1, optimizer)", "handed to scaler.step, which was not found"),
    ("optimizer(1)", "its use cannot be traced"),
]
STAYS += [("torch.optim.Adam(model.parameters())", more, why) for more, why in HANDED]


@pytest.mark.parametrize(("made", "more", "why"), STAYS)
def test_stays_with_a_reason(made: str, more: str, why: str) -> None:
    source = f"import torch\nfrom torch import nn\n\nmodel = nn.Linear(2, 2).cuda()\noptimizer = {made}\n{more}\n"
    result = migrate(source, tune=((TUNE, ""),))
    assert b"NpuFused" not in result.data
    told = [finding for finding in result.findings if finding.code == "NPU750"]
    assert told, result.findings
    assert why in told[0].message
    assert told[0].help
    assert not any(finding.applied for finding in told)


@pytest.mark.parametrize(
    "more",
    [
        "for p in model.parameters():\n    p.grad.data /= 2\n    p.grad *= 2\n    p.data -= p.grad",
        "optimizer.param_groups[0]['lr'] = 0.1",
        "optimizer.param_groups[0].update(lr=0.1)",
        "for state in optimizer.state.values():\n    state['step'] = 0",
        "model = nn.Linear(2, 2, dtype=torch.float32).half()",
        "model = Net.from_pretrained(name, torch_dtype=torch.float32)",
        "labels = batch.to(dtype=torch.float64)",
        "model.weight.data = start",
        "x = x.to('cuda:0')",
        "x.requires_grad_(True)",
        "model.layers[0].requires_grad_(False)",
        "queue = x.share_memory_()",
        "print(optimizer)",
        "model.eval().to('cuda:0')",
        "shown = model.eval()(x).cpu()",
        "optimizer.load_state_dict(torch.load('last.pt'))",
        "assert model.zero_grad is not None",
        "if late:\n    optimizer = torch.optim.SGD(model.parameters())",  # that one stays, and is called alike
        "scaler.step(optimizer)",
        "torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)",
        "warmup = theirs.WarmupScheduler(optimizer=optimizer)",
        "def run(o):\n    o.step()\n\nrun(optimizer)",
        "class Run:\n    def __call__(self, a, o):\n        o.step()\n\nrun = Run()\nrun(1, o=optimizer)",
    ],
)
def test_no_reason_to_stay(more: str) -> None:
    source = "import torch\nfrom torch import nn\n\nmodel = nn.Linear(2, 2).to('cuda:0')\n"
    result = migrate(f"{source}optimizer = torch.optim.Adam(model.parameters())\n{more}\n", tune=((TUNE, ""),))
    assert b"NpuFusedAdam" in result.data


DRAWN = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])

    def forward(self, x, task=0):
        for layer in self.layers:
            {}
        return x

net = Net()
"""


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ("x = layer(x) if random.random() < 0.5 else x", True),
        ("if random.random() < 0.5:\n                x = layer(x)", True),
        ("mask = x.sum(1) > 0\n            if mask.any():\n                x = layer(x)", True),
        ("x = layer(x)", False),
        ("if task:\n                x = layer(x)", False),  # not known to change from step to step
    ],
)
def test_a_network_of_which_a_step_draws_a_part(body: str, stays: bool) -> None:
    source = f"import random\nimport torch\nfrom torch import nn\n\n{DRAWN.format(body)}"
    source += "model = nn.Linear(2, 2).cuda()\noptimizer = torch.optim.Adam(model.parameters())\n"
    result = migrate(source, tune=((TUNE, ""),))
    assert (b"NpuFusedAdam" not in result.data) is stays
    told = [finding.message for finding in result.findings if finding.code == "NPU750" and not finding.applied]
    assert any("some steps skip a layer of Net" in each for each in told) is stays


def test_a_model_that_processes_share() -> None:
    result = migrate(
        "import torch\n\n\ndef train(model):\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n",
        files={
            "main.py": "import torch\nfrom train import train\n\nmodel = torch.nn.Linear(2, 2).cuda()\n"
            "model.share_memory()\ntorch.multiprocessing.Process(target=train, args=(model,)).start()\n"
        },
        tune=((TUNE, ""),),
    )
    assert b"NpuFused" not in result.data
    assert any("main.py:5" in finding.message for finding in result.findings)


@pytest.mark.parametrize(
    "source",
    [
        "import torch\n\noptimizer = torch.optim.Adam(model.parameters())\n",  # nothing is on a card
        "import torch\n\noptimizer = torch.optim.Adagrad(model.to(0).parameters())\n",
        "import torch\n\noptimizer = torch.optim.LBFGS(model.to(device).parameters())\n",
        "import torch\n\noptimizer = torch_npu.optim.NpuFusedAdam(model.to(device).parameters())\n",
        "import torch\n\ntested = isinstance(model.to(device), torch.optim.Adam)\n",
        "import inspect\nimport torch\n\nfused = 'fused' in inspect.signature(torch.optim.AdamW).parameters\n",
        "from mine import Adam\n\noptimizer = Adam(model.to(device).parameters())\n",
        "import torch\n\noptimizer = torch.optim.Adam(model.to(d).parameters())  # transplt: ignore[NPU750]\n",
    ],
)
def test_nothing_to_do(source: str) -> None:
    check_untuned(TUNE, source)


@pytest.mark.parametrize(
    "source",
    [
        "import torch\n\n\nclass Mine(torch.optim.Adam):\n    pass\n",
        "import torch\n\nmake = {'adam': torch.optim.Adam}\n",
        "import torch\n\nmake = getattr(torch.optim, name)\n",
        "import torch\nfrom functools import partial\n\nmake = partial(torch.optim.SGD, lr=0.1)\n",
    ],
)
def test_classes_that_are_handed_on(source: str) -> None:
    check_untuned(TUNE, source, open_codes=["NPU750"])


def test_another_script_of_the_folder_is_no_reason() -> None:
    result = migrate(
        "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\noptimizer = torch.optim.Adam(model.parameters())\n",
        files={"other.py": "import deepspeed\n\nnet.zero_grad()\noptimizer.step()\n"},
        tune=((TUNE, ""),),
    )
    assert b"NpuFusedAdam" in result.data


@pytest.mark.parametrize("path", ["tests/steps.py", "test_steps.py", "net/tests/unit/steps.py"])
def test_a_test_has_nothing_to_gain(path: str) -> None:
    source = "import torch\n\noptimizer = torch.optim.Adam(model.to(device).parameters())\n{}"
    check_untuned(TUNE, source.format(""), path=path)
    check_untuned(TUNE, source.format("model.zero_grad()\n"), path=path)


@pytest.mark.parametrize(
    "line",
    [
        "reset = model.zero_grad\nreset()",
        'getattr(model, "zero_grad")()',
        "import operator\noperator.methodcaller('zero_grad')(model)",
        "for p in model.parameters():\n    setattr(p, 'grad', None)",
    ],
)
def test_gradients_that_are_set_to_none_by_another_way(line: str) -> None:
    source = f"import torch\nfrom torch import nn\n\nmodel = nn.Linear(2, 2).npu()\n{line}\n"
    source += "optimizer = torch.optim.Adam(model.parameters())\n"
    check_untuned(TUNE, source, open_codes=["NPU750"])


def test_two_classes_of_one_import() -> None:
    source = """
    import torch
    from torch.optim import {0}

    a, b = torch.nn.Linear(2, 2).npu(), torch.nn.Linear(2, 2).npu()
    first = {1}Adam(a.parameters())
    second = {1}SGD(b.parameters(), lr=0.1)
    """
    result = migrate(source.format("Adam, SGD", ""), tune=((TUNE, ""),))
    assert b"from torch.optim" not in result.data and result.data.count(b"torch_npu.optim.NpuFused") == 2
    assert not [item.code for item in result.findings if item.code.startswith("NPU99")]
    result = migrate(source.format("SGD, lr_scheduler, Adam", ""), tune=((TUNE, ""),))
    assert b"from torch.optim import lr_scheduler\n" in result.data


STAR = (
    "import torch\nfrom torch import nn\n{}\nmodel = nn.Linear(2, 2).cuda()\n"
    "optimizer = AdamW(model.parameters())\n{}" + LOOP.replace("\n    ", "\n")
)


@pytest.mark.parametrize(
    ("imports", "more"),
    [
        ("from torch.optim import *", ""),
        ("from torch.optim import *", "rates = lr_scheduler.StepLR(optimizer, 2)"),
        ("from torch.optim import *\nfrom torch.optim.lr_scheduler import *", "rates = StepLR(optimizer, 2)"),
        ("from torch.optim.lr_scheduler import *\nfrom torch.optim import AdamW", "rates = StepLR(optimizer, 2)"),
        ("from helpers import *\nfrom torch.optim import *", ""),
    ],
)
def test_what_stars_bring(imports: str, more: str) -> None:
    files = {"train.py": STAR.format(imports, more), "helpers.py": "def AdamW(): pass\n"}
    result = migrate(files["train.py"], path="train.py", files=files, tune=((TUNE, ""),))
    assert b"\noptimizer = torch_npu.optim.NpuFusedAdamW(model.parameters())\n" in result.data
    assert "NPU750" not in [finding.code for finding in result.findings if finding.open]


@pytest.mark.parametrize(
    ("imports", "more", "why"),
    [
        ("from torch.optim import *\nfrom helpers import *", "", "several star imports may define it"),
        ("from torch.optim import AdamW\nfrom helpers import *", "rates = StepLR(optimizer, 2)", "handed to StepLR"),
    ],
)
def test_what_a_later_star_may_bring_is_said(imports: str, more: str, why: str) -> None:
    files = {"train.py": STAR.format(imports, more), "helpers.py": ""}
    result = migrate(files["train.py"], path="train.py", files=files, tune=((TUNE, ""),))
    (said,) = [finding.message for finding in result.findings if finding.code == "NPU750"]
    assert why in said and b"NpuFused" not in result.data


@pytest.mark.parametrize("imports", ["from helpers import *", "from helpers import AdamW", "from torch.nn import *"])
def test_stars_that_do_not_bring_it_are_no_reason(imports: str) -> None:
    files = {"train.py": STAR.format(imports, ""), "helpers.py": "class AdamW:\n    def step(self): pass\n"}
    result = migrate(files["train.py"], path="train.py", files=files, tune=((TUNE, ""),))
    assert "NPU750" not in [finding.code for finding in result.findings] and b"NpuFused" not in result.data


CONFIGURED = """
    import torch
    from library import Module


    class Trainer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(2, 2).cuda()
            self.optimizer, _ = self.configure_optimizers()

        def configure_optimizers(self):
            return torch.optim.Adam(self.net.parameters()), None

        def fit(self, batches):
            for x in batches:
                self.optimizer.zero_grad()
                self.net(x.cuda()).sum().backward()
                self.optimizer.step()
    """


@pytest.mark.parametrize(
    ("base", "why"),
    [
        ("torch.nn.Module", ""),
        ("object", ""),
        ("Module", "Lightning runs the whole step inside of optimizer.step(closure)"),
        ("pytorch_lightning.LightningModule", "Lightning runs the whole step inside of optimizer.step(closure)"),
    ],
)
def test_what_is_called_as_lightning_calls_it_may_be_the_programs_own(base: str, why: str) -> None:
    result = migrate(CONFIGURED.replace("(torch.nn.Module)", f"({base})"), tune=((TUNE, ""),))
    assert (b"NpuFusedAdam(" in result.data) is not bool(why)
    assert any(why in found.message for found in result.findings if found.code == "NPU750")
