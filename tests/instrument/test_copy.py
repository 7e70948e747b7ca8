"""`transplt instrument` as it is used: the folder that it writes, and what msprobe records of it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.faces.cli.instrument import instrument_command
from transplt.precision.instrument.launch import starts

ROOT = Path(__file__).parents[2]
TRAIN = """\
import torch
from torch.nn.functional import dropout, relu
device = "npu"
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(32, 4))
for step, (x,) in enumerate(torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, num_workers=2)):
    if step == 1:
        continue
    loss = net[1](dropout(relu(net[0](x.to(device))))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 2:
        break
"""


def copied(folder: Path, *options: str, text: str = TRAIN) -> tuple[int, str, Path]:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "train.py").write_text(text)
    arguments = [str(folder / "in" / "train.py"), "-o", str(folder / "out"), *options]
    done = CliRunner().invoke(instrument_command, arguments, standalone_mode=False)
    code = getattr(done.exception, "exit_code", done.return_value)
    return int(code), done.output + str(done.exception or ""), folder / "out"


def test_a_copy_has_the_probe_and_a_launch_script_beside_the_script(tmp_path: Path) -> None:
    code, said, out = copied(tmp_path, "--deterministic", "--steps", "0-2")
    assert code == 0 and "1 file instrumented, seed 1234" in said and "export PYTHONHASHSEED=1234" in said
    assert {path.name for path in out.iterdir()} >= {"train.py", "transplt_probe.py", "run_probe.sh"}
    assert "transplt_probe.begin(seed=1234, steps=[0, 1, 2], deterministic=True)" in (out / "train.py").read_text()
    assert "CUBLAS_WORKSPACE_CONFIG=:4096:8" in (out / "run_probe.sh").read_text()
    assert os.access(out / "run_probe.sh", os.X_OK)
    assert (tmp_path / "in" / "train.py").read_text() == TRAIN


def test_shell_scripts_that_start_the_script_set_the_environment_below_their_head(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    head = "#!/bin/bash\n#SBATCH --ntasks=1\n\n"
    (tmp_path / "in" / "go.sh").write_text(head + "python train.py --epochs 1\n")
    (tmp_path / "in" / "other.sh").write_text(head + "python test.py\n")
    code, said, out = copied(tmp_path)
    exports = "export PYTHONHASHSEED=1234\nexport HCCL_DETERMINISTIC=true\nexport TORCHDYNAMO_DISABLE=1\n"
    assert code == 0 and "go.sh sets the environment of the probe" in said and "other.sh" not in said
    assert (out / "go.sh").read_text() == head + exports + "python train.py --epochs 1\n"
    assert (out / "other.sh").read_text() == head + "python test.py\n"


@pytest.mark.parametrize(
    ("path", "text", "main", "starting"),
    [
        ("a.sh", "python tools/train.py", "tools/train.py", True),
        ("a.slurm", "srun python -m tools.train", "tools/train.py", True),
        ("a.sh", "python -m tools.test", "tools/train.py", False),
        ("a.sh", "python pretrain.py; python my-train.py; python train.pyc", "train.py", False),
        ("a.sh", "python other/train.py", "tools/train.py", False),
        ("other/a.sh", "python train.py", "tools/train.py", False),
        ("tools/a.sh", "python ../tools/train.py", "tools/train.py", True),
        ("a.sh", "python $HERE/train.py --x", "tools/train.py", True),
        ("a.bat", "python train.py", "train.py", False),
        ("a.md", "python train.py", "train.py", False),
        ("go", "#!/bin/sh\npython train.py", "train.py", True),
    ],
)
def test_what_starts_a_script(path: str, text: str, main: str, starting: bool) -> None:
    assert starts(path, text.encode(), main) is starting


def test_the_output_of_a_migration_is_copied_and_a_folder_of_the_projects_name(tmp_path: Path) -> None:
    for name in (".transplt", "in"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "manifest.json").write_text("{}")
    code, _, out = copied(tmp_path)
    assert code == 0 and (out / "in" / "manifest.json").is_file() and not (out / ".transplt" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--seed", "x"], "write auto or a number"), (["--steps", "3-1"], "--steps 3-1 does not name steps: write 0,2-4")],
)
def test_wrong_options_are_a_sentence_and_nothing_is_written(options: list[str], said: str, tmp_path: Path) -> None:
    code, told, out = copied(tmp_path, *options)
    assert code == 2 and said in told and not out.exists()


def test_what_stays_random_is_left(tmp_path: Path) -> None:
    code, said, _ = copied(tmp_path, text=TRAIN + "ds.shuffle(3)\n")
    assert code == 1 and "train.py:16: this shuffles the data" in said
    code, said, _ = copied(tmp_path)
    assert code == 2 and "exists" in said


@pytest.mark.extra
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("msprobe") is None, reason="needs mindstudio-probe")
def test_msprobe_records_a_copy_on_the_emulated_npu_and_two_dumps_are_equal(tmp_path: Path) -> None:
    code, _, out = copied(tmp_path, "--steps", "")
    assert code == 0
    script = out / "train.py"
    script.write_text(script.read_text().replace("import torch\n", "import torch\nimport torch_npu\n", 1))
    dumps: list[Any] = []
    for name in ("a", "b"):
        ours = {"PYTHONPATH": str(ROOT), "TRANSPLT_PROBE_DUMP": str(tmp_path / name), "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **ours}
        command = [sys.executable, "-m", "transplt.proof", "--random", "cpu", str(script)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        found = sorted((tmp_path / name).glob("step*/*/dump.json"))
        dumps.append([json.loads(path.read_text())["data"] for path in found])
    assert dumps[0] == dumps[1]
    assert len(dumps[0]) == 3  # the second step went on before it computed anything
    assert {"Functional.relu.0.forward", "Module.1.Linear.forward.0", "Functional.linear.0.backward"} <= {*dumps[0][0]}
    kept = dumps[0][0]["Functional.dropout.0.forward"]  # bound by the script's own import, and off all the same
    assert kept["input_args"][0]["Norm"] == kept["output"][0]["Norm"]
