"""Both ways of the guide: operators of an NPU computed again on the CPU, and the other way round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.faces.cli.replay import replay

TRAIN = """\
import torch
import torch_npu
import torch.nn.functional as F
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(72, 4)
    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)), inplace=True)
        return F.log_softmax(self.head(F.dropout(x.flatten(1), 0.5)), dim=1)
net, x, y = Net().npu(), torch.randn(4, 1, 8, 8).npu(), torch.arange(4).npu()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loss = F.nll_loss(net(x), y)
loss.backward()
optimizer.step()
"""


def call(*arguments: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(replay, arguments, standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value, result.output.splitlines()


@pytest.mark.torch
def test_a_fault_is_told_from_what_inherits_it(
    transplt_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    dump, script, again = (str(tmp_path / name) for name in ("dump", "replay.py", "again"))
    options = ["--dump", dump, "--dump-task", "tensor", "--fault", "relu=scale:1.02"]
    assert transplt_run(TRAIN, options=options)[0] == 0
    code, lines = call(dump)
    assert code == 1 and len(lines) == 2
    assert "1 of 8 operators computed again on the CPU from recorded inputs gives different results: " in lines[0]
    assert "Functional.relu.0.forward: the recorded result is scaled by 1.02" in lines[0]
    assert "train.py:10 (forward)" in lines[0]
    assert lines[1].startswith("  Functional.relu.0.backward: the recorded result is scaled by 1.02")

    # The other way round it is the NPU that has a fault.
    assert call(dump, "--script", script)[0] == 0
    assert transplt_run(Path(script), "-o", again, options=["--fault", "linear=sign"])[0] == 0
    code, lines = call(dump, "--read", again)
    assert [line.strip().split(": ")[0] for line in lines[1:]] == [
        "Functional.relu.0.backward", "Functional.linear.0.forward", "Functional.linear.0.backward"
    ]  # fmt: skip
    assert "Functional.relu.0.forward: the NPU's result is scaled by 0.98" in lines[0]
    assert ": the NPU's result is of the other sign" in lines[2]
