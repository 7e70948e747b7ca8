"""`prove --compile-mode`: the port eagerly and by torch.compile, on the emulated card."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.planted.planting import prove
from transplt.base.render.verdict import Word
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.warm import Warm
from transplt.proof.prove.command import for_output
from transplt.proof.prove.compile_mode import TITLE, Said, eager_and_compiled
from transplt.proof.prove.found import Part
from transplt.proof.prove.projects import find_projects
from transplt.proof.prove.runs import Runner
from transplt.proof.prove.training import Place

_PROGRAM = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(8, 16), nn.Dropout(0.1), nn.Linear(16, 4)

    def forward(self, x):
        x = self.drop(torch.relu(self.first(x)))
        return self.last(x)


net = Net().cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
for step in range(4):
    size = 8
    x, y = torch.randn(size, 8).cuda(), torch.randint(0, 4, (size,)).cuda()
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
_OF_THE_PORT = (("import torch\n", "import torch\nimport torch_npu\n"), (".cuda()", ".npu()"))

pytestmark = pytest.mark.torch


def program(*changes: tuple[str, str]) -> str:
    text = _PROGRAM
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def part(folder: Path, warm: Warm, *changes: tuple[str, str]) -> Part:
    """What the comparison of a program with these changes says."""
    (folder / "port").mkdir()
    (folder / "port" / "main.py").write_text(program(*_OF_THE_PORT, *changes), encoding="utf-8")
    port, _ = find_projects(folder / "port", folder / "port", "main.py", ())
    asked = RunOptions("main.py", (), sys.executable, timeout=60.0, trace=Trace(), threads=1)
    options, _ = for_output(asked, port.root, port.root)
    return eager_and_compiled(Runner(port, options, "npu", warm=warm), lambda text: None)


def test_a_clean_training_is_quiet(tmp_path: Path, warm: Warm) -> None:
    found = part(tmp_path, warm)
    assert str(found.verdict) == "equal: 4 steps agree; 1 graph, no break" and found.findings.remarks == []


_BREAK = ("        return self", "        if x.mean().item() > 9:\n            x = x * 2\n        return self")


def test_what_looks_at_the_card_breaks_nothing_and_evaluation_is_compiled_too(tmp_path: Path, warm: Warm) -> None:
    looked_at = ("torch.relu(self.first(x))", "nn.functional.gelu(self.first(x)).half().float()")
    evaluated = ("    optimizer.step()\n", "    optimizer.step()\n    with torch.no_grad():\n        net(x)\n")
    found = part(tmp_path, warm, looked_at, evaluated)
    assert str(found.verdict) == "equal: 4 steps agree; 2 graphs, no break" and found.findings.remarks == []


def test_a_line_that_breaks_the_graph_is_named(tmp_path: Path, warm: Warm) -> None:
    found = part(tmp_path, warm, _BREAK)
    assert str(found.verdict).startswith("runs: the graph breaks at 1 line; main.py:13: ")
    assert ".item()" in found.verdict.sentence
    [remark] = found.findings.remarks
    assert remark.startswith("main.py:13: the graph breaks: ")


def test_a_loop_that_breaks_is_given_up_by_its_line(tmp_path: Path, warm: Warm) -> None:
    loop = "        for each in range(2):\n            print(each)\n"
    loop += "            x = x + torch.arange(16, device=x.device)\n"
    found = part(tmp_path, warm, ("        return self", f"{loop}        return self"))
    assert found.verdict.word is Word.RUNS and "main.py:14" in found.verdict.sentence


def test_shapes_that_vary_are_told_and_break_nothing(tmp_path: Path, warm: Warm) -> None:
    found = part(tmp_path, warm, ("size = 8", "size = 5 if step == 3 else 8"))
    assert found.verdict.word is Word.EQUAL
    assert found.findings.remarks == [
        "main.py:11: compiled again: tensor 'x' size mismatch at index 0. expected 8, actual 5"
    ]


def test_what_only_stops_when_it_is_compiled(tmp_path: Path, warm: Warm) -> None:
    made = ("net = Net().npu()", "net = Net().npu()\nnet.forward = torch.compile(net.forward, fullgraph=True)")
    found = part(tmp_path, warm, made, _BREAK)
    assert found.verdict.word is Word.STOPS and found.verdict.sentence.startswith("compiled: ")


def test_the_command(tmp_path: Path) -> None:
    for name, changes in (("original", ()), ("migrated", _OF_THE_PORT)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text(program(_BREAK, *changes), encoding="utf-8")
    told = prove(tmp_path / "original", tmp_path / "migrated", tmp_path, "1", "--compile-mode", "--steps", "2")
    assert (told.verdict, told.code) == ("runs", 1) and "main.py:13: the graph breaks" in told.output
    titles = [each["title"] for each in json.loads((tmp_path / "proof.json").read_text("utf-8"))["comparisons"]]
    assert titles[-1] == TITLE


def test_how_a_line_is_told() -> None:
    assert str(Said("again", Place("a.py", 3), "why", 2)) == "a.py:3: compiled again 2 times: why"
    assert str(Said("break", Place("a.py", 3), "why", 2)) == "a.py:3: the graph breaks: why"
