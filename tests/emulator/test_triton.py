"""Triton kernels in a run: they run, a card's limits stop them in the right line, and healthy ones are quiet."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.planted.planting import prove

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs pip install '.[triton]'"),
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
    assert len(planted(path)) >= 40
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
    assert "pip install triton numpy there (Linux only)" in report["sentence"] and "train.py:3" in report["sentence"]


def test_without_numpy_a_run_says_what_to_install(transplt_run: Run) -> None:
    absent = "raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')"
    imported = f'exec(compile({absent!r}, "lib/triton/runtime/interpreter.py", "exec"))'
    code, report, errors = transplt_run(f"import torch, torch_npu\ntorch.ones(2).npu()\n{imported}\n")
    assert code == 1 and "Traceback" not in errors
    assert "pip install numpy there" in report["sentence"]


def test_numpy_that_a_program_itself_lacks_is_its_own_error(transplt_run: Run) -> None:
    source = "import torch, torch_npu\ntorch.ones(2).npu()\nraise ModuleNotFoundError('no numpy', name='numpy')\n"
    assert "Triton" not in transplt_run(source)[1]["sentence"]


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


def test_another_card_has_other_limits(transplt_run: Run) -> None:
    """A 950 refuses fewer types, its grid is as large, and what its unified buffer holds is not known."""
    _, report, errors = transplt_run(PROGRAMS / "triton_limits.py", options=["--card", "950"])
    told = {(each["code"], each["level"]) for each in report["findings"] if each["level"] != "info"}
    codes = ("NPU560", "NPU563", "NPU564", "NPU570", "NPU571", "NPU572", "NPU573", "NPU796")
    assert told == {(code, "error") for code in codes}, errors


EQUAL = """
import torch
import triton
import triton.language as tl


@triton.jit
def halved(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n).to(tl.float64)
    tl.store(o + at, (values * values * 0.5).to(tl.float32), mask=at < n)


torch.manual_seed(0)
x = torch.rand(300, device="cuda")
o = torch.empty_like(x)
halved[(triton.cdiv(300, 64),)](x, o, 300, BLOCK=64, num_warps=8)
print(o.sum().item())
"""


def test_the_original_runs_without_the_limits_of_a_card(transplt_run: Run, tmp_path: Path) -> None:
    """As the reference, on the device that "cuda" means there; and compared with what was migrated."""
    original = tmp_path / "original.py"
    original.write_text(EQUAL, encoding="utf-8")
    migrated = EQUAL.replace("import torch\n", "import torch\nimport torch_npu\n").replace('"cuda"', '"npu"')
    options = ["--reference", str(original)]
    code, report, errors = transplt_run(migrated.replace(".to(tl.float64)", ""), options=options)
    assert (code, report["verdict"]) == (0, "equal"), errors
    code, report, _ = transplt_run(migrated, options=options)
    assert (code, report["verdict"]) == (1, "stops") and "tl.cast takes no float64" in report["sentence"]


def test_a_launch_may_be_too_long_to_be_run(transplt_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSPLT_TRITON_PROGRAMS", "4")
    source = EQUAL.replace("import torch\n", "import torch, torch_npu\n", 1).replace("cuda", "npu")
    code, report, _ = transplt_run(source)
    assert code == 1 and "TooManyPrograms: kernel halved: 5 programs" in report["sentence"]


BRAINS = """
import torch, torch_npu, triton, triton.language as tl

@triton.jit
def compute(x, y, o, s, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(o + at, a * b + a - tl.maximum(a, b))
    tl.store(s, tl.sum((a > b).to(tl.int32)))
    tl.atomic_add(s + 1, (tl.max(a, 0) * 4).to(tl.int32))

x, y = (torch.rand(64, dtype=torch.bfloat16, device="npu") + 0.5 for _ in range(2))
o, s = torch.empty_like(x), torch.zeros(2, dtype=torch.int32, device="npu")
compute[(1,)](x, y, o, s, BLOCK=64)
print(torch.equal(o, x * y + x - torch.maximum(x, y)), s.tolist() == [int((x > y).sum()), int(x.max() * 4)])
"""


def test_bfloat16_is_computed_as_torch_does(transplt_run: Run) -> None:
    """Triton's own interpreter computes with the bits."""
    code, report, errors = transplt_run(BRAINS)
    assert (code, report["stdout"]) == (0, "True True\n"), errors


LIBRARY = """
import torch, triton, triton.language as tl
from triton.language.extra.cuda import libdevice as of

@triton.jit
def compute(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    a = of.erf(v) + of.pow(v, 2.0) + of.rsqrt(v) + of.fast_dividef(v, v) + of.log1p(v)
    tl.store(o + at, a + of.float2int_rn(v) + tl.where(of.isinf(v), 1.0, 0.0))

x = torch.rand(64, device="cuda") + 0.1
o = torch.empty_like(x)
compute[(1,)](x, o, BLOCK=64)
print(bool((o - (x.erf() + x**2 + x.rsqrt() + 1 + x.log1p() + x.round())).abs().max() < 1e-5))
"""


def test_libraries_of_cuda_are_there_for_an_original(transplt_run: Run) -> None:
    code, report, errors = transplt_run(LIBRARY, options=["--host", "cuda", "--dump", "dump"])
    assert (code, report["stdout"]) == (0, "True\n"), errors


TRAINING = """
import torch
import triton
import triton.language as tl
from triton.language.extra.cuda.libdevice import tanh


@triton.jit
def forward(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n)
    tl.store(o + at, values * tanh(values), mask=at < n)


@triton.jit
def backward(x, given, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n)
    bent = tanh(values)
    tl.store(o + at, tl.load(given + at, mask=at < n) * (bent + values * (1 - bent * bent)), mask=at < n)


class Bent(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        o = torch.empty_like(x)
        forward[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), BLOCK=64, num_warps=8)
        return o

    @staticmethod
    def backward(ctx, given):
        (x,) = ctx.saved_tensors
        o = torch.empty_like(x)
        backward[(triton.cdiv(x.numel(), 64),)](x, given.contiguous(), o, x.numel(), BLOCK=64)
        return o


torch.manual_seed(1)
model = torch.nn.Linear(16, 32).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = Bent.apply(model(torch.full((8, 16), 0.1 + step, device="cuda"))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("planted_edit", "verdict"), [("", "equal"), ("1 - bent", "differs")])
def test_a_proof_compares_what_kernels_compute(tmp_path: Path, planted_edit: str, verdict: str) -> None:
    port = TRAINING.replace("extra.cuda", "extra.cann").replace("import torch\n", "import torch\nimport torch_npu\n", 1)
    port = port.replace(".cuda()", ".npu()").replace('"cuda"', '"npu"')
    if planted_edit:
        port = port.replace("1 - bent * bent", planted_edit)
    for name, written in (("original", TRAINING), ("migrated", port)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text(written, encoding="utf-8")
    found = prove(tmp_path / "original", tmp_path / "migrated", tmp_path, "1", "--steps", "3")
    assert found.verdict == verdict, found.output
