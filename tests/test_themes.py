"""A theme whose result does not hold is taken back as a whole; the migration and the other themes stay."""

from __future__ import annotations

from typing import Any

import libcst as cst
import pytest

from tests.harness import codes, migrate
from tests.mixed_precision.test_recognise import NET, TRAIN
from transplt.base.finding import Level
from transplt.base.settings import TORCH_VERSIONS
from transplt.edits.edit import Edit
from transplt.edits.fixer import Fixer
from transplt.edits.groups import MANY_CARDS, MIXED_PRECISION, TUNINGS
from transplt.edits.trees.transform import CannotRewrite, Transform
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.tunings import compile_mode
from transplt.fixers.tunings.table import parse_tunings


def test_what_breaks_a_file_goes_and_the_rest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(writer: Writer, *_: object) -> None:
        writer.after(writer.work.scan.tree.body[0], ["this is no Python"], "NPU752", "a line that does not compile")

    monkeypatch.setattr(compile_mode, "write_below_imports", broken)
    source = TRAIN + "torch.cuda.synchronize()\n"
    result = migrate(source, files={"net.py": NET}, amp="native", tune=(("compile-mode", ""),))
    assert b"no Python" not in result.data
    assert b"scaler.step(optimizer)" in result.data and b"torch.npu.synchronize()" in result.data
    (taken,) = [finding for finding in result.findings if finding.code == "NPU992"]
    assert taken.level is Level.MANUAL and taken.message.startswith("undone: everything that tuned this file")
    assert taken.help.startswith("tune it by hand")


@pytest.mark.parametrize(
    ("group", "asked"),
    [
        ("", {}),
        (MANY_CARDS.name, {"entry": "main.py"}),
        (MIXED_PRECISION.name, {"amp": "native"}),
        (MIXED_PRECISION.name, {"amp": "apex"}),
        (TUNINGS.name, {"tune": parse_tunings("all,max-steps=100,step-time,profiler=5-10", TORCH_VERSIONS[-1])}),
    ],
)
def test_each_edit_has_the_group_of_its_theme(
    group: str, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not hold is taken back by group: an edit that a theme made without one would stay."""
    made: dict[int, tuple[Fixer, Edit]] = {}
    look = Fixer.look

    def watched(fixer: Fixer, work: Work) -> None:
        look(fixer, work)
        for edit in work.edits:
            made.setdefault(id(edit), (fixer, edit))

    monkeypatch.setattr(Fixer, "look", watched)
    migrate(TRAIN + "torch.cuda.synchronize()\n", path="main.py", files={"net.py": NET}, **asked)
    assert all(edit.group == fixer.theme.partition(":")[0] for fixer, edit in made.values())
    assert {edit.group for _, edit in made.values()} == {"", group}


LOOP = """\
import torch
model = torch.nn.Linear(2, 2).cuda()
opt = torch.optim.Adam(model.parameters())
for x in data:
    loss = model(x.cuda()).mean()
    opt.zero_grad()
    {backward}
    opt.step()
"""
LONG = "(loss * first_coefficient_of_all + loss *\n     second_coefficient_of_all - third_coefficient_of_all)"


@pytest.mark.parametrize("loss", ["loss", LONG, LONG.replace("\n", ""), f"sum({LONG})", f"(loss if x else {LONG})"])
def test_a_loss_of_any_length_is_scaled(loss: str) -> None:
    result = migrate(LOOP.format(backward=f"{loss}.backward()"), amp="native")
    inside = loss[1:-1] if loss.startswith("(") else loss
    assert f"    scaler.scale({inside}).backward()\n    scaler.step(opt)\n" in result.data.decode()
    assert "NPU990" not in codes(result, applied=False)


def test_an_edit_that_fails_takes_its_theme_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(scaler: str) -> Transform:
        def transform(node: cst.CSTNode) -> cst.CSTNode:
            raise CannotRewrite("not this one")

        return transform

    monkeypatch.setattr("transplt.fixers.amp.native.scaled_by", fails)
    result = migrate(LOOP.format(backward="loss.backward()"), amp="native")
    text = result.data.decode()
    assert "scaler" not in text and "autocast" not in text and ".npu()" in text
    (taken,) = [each for each in result.findings if each.message.startswith("undone")]
    assert "not this one" in taken.message


INDEXED = """
Tensor = torch.FloatTensor
model = Net().npu()
for x in loader:
    valid = Tensor(x.size(0), 1).fill_(1.0)
    x = x.type(Tensor)
    loss = torch.nn.functional.mse_loss(model(x[valid > 0]), valid)
    loss.backward()
"""


@pytest.mark.parametrize(("first", "tuned"), [("", False), ("import torch\n", True), ("from torch import nn\n", False)])
def test_a_file_that_reads_torch_and_does_not_import_it_gets_no_import_of_it(first: str, tuned: bool) -> None:
    source = f"{first}from nets import Net\nfrom data import loader\n{INDEXED}"
    result = migrate(source, tune=parse_tunings("all", TORCH_VERSIONS[-1]))
    assert (result.data.decode() != source) is tuned
    assert not [each for each in result.findings if each.code == "NPU992"]
