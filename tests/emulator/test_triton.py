"""Triton kernels in a run: they run, a card's limits stop them in the right line, and healthy ones are quiet."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs pip install 'transplt[triton]'"),
]
PROGRAMS = Path(__file__).parent / "programs"
Run = Callable[..., tuple[int, dict[str, Any], str]]


def planted(path: Path) -> list[tuple[int, str, str]]:
    """(line, code, level) of each remark `# planted: CODE LEVEL` of a program."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [(number, re.search(r"# planted: (NPU\d+) (\w+)", line)) for number, line in enumerate(lines, 1)]
    return [(number, match[1], match[2]) for number, match in found if match]


def test_every_planted_limit_is_found_in_its_line_and_nothing_else(transplt_run: Run) -> None:
    path = PROGRAMS / "triton_limits.py"
    code, report, errors = transplt_run(path)
    found = [(each["line"], each["code"], each["level"]) for each in report["findings"]]
    assert report["reasons"] == ["findings"], errors
    assert len(planted(path)) >= 45
    assert sorted(found) == sorted(planted(path))
    assert code == 1


@pytest.mark.parametrize("host", ["npu", "cuda"])
def test_healthy_kernels_run_and_are_quiet(transplt_run: Run, host: str) -> None:
    options = [] if host == "npu" else ["--host", "cuda", "--dump", "dump"]
    code, report, errors = transplt_run(PROGRAMS / "triton_healthy.py", host, options=options)
    told = report["stdout"].splitlines()
    assert code == 0, errors
    assert len([line for line in told if "True" in line]) == 10, told
    assert "False" not in report["stdout"]
    assert report["findings"] == [] and report["notes"] == []


def test_without_triton_a_run_says_what_to_install(transplt_run: Run) -> None:
    absent = "raise ModuleNotFoundError(\"No module named 'triton'\", name='triton')"
    code, report, errors = transplt_run(f"import torch, torch_npu\ntorch.ones(2).npu()\n{absent}\n")
    assert code == 1 and "Traceback" not in errors
    assert "pip install triton there (Linux only)" in report["sentence"] and "train.py:3" in report["sentence"]


def test_a_library_of_cuda_is_not_there(transplt_run: Run) -> None:
    source = "import torch_npu, triton\nfrom triton.language.extra.cuda import libdevice\n"
    code, report, _ = transplt_run(source)
    assert code == 1
    assert report["sentence"].endswith(
        "train.py:2: ModuleNotFoundError: No module named 'triton.language.extra.cuda': "
        "triton-ascend has triton.language.extra.cann.libdevice"
    )


LAUNCHES = """
import torch, torch_npu, triton, triton.language as tl
from npu_emulator.triton import launch

@triton.autotune(configs=[
    triton.Config({"BLOCK": 65536}, num_warps=4),
    triton.Config({"BLOCK": 96}, num_warps=4, multibuffer=True, unit_flag=True),
], key=["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % 96 == 0})
@triton.jit
def last_writer(x, o, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.load(x + at, mask=at < n, care_padding=False)
    tl.store(o + at % 2, kept + at, mask=at < n)

seen = []

def observe(started):
    before = started.arguments["o"].clone()
    seen.append([started.name, started.line, started.grid, dict(started.constexprs), sorted(started.options)])
    return lambda: seen[-1].append([before.tolist(), started.arguments["o"].tolist()])

launch.observers.append(observe)
x, o = torch.zeros(200000, device="npu"), torch.zeros(2, device="npu")
for order in (launch.forward, launch.reverse):
    launch.run_in(order)
    last_writer[(4,)](x, o, 300)
print(seen[1:])
"""


def test_observers_see_launches_and_programs_run_in_another_order(transplt_run: Run) -> None:
    """Programs that write to one place leave what the last one wrote: the order shows a race."""
    code, report, errors = transplt_run(LAUNCHES)
    assert code == 0, errors
    first = ["last_writer", 11, (4, 1, 1), {"EVEN": False, "BLOCK": 96}, ["multibuffer", "unit_flag"]]
    told = eval(report["stdout"])
    assert [each[:5] for each in told] == [first, first]
    assert [each[5][1] for each in told] == [[298.0, 299.0], [94.0, 95.0]]
    (note,) = report["notes"]
    assert note.startswith("kernel last_writer: configuration BLOCK: 65536") and "ub overflow" in note
    assert report["findings"] == []
