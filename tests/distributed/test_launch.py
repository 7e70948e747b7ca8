"""The launch script: what it starts, on which cards, and with which exit code."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from transplt.project.launch import LAUNCH, launch_script


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the launch script, and a `torchrun` that prints its arguments and ends with $CODE."""
    (tmp_path / LAUNCH).write_text(launch_script("src/main.py"))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "torchrun").write_text('#!/bin/sh\necho ran "$@"\nexit "${CODE:-0}"\n')
    (tools / "torchrun").chmod(0o755)
    return tmp_path


def start(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("ASCEND", "MASTER", "NNODES", "NODE"))
    }
    env |= {"PATH": f"{folder / 'tools'}:{env['PATH']}", "HOME": str(folder), **variables}
    return subprocess.run(
        ["bash", str(folder / LAUNCH), *arguments], env=env, cwd="/", capture_output=True, text=True, check=False
    )


def processes(done: subprocess.CompletedProcess[str]) -> str:
    words = done.stdout.split()
    return words[words.index("--nproc-per-node") + 1]


def test_dry_run_prints_the_command_and_starts_nothing(folder: Path) -> None:
    done = start(folder, "--nproc", "2", "--dry-run", "--lr", "0.1", "a b")
    assert done.returncode == 0
    assert done.stdout.startswith("torchrun --nnodes 1 --nproc-per-node 2 --log-dir ")
    assert done.stdout.rstrip().endswith(f"--standalone {folder}/src/main.py --lr 0.1 a\\ b")
    assert not (folder / "logs").exists()


def test_options_of_the_script_itself_come_behind_two_dashes(folder: Path) -> None:
    done = start(folder, "--nproc=2", "--dry-run", "--", "--nproc", "7")
    assert done.stdout.rstrip().endswith("src/main.py --nproc 7")


def test_cards_from_the_environment(folder: Path) -> None:
    assert processes(start(folder, "--dry-run", ASCEND_RT_VISIBLE_DEVICES="0,3,5")) == "3"
    assert processes(start(folder, "--dry-run", "--nproc", "1", ASCEND_RT_VISIBLE_DEVICES="0,3,5")) == "1"


def test_cards_from_npu_smi(folder: Path) -> None:
    listing = "".join(
        f"\tNPU ID                         : {card}\n\tChip Count                     : 2\n" for card in range(4)
    )
    tool = folder / "tools" / "npu-smi"
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n\tTotal Count                    : 4\n\n{listing}END\n")
    tool.chmod(0o755)
    assert processes(start(folder, "--dry-run")) == "8"


@pytest.mark.parametrize("arguments", [[], ["--nproc", "0"], ["--nproc", "two"]])
def test_without_cards_it_says_what_to_do(folder: Path, arguments: list[str]) -> None:
    done = start(folder, *arguments)
    assert done.returncode == 2
    assert "give --nproc N" in done.stderr


def test_several_machines(folder: Path) -> None:
    places = {"NNODES": "2", "NODE_RANK": "1", "MASTER_ADDR": "10.0.0.1"}
    words = start(folder, "--nproc", "8", "--dry-run", **places).stdout
    assert "--nnodes 2 " in words
    assert "--node-rank 1 --master-addr 10.0.0.1 --master-port 29500 " in words
    assert "--standalone" not in words
    done = start(folder, "--nproc", "8", "--dry-run", NNODES="2")
    assert done.returncode != 0
    assert "NODE_RANK" in done.stderr


def test_the_exit_code_is_that_of_the_job(folder: Path) -> None:
    done = start(folder, "--nproc", "2", "--logs", str(folder / "here"), CODE="17")
    assert done.returncode == 17
    assert done.stdout.startswith("ran --nnodes 1")
    assert (folder / "here").is_dir()
    assert start(folder, "--nproc", "2").returncode == 0


def test_the_environment_of_cann_is_sourced_once(folder: Path) -> None:
    setup = folder / "Ascend" / "ascend-toolkit" / "set_env.sh"
    setup.parent.mkdir(parents=True)
    setup.write_text('echo "sourced $UNSET_BY_CANN"\n')
    assert start(folder, "--nproc", "1", "--dry-run").stdout.startswith("sourced")
    assert "sourced" not in start(folder, "--nproc", "1", "--dry-run", ASCEND_HOME_PATH="/opt").stdout


def test_every_setting_is_explained() -> None:
    lines = launch_script("main.py").splitlines()
    exports = [index for index, line in enumerate(lines) if line.startswith("export ")]
    assert len(exports) >= 3
    assert all(lines[index - 1].startswith("# ") for index in exports)


def test_a_program_that_spawns_is_started_once(folder: Path) -> None:
    (folder / LAUNCH).write_text(launch_script("main.py", spawns=True))
    done = start(folder, "--nproc", "2", "--dry-run", "x")
    assert done.stdout == f"python {folder}/main.py x\n".replace("\n", " \n")


@pytest.mark.extra
@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("spawns", [False, True])
def test_shellcheck_has_nothing_to_say(tmp_path: Path, spawns: bool) -> None:
    path = tmp_path / LAUNCH
    path.write_text(launch_script("it's a/main file.py", spawns=spawns))
    done = subprocess.run(["shellcheck", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    subprocess.run(["bash", "-n", str(path)], check=True)


def test_settings_to_try_stand_in_comments_with_their_cost() -> None:
    lines = launch_script("main.py").split("\n")
    tried = [line for line in lines if line.startswith("# export ")]
    assert "# export TASK_QUEUE_ENABLE=2  # " in tried[0]
    assert "(default 1; cost: more memory at the peak" in tried[0]
    assert len(tried) == 7
    assert all("cost: " in line and len(line) < 121 for line in tried)
    assert not [line for line in lines if line.startswith("export TASK_QUEUE_ENABLE")]
