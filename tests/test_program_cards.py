"""Whether a program puts anything on a card, as its code says."""

from __future__ import annotations

import pytest

from tests.test_program_values import program_of
from transplt.program.cards import on_card

HEAD = "import torch\nfrom torch import nn\nfrom accelerate import Accelerator\nimport other\nmodel = net()\n"


@pytest.mark.parametrize(
    ("main", "other"),
    [
        ("model.cuda()", ""),
        ("look(model)", 'device = "cuda" if torch.cuda.is_available() else "cpu"'),
        ("model.npu()", ""),
        ("model = nn.DataParallel(model)", ""),
        ("accelerator = Accelerator()", ""),
        ("from pytorch_lightning import Trainer\nTrainer(max_epochs=2).fit(model)", ""),
        ("model.to(args.device)", ""),
        ("model.to(device=args.gpu)", ""),
        ("model.to(rank)", ""),
        ('model.to(device)\nstate = torch.load(path, map_location="cpu")', ""),
        ('parser.add_argument("--device", default="cuda:0")\nmodel.to(args.device)', ""),
    ],
)
def test_on_a_card(main: str, other: str) -> None:
    assert on_card(program_of(f"{HEAD}{main}\n", other=f"{other}\n"))


@pytest.mark.parametrize(
    ("main", "other"),
    [
        ("look(model)", ""),
        ("look(model)  # on a cuda card: model.cuda()", ""),
        ('"""Runs on cuda."""', ""),
        ("torch.cuda.manual_seed_all(1)", ""),
        ("mask = mask.to(torch.float32)", ""),
        ("mask = mask.to(other.dtype)", ""),
        ('model.to("cpu")', ""),
        ('device = torch.device("cpu")\nmodel.to(device)', ""),
        ("from other import device\nmodel.to(device)", 'device = "cpu"'),
        ('parser.add_argument("--device", default="cpu")\nmodel.to(args.device)', ""),
        ('parser.add_argument("--device", default="cpu")\ndevice = torch.device(args.device)\nmodel.to(device)', ""),
        ('device = "mps" if torch.backends.mps.is_available() else "cpu"\nmodel.to(device)', ""),
        ("from other import config\nmodel.to(config.device)", 'config = {"device": "cpu"}'),
    ],
)
def test_not_on_a_card(main: str, other: str) -> None:
    assert not on_card(program_of(f"{HEAD}{main}\n", other=f"{other}\n"))
