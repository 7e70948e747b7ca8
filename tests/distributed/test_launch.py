"""The launch script: what it starts, on which cards, and with which exit code."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.running import in_process as transplt
from transplt.project.launch import LAUNCH, launch_script, options_of


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


def test_a_program_that_spawns_may_have_an_address_of_its_own() -> None:
    def warned(**how: Any) -> bool:
        return "trains on each machine alone" in launch_script("main.py", **how)

    assert warned(spawns=True)
    assert not warned() and not warned(spawns=True, options=frozenset({"--dist-url"}))


_MANY = {"--multiprocessing-distributed", "--world-size", "--rank", "--dist-url"}


@pytest.mark.parametrize(
    ("known", "given", "variables", "added"),
    [
        (_MANY, "", {}, "--multiprocessing-distributed --world-size 1 --rank 0 --dist-url tcp://127.0.0.1:29500"),
        (_MANY, "", {"NNODES": "2", "NODE_RANK": "1", "MASTER_ADDR": "h", "MASTER_PORT": "7"},
         "--multiprocessing-distributed --world-size 2 --rank 1 --dist-url tcp://h:7"),
        # What the user says stays.
        (_MANY, "--world-size=3 --rank 2 --dist-url tcp://g:8", {}, "--multiprocessing-distributed"),
        # Another program has no such option, or finds the others by what is exported.
        (_MANY - {"--rank"}, "", {}, ""),
        ({"--world-size"}, "", {}, ""),
    ],
)  # fmt: skip
def test_a_program_that_spawns_is_told_how_many_machines_there_are(
    folder: Path, known: set[str], given: str, variables: dict[str, str], added: str
) -> None:
    words = command(folder, known, "--nproc", "2", "--", *given.split(), spawns=True, **variables)
    assert words.split() == ["python", f"{folder}/main.py", *given.split(), *added.split()]


def test_the_output_of_a_program_that_spawns_is_kept(folder: Path) -> None:
    (folder / "main.py").write_text("print('from a rank')\nraise SystemExit(3)\n")
    (folder / LAUNCH).write_text(launch_script("main.py", spawns=True))
    done = start(folder, "--nproc", "2", "--logs", f"{folder}/logs")
    assert done.returncode == 3
    assert (folder / "logs" / "output.log").read_text() == "from a rank\n"


# --- the options of the porting guide --------------------------------------------------------------------------------

GUIDE = ["/data", "--addr=1.1.1.1", "--seed=49", "--device-list", "0,1,3", "--device=npu", "--lr", "0.1"]


def command(folder: Path, options: set[str] | None, *arguments: str, spawns: bool = False, **variables: str) -> str:
    """What the launch script of a program with some options would run."""
    known = None if options is None else frozenset(options)
    (folder / LAUNCH).write_text(launch_script("main.py", spawns=spawns, options=known))
    done = start(folder, "--dry-run", *arguments, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_command_of_the_guide(folder: Path) -> None:
    words = command(folder, {"--seed", "--lr"}, *GUIDE)
    assert "--nproc-per-node 3 " in words
    assert "--master-addr 1.1.1.1 --master-port 29500 " in words and "--standalone" not in words
    assert words.endswith("/main.py /data --seed=49 --lr 0.1")
    assert command(folder, {"--lr"}, "--device-list=7", "--addr", "h", "--device", "npu", "x").endswith("main.py x")
    assert "--nproc-per-node 1 " in command(folder, {"--lr"}, "--device-list=7")
    assert "--nproc-per-node 2 " in command(folder, {"--lr"}, "--nproc", "2", "--device-list", "0,1,2")


def test_a_list_of_cards_wins_over_the_environment(folder: Path) -> None:
    words = command(folder, {"--lr"}, "--device-list", "4,5", ASCEND_RT_VISIBLE_DEVICES="0,1,2")
    assert "--nproc-per-node 2 " in words


def test_options_that_the_program_has_are_for_it(folder: Path) -> None:
    own = {"--addr", "--device-list", "--device", "--seed"}
    words = command(folder, own, *GUIDE, spawns=True, ASCEND_RT_VISIBLE_DEVICES="0,1,3")
    given = "/data --addr=1.1.1.1 --seed=49 --device-list 0\\,1\\,3 --device=npu --lr 0.1"
    assert words == f"python {folder}/main.py {given}"
    words = command(folder, {"--device"}, *GUIDE)
    assert words.endswith("/main.py /data --seed=49 --device=npu --lr 0.1")


def test_behind_two_dashes_everything_is_for_the_program(folder: Path) -> None:
    assert command(folder, {"--lr"}, "--nproc", "2", "--", "--addr", "x").endswith("/main.py --addr x")
    assert command(folder, {"--lr"}, "--nproc", "2", "a", "--", "--addr", "x").endswith("/main.py a -- --addr x")


def test_where_no_parser_is_in_sight_they_stand_in_front(folder: Path) -> None:
    words = command(folder, None, "--device-list", "0,1", "/data", "--addr", "x", "--device", "cpu")
    assert "--nproc-per-node 2 " in words and words.endswith("/main.py /data --addr x --device cpu")


@pytest.mark.parametrize("cards", ["0,a", ",0", "0,", "0,,1", "npu:0"])
def test_a_list_that_is_none(folder: Path, cards: str) -> None:
    (folder / LAUNCH).write_text(launch_script("main.py", options=frozenset({"--lr"})))
    done = start(folder, "--dry-run", "--device-list", cards)
    assert done.returncode == 2 and "--device-list needs numbers of cards" in done.stderr


def test_another_device(folder: Path) -> None:
    (folder / LAUNCH).write_text(launch_script("main.py", options=frozenset({"--lr"})))
    for arguments in (["--device", "cuda"], ["--device=cpu"], ["x", "--device"]):
        done = start(folder, "--dry-run", "--nproc", "1", *arguments)
        assert done.returncode == 2 and "no --device but npu" in done.stderr


def test_a_program_that_spawns_is_told_where_its_processes_meet(folder: Path) -> None:
    words = command(folder, {"--dist-url"}, *GUIDE, spawns=True)
    assert words.endswith("/data --seed=49 --lr 0.1 --dist-url tcp://1.1.1.1:29500")
    for given in (["--dist-url", "tcp://h:1"], ["--dist-url=tcp://h:1"]):
        assert command(folder, {"--dist-url"}, *GUIDE, *given, spawns=True).endswith(" ".join(["0.1", *given]))
    assert "dist-url" not in command(folder, {"--dist-url"}, "--nproc", "2", spawns=True)
    assert "dist-url" not in command(folder, {"--lr"}, *GUIDE, spawns=True)


def test_the_options_of_a_program(tmp_path: Path) -> None:
    parser = "parser.add_argument('-d', \"--device\")\nparser.add_argument('--dist-url')\n"
    (tmp_path / "main.py").write_text(parser)
    (tmp_path / "test.py").write_text("parser.add_argument('--addr')\n")
    (tmp_path / "run.py").write_text("import fire\nfire.Fire(main)\n")
    assert options_of(tmp_path, ["main.py", "test.py", "main.py"]) == {"--device", "--dist-url"}
    assert options_of(tmp_path, ["run.py", "test.py", "none.py"]) == {"--addr"}
    assert options_of(tmp_path, ["run.py"]) is None


SPAWNS = """\
import argparse
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--seed", type=int)
parser.add_argument("--dist-url", default="tcp://127.0.0.1:23456")
parser.add_argument("--dist-backend", default="nccl")
parser.add_argument("--multiprocessing-distributed", action="store_true")


def worker(gpu, cards, args):
    dist.init_process_group(args.dist_backend, init_method=args.dist_url, world_size=cards, rank=gpu)
    torch.cuda.set_device(gpu)


if __name__ == "__main__":
    args = parser.parse_args()
    cards = torch.cuda.device_count()
    mp.spawn(worker, nprocs=cards, args=(cards, args))
"""


def test_a_project_that_is_started_as_the_guide_says(folder: Path) -> None:
    (folder / "net").mkdir()
    (folder / "net" / "main.py").write_text(SPAWNS)
    done = transplt("-i", "net", "-o", "out", "distributed", "-m", "net/main.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    written = folder / "out" / "net_msft"
    (written / "tools").symlink_to(folder / "tools")
    shown = start(written, "--dry-run", *GUIDE[:-2], "--multiprocessing-distributed").stdout.strip()
    assert shown == (
        f"python {written}/main.py /data --seed=49 --multiprocessing-distributed --dist-url tcp://1.1.1.1:29500"
    )


@pytest.mark.extra
@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("spawns", [False, True])
@pytest.mark.parametrize("options", [None, frozenset({"--dist-url"}), frozenset({"--addr", "--device"})])
def test_shellcheck_has_nothing_to_say(tmp_path: Path, spawns: bool, options: frozenset[str] | None) -> None:
    path = tmp_path / LAUNCH
    path.write_text(launch_script("it's a/main file.py", spawns=spawns, options=options))
    done = subprocess.run(["shellcheck", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    subprocess.run(["bash", "-n", str(path)], check=True)


def test_settings_to_try_stand_in_comments_with_their_cost() -> None:
    lines = launch_script("main.py").split("\n")
    tried = [line for line in lines if line.startswith("# export ")]
    assert "# export TASK_QUEUE_ENABLE=2  # " in tried[0]
    assert "(default 1; cost: higher peak memory" in tried[0]
    assert len(tried) == 7
    assert all("cost: " in line and len(line) < 121 for line in tried)
    assert not [line for line in lines if line.startswith("export TASK_QUEUE_ENABLE")]


def test_compile_options_are_named_as_what_they_are() -> None:
    """What people look for among the variables: a comment says where they belong, and none of them is exported."""
    text = launch_script("train.py")
    assert "\n#   ACL_OP_COMPILER_CACHE_MODE: keep compiled operators on the disk (disable, enable, force)\n" in text
    assert "export ACL_OP" not in text and "ACL_OP_SELECT_IMPL_MODE" not in text, "torch_npu advises against that one"
