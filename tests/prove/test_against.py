"""`--against transfer-to-npu`: the original with the vendor's own one-line way on the emulated card, as the witness."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.planting import Told, prove

pytestmark = pytest.mark.torch

_ORIGINAL = """\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ranks = "RANK" in os.environ
torch.manual_seed(1)
model = torch.nn.Linear(4, 1).cuda()
if ranks:
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = DistributedDataParallel(model.cuda(), device_ids=[int(os.environ["LOCAL_RANK"])])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(6, 4, device="cuda")).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.6f}")
if ranks:
    dist.destroy_process_group()
"""
_MIGRATED = (
    ("import torch\n", "import torch\nimport torch_npu\n"), (".cuda()", ".npu()"), ("torch.cuda", "torch.npu"),
    ('"cuda"', '"npu"'), ('"nccl"', '"hccl"'),
)  # fmt: skip
_WHOSE = "what torch_npu's transfer_to_npu makes of the original"
_TITLE = "the original with torch_npu's transfer_to_npu, and the migrated program on one emulated npu"


def _proved(folder: Path, original: str, migrated: str, nproc: str = "1") -> Told:
    for name, text in (("original", original), ("migrated", migrated)):
        (folder / name).mkdir()
        (folder / name / "main.py").write_text(text, encoding="utf-8")
    return prove(folder / "original", folder / "migrated", folder, nproc, "--against", "transfer-to-npu")


def _ported(text: str) -> str:
    for old, new in _MIGRATED:
        text = text.replace(old, new, 1 if old == "import torch\n" else -1)
    return text


def test_it_is_equal_to_what_the_vendors_way_makes_of_the_original(tmp_path: Path) -> None:
    told = _proved(tmp_path, _ORIGINAL, _ported(_ORIGINAL), "1,2")
    assert (told.verdict, told.code) == ("equal", 0), told.output
    assert f"  {_TITLE}\n    equal: 3 steps compared with {_WHOSE}; 3 printed results\n" in told.output
    title = "2 ranks of the original with torch_npu's transfer_to_npu, and 2 of the migrated program"
    assert f"  {title}\n    equal: 3 steps compared; 6 printed results\n" in told.output
    assert "stand-in for CUDA" not in told.output


def test_a_port_that_trains_otherwise_differs(tmp_path: Path) -> None:
    told = _proved(tmp_path, _ORIGINAL, _ported(_ORIGINAL).replace("lr=0.1", "lr=0.2"))
    assert (told.verdict, told.code) == ("differs", 1), told.output
    place = 1 + _ORIGINAL.splitlines().index("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)")
    what = f"the learning rate is 0.2 at step 1, in the original 0.1 (original: main.py:{place})"
    assert told.sentence == f"main.py:{place + 1}: {what}"


@pytest.mark.parametrize(
    ("line", "error", "first"),
    [
        # Redirected names of torch.cuda are those of torch.npu, of which some give nothing.
        ("major = torch.cuda.get_device_capability()[0]", "TypeError: 'NoneType' object is not subscriptable", False),
        # A type that a string names is not redirected.
        ('x = torch.ones(6).type("torch.cuda.FloatTensor")', "RuntimeError: Cannot initialize CUDA without", True),
    ],
)
def test_where_the_vendors_way_stops_its_line_and_words_are_said(
    tmp_path: Path, line: str, error: str, *, first: bool
) -> None:
    before = "for step in range(3):\n"
    original = _ORIGINAL.replace(before, f"{line}\n{before}") if first else f"{_ORIGINAL}{line}\n"
    told = _proved(tmp_path, original, _ported(_ORIGINAL))
    ran = "the migrated program ran to the end; nothing to compare: " if first else ""
    after = "" if first else ", after 3 steps that agree"
    place = 1 + original.splitlines().index(line)
    stops = f"the original with torch_npu's transfer_to_npu stops{after}: main.py:{place}: {error}"
    assert (told.verdict, told.code) == ("runs", 1), told.output
    assert told.sentence.startswith(f"{ran}{stops}")


def test_both_stop_in_the_same_way(tmp_path: Path) -> None:
    text = f"import no_such_module\n{_ORIGINAL}"
    told = _proved(tmp_path, text, _ported(text))
    stops = "the original with torch_npu's transfer_to_npu stops: main.py:1: ModuleNotFoundError: No module named "
    assert (told.verdict, told.code) == ("not run", 1)
    assert told.sentence == f"{stops}'no_such_module'; the migrated program stops there too"


def test_the_stand_in_for_cuda_is_not_asked(tmp_path: Path) -> None:
    text = _ORIGINAL.replace("torch.manual_seed(1)\n", "torch.manual_seed(1)\nimport torch_npu.contrib\n")
    told = _proved(tmp_path, text, _ported(text))
    assert told.verdict == "equal", told.output
