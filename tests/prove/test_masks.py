"""What a proof holds still, and what it must not hide by that: programs that seed again, and starts without a seed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import forked
from tests.forked import torch_npu
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.prove.branches import inserted
from transplt.proof.prove.projects import Project
from transplt.proof.prove.proof import Proof, between
from transplt.proof.prove.proof_text import as_text
from transplt.proof.prove.runs import Runner

_ORIGINAL = """
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4, shuffle=True)
for epoch in range(3):
    for x, in loader:
        loss = model(x.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_NOISE = ("        loss = model(x.cuda())", "        x = x + torch.randn(x.shape)\n        loss = model(x.cuda())")
_LOOP = "for epoch in range(3):\n"
#: A seed that the port adds: once, and in each epoch.
_ONCE = (_LOOP, f"torch.manual_seed(torch.initial_seed())\n{_LOOP}")
_EACH = (_LOOP, f"{_LOOP}    torch.manual_seed(1)\n")
_IN_ORDER = ("shuffle=True", "shuffle=False")
Swaps = Sequence[tuple[str, str]]


def proven(folder: Path, both: Swaps, port: Swaps) -> Proof:
    """A proof of one process, with these replacements in both programs, and in the port."""
    text = _ORIGINAL
    for old, new in both:
        assert old in text
        text = text.replace(old, new)
    ported = text.replace("import torch\n", "import torch\nimport torch_npu\n", 1).replace(".cuda()", ".npu()")
    for old, new in port:
        assert old in ported
        ported = ported.replace(old, new)
    for name, written in (("original", text), ("migrated", ported)):
        (folder / name).mkdir()
        (folder / name / "main.py").write_text(written, encoding="utf-8")
    options = RunOptions(
        "main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(steps=0), threads=1,
        torch_npu=torch_npu(),
    )
    before, after = (Project(folder / name, "main.py") for name in ("original", "migrated"))
    return between(before, after, options, lambda text: None, forked.warm()).prove((1,))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("both", "port", "said"),
    [
        ([_NOISE], [_ONCE], "equal: "),
        ([_NOISE, _EACH], [], "equal: "),
        ([_NOISE, _IN_ORDER], [_EACH], "step 5 draws the same random numbers as step 3; in the original it does not"),
        # Without dropout and noise the order of the data alone comes again.
        ([("torch.nn.Dropout(0.5), ", "")], [_EACH], "differs: "),
        ([_IN_ORDER], [_EACH], "step 5 draws the same random numbers as step 3; in the original it does not"),
    ],
    ids=["seeded once more", "both in each epoch", "noise again", "order again", "dropout again"],
)
def test_seeds(both: Swaps, port: Swaps, said: str, tmp_path: Path) -> None:
    proof = proven(tmp_path, both, port)
    assert said in str(proof.verdict), as_text(proof)


_NEEDS_A_SEED = (_LOOP, f'if torch.initial_seed() != 1234:\n    raise ValueError("a seed")\n{_LOOP}')
_UNSEEDED = ("torch.manual_seed(1)\n", "")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("both", "port", "parts"),
    [
        ([], [], ["equal", "runs: two runs without seeds from transplt finished"]),
        ([_UNSEEDED, _NEEDS_A_SEED], [], ["equal"]),
        (
            [_UNSEEDED], [_NEEDS_A_SEED],
            ["equal", "stops: start 1 without seeds from transplt: main.py:10: ValueError: a seed"],
        ),
        # What differs already is not started again.
        ([], [("lr=0.1", "lr=0.2")], ["differs"]),
    ],
    ids=["comes up", "the original does not either", "needs our seed", "differs already"],
)
def test_unseeded_starts(both: Swaps, port: Swaps, parts: list[str], tmp_path: Path) -> None:
    proof = proven(tmp_path, both, port)
    found = [str(part.verdict) for part in proof.parts]
    assert len(found) == len(parts), as_text(proof)
    assert all(said.startswith(wanted) for said, wanted in zip(found, parts, strict=True)), as_text(proof)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("a\nb\n", "a\nb\n", {}),
        ("a\nb\n", "a\nnew\nb\n", {"main.py": [2]}),
        # A line that stands for another is none of the port's own.
        ("a\ncuda\nb\n", "a\nnpu\nb\n", {}),
        ("a\nb\n", "a\n    b\n", {}),
        (None, "a\nb\n", {"main.py": [1, 2]}),
        # A seed that stands elsewhere, or is another one, is that of the original; a second one is not.
        ("a\nmanual_seed(1)\nb\n", "a\nnew\nmanual_seed(1 + rank)\nb\n", {"main.py": [2]}),
        ("manual_seed(1)\na\n", "a\nif b:\n    manual_seed(1 + rank)\n", {"main.py": [2]}),
        ("a\nmanual_seed(1)\n", "a\nmanual_seed(1)\nmanual_seed(1 + rank)\n", {"main.py": [3]}),
    ],
)
def test_lines_that_a_port_adds(before: str | None, after: str, lines: dict[str, list[int]], tmp_path: Path) -> None:
    for name, text in (("original", before), ("migrated", after)):
        (tmp_path / name).mkdir()
        if text is not None:
            (tmp_path / name / "main.py").write_text(text, encoding="utf-8")
    assert inserted(tmp_path / "original", tmp_path / "migrated") == lines


def test_lines_that_moved_to_another_file_are_the_original_s(tmp_path: Path) -> None:
    for name, texts in (
        ("original", {"main.py": "gen = Generator()\nx = rand(4, generator=gen)\na\nb\nc\nd\n"}),
        ("migrated", {"main.py": "a\nb\nc\nd\n", "data.py": "def x():\n    gen = Generator()\n    new\n"}),
    ):
        (tmp_path / name).mkdir()
        for path, text in texts.items():
            (tmp_path / name / path).write_text(text, encoding="utf-8")
    assert inserted(tmp_path / "original", tmp_path / "migrated") == {"data.py": [1, 3]}


_ATTENDS = """
import torch

torch.manual_seed(0)
x = torch.randn(3, 2, 4).cuda()
for needed in (True, False):
    told = []
    for zero in (False, True, True):
        torch.manual_seed(1)
        attention = torch.nn.MultiheadAttention(4, 1, dropout=0.5, add_zero_attn=zero).cuda()
        first, again = (attention(x, x, x, need_weights=needed)[0] for _ in range(2))
        told.append(round(float(first.norm()), 6) if torch.equal(first, again) else "dropped")
    print(needed, *told)
"""


@pytest.mark.torch
def test_attention_drops_nothing_and_is_given_what_the_program_gives(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(_ATTENDS, encoding="utf-8")
    options = RunOptions(
        "main.py", (), sys.executable, random="cpu", timeout=100.0, trace=Trace(), threads=1,
        torch_npu=torch_npu(),
    )
    told = Runner(Project(tmp_path, "main.py"), options, "cuda", warm=forked.warm()).run().outcome.output.split()
    without, with_zero, again = told[1:4]
    assert "dropped" not in told
    assert without != with_zero == again
    assert told[4:] == ["False", *told[1:4]]


_CAUGHT = ("        loss.backward()\n", "        try:\n            raise KeyError('mel')\n"
           "        except KeyError:\n            traceback.print_exc()\n            break\n")  # fmt: skip


@pytest.mark.torch
def test_an_error_that_both_catch_before_any_step_is_named(tmp_path: Path) -> None:
    proof = proven(tmp_path, [("import torch\n", "import traceback\n\nimport torch\n"), _CAUGHT], [])
    said = "ran to the end; no optimizer step, saved tensor, or number behind a word such as loss to compare"
    assert str(proof.verdict) == f"runs: {said}; it caught an error and went on: KeyError: 'mel'"


@pytest.mark.torch
def test_a_script_that_asks_git_for_its_revision(tmp_path: Path) -> None:
    asks = "import subprocess\n\nimport torch\n\nsubprocess.run(['git', 'rev-parse', '--short', 'HEAD'], check=True)\n"
    proof = proven(tmp_path, [("import torch\n", asks)], [])
    assert str(proof.verdict) == "equal: 6 steps compared with the original's"
