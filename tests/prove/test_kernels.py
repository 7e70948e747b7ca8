"""`transplt prove --kernels`: what kernels compute on both hosts; and programs with kernels, proven as a whole."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path
from typing import Any

import click
import pytest

from tests.forked import transplt
from transplt.base.errors import TranspltError
from transplt.project import tree
from transplt.project.options import Options, make_plan

SAMPLE = Path(__file__).parent / "kernels" / "cuda"
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton: pip install triton"),
]

#: Six kernels, each with the function that launches it; the marks are where a mistake goes in the migrated file.
OPS = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@triton.jit
def rows(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(out + row, tl.sum(tl.load(x + row * columns + i, mask=i < columns, other=0.0)))


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))


@triton.jit
def more(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def shared(out):
    tl.store(out, tl.load(out) + 1)


@triton.jit
def never(x):
    tl.store(x, 1)


def scaled(x, factor):
    out = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), factor, BLOCK=16)
    return out


def sums(x):
    out = torch.empty(x.shape[0], device=x.device)
    rows[(x.shape[0],)](x, out, x.shape[1], BLOCK=32)
    return out


def sum_of(x):
    out = torch.zeros(1, device=x.device)
    total[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out


class Layer:
    def __init__(self, block):
        self.block = block

    def __call__(self, x):
        out = torch.empty_like(x)
        more[(triton.cdiv(x.numel(), self.block),)](x, out, x.numel(), BLOCK=self.block)
        return out


def count(x):
    out = torch.zeros(1, device=x.device)
    shared[(8,)](out)
    return out
"""
MAIN = """
import torch
from ops import Layer, scaled, sum_of, sums

x = torch.randn(20, 30, device="cuda")
scaled(x, 2.5)
scaled(x[:, ::2], 2.5)
scaled(torch.randn(20, 300, device="cuda"), 2.5)
sums(x)
sum_of(x)
Layer(16)(x)
"""


def written(folder: Path, name: str, main: str, ops: str) -> None:
    (folder / name).mkdir()
    (folder / name / "main.py").write_text(main)
    (folder / name / "ops.py").write_text(ops)


def prove(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and the text."""
    try:
        code, output, errors = transplt(["prove", *arguments], folder)
    except (click.ClickException, TranspltError) as error:
        return error.exit_code, f"Error: {error}\n"
    assert "Traceback" not in errors, errors
    return code, output or errors


def kernels_of(path: Path) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(path.read_text())["kernels"]}


@pytest.mark.slow
def test_what_was_migrated_is_equal(tmp_path: Path) -> None:
    written(tmp_path, "old", MAIN, OPS)
    written(tmp_path, "new", MAIN.replace("cuda", "npu"), OPS)
    code, told = prove(
        tmp_path, "--kernels", "old", "new", "--programs", "100", "--report", "k.json", "--save-calls", "calls.json",
        "--report", "k.html",
    )  # fmt: skip
    assert told.startswith(
        "transplt prove: equal: 4 kernels compared in 6 launches, bit-identical; large grids were sampled: 100 of "
        "375 programs; 2 never launched\n"
    )
    assert code == 0
    assert re.search(r"\n  scale   ops.py:8   3         100 of 375  equal    none\n", told)
    assert "not compared: never (ops.py:38) (never launched)" in told
    found = kernels_of(tmp_path / "k.json")
    assert found["more"]["launches"] == 1 and found["total"]["programs_run"] == 38
    assert "4 kernels compared" in (tmp_path / "k.html").read_text()
    # The calls alone are enough: with them nothing of the script runs.
    for name in ("old", "new"):
        (tmp_path / name / "main.py").write_text("raise SystemExit('it ran')\n")
    again = prove(tmp_path, "--kernels", "old", "new", "--programs", "100", "--calls", "calls.json")
    assert again == (0, told)


def test_each_mistake_is_found_at_its_kernel(tmp_path: Path) -> None:
    main = MAIN.replace("sum_of, sums", "count, sum_of, sums")
    main += "count(x)\nscaled(x.double(), 1.0)\n"
    written(tmp_path, "old", main, OPS.replace(
        "    tl.store(out, tl.load(out) + 1)", "    tl.atomic_add(out, 1.0)"
    ))  # fmt: skip
    mistaken = {
        # the last element is left out
        "+ 1, mask=i < n)": "+ 1, mask=i < n - 1)",
        # right: a loop over the rows in as many programs as there are cores, and one parameter more
        "def rows(x, out, columns, BLOCK": "def rows(x, out, columns, count, BLOCK",
        "    row = tl.program_id(0)\n    i = tl.arange(0, BLOCK)\n    tl.store(out + row,":
            "    i = tl.arange(0, BLOCK)\n    for row in range(tl.program_id(0), count, tl.num_programs(0)):\n"
            "        tl.store(out + row,",
        "rows[(x.shape[0],)](x, out, x.shape[1], BLOCK": "rows[(7,)](x, out, x.shape[1], x.shape[0], BLOCK",
    }  # fmt: skip
    ops = OPS
    for before, after in mistaken.items():
        assert ops.count(before) == 1, before
        ops = ops.replace(before, after)
    written(tmp_path, "new", main.replace("cuda", "npu"), ops)
    code, told = prove(tmp_path, "--kernels", "old", "new", "--report", "k.json")
    assert code == 1
    found = {name: each["verdict"] for name, each in kernels_of(tmp_path / "k.json").items()}
    assert found == {"scale": "stops", "rows": "equal", "total": "equal", "more": "differs", "shared": "differs"}, told
    assert re.search(r"scale: ops.py:\d+: .*float64.*\[NPU570\]", told)
    assert "argument out[19, 29] is nan, not " in told and "1 of 600 elements differ" in told
    assert "  shared: ops.py:33: depends on the order of programs: run interleaved, argument out[0] is 1.0, not" in told


@pytest.mark.slow
def test_what_cannot_be_compared_is_told(tmp_path: Path) -> None:
    main = MAIN + "from ops import count\ncount(x)\nraise ValueError('no data')\n"
    written(tmp_path, "old", main, OPS)
    changed = OPS.replace("def sum_of", "def sum_in").replace("def more(x", "def more(source")
    changed = changed.replace("mask=i < columns, other", "mask=i < columns + 1, other")
    written(tmp_path, "new", main.replace("cuda", "npu"), changed)
    code, told = prove(tmp_path, "--kernels", "old", "new", "--report", "k.json")
    assert code == 1
    found = kernels_of(tmp_path / "k.json")
    assert {name: each["verdict"] for name, each in found.items()} == {
        "scale": "equal", "rows": "stops", "total": "not run", "more": "runs", "shared": "runs",
    }, told  # fmt: skip
    assert re.search(r"  rows: ops.py:17: .*reads 1 elements outside of x, which has 600: .* at ops.py:17", told)
    assert "more: the migrated program: it has no parameter x any more" in told
    assert "total: the migrated program: there is no sum_of in ops.py" in told
    assert "shared: the original itself depends on the order of programs" in told
    assert "it stopped: main.py:14: ValueError: no data" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--kernels old new", "Error: main.py launched no Triton kernel of this project.\n"),
        ("--kernels old new --calls new/main.py", "Error: --calls new/main.py cannot be read: "),
        ("--kernels old new --calls calls.json", "Error: --calls calls.json: not written by --save-calls of this "),
        ("--kernels old new --card-pack pack", "Error: --kernels cannot write a card pack: prove the whole "),
        ("old new --tolerance 0.1", "Error: --calls, --save-calls and --tolerance need --kernels."),
    ],
)
def test_wrong_input(arguments: str, told: str, tmp_path: Path) -> None:
    written(tmp_path, "old", "import torch\n", OPS)
    written(tmp_path, "new", "import torch\n", OPS)
    (tmp_path / "calls.json").write_text("{}")
    code, said = prove(tmp_path, *arguments.split())
    assert code == 2 and told in said


@pytest.mark.slow
def test_a_training_with_kernels_is_proven_as_a_whole(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "cuda")
    plan = make_plan(Options(source=tmp_path / "cuda", out=tmp_path / "out", jobs=1, page=False))
    tree.migrate_tree(plan)
    code, told = prove(tmp_path, "cuda", str(plan.target), "--steps", "0")
    assert told.startswith("transplt prove: equal: 3 steps compared with the original's; 3 printed results")
    assert code == 0
    code, told = prove(tmp_path, "--kernels", "cuda", str(plan.target))
    assert told.startswith("transplt prove: equal: 4 kernels compared in 4 launches") and code == 0, told
