"""Programs that go on running on CUDA: to the bit as the original on the stand-in for it, and their own tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from scripts.regen_samples import SAMPLES
from tests.planted.planting import Told, prove
from transplt.edits.helper_file import helper_text
from transplt.faces.cli.main import main as cli

_ORIGINAL = """\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

device = "cuda" if torch.cuda.is_available() else "cpu"
ranks = "RANK" in os.environ
torch.manual_seed(1)
model = torch.nn.Linear(4, 1).to(device)
if ranks:
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = DistributedDataParallel(model.cuda(), device_ids=[int(os.environ["LOCAL_RANK"])])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(6, 4).cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.6f}")
if ranks:
    dist.destroy_process_group()
"""
_TESTS = """\
import pytest


def test_that_passes():
    assert True


@pytest.mark.skipif("not __import__('torch').cuda.is_available()")
def test_that_needs_a_card():
    assert False
"""
_IMPORT = "import torch\n\nfrom device import DEVICE_TYPE, DIST_BACKEND, device_module\n"
_PORT = (
    ("import torch\n", _IMPORT), ('"cuda" if torch.cuda.', "DEVICE_TYPE if device_module."),
    ('"nccl"', "DIST_BACKEND"), ("torch.cuda", "device_module"), (".cuda()", ".to(DEVICE_TYPE)"),
)  # fmt: skip
CUDA = "the original and the migrated program, both on a stand-in for CUDA"
TESTS = "the project's own tests on a CPU, before and after"

pytestmark = pytest.mark.torch


def proved(folder: Path, *changes: tuple[str, str], tests: str = _TESTS) -> tuple[Told, dict[str, tuple[str, str]]]:
    """What a proof says of a portable port with further changes, and of each of its comparisons by their titles."""
    text = _ORIGINAL
    for old, new in (*_PORT, *changes):
        assert old in text
        text = text.replace(old, new, 1 if old == "import torch\n" else -1)
    module = helper_text(["DEVICE_TYPE", "DIST_BACKEND", "device_module"], portable=True)
    for name, files in (
        ("original", {"main.py": _ORIGINAL, "test_it.py": _TESTS}),
        ("migrated", {"main.py": text, "test_it.py": tests, "device.py": module}),
    ):
        (folder / name).mkdir()
        for path, content in files.items():
            (folder / name / path).write_text(content, encoding="utf-8")
    options = ("--style", "portable", "--tests", "test_it.py")
    told = prove(folder / "original", folder / "migrated", folder, "1,2", *options)
    parts = json.loads((folder / "proof.json").read_text(encoding="utf-8"))["comparisons"]
    return told, {part["title"]: (part["verdict"], part["sentence"]) for part in parts}


def test_it_is_equal_on_both_cards_and_its_tests_end_as_before(tmp_path: Path) -> None:
    told, parts = proved(tmp_path)
    assert told.verdict == "equal", told.output
    assert parts[CUDA] == ("equal", "3 steps, 3 printed results equal to the bit")
    assert parts[f"{CUDA} with 2 processes"] == ("equal", "3 steps, 6 printed results equal to the bit")
    assert parts[TESTS] == ("equal", "2 tests with the same outcomes, 1 passed")


@pytest.mark.slow
def test_what_differs_on_cuda_alone_by_less_than_a_rounding_is_seen(tmp_path: Path) -> None:
    change = ("lr=0.1", 'lr=0.1 if DEVICE_TYPE == "npu" else 0.1000001')
    told, parts = proved(tmp_path, change, tests=_TESTS.replace("assert True", "assert False"))
    assert told.verdict == "differs" and told.code == 1
    assert parts[CUDA][0] == parts[f"{CUDA} with 2 processes"][0] == "differs"
    assert parts[TESTS] == ("differs", "test_it::test_that_passes: passed before, failed after")
    others = [word for title, (word, _) in parts.items() if not title.startswith(CUDA) and title != TESTS]
    assert {*others} == {"equal"}


def test_what_stops_on_cuda_alone_is_seen(tmp_path: Path) -> None:
    told, parts = proved(tmp_path, ("device_module.set_device(", "torch.npu.set_device("))
    assert told.verdict == "stops"
    assert parts[f"{CUDA} with 2 processes"][0] == "stops"


def test_tests_that_cannot_be_started_are_said(tmp_path: Path) -> None:
    _, parts = proved(tmp_path, tests="import no_such_module\n")
    assert parts[TESTS][0] == "not run"
    assert parts[TESTS][1].startswith("the migrated project's tests: ")


@pytest.mark.parametrize(
    ("sample", "main", "options", "nproc"),
    [
        ("distributed/flat", "train.py", ("distributed", "-m", "train.py"), "1,2"),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                ("distributed/gan", "gan.py", ("--amp", "native", "distributed", "-m", "gan.py"), "1,2"),
                ("amp/accumulation", "train.py", ("--amp", "native", "--tune", "all"), "1"),
            )
        ),
    ],
)
def test_what_options_add_does_on_cuda_what_the_original_did(
    tmp_path: Path, sample: str, main: str, options: tuple[str, ...], nproc: str
) -> None:
    original = SAMPLES / sample / "cuda"
    at = [str(original / each) if each == main else each for each in options]
    done = CliRunner().invoke(cli, ["-i", str(original), "-o", str(tmp_path), "--style", "portable", *at])
    assert done.exit_code == 0, done.output
    told = prove(original, tmp_path / "cuda_msft", tmp_path, nproc, main=main)
    parts = json.loads((tmp_path / "proof.json").read_text(encoding="utf-8"))["comparisons"]
    assert told.verdict == "equal", told.output
    (on_cuda,) = (part for part in parts if part["title"] == CUDA)
    assert on_cuda["verdict"] == "equal" and on_cuda["sentence"].endswith("equal to the bit")
    # Two ranks of it, which the original does not have, are held against each other and against one process there too.
    several = [part for part in parts if part["title"].endswith(", on a stand-in for CUDA")]
    assert [part["verdict"] for part in several] == (["equal", "equal"] if "2" in nproc else [])


def test_what_stops_both_before_a_step_is_said(tmp_path: Path) -> None:
    for name in ("original", "migrated"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text("import torch\n\nraise ValueError('no data')\n", encoding="utf-8")
    prove(tmp_path / "original", tmp_path / "migrated", tmp_path, "1", "--style", "portable")
    parts = json.loads((tmp_path / "proof.json").read_text(encoding="utf-8"))["comparisons"]
    said = {part["title"]: (part["verdict"], part["sentence"]) for part in parts}
    assert said[CUDA] == ("runs", "both stop: main.py:3: ValueError: no data; nothing to compare")
