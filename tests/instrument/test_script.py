"""What a probe copy changes in a program, as pairs; and what it says of the rest."""

from __future__ import annotations

import textwrap

import pytest

from transplt.precision.instrument.script import Probed, Probing, instrument

HEAD = "import transplt_probe\n\ntransplt_probe.begin(seed=1234, steps=[0, 1])\n"


def probed(text: str, probing: Probing | None = None) -> Probed:
    return instrument({"train.py": textwrap.dedent(text).encode()}, "train.py", probing or Probing())


def after(text: str) -> str:
    """The copy without its first lines."""
    done = probed(text).files["train.py"].decode()
    assert done.startswith(HEAD)
    return done.removeprefix(HEAD)


LOOP = "for x in loader:\n    loss = model(x)\n    loss.backward()\n    optimizer.step()\n"


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        pytest.param(LOOP, LOOP.replace("loader", "transplt_probe.steps(loader)"), id="a loop"),
        pytest.param(
            "for epoch in range(3):\n    for i, x in enumerate(loader):\n        if bad(x):\n            continue\n"
            "        loss(x).backward()\n        optimizer.step()\n    test()\n",
            "for epoch in range(3):\n    for i, x in transplt_probe.steps(enumerate(loader)):\n        if bad(x):\n"
            "            continue\n        loss(x).backward()\n        optimizer.step()\n    test()\n",
            id="the innermost loop that steps",
        ),
        pytest.param(
            "for x in batches:\n    for part in x:\n        loss(part).backward()\n    optimizer.step()\n"
            "    scheduler.step()\n",
            "for x in transplt_probe.steps(batches):\n    for part in x:\n        loss(part).backward()\n"
            "    optimizer.step()\n    scheduler.step()\n",
            id="gradients that add up",
        ),
        pytest.param(
            "while True:\n    loss().backward()\n    optimizer.step()\n",
            "while True:\n    transplt_probe.step()\n    loss().backward()\n    optimizer.step()\n",
            id="while",
        ),
        ("while go: loss().backward()\n", "while go:\n    transplt_probe.step()\n    loss().backward()\n"),
        ("for x in a, b:\n    x.backward()\n", "for x in transplt_probe.steps((a, b)):\n    x.backward()\n"),
        pytest.param(
            "for x in loader:\n    for _ in range(5):\n        d_loss(x).backward()\n        d_opt.step()\n"
            "    g_loss().backward()\n    g_opt.step()\n",
            "for x in transplt_probe.steps(loader):\n    for _ in range(5):\n        d_loss(x).backward()\n"
            "        d_opt.step()\n    g_loss().backward()\n    g_opt.step()\n",
            id="a GAN is one step",
        ),
        pytest.param(
            "def train_step(x):\n    loss(x).backward()\n    opt.step()\n\ndef main():\n"
            "    for x in data:\n        train_step(x)\n",
            "def train_step(x):\n    loss(x).backward()\n    opt.step()\n\ndef main():\n"
            "    for x in transplt_probe.steps(data):\n        train_step(x)\n",
            id="the loop around the call",
        ),
        pytest.param(
            "for x in loader:\n    loss_scaler(loss, optimizer, parameters=model.parameters())\n",
            "for x in transplt_probe.steps(loader):\n    loss_scaler(loss, optimizer, parameters=model.parameters())\n",
            id="a scaler that does it all",
        ),
        pytest.param(
            "def train_step(x):\n    loss(x).backward()\n    w.data -= w.grad\n\nfor x in data:\n    train_step(x)\n",
            "def train_step(x):\n    loss(x).backward()\n    w.data -= w.grad\n\n"
            "for x in transplt_probe.steps(data):\n    train_step(x)\n",
            id="without an optimizer",
        ),
        pytest.param(
            "def profile(n):\n    for _ in range(n):\n        f().backward()\n\ndef train(hyp):\n    profile(3)\n"
            "    for x in data:\n        loss(x).backward()\n        optimizer.step()\n\n"
            "for hyp in population:\n    train(hyp)\n",
            "def profile(n):\n    for _ in range(n):\n        f().backward()\n\ndef train(hyp):\n    profile(3)\n"
            "    for x in transplt_probe.steps(data):\n        loss(x).backward()\n        optimizer.step()\n\n"
            "for hyp in population:\n    train(hyp)\n",
            id="what is called beside the loop that trains is no step",
        ),
        pytest.param(
            "class Scaler:\n    def __call__(self, loss, opt):\n        self.scaler.scale(loss).backward()\n"
            "        self.scaler.step(opt)\n\ndef epoch(scaler):\n    for x in data:\n"
            "        scaler(net(x), optimizer)\n\nscaler = Scaler()\nfor i in range(3):\n    epoch(scaler)\n",
            "class Scaler:\n    def __call__(self, loss, opt):\n        self.scaler.scale(loss).backward()\n"
            "        self.scaler.step(opt)\n\ndef epoch(scaler):\n    for x in transplt_probe.steps(data):\n"
            "        scaler(net(x), optimizer)\n\nscaler = Scaler()\nfor i in range(3):\n    epoch(scaler)\n",
            id="an object that goes back and steps is handed on",
        ),
        pytest.param(
            "def closure():\n    loss().backward()\n    return loss\n\nfor i in range(9):\n    opt.step(closure)\n",
            "def closure():\n    loss().backward()\n    return loss\n\n"
            "for i in transplt_probe.steps(range(9)):\n    opt.step(closure)\n",
            id="a closure",
        ),
        pytest.param(
            "def attack(x):\n    for _ in range(7):\n        f(x).backward()\n\nfor x in data:\n    attack(x)\n"
            "    loss(x).backward()\n    optimizer.step()\n",
            "def attack(x):\n    for _ in range(7):\n        f(x).backward()\n\n"
            "for x in transplt_probe.steps(data):\n    attack(x)\n    loss(x).backward()\n    optimizer.step()\n",
            id="a loop without a step of its own is part of one",
        ),
        pytest.param(
            "class Runner:\n    def update(self):\n        self.optimizer.step()\n\n    def fit(self):\n"
            "        for batch in self.loader:\n            for part in batch:\n"
            "                self.loss(part).backward()\n            self.update()\n",
            "class Runner:\n    def update(self):\n        self.optimizer.step()\n\n    def fit(self):\n"
            "        for batch in transplt_probe.steps(self.loader):\n            for part in batch:\n"
            "                self.loss(part).backward()\n            self.update()\n",
            id="a step in a method",
        ),
        pytest.param(
            "engine, _, loader, _ = deepspeed.initialize(args, net)\nfor x in loader:\n"
            "    engine.backward(engine(x))\n    engine.step()\n",
            "engine, _, loader, _ = deepspeed.initialize(args, net)\nfor x in transplt_probe.steps(loader):\n"
            "    engine.backward(engine(x))\n    engine.step()\n",
            id="DeepSpeed",
        ),
        pytest.param(
            "from accelerate import Accelerator\na = Accelerator()\nfor x in loader:\n"
            "    with a.accumulate(model):\n        a.backward(model(x))\n        optimizer.step()\n",
            "from accelerate import Accelerator\na = Accelerator()\nfor x in transplt_probe.steps(loader):\n"
            "    with a.accumulate(model):\n        a.backward(model(x))\n        optimizer.step()\n",
            id="accelerate",
        ),
        pytest.param(
            "from transformers import Trainer\nt = Trainer(m, **more)\nt.train()\n",
            "from transformers import Trainer\nt = transplt_probe.recorded(Trainer(m, **more))\nt.train()\n",
            id="Trainer whose callbacks nobody sees",
        ),
        pytest.param(
            "from trl import SFTTrainer\nSFTTrainer(m, callbacks=cbs).train()\n",
            "from trl import SFTTrainer\ntransplt_probe.recorded(SFTTrainer(m, callbacks=cbs)).train()\n",
            id="trl",
        ),
        pytest.param(
            "from transformers import Trainer\nt = Trainer(model=m, callbacks=[early])\n",
            "from transformers import Trainer\n"
            "t = transplt_probe.recorded(Trainer(model=m, callbacks=[early]))\n",
            id="Trainer with callbacks",
        ),
        pytest.param(
            "from transformers import Trainer\nclass Mine(Trainer):\n    pass\nt = Mine(m)\n",
            "from transformers import Trainer\nclass Mine(Trainer):\n    pass\n"
            "t = transplt_probe.recorded(Mine(m))\n",
            id="a Trainer of the program's own",
        ),
        pytest.param(
            "import lightning as L\nL.Trainer(max_epochs=1).fit(net)\n",
            "import lightning as L\ntransplt_probe.recorded(L.Trainer(max_epochs=1)).fit(net)\n",
            id="Lightning",
        ),
    ],
)  # fmt: skip
def test_steps_are_recorded(before: str, wanted: str) -> None:
    assert after(before) == wanted


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ("DataLoader(d, shuffle=True, num_workers=4, timeout=2)",
         "DataLoader(d, shuffle=True, num_workers=0, generator=transplt_probe.generator())"),
        ("DataLoader(d, 32, True)", "DataLoader(d, 32, True, generator=transplt_probe.generator())"),
        ("DataLoader(d, shuffle=s is None, **more)",
         "DataLoader(d, shuffle=s is None, generator=transplt_probe.generator(), **more)"),
        ("DataLoader(d, 8, False, None, None, 4)", "DataLoader(d, 8, False, None, None, 0)"),
        ("DataLoader(d)", "DataLoader(d)"),
        ("DataLoader(d, shuffle=True, generator=g)", "DataLoader(d, shuffle=True, generator=g)"),
        ("DistributedSampler(d)", "DistributedSampler(d)"),  # it shuffles by a seed of its own
        ("RandomSampler(d)", "RandomSampler(d, generator=transplt_probe.generator())"),
        ("RandomSampler(d, generator=g)", "RandomSampler(d, generator=g)"),
        ("DataLoader(d, **{'shuffle': True, 'num_workers': 2, 'prefetch_factor': 2})",
         "DataLoader(d, **{'shuffle': True, 'num_workers': 0, 'prefetch_factor': None})"),
        ("dict(num_workers=4, pin_memory=True)", "dict(num_workers=0, pin_memory=True)"),
        ("torch.randn(4, 8, device=dev)", "torch.randn(4, 8, device=dev)"),  # the probe draws it on the host
        ("x.normal_()", "x.normal_()"),
        ("torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.benchmark = False"),
        ("random.shuffle(names)", "random.shuffle(names)"),
    ],
)  # fmt: skip
def test_order_and_numbers_are_fixed(before: str, wanted: str) -> None:
    head = "import random\nimport torch\nfrom torch.utils.data import DataLoader, DistributedSampler, RandomSampler\n"
    done = after(f"{head}{before}\n{LOOP}")
    assert done == f"{head}{wanted}\n{LOOP.replace('loader', 'transplt_probe.steps(loader)')}"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("ds = ds.shuffle(1000)\n", 1, "this shuffles the data"),
        ("import numpy as np\nr = np.random.default_rng()\n", 2, "starts differently in each run"),
        ("import random, time\nrandom.seed(time.time())\n", 2, "starts differently in each run"),
        ("import flash_attn\nflash_attn.flash_attn_func(q, k, v, dropout_p=0.1)\n", 2, "has its own dropout"),
        ("def f():\n    loss.backward()\n", 2, "no loop around this backward pass"),
        ("from composer import Trainer\nTrainer(m).fit()\n", 2, "Composer contains the training loop"),
        ("from lightning.pytorch.cli import LightningCLI\nLightningCLI(M)\n", 2, "creates its own trainer"),
        ("async def f():\n    async for x in y:\n        x.backward()\n", 2, "an async loop is not recorded"),
        ("print(1)\n", 1, "no training loop was found"),
    ],
)
def test_what_cannot_be_fixed_is_said(text: str, line: int, said: str) -> None:
    assert any(each.line == line and said in each.message and not each.informs for each in probed(text).left)


@pytest.mark.parametrize(
    "text",
    [
        LOOP,
        "torch.Generator().manual_seed(3)\n" + LOOP,
        "self.shuffle(x)\nx = self.block.shuffle(out)\nrng.shuffle(order)\nds = ds.shuffle(9, seed=1)\n" + LOOP,
        "import numpy as np\nr = np.random.default_rng(0)\nnp.random.seed(args.seed)\n" + LOOP,
        "import flash_attn\nflash_attn.flash_attn_func(q, k, v, dropout_p=0.0)\n" + LOOP,
        "import torch\nc = Config(hidden_dropout_prob=0.1)\nm.weight.data.normal_()\ntorch.bernoulli(x)\n" + LOOP,
        # Frameworks go back through the loss in a method of theirs.
        "from transformers import Trainer\nclass Mine(Trainer):\n    def training_step(self, model, x):\n"
        "        self.accelerator.backward(model(x))\nMine(m).train()\n",
        "import lightning as L\nclass Net(L.LightningModule):\n    def training_step(self, x, i):\n"
        "        self.manual_backward(self(x))\nL.Trainer().fit(Net())\n",
    ],
)
def test_nothing_is_said(text: str) -> None:
    assert probed(text).left == ()


def test_a_file_that_cannot_be_read_is_left_and_counts_where_it_is_imported() -> None:
    files = {"train.py": b"import a\n" + LOOP.encode(), "a.py": b"print 1, (\n", "b.py": b"def (\n"}
    assert [(each.path, each.informs) for each in instrument(files, "train.py", Probing()).left] == [
        ("a.py", False), ("b.py", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ('"""Doc."""\nfrom __future__ import annotations\nimport os\nx = 1\n',
         '"""Doc."""\nfrom __future__ import annotations\n' + HEAD + "import os\nx = 1\n"),
        ("#!/bin/env python\n# coding: utf-8\n\nx = 1\n", "#!/bin/env python\n# coding: utf-8\n\n" + HEAD + "x = 1\n"),
        ("@f\nclass A: pass\n", HEAD + "@f\nclass A: pass\n"),
        ("import os\r\nx = 1\r\n", HEAD.replace("\n", "\r\n") + "import os\r\nx = 1\r\n"),
        ("", HEAD),
    ],
)  # fmt: skip
def test_the_probe_begins_before_any_other_name_is_bound(before: str, wanted: str) -> None:
    assert instrument({"m.py": before.encode()}, "m.py", Probing()).files["m.py"].decode() == wanted


def test_the_seed_of_the_program_wins_over_ours_and_an_asked_one_over_both() -> None:
    text = "import torch\ntorch.manual_seed(42)\n" + LOOP
    done = probed(text)
    assert done.seed == 42 and b"begin(seed=42, steps=[0, 1])" in done.files["train.py"]
    assert [(each.line, each.informs) for each in done.left] == [(2, True)]
    assert probed(text, Probing(seed=7)).seed == 7


@pytest.mark.parametrize(
    ("text", "seed"),
    [
        ("SEED = 77\ntorch.manual_seed(SEED)\n", 77),
        ("def fix(seed=5):\n    torch.manual_seed(seed)\nfix(78)\n", 78),
        ("import argparse\np = argparse.ArgumentParser()\np.add_argument('--seed', type=int, default=79)\n"
         "args = p.parse_args()\ntorch.manual_seed(args.seed)\n", 79),
        # What nobody can say without running it is msprobe's.
        ("import sys\nSEED = int(sys.argv[1])\ntorch.manual_seed(SEED)\n", 1234),
        ("SEED = 1\nif x:\n    SEED = 2\ntorch.manual_seed(SEED)\n", 1234),
    ],
)  # fmt: skip
def test_a_seed_in_a_variable_is_the_program_s_own(text: str, seed: int) -> None:
    assert probed(f"import torch\n{text}{LOOP}").seed == seed


def test_a_loop_in_another_file_gets_the_import_alone() -> None:
    engine = "def run():\n" + textwrap.indent(LOOP, "    ")
    files = {"train.py": b"from engine import run\nrun()\n", "engine.py": engine.encode()}
    done = instrument(files, "train.py", Probing(level="L1", task="tensor", steps=(), api="ptdbg", deterministic=True))
    wanted = engine.replace("loader", "transplt_probe.steps(loader)")
    assert done.files["engine.py"].decode() == f"import transplt_probe\n{wanted}"
    assert b'begin(seed=1234, task="tensor", level="L1", deterministic=True, api="ptdbg")' in done.files["train.py"]


def test_of_files_that_the_script_does_not_import_nothing_is_said() -> None:
    other = b"import torch\ntorch.manual_seed(5)\nds.shuffle()\n"
    files = {"train.py": b"import util.a\n" + LOOP.encode(), "util/a.py": other, "b.py": other, "c.py": other}
    package = {"util/__init__.py": b"from . import d\n", "util/d.py": b"import c\n"}
    done = instrument({**files, **package}, "train.py", Probing())
    assert {each.path for each in done.left} == {"util/a.py", "c.py"}


def test_the_edit_is_the_same_for_both_devices() -> None:
    cuda = 'import torch\nz = torch.randn(3, device="cuda")\n' + LOOP
    npu = cuda.replace("import torch\n", "import torch\nimport torch_npu\n").replace("cuda", "npu")
    ours, theirs = (probed(text).files["train.py"].decode() for text in (cuda, npu))
    assert ours.replace("import torch\n", "import torch\nimport torch_npu\n").replace("cuda", "npu") == theirs
