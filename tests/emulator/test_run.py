"""`transplt run` as it is used: verdicts, exit codes, reports, children, references, stubs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness import migrate
from tests.processes import measured_alone
from transplt.project.launch import launch_script

ROOT = Path(__file__).parents[2]
TRAIN = """\
import sys
import torch
import torch_npu
device = torch.device("npu:0")
torch.manual_seed(0)
net = torch.nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    loss = net(torch.randn(8, 4, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, "loss", round(loss.item(), 6))
torch.save(net.state_dict(), "net.pt")
if len(sys.argv) > 1:
    torch.npu.synchronize(
        device=device,
    )
"""
ORIGINAL = TRAIN.replace("import torch_npu\n", "").replace("npu", "cuda")


def migrated(folder: Path, edited: dict[str, list[int]], torch: str = "2.13") -> None:
    (folder / ".transplt").mkdir()
    files = {name: {"sha256": "", "edited_lines": lines} for name, lines in edited.items()}
    (folder / ".transplt" / "manifest.json").write_text(
        json.dumps({"tool": "transplt", "format": 1, "torch": torch, "files": files, "reports": {}})
    )


@pytest.mark.torch
def test_runs_with_the_lines_that_ran(transplt_run: Any, tmp_path: Path) -> None:
    migrated(tmp_path, {"train.py": [3, 4, 17], "other.py": [2], "notes.md": [1]}, torch="2.9")
    (tmp_path / "other.py").write_text("import torch\nx = torch.ones(1).npu()\n")
    code, report, err = transplt_run(TRAIN)
    assert (code, report["verdict"], report["reasons"]) == (0, "runs", [])
    assert report["target_torch_version"] == "2.9"
    assert [(e["path"], e["line"]) for e in report["migrated_lines"]["executed"]] == [("train.py", 3), ("train.py", 4)]
    never = report["migrated_lines"]["never_executed"]
    assert [(e["path"], e["line"], e["text"]) for e in never] == [
        ("train.py", 17, "device=device,"), ("other.py", 2, "x = torch.ones(1).npu()")]  # fmt: skip
    assert report["operators"]["calls"] > 40 and report["operators"]["counts"]["aclnnAddmm"] == 4
    assert (
        "runs: finished without errors; not compared with the original\n" in err
        and "train.py:17: device=device," in err
    )
    assert report["stdout"].startswith("step 0 loss ")
    assert [p["role"] for p in report["processes"]] == ["script"]


@pytest.mark.torch
def test_a_line_of_a_longer_statement_ran_when_the_statement_did(transplt_run: Any, tmp_path: Path) -> None:
    migrated(tmp_path, {"train.py": [17]})
    code, report, _ = transplt_run(TRAIN, "again")
    assert code == 0 and report["migrated_lines"]["never_executed"] == []


@pytest.mark.torch
def test_leftover_cuda_stops_the_script(transplt_run: Any) -> None:
    code, report, err = transplt_run("import torch\nx = torch.ones(2)\nprint(x.cuda())\n")
    assert (code, report["verdict"], report["reasons"]) == (
        1,
        "stops",
        ["cuda-leftover", "findings", "no-npu-operator"],
    )
    assert report["sentence"] == "leftover use of CUDA at train.py:3: NPU210 Tensor.cuda(): use .npu()"
    [finding] = report["findings"]
    assert (finding["path"], finding["line"], finding["code"]) == ("train.py", 3, "NPU210")
    assert "train.py:3: NPU210 Tensor.cuda(): use .npu()" in err
    assert "CudaLeftover: " in err and report["script_exit_code"] == 1


@pytest.mark.torch
def test_recorded_leftovers(transplt_run: Any) -> None:
    source = (
        "import torch\nif torch.cuda.is_available():\n    x = torch.ones(2).cuda()\n    print((x + x).sum().item())\n"
    )
    code, report, _ = transplt_run(source, options=["--cuda", "record"])
    assert (code, report["verdict"], report["stdout"]) == (1, "stops", "4.0\n")
    assert report["sentence"].startswith("train.py:3: NPU210 Tensor.cuda(): use 'npu'; the program went on")
    assert [(f["line"], f["code"], f["level"]) for f in report["findings"]] == [
        (2, "NPU101", "warning"), (3, "NPU210", "error")]  # fmt: skip


@pytest.mark.torch
def test_nothing_on_the_npu_is_not_run(transplt_run: Any) -> None:
    code, report, err = transplt_run("import torch\nprint(torch.ones(2) + 1)\n")
    assert (code, report["verdict"], report["reasons"]) == (1, "not run", ["no-npu-operator"])
    assert (
        "not run: nothing was computed on the NPU, though the script finished (every tensor stayed on the CPU)" in err
    )
    assert transplt_run("print(1)\n", options=["--exit-zero"])[0] == 0


@pytest.mark.torch
def test_a_failing_script(transplt_run: Any) -> None:
    code, report, err = transplt_run("import torch\nx = torch.ones(2).npu() + torch.ones(2)\n")
    assert (code, report["verdict"], report["reasons"]) == (1, "stops", ["script-failed"])
    error = report["processes"][0]["exception"]
    assert (error["type"], error["path"], error["line"]) == ("RuntimeError", "train.py", 2)
    words = "Expected all tensors to be on the same device."
    assert f"train.py:2: RuntimeError: {words}" in err
    assert transplt_run("import torch, sys\ntorch.ones(1).npu() + 1\nsys.exit(7)\n")[1]["script_exit_code"] == 7


@pytest.mark.torch
def test_a_script_that_does_not_end(transplt_run: Any) -> None:
    code, report, _ = transplt_run(
        "import torch, time\ntorch.ones(1).npu()\ntime.sleep(600)\n", options=["--timeout", "5"]
    )
    assert (code, report["verdict"], report["reasons"]) == (1, "stops", ["timed-out"])
    assert report["sentence"] == "the script did not finish within 5 s; it was at train.py:3"


HANGING = """\
import sys, time, torch
import torch.multiprocessing as mp
import torch.distributed as dist
def work(rank, hang):
    dist.init_process_group("hccl", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
    x = torch.ones(1).npu(rank)
    dist.all_reduce(x)
    if rank == 1:
        if hang:
            time.sleep(600)
        raise ValueError("no such thing")
    dist.all_reduce(x)
if __name__ == "__main__":
    mp.spawn(work, (len(sys.argv) > 2,), nprocs=2)
"""


IN_A_CHILD = """\
import torch
from multiprocessing import Pipe, Process
def work(end):
    raise AttributeError("no seed")
if __name__ == "__main__":
    ours, theirs = Pipe()
    child = Process(target=work, args=(theirs,))
    child.start()
    theirs.close()
    child.join()
    ours.recv()
"""


@pytest.mark.torch
def test_an_error_in_a_child_process_is_the_cause(transplt_run: Any, tmp_path: Path) -> None:
    code, report, err = transplt_run(IN_A_CHILD)
    assert (code, report["verdict"]) == (1, "stops")
    assert report["sentence"] == "train.py:4, in a child process: AttributeError: no seed"
    assert "AttributeError: no seed" in err


@pytest.mark.torch
@pytest.mark.slow
def test_a_time_out_says_where_each_rank_stood(transplt_run: Any, tmp_path: Path) -> None:
    """Also one that waits in C++ for the others; ranks are known without an environment variable RANK."""
    code, report, err = transplt_run(HANGING, str(tmp_path / "store"), "hang", options=["--timeout", "40"])
    assert (code, report["verdict"], report["reasons"]) == (1, "stops", ["timed-out"])
    assert report["sentence"] == (
        "the script did not finish within 40 s; rank 0 was at train.py:12, in work, and waited in HcclAllReduce of 1 "
        "float32 (sum), rank 1 was at train.py:10, in work"
    )
    assert "computed nothing" not in err


@pytest.mark.torch
def test_an_error_of_a_spawned_process_has_its_own_place(transplt_run: Any, tmp_path: Path) -> None:
    code, report, _ = transplt_run(HANGING, str(tmp_path / "store"))
    assert (code, report["verdict"]) == (1, "stops")
    # The other one, whose communication ended, may be first.
    places = ("rank 1: train.py:11: ValueError: no such thing", "rank 0: train.py:12: RuntimeError: LaunchWaitTask")
    assert report["sentence"].startswith(places)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("import sys, torch\nsys.exit('no data')\n", "train.py:2: no data: it ended with exit code 1"),
        ("import torch\nx = = 1\n", "train.py:2: SyntaxError: invalid syntax (train.py, line 2)"),
        ("import ctypes, torch\nctypes.string_at(0)\n", "it ended by signal SIGSEGV; it was at train.py:2"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n", "it ended by signal SIGTERM"),
    ],
)  # fmt: skip
def test_other_ends_have_a_line_and_a_reason(transplt_run: Any, source: str, sentence: str) -> None:
    code, report, _ = transplt_run(source)
    assert (code, report["verdict"], report["sentence"]) == (1, "stops", sentence)


@pytest.mark.torch
def test_libraries_may_ask_for_cuda(transplt_run: Any, tmp_path: Path) -> None:
    """What site-packages ask is no finding, however they ask; the same line of the project is one."""
    package = tmp_path / "lib" / "site-packages" / "asking"
    package.mkdir(parents=True)
    asks = "import torch\nfrom torch import cuda\nHAS = torch.cuda.is_available() or cuda.device_count() > 0\n"
    (package / "__init__.py").write_text(asks + "def has(x):\n    return torch.cuda.is_available() or x.is_cuda\n")
    source = (
        "import sys\nsys.path.insert(0, 'lib/site-packages')\nimport asking\nimport torch\n"
        "x = torch.ones(2).npu() + 1\nprint(asking.HAS, asking.has(x))\n"
    )
    code, report, _ = transplt_run(source)
    assert (code, report["findings"], report["stdout"]) == (0, [], "False False\n")
    code, report, _ = transplt_run(source + "torch.cuda.is_available()\n")
    assert (code, [(f["line"], f["code"]) for f in report["findings"]]) == (0, [(7, "NPU101")])


@pytest.mark.torch
def test_operators_without_a_kernel(transplt_run: Any) -> None:
    script = Path(__file__).parent / "programs" / "unsupported.py"
    names = {"_linalg_eigh.eigenvalues", "digamma.out", "fractional_max_pool2d.output", "lgamma.out"}
    count = len(names)
    for version in ("2.1", "2.13"):
        code, report, _ = transplt_run(script, options=["--torch-version", version])
        slow = [f for f in report["findings"] if f["code"] == "NPU795"]  # svd, of the AI CPU
        assert len(slow) == 1
        report["findings"] = [f for f in report["findings"] if f not in slow]
        found = {f["message"].partition(" ")[0].partition("::")[2] for f in report["findings"]}
        assert (code, report["verdict"], report["reasons"], found) == (0, "runs", ["findings"], names)
        assert f"; {count} warnings: " in report["sentence"] and f", and {count - 1} more" in report["sentence"]
        assert {f["code"] for f in report["findings"]} == {"NPU790"}
    assert transplt_run(script, options=["--cpu-fallback", "ignore"])[0] == 0
    code, report, _ = transplt_run(script, options=["--cpu-fallback", "error"])
    assert (code, report["verdict"]) == (1, "stops")
    assert report["processes"][0]["exception"]["line"] == 8
    code, report, _ = transplt_run("import torch\ntorch.nn.DataParallel(torch.nn.Linear(2, 2).npu())\n")
    assert [f["code"] for f in report["findings"]] == ["NPU507"]


@pytest.mark.torch
def test_data_parallel_on_one_card_moves_what_it_is_given(transplt_run: Any) -> None:
    source = """\
import torch
from torch import nn

class Net(nn.Linear):
    def forward(self, x, more=()):
        assert x.is_cuda and more[0]["y"].is_cuda
        return super().forward(x) + more[0]["y"]

net = nn.DataParallel(Net(4, 2)).cuda()
x = torch.ones(6, 4)
assert isinstance(net, nn.DataParallel) and "module.weight" in net.state_dict()
print(net(x, more=[{"y": x[:, :2]}]).device, net.module.in_features)
"""
    script = migrate(source).data.decode()
    assert "OneCardDataParallel" in script
    code, report, _ = transplt_run(script)
    assert (code, report["findings"]) == (0, [])


RANKS = """\
import os
import torch
import torch.distributed as dist
dist.init_process_group("hccl")
rank = int(os.environ["LOCAL_RANK"])
torch.npu.set_device(rank)
x = torch.ones(1).npu() * (rank + 1)
dist.all_reduce(x)
assert x.item() == 3
if rank == 1:
    y = x.npu()
dist.destroy_process_group()
"""


@pytest.mark.torch
def test_torchrun_gathers_all_ranks(transplt_run: Any, tmp_path: Path) -> None:
    migrated(tmp_path, {"train.py": [4, 11]})
    code, report, _ = transplt_run(RANKS, options=["--nproc", "2"])
    assert report["sentence"] == "finished without errors; not compared with the original"
    assert (code, report["verdict"], report["reasons"]) == (0, "runs", [])
    ranks = {p["rank"]: p for p in report["processes"] if p["role"] == "script"}
    assert sorted(ranks) == ["0", "1"] and all(p["operator_calls"] > 0 for p in ranks.values())
    assert report["operators"]["counts"]["HcclAllReduce"] == 2
    assert len(report["migrated_lines"]["executed"]) == 2


CAUGHT = """\
import os
import traceback
import torch
import torch_npu
try:
    int("x")
except ValueError:
    traceback.print_exc()
print(torch.ones(1).npu().sum().item(), torch.npu.device_count(), os.environ["ASCEND_RT_VISIBLE_DEVICES"])
"""


@pytest.mark.torch
def test_what_ends_well_may_hide(transplt_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "0,1")
    code, report, _ = transplt_run(CAUGHT, options=["--nproc", "2"])
    assert (code, report["verdict"], report["stdout"]) == (0, "runs", "1.0 2 0,1\n" * 2)
    _, _, rest = report["sentence"].partition("the original; it printed a traceback: rank ")
    assert rest[1:] == (
        ": train.py:6: ValueError: invalid literal for int() with base 10: 'x'; each of the 2 ranks ran alone, since "
        "they formed no process group"
    )


@pytest.mark.torch
@pytest.mark.slow  # the next test starts torchrun from a launch script, too
def test_launch_script(transplt_run: Any, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANKS)
    script = tmp_path / "run_distributed_npu.sh"
    script.write_text("set -e\npython -m torch.distributed.run --standalone --nproc-per-node 2 train.py\n")
    code, report, _ = transplt_run(script)
    assert (code, report["verdict"], report["reasons"]) == (0, "runs", [])
    assert sorted(p["rank"] for p in report["processes"] if p["rank"]) == ["0", "1"]


@pytest.mark.slow
@pytest.mark.torch
def test_our_launch_script_takes_all_cards_of_the_emulated_host(transplt_run: Any, tmp_path: Path) -> None:
    """Without --nproc it counts them by npu-smi."""
    (tmp_path / "train.py").write_text(RANKS)
    script = tmp_path / "run_distributed_npu.sh"
    script.write_text(launch_script("train.py"))
    code, report, _ = transplt_run(script, options=["--npus", "2"])
    assert (code, report["verdict"], report["reasons"]) == (0, "runs", [])
    assert sorted(p["rank"] for p in report["processes"] if p["rank"]) == ["0", "1"]


@pytest.mark.torch
@pytest.mark.slow  # what the script makes of these options is read off its dry runs in tests/distributed/test_launch.py
@pytest.mark.parametrize("more", [["--nproc", "2"], ["--device-list", "0,1"]])
def test_a_number_or_a_list_of_cards_counts_for_more(transplt_run: Any, tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "train.py").write_text(RANKS)
    script = tmp_path / "run_distributed_npu.sh"
    script.write_text(launch_script("train.py"))
    code, report, _ = transplt_run(script, *more, options=["--npus", "4"])
    assert (code, sorted(p["rank"] for p in report["processes"] if p["rank"])) == (0, ["0", "1"])


@pytest.mark.torch
def test_a_launch_script_that_counts_nothing_starts_what_it_started(transplt_run: Any, tmp_path: Path) -> None:
    program = "import torch, torch_npu\n(torch.ones(2).npu() + 1).sum().item()\nprint(torch.npu.device_count())\n"
    (tmp_path / "train.py").write_text(program)
    script = tmp_path / "train.sh"
    script.write_text("set -e\necho cards ${ASCEND_RT_VISIBLE_DEVICES:-unset}\npython train.py\n")
    code, report, _ = transplt_run(script, options=["--npus", "3"])
    assert (code, report["stdout"]) == (0, "cards unset\n3\n")
    assert len([p for p in report["processes"] if p["role"] == "script"]) == 1


SPAWN = """\
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        import os
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        return torch.tensor(float(i))
def work(rank):
    print("sum", sum((x.npu().sum() for x in DataLoader(Data(), batch_size=2, num_workers=1))).item())
    if rank == 1:
        torch.amp.GradScaler(FLAG)
if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""


@pytest.mark.torch
def test_spawned_processes_and_loader_workers_report_too(transplt_run: Any, tmp_path: Path) -> None:
    migrated(tmp_path, {"train.py": [10, 12]})
    code, report, _ = transplt_run(SPAWN.replace("FLAG", '"npu"'))
    assert (code, report["verdict"], report["stdout"]) == (0, "runs", "sum 6.0\nsum 6.0\n")
    assert [(f["line"], f["code"], f["count"]) for f in report["findings"]] == [(9, "NPU220", 8)]
    assert sum(p["operator_calls"] > 0 for p in report["processes"]) == 2
    assert len(report["processes"]) >= 5
    assert len(report["migrated_lines"]["executed"]) == 2


@pytest.mark.torch
@pytest.mark.slow  # findings of spawned processes are shown above, their errors in the test of HANGING
def test_a_finding_stops_a_spawned_process(transplt_run: Any) -> None:
    code, report, _ = transplt_run(SPAWN.replace("FLAG", ""))
    assert (code, report["verdict"]) == (1, "stops") and ("NPU121", 14) in [
        (f["code"], f["line"]) for f in report["findings"]
    ]


ORPHANS = """\
import os
script = os.getpid()
for _ in range(20):
    if not os.fork():
        while os.getppid() == script:
            pass
        from npu_emulator import record
        for _ in range(300):
            record.write()
        os._exit(0)
"""


@pytest.mark.torch
def test_processes_that_outlive_the_script_do_not_disturb(transplt_run: Any) -> None:
    code, report, errors = transplt_run(ORPHANS)
    assert (code, report["verdict"]) == (1, "not run") and "Error" not in errors


@pytest.mark.torch
def test_forked_loader_workers_report_too(transplt_run: Any) -> None:
    source = SPAWN.replace("mp.spawn(work, nprocs=2)", "work(0)")
    code, report, _ = transplt_run(source)
    assert code == 0 and [(f["line"], f["code"], f["count"]) for f in report["findings"]] == [(9, "NPU220", 4)]
    assert [p["role"] for p in report["processes"] if not p["operator_calls"]].count("forked worker") == 1


@pytest.mark.torch
def test_reference(transplt_run: Any, tmp_path: Path) -> None:
    original = tmp_path / "original.py"
    original.write_text(ORIGINAL)
    code, report, err = transplt_run(TRAIN, options=["--reference", str(original)])
    assert (code, report["verdict"]) == (0, "equal"), err
    assert report["sentence"] == f"8 printed numbers and 2 saved tensors agree with those of {original}, within 1e-05"
    assert report["reference"]["numbers"] == 8 and report["reference"]["tensors"] == 2
    code, report, err = transplt_run(TRAIN.replace("lr=0.1", "lr=0.2"), options=["--reference", str(original)])
    assert (code, report["verdict"], report["reasons"]) == (1, "differs", ["reference-differs"])
    assert "the original prints" in err and "net.pt#" not in err


@pytest.mark.slow
@pytest.mark.torch
def test_reference_of_a_module(transplt_run: Any, tmp_path: Path) -> None:
    original = tmp_path / "original.py"
    original.write_text(ORIGINAL)
    (tmp_path / "module.py").write_text(TRAIN.replace("lr=0.1", "lr=0.2"))
    code, report, _ = transplt_run(Path("module"), options=["--reference", str(original), "-m"])
    assert (code, report["verdict"]) == (1, "differs")


@pytest.mark.slow
@pytest.mark.torch
def test_a_reference_that_does_not_repeat_itself(transplt_run: Any, tmp_path: Path) -> None:
    original = tmp_path / "original.py"
    original.write_text(ORIGINAL.replace("torch.manual_seed(0)\n", ""))
    code, report, _ = transplt_run(TRAIN, options=["--reference", str(original)])
    assert (code, report["verdict"], report["reasons"]) == (0, "runs", ["reference-unstable"])
    assert "finished without errors; two runs of the original differ" in report["sentence"]


@pytest.mark.torch
def test_stub_file(transplt_run: Any, tmp_path: Path) -> None:
    (tmp_path / "colors.py").write_text("def load():\n    raise OSError('offline')\n")
    stub = tmp_path / "stubs.py"
    stub.write_text(
        "from npu_emulator.stubs import when_imported\n"
        "when_imported('colors', lambda module: setattr(module, 'load', lambda: [1.0, 2.0]))\n"
    )
    source = "import torch\nimport colors\nprint(torch.tensor(colors.load()).npu().sum().item())\n"
    assert transplt_run(source)[1]["verdict"] == "stops"
    code, report, _ = transplt_run(source, options=["--stubs", str(stub)])
    assert (code, report["stdout"]) == (0, "3.0\n")


@pytest.mark.torch
def test_a_stub_of_a_package_that_is_imported_above_torch(transplt_run: Any, tmp_path: Path) -> None:
    stub = tmp_path / "colors.py"
    stub.write_text(
        "import sys, types\nimport torch\n"
        "sys.modules['colors'] = types.ModuleType('colors')\nsys.modules['colors'].load = lambda: torch.ones(2)\n"
    )
    source = "import colors\nimport torch\nprint(colors.load().npu().sum().item())\n"
    code, report, _ = transplt_run(source, options=["--stubs", str(stub)])
    assert (code, report["stdout"]) == (0, "2.0\n")


@pytest.mark.torch
def test_ready_stubs_for_torchvision(transplt_run: Any) -> None:
    pytest.importorskip("PIL")
    if not _installed("torchvision"):
        pytest.skip("torchvision is not installed")
    script = Path(__file__).parent / "programs" / "stubbed_mnist.py"
    code, report, _ = transplt_run(script, options=["--stubs", "torchvision"])
    assert code == 0 and "stubs: 256 synthetic images seen" in report["stdout"]


@pytest.mark.torch
def test_shapes_that_change_between_steps(transplt_run: Any) -> None:
    code, report, err = transplt_run(TRAIN.replace("randn(8,", "randn(8 + step // 2,"), options=["--shapes"])
    places = {(s["operator"], s["stack"][0]["path"], s["stack"][0]["line"]) for s in report["dynamic_shapes"]}
    assert code == 0 and ("aclnnAddmm", "train.py", 9) in places
    assert "shapes that change between steps" in err
    assert transplt_run(TRAIN, options=["--shapes"])[1]["dynamic_shapes"] == []


def _installed(package: str) -> bool:
    return (
        subprocess.run(
            [sys.executable, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec({package!r}))"]
        ).returncode
        == 0
    )


def _command(*arguments: str, cwd: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": path + str(ROOT)}
    command = [*measured_alone("transplt.proof"), *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    ("version", "words"),
    [(None, "python has none; install it there, or name"), ("2.9.1", "this interpreter has 2.9.1")],
)
def test_without_torch_or_with_an_old_one(tmp_path: Path, version: str | None, words: str) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text(f"#!/bin/sh\n{f'echo {version}' if version else 'exit 1'}\n")
    interpreter.chmod(0o755)
    (tmp_path / "train.py").write_text(TRAIN)
    done = _command("--python", str(interpreter), "train.py", cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.torch
@pytest.mark.parametrize(
    "arguments",
    [["absent.py"], ["--stubs", "absent", "train.py"], ["--nproc", "2", "run.sh"], ["--cuda", "maybe", "train.py"], [],
     ["--report", "absent/report.json", "train.py"]],
)  # fmt: skip
def test_wrong_usage(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "run.sh").write_text("true\n")
    done = _command(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and "Error" in done.stderr and done.stdout == ""


def test_help_says_what_is_not_promised(tmp_path: Path) -> None:
    done = _command("--help", cwd=tmp_path)
    assert done.returncode == 0
    for word in ("numerics", "memory", "speed", "HCCL", "inductor", "sparse", "published table", "Exit codes"):
        assert word in done.stdout


def test_the_command_does_not_import_torch(tmp_path: Path) -> None:
    source = "import sys, transplt.proof.launch.command; assert 'torch' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", source], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path
    )
