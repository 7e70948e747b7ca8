"""The portable style: a script that starts a program by words of CUDA gets one for NPUs, and stays what it is."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from transplt.engine.files.twin_names import twin_of, twins
from transplt.faces.cli.main import main

_TRAIN = """import argparse

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
parser.add_argument("--backend", default="nccl")
args = parser.parse_args()
dist.init_process_group(args.backend)
torch.zeros(1, device=args.device)
"""
_ASKS = "is written: the script is for one cluster"
_START = "python train.py --device cuda\n"


def project(tmp_path: Path, files: dict[str, str]) -> Path:
    source = tmp_path / "net"
    for name, text in {"train.py": _TRAIN, **files}.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(text.encode())
    return source


def migrated(source: Path, out: Path, *options: str) -> Path:
    done = CliRunner().invoke(main, ["-i", str(source), "-o", str(out), "--style", "portable", *options])
    assert done.exit_code in (0, 1), done.output
    return out / f"{source.name}_msft"


def written(source: Path, out: Path) -> set[str]:
    """The scripts of an output that its input does not have."""
    return {
        path.relative_to(out).as_posix() for path in out.rglob("*") if path.suffix in (".sh", ".slurm", "")
        and path.is_file() and not (source / path.relative_to(out)).exists() and ".transplt" not in path.parts
    }  # fmt: skip


def log(out: Path) -> str:
    return (out / "msFmkTranspltlog.txt").read_text()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("CUDA_VISIBLE_DEVICES=`pick` python other.py\n", "ASCEND_RT_VISIBLE_DEVICES=`pick` python other.py\n"),
        ("CUDA_VISIBLE_DEVICES=0 python train.py --device cuda\n",
         "ASCEND_RT_VISIBLE_DEVICES=0 python train.py --device npu\n"),
        (
            "#!/bin/bash\nexport CUDA_VISIBLE_DEVICES=0,1\nexport NCCL_SOCKET_IFNAME=eth0\nnvidia-smi\n"
            "torchrun --nproc_per_node 2 train.py --backend nccl --device cuda:0 --no-cuda-graph\n",
            "#!/bin/bash\nexport ASCEND_RT_VISIBLE_DEVICES=0,1\nexport HCCL_SOCKET_IFNAME=eth0\nnpu-smi info\n"
            "torchrun --nproc_per_node 2 train.py --backend hccl --device npu:0 --no-cuda-graph\n",
        ),
        ("python -m train --device=cuda\r\n# cuda", "python -m train --device=npu\r\n# cuda"),
        ("nvidia-smi\naccelerate launch other.py\n", "npu-smi info\naccelerate launch other.py\n"),
    ],
)
def test_a_launch_script_gets_a_twin(tmp_path: Path, before: str, after: str) -> None:
    source = project(tmp_path, {"scripts/run.sh": before})
    (source / "scripts/run.sh").chmod(0o755)
    out = migrated(source, tmp_path / "out")
    assert (out / "scripts/run.sh").read_bytes() == before.encode()
    assert (out / "scripts/run_npu.sh").read_bytes() == after.encode()
    assert stat.S_IMODE((out / "scripts/run_npu.sh").stat().st_mode) == 0o755
    said = "scripts/run_npu.sh:1:1: NPU817 [converted] starts the program of run.sh on NPUs; the file is now"
    assert said in log(out) and ",left," not in (out / "tokens.csv").read_text()


@pytest.mark.parametrize(
    ("script", "twin"),
    [
        ("export CUDA_VISIBLE_DEVICES=1\npython train.py\n", False),
        ("CUDA_VISIBLE_DEVICES=0 python -u train.py\n", False),
        ("A=1 CUDA_VISIBLE_DEVICES=$1,\"$2\" \\\n  accelerate launch --multi_gpu sub/go.py\n", False),
        ("export CUDA_VISIBLE_DEVICES=1\nCUDA_VISIBLE_DEVICES=0 torchrun --nproc_per_node 2 train.py\n", False),
        ("CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES python train.py\n", False),
        ("export CUDA_VISIBLE_DEVICES=0,1\n", False),  # for what is started next
        # It takes nothing over for a program that does not import it, and what else a script says is for another one.
        ("export CUDA_VISIBLE_DEVICES=1\npython plain.py\n", True),
        ("export CUDA_VISIBLE_DEVICES=1\npython train.py\npython of_others.py\n", True),
        ("export CUDA_VISIBLE_DEVICES=1\nexport NCCL_SOCKET_IFNAME=eth0\npython train.py\n", True),
        ("export CUDA_VISIBLE_DEVICES=1\nnvidia-smi\npython train.py\n", True),
    ],
)
def test_the_module_takes_the_cards_over_and_no_script_changes(tmp_path: Path, script: str, twin: bool) -> None:
    files = {"plain.py": "print(1)\n", "sub/go.py": "import net\nnet.f()\n", "sub/net.py": _TRAIN}
    source = project(tmp_path, {"run.sh": script, **files})
    out = migrated(source, tmp_path / "out")
    assert (out / "run.sh").read_text() == script
    assert written(source, out) == ({"run_npu.sh"} if twin else set())
    assert " NPU8" not in log(out) or twin


def test_a_script_of_the_npus_own_is_not_edited(tmp_path: Path) -> None:
    own = f"export CUDA_VISIBLE_DEVICES=0\n{_START}nvidia-smi\n"
    out = migrated(project(tmp_path, {"run_npu.sh": own}), tmp_path / "out")
    assert (out / "run_npu.sh").read_text() == own and "run_npu.sh:1:8: NPU801 [left]" in log(out)


def test_the_summary_the_patch_and_a_second_run(tmp_path: Path) -> None:
    source = project(tmp_path, {"run.sh": _START})
    command = ["-i", str(source), "-o", str(tmp_path / "out"), "--style", "portable"]
    done = CliRunner().invoke(main, command)
    assert "run_npu.sh: starts the program of run.sh on NPUs" in done.output
    shown = CliRunner().invoke(main, [*command, "--diff"])
    assert "+++ b/run_npu.sh" in shown.output and "b/run.sh" not in shown.output
    out = tmp_path / "out" / "net_msft"
    again = migrated(out, tmp_path / "again")
    for name in ("run.sh", "run_npu.sh"):
        assert (again / name).read_bytes() == (out / name).read_bytes()
    assert "NPU817" not in log(again) and not written(out, again)
    assert (migrated(source, tmp_path / "two") / "tokens.csv").read_bytes() == (out / "tokens.csv").read_bytes()


def test_what_is_left_is_reported_in_the_twin(tmp_path: Path) -> None:
    script = f"export NCCL_DEBUG=INFO\n{_START}nvidia-smi --query-gpu=name | wc -l\n"
    source = project(tmp_path, {"run.sh": script})
    out = migrated(source, tmp_path / "out")
    for text in (log(out), log(migrated(out, tmp_path / "again"))):
        found = [line.split(" ")[:3] for line in text.splitlines() if re.match(r"run.*\[left\]", line)]
        assert found == [
            [f"run_npu.sh:{place}:", code, "[left]"]
            for code, place in (("NPU811", "1:8"), ("NPU816", "3:1"))
        ]


def test_a_script_that_stops_gets_none_and_says_why(tmp_path: Path) -> None:
    source = project(tmp_path, {"run.sh": f"{_START}python train.py --tf32 true\n"})
    out = migrated(source, tmp_path / "out")
    assert not written(source, out)
    assert "no run_npu.sh is written: the arguments in line 2 stop the program on an NPU" in log(out)
    assert "run.sh:2:17: NPU143 [left]" in log(out)


@pytest.mark.parametrize(
    "files",
    [
        {"run.sh": "python train.py\n"},  # nothing would differ
        {"run.sh": "python train.py --no-cuda\n"},
        {"run.sh": "export NCCL_DEBUG=INFO\npython train.py\n"},  # a person decides on the value
        {"run.sh": "export CUDA_VISIBLE_DEVICES=GPU-7e2f\npython train.py\n"},
        {"env.sh": "export NCCL_SOCKET_IFNAME=eth0\n"},  # it starts nothing
        {"install.sh": "CUDA_VISIBLE_DEVICES=0 python setup.py install\n"},
        {"install.sh": "CUDA_VISIBLE_DEVICES=0 python -m pip install .\n"},
        {"run.bat": _START},
        {"run.sh": "CUDA_VISIBLE_DEVICES=0 python train.py 'open\n"},
        {"run_cpu.sh": _START},
        {"run_rocm.sh": _START},
        {"ascend/run.sh": _START},
        {".github/run.sh": _START},
        {"run.sh": _START, "run_npu.sh": "python train.py --mine\n"},
        {"sh/run.sh": _START, "sh/npu/run.sh": "python train.py --mine\n"},
        {"run.sh": f"# transplt: ignore\n{_START.strip()}  # transplt: ignore\n"},
        {"docs.md": f"```sh\n{_START}```\n"},
    ],
)
def test_scripts_that_get_none(tmp_path: Path, files: dict[str, str]) -> None:
    source = project(tmp_path, files)
    out = migrated(source, tmp_path / "out")
    assert not written(source, out) and "NPU817" not in log(out)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"job.sh": f"#!/bin/bash\n#SBATCH --gres=gpu:4\n{_START}"}, f"no job_npu.sh {_ASKS}"),
        ({"run.sh": f"export NCCL_NET_GDR_LEVEL=PIX\n{_START}"}, f"no run_npu.sh {_ASKS}"),
        ({"job.slurm": f"#!/bin/sh\n#PBS -l ngpus=4\n{_START}"}, f"no job_npu.slurm {_ASKS}"),
        ({"run.sh": "export CUDA_VISIBLE_DEVICES=0\nsrun --gres=gpu:8 python train.py\n"}, f"no run_npu.sh {_ASKS}"),
        ({f"run_{n}.sh": _START for n in range(9)}, "no run_3_npu.sh is written: 9 scripts would get a copy"),
        ({"run_cuda.sh": _START, "run_gpu.sh": _START}, "no run_npu.sh is written: another script already has it"),
    ],
)
def test_scripts_of_which_it_is_said_why_not(tmp_path: Path, files: dict[str, str], why: str) -> None:
    source = project(tmp_path, files)
    out = migrated(source, tmp_path / "out")
    assert f"NPU817 [remark] {why}" in log(out)
    assert written(source, out) == ({"run_npu.sh"} if "run_gpu.sh" in files else set())
    assert all((out / name).read_bytes() == text.encode() for name, text in files.items())


def test_other_styles_and_check_write_none(tmp_path: Path) -> None:
    source = project(tmp_path, {"run.sh": _START})
    assert not written(source, migrated(source, tmp_path / "out", "--style", "npu"))
    CliRunner().invoke(main, ["check", "--fix", "--style", "portable", str(source)])
    assert not (source / "run_npu.sh").exists() and (source / "run.sh").read_text() == _START


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("run.sh", "run_npu.sh"), ("run-all.sh", "run-all-npu.sh"), ("a/train_gpu.sh", "a/train_npu.sh"),
        ("2-gpus.sh", "2-npu.sh"), ("launch", "launch_npu"), (".run.sh", ".run_npu.sh"),
    ],
)  # fmt: skip
def test_its_name_is_one_that_is_known_again(name: str, twin: str) -> None:
    assert twin_of(name) == twin and twin in twins(name)
