"""`transplt run --dump-task overflow` from end to end: the rows that overflow alone, and what reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.faces.cli.anomalies import anomalies
from transplt.faces.cli.compare import compare

TRAIN = """\
import torch
import torch_npu
net = torch.nn.Linear(4, 4).npu().half()
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
x = torch.full((2, 4), 300.0, dtype=torch.float16, device="npu")
large = x * x
after = large + 1
net(x).float().sum().backward()
optimizer.step()
"""


@pytest.mark.torch
def test_the_first_operator_that_overflows_is_recorded_alone(transplt_run: Any, tmp_path: Path) -> None:
    dump = str(tmp_path / "dump")
    code, report, _ = transplt_run(TRAIN, options=["--dump", dump, "--dump-task", "overflow"])
    assert code == 0 and [(each["code"], each["line"]) for each in report["findings"]] == [("NPU794", 6)]
    document = json.loads((tmp_path / "dump" / "step0" / "rank0" / "dump.json").read_text())
    assert (document["task"], [*document["data"]]) == ("overflow", ["Tensor.mul.0.forward"])
    watched = CliRunner().invoke(anomalies, [dump, "--checks", "operator-overflow"], standalone_mode=False)
    assert watched.return_value == 1 and "Tensor.mul.0.forward output.0: infinite (inf to inf)" in watched.output
    compared = CliRunner().invoke(compare, [dump, dump], standalone_mode=False)
    assert compared.return_value == 0 and compared.output.startswith("no divergence: 1 operator in 1 step")
