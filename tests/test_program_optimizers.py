"""Which calls make optimizers, of what class, for which models, and which variables hold them."""

from __future__ import annotations

import ast

import pytest

from tests.test_program_values import program_of, the
from transplt.program.models import defines_optimizer, kind_of
from transplt.program.optimizers import find_optimizers, is_optimizer_object
from transplt.program.program import text_of

HEAD = "import torch\nfrom torch import nn, optim\nmodel = nn.Linear(2, 1)\nother = nn.Linear(2, 1)\n"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("optim.Adam(p)", "torch.optim.Adam"),
        ("torch.optim.adam.Adam(p)", "torch.optim.Adam"),
        ("torch.optim.sparse_adam.SparseAdam(p)", "torch.optim.SparseAdam"),
        ("torch.optim.Rprop(p)", "torch.optim.Rprop"),
        ('{"adam": optim.Adam, "sgd": optim.SGD}[name](p)', "torch.optim"),
        ("getattr(optim, name)(p)", "torch.optim"),
        ("(optim.Adam if x else optim.Adam)(p)", "torch.optim.Adam"),
        ("partial(optim.SGD, lr=0.1)(p)", "torch.optim.SGD"),
        ("import torch_npu\ntorch_npu.optim.NpuFusedRMSprop(p)", "torch_npu.optim.NpuFusedRMSprop"),
        ("import timm\ntimm.optim.Lookahead(p)", "timm.optim.Lookahead"),
        ("import torch_optimizer\ntorch_optimizer.Yogi(p)", "torch_optimizer.Yogi"),
        ("from pytorch_optimizer import Ranger\nRanger(p)", "pytorch_optimizer.Ranger"),
        ("from galore_torch import GaLore\nGaLore(p)", "galore_torch.GaLore"),
        ("create_optimizer(args, model)", ""),
        ("from transformers import AdamW\nAdamW(p)", ""),
        ("from timm.optim import create_optimizer\ncreate_optimizer(args, model)", ""),
        # beside the optimizers
        ("optim.lr_scheduler.StepLR(o, 1)", None),
        ("optim.swa_utils.AveragedModel(model)", None),
        ("from transformers import AutoModel\nAutoModel.from_pretrained(name)", None),
        ("from transformers import Trainer\nTrainer(model)", None),
        ("from transformers.optimization import get_adafactor_schedule\nget_adafactor_schedule(o)", None),
        ("from timm.optim.optim_factory import add_weight_decay\nadd_weight_decay(model)", None),
        ("optimize_parameters(x)", None),
        ("run(p)", None),
    ],
)
def test_kinds(source: str, kind: str | None) -> None:
    file = program_of(HEAD + source + "\n").files[0]
    last = file.scan.tree.body[-1]
    assert isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
    assert kind_of(file, last.value) == kind


@pytest.mark.parametrize(
    ("bases", "expected"),
    [("torch.optim.Optimizer", True), ("optim.SGD", True), ("Own", True), ("UnknownOptimizer", True),
     ("nn.Module", False), ("Plain", False)],
)  # fmt: skip
def test_classes_of_optimizers(bases: str, expected: bool) -> None:
    own = "class Own(optim.Optimizer):\n    pass\nclass Plain:\n    pass\n"
    program = program_of(f"{HEAD}{own}class It({bases}):\n    pass\n")
    assert defines_optimizer(program, program.files[0].scan.classes[-1]) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("o = optim.SGD(model.parameters())", True),
        ("optimizer = make()", True),
        ("opt_policy = optim.lr_scheduler.StepLR(o, 1)", False),
        ("lr_scheduler = make()", False),
        ("value = make()", False),
    ],
)
def test_objects(source: str, expected: bool) -> None:
    program = program_of(f"{HEAD}{source}\nlook({source.partition(' ')[0]})\n")
    assert is_optimizer_object(program, program.files[0], the(program, "look")) is expected


@pytest.mark.parametrize(
    ("source", "parts", "whole", "holders"),
    [
        ("o = optim.SGD(model.parameters())", ["model"], True, "o"),
        ("o = optim.SGD(params=model.parameters())", ["model"], True, "o"),
        ("o = optim.SGD([{'params': model.fc.parameters()}, {'params': other.parameters()}])",
         ["model.fc", "other"], False, "o"),
        ("def make(net):\n    return optim.SGD(net.parameters())\no = make(model)\nlook(o)", ["model"], True, "o"),
        ("def step(opt):\n    opt.step()\no = optim.SGD(model.parameters())\nstep(o)", ["model"], True, "o opt"),
        ("def make():\n    a = optim.SGD(model.parameters())\n    return a, 1\no, n = make()", ["model"], True, "a o"),
        ("o = optim.SGD(get(model))", [], False, "o"),
        ("os['a'] = optim.SGD(model.parameters())", ["model"], True, ""),
    ],
)  # fmt: skip
def test_given_and_held(source: str, parts: list[str], whole: bool, holders: str) -> None:
    [found] = find_optimizers(program_of(f"{HEAD}{source}\n"))
    assert [".".join((slot[2], *below)) for slot, below in found.given.parts] == parts
    assert (found.given.whole is not None) is whole
    assert [slot[2] for slot in found.holders] == holders.split()
    assert found.given.complete is bool(parts)
    assert any(use.lost for use in found.uses) is (not holders)


def test_parameters_that_two_share() -> None:
    """Of parts, and of a model that one gets in its wrapper."""
    wrapper = "wrapped = nn.DataParallel(model)\n"
    calls = ("model.parameters()", "model.fc.parameters()", "wrapped.parameters()", "other.parameters()")
    found = find_optimizers(program_of(HEAD + wrapper + "".join(f"optim.SGD({each})\n" for each in calls)))
    model, part, wrapped, other = (each.given for each in found)
    assert model.shares(part) and part.shares(model) and model.shares(wrapped)
    assert not other.shares(model) and not other.shares(part) and not other.shares(wrapped)


def test_classes_of_the_program_are_no_calls_of_others() -> None:
    source = "class Own(optim.Optimizer):\n    pass\ndef build(net):\n    return optim.SGD(net.parameters())\n"
    found = find_optimizers(program_of(f"{HEAD}{source}a = Own(model.parameters())\nb = build(model)\n"))
    assert [text_of(each.file, each.call) for each in found] == ["optim.SGD(net.parameters())"]
