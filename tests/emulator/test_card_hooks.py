"""What a run reports of a program on the vendor's own torch_npu, and the settings of torch_npu that programs make."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
PROGRAM = Path(__file__).parent / "programs" / "card_hooks.py"


def test_each_finding_has_its_line(program: Any) -> None:
    lines = PROGRAM.read_text("utf-8").splitlines()
    marked = [(number, line.partition("# NPU")[2]) for number, line in enumerate(lines, 1) if "# NPU" in line]
    told = program(PROGRAM.name).stdout.splitlines()[-1]
    assert json.loads(told) == [[number, f"NPU{rest}"] for number, rest in marked]


SETTING = """
import os
{before}
import torch
x = torch.ones(100, 100).npu()
parts = [torch.randn(1000 * n, 100, device="npu") for n in range(1, 6)]
del parts[::2]
torch.digamma(x)
print(torch.npu.device_count(), float((x @ x).sum()))
"""


@pytest.mark.parametrize(
    ("name", "value", "cards"),
    [
        *(("TASK_QUEUE_ENABLE", value, 8) for value in ("0", "1", "2")),
        ("ASCEND_LAUNCH_BLOCKING", "1", 8),
        ("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True", 8),
        ("PYTORCH_NPU_ALLOC_CONF", "max_split_size_mb:128,garbage_collection_threshold:0.8", 8),
        ("ASCEND_RT_VISIBLE_DEVICES", "2,3", 2),
    ],
)
def test_a_setting_of_the_script_works(transplt_run: Any, name: str, value: str, cards: int) -> None:
    """The line of a finding shows that operators run in the thread that calls them, whatever the queue."""
    code, report, _ = transplt_run(SETTING.format(before=f"os.environ[{name!r}] = {value!r}"))
    assert (code, report["stdout"].split()) == (0, [str(cards), "1000000.0"])
    assert [each["line"] for each in report["findings"]] == [8]
    assert any(name in note for note in report["notes"]) is (name == "TASK_QUEUE_ENABLE" and value != "0")


def test_memory_has_the_peak_whatever_the_program_forgets(transplt_run: Any) -> None:
    source = """
import torch
large = torch.ones(1 << 20).npu()
del large
torch.npu.reset_peak_memory_stats()
torch.accelerator.reset_peak_memory_stats()
model = torch.nn.Linear(64, 64).npu()
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(2, 64).npu()).sum().backward()
optimizer.step()
"""
    code, report, _ = transplt_run(source)
    (memory,) = report["memory"]
    assert code == 0 and (4 << 20) < memory["peak_bytes"] < (5 << 20)
    assert 2 * 64 * 65 * 4 <= memory["optimizer_state_bytes"] <= 2 * 64 * 65 * 4 + 6 * 1024


def test_every_kind_of_process_has_the_card_but_an_isolated_one(transplt_run: Any) -> None:
    source = """
import subprocess, sys
import torch
from torch.utils.data import DataLoader, TensorDataset

USE = "import torch; torch.ones(2).npu()"


if __name__ == "__main__":
    for how in ("fork", "spawn", "forkserver"):
        data = TensorDataset(torch.ones(8))
        for (batch,) in DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context=how, pin_memory=True):
            batch.npu()
    print(subprocess.run([sys.executable, "-c", USE]).returncode)
    print(subprocess.run([sys.executable, "-I", "-c", USE], stderr=subprocess.DEVNULL).returncode)
"""
    code, report, _ = transplt_run(source)
    assert (code, report["stdout"].split()) == (0, ["0", "1"])
    assert [note.partition(" -I ")[2] for note in report["notes"]] == ["found no emulated NPU: leave -I out"]


@pytest.mark.card
def test_what_torch_npu_redirects_is_no_leftover(transplt_run: Any) -> None:
    source = """
    import torch
    from torch_npu.contrib import transfer_to_npu
    from torch.cuda.amp import autocast

    with autocast():
        assert torch.ones(2, 2).cuda().mm(torch.ones(2, 2, device="cuda")).device.type == "npu"
    """
    code, report, _ = transplt_run(textwrap.dedent(source))
    assert (code, report["verdict"], report["findings"]) == (0, "runs", [])
