"""Calls that newer torch refuses (rules/support/refused_calls.json)."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate
from transplt.fixers.codemods.refused_calls import first_torch
from transplt.rules.tables import read_table


def test_every_row_is_whole() -> None:
    for row in read_table("support/refused_calls.json")["calls"]:
        assert len({"lacks", "keyword", "called", "whole", "as_one"} & set(row)) == 1, row["name"]
        assert row["message"] and row["help"] and row["source"], row["name"]
        assert len({"since", "python"} & set(row)) == 1, row["name"]


def test_a_name_of_python_is_gone_where_no_older_python_has_this_torch_npu() -> None:
    rows = read_table("support/refused_calls.json")["calls"]
    of_python = {row["name"]: first_torch(row) for row in rows if "python" in row}
    assert of_python["time.clock"] == "2.1" and of_python["fractions.gcd"] == "2.5"
    assert of_python["inspect.getargspec"] == "none"  # torch 2.14 has wheels for Python 3.10


SCHEDULER = (
    "from torch import optim\nclass S(optim.lr_scheduler._LRScheduler):\n"
    "    def __init__(self, o, last, verbose):\n        "
)


@pytest.mark.parametrize(
    "source",
    [
        "s = torch.stft(x, 512, 128, window=w)",
        "s = torch.stft(x, n_fft=512)",
        "from torch.autograd import Variable\nx = Variable(x, volatile=True)",
        "s = torch.fft(x, 2)",
        "op = torch._C._jit_get_operation('aten::grid_sampler_2d_backward')",
        "s = torch.optim.lr_scheduler.StepLR(o, 3, verbose=True)",
        "from torch.optim.lr_scheduler import ReduceLROnPlateau as R\ns = R(o, verbose=False)",
        "torch.onnx.export(m, x, 'f', example_outputs=y)",
        "class F(torch.autograd.Function):\n    def forward(self, x):\n        return x",
        "from torch.autograd import Function\nclass F(Function):\n    def forward(self, x):\n        return x",
        "o = torch.optim.Adam(p, lr=1e-4, betas=(0, 0.99))",
        "from torch import optim\no = optim.AdamW(p, 1e-4, [0, 0.9])",
        "def f(opt):\n    if opt.ttur:\n        b1, b2 = 0, opt.b2\n    else:\n        b1, b2 = opt.b1, 0.999\n"
        "    return torch.optim.Adam(p, lr=1, betas=(b1, b2))",
        "b = (0, 0.9)\no = torch.optim.Adam(p, betas=b)",
        "import fractions\nx = fractions.gcd(a, b)",
        "from time import clock\nx = clock()",
        "class S(torch.utils.data.Sampler):\n    def __init__(self, d):\n        super().__init__(d)",
        f"{SCHEDULER}super().__init__(o, last, verbose)",
        f"{SCHEDULER}super(S, self).__init__(o, last_epoch=last, verbose=verbose)",
        f"{SCHEDULER}super().__init__(o, last, verbose)".replace("_LRS", "LRS"),
        f"{SCHEDULER}super().__init__(o, lambda x: 1, last, verbose)".replace("_LRScheduler", "LambdaLR"),
        "s = torch.optim.lr_scheduler.StepLR(o, 3, 0.1, -1, True)",
        "from torch.utils.data.sampler import Sampler\n"
        "class S(Sampler[int]):\n    def __init__(self, d):\n        super(S, self).__init__(d)",
    ],
)
def test_reported(source: str) -> None:
    check_noop(f"import torch\n{source}\n", open_codes=["NPU293"])


def test_whole_numbers_in_betas_ran_before_2_6() -> None:
    check_noop("import torch\no = torch.optim.Adam(p, betas=(0, 0.99))\n", torch_version="2.5")


@pytest.mark.parametrize(
    "source",
    [
        f"{SCHEDULER}super().__init__(o, last)",
        f"{SCHEDULER}self.verbose = verbose\n        super().__init__(o, last_epoch=last)",
        f"{SCHEDULER}super().__init__(o, last, *verbose)",
        f"{SCHEDULER}super().__init__(o, last, verbose)".replace("optim.lr_scheduler._LRS", "mine.S"),
        f"{SCHEDULER}super().step(o, last, verbose)",
        "s = torch.optim.lr_scheduler.StepLR(o, 3, 0.1, -1)",
        "s = torch.stft(x, 512, return_complex=True)",
        "s = torch.stft(x, 512, return_complex=False)",
        "s = torch.stft(x, 512, **options)",
        "s = torch.stft(x, 512, 1, 2, w, True, 'reflect', False, True, False)",
        "s = librosa.stft(x, 512)",
        "x = torch.autograd.Variable(x)\ny = tl.load(p, volatile=True)",
        "s = torch.fft.fft(x)",
        "s = torch.optim.lr_scheduler.StepLR(o, 3)",
        "s = StepLR(o, 3, verbose=True)",
        "torch.onnx.export(m, x, 'f', verbose=True)",
        "class F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x",
        "class F(torch.autograd.Function):\n    @classmethod\n    def forward(cls, ctx, x):\n        return x",
        "class F(torch.autograd.Function):\n    def forward(c):\n        return c\n    forward = staticmethod(forward)",
        "class F(torch.nn.Module):\n    def forward(self, x):\n        return x",
        "class S(torch.utils.data.Sampler):\n    def __init__(self, d):\n        super().__init__()",
        "class S(torch.utils.data.Sampler):\n    def __init__(self, *a):\n        super().__init__(*a)",
        "class S(torch.utils.data.Sampler, B):\n    def __init__(self, d):\n        super().__init__(d)",
        "class S(torch.utils.data.RandomSampler):\n    def __init__(self, d):\n        super().__init__(d)",
        "o = torch.optim.Adam(p, lr=1, betas=(0.0, 0.99))",
        "o = torch.optim.Adam(p, lr=1, betas=(opt.b1, 0.99))",
        "o = torch.optim.Adam(p, 0, betas=betas)",
        "def f(b1=0.5):\n    return torch.optim.AdamW(p, betas=(b1, 0.999))",
        "o = Adam(p, betas=(0, 0.99))",
        "o = torch.optim.RAdam(p, betas=(0, 0.99))",
        "x = math.gcd(a, b)",
        "import inspect\nx = inspect.getargspec(f)",
        "def clock():\n    pass\nx = clock()",
        "x = losses.data[0]",
        "x = loss.data[i]",
        "x = loss.data.item()",
        "loss.data[0] = 1",
    ],
)
def test_silent(source: str) -> None:
    check_noop(f"import torch\n{source}\n")


def test_what_has_no_effect_stops_nothing() -> None:
    (finding,) = [
        each for each in migrate("import torch\nx = torch.autograd.Variable(x, volatile=True)\n").findings if each.open
    ]
    assert (finding.code, finding.blocks) == ("NPU293", "slow")


def test_the_version_decides() -> None:
    source = "import torch\ns = torch.optim.lr_scheduler.StepLR(o, 3, verbose=True)\n"
    check_noop(source, torch_version="2.6")
    check_noop(source, torch_version="2.7", open_codes=["NPU293"])
    sampler = (
        "import torch\nclass S(torch.utils.data.Sampler):\n    def __init__(self, d):\n        super().__init__(d)\n"
    )
    check_noop(sampler, torch_version="2.9")
    check_noop(sampler, torch_version="2.10", open_codes=["NPU293"])
