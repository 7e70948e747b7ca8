"""A program is converted whole or left whole: over all its files, with and without an output, with other themes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.running import in_process as transplt
from tests.distributed.running import transplt as in_another_process
from transplt.edits.work import Work
from transplt.engine import verify

MAIN = """\
import torch

from loaders import training_data

loader = training_data([1.0])
model = torch.nn.Linear(1, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
"""
LOADERS = """\
from torch.utils.data import DataLoader


def training_data(points):
    return DataLoader(points, batch_size=2, shuffle=True)
"""
#: It shares the loader, and makes no process group.
SECOND = """\
from loaders import training_data

if __name__ == "__main__":
    for x in training_data([1.0]):
        print(x.cuda())
"""
#: It asks for the ranks by itself, which no other script can answer.
ASKING = LOADERS.replace("def training", "import torch.distributed as dist\n\n\ndef training").replace(
    "    return", "    print(dist.get_world_size())\n    return"
)
WRITTEN = ("init_process_group", "DistributedSampler", "DistributedDataParallel", "set_epoch", "get_rank", "npu_port")
SCRIPT, HELPER = "run_distributed_npu.sh", "npu_port.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "main.py").write_text(MAIN)
    (folder / "loaders.py").write_text(LOADERS)
    return folder


def output(project: Path, *options: str) -> tuple[int, str, Path]:
    """The exit code, what was said, and the output folder."""
    command = ["-i", "src", "-o", "out", "--no-html", *options, "distributed", "-m", "src/main.py"]
    done = transplt(*command, cwd=project.parent)
    return done.returncode, done.stderr, project.parent / "out" / "src_msft"


def nothing_of_it(folder: Path) -> bool:
    texts = [path.read_text() for path in folder.rglob("*.py")]
    return not (folder / HELPER).exists() and not any(word in text for word in WRITTEN for text in texts)


def test_a_program_that_holds_is_converted_whole(project: Path) -> None:
    code, told, folder = output(project)
    assert code == 0, told
    assert f"to start it: bash {SCRIPT}" in told
    assert (folder / SCRIPT).is_file()
    assert "return npu_port.shard(DataLoader(points, batch_size=2" in (folder / "loaders.py").read_text()
    assert "\nmodel = npu_port.wrap(model)\n" in (folder / "main.py").read_text()
    assert "\ndef shard(" in (folder / HELPER).read_text() and "\ndef wrap(" in (folder / HELPER).read_text()
    assert [path.name for path in folder.rglob(HELPER)] == [HELPER]


def test_a_program_that_another_script_shares_is_converted(project: Path) -> None:
    (project / "test.py").write_text(SECOND)
    code, told, folder = output(project)
    assert code == 0, told
    assert "return npu_port.shard(DataLoader(points, batch_size=2" in (folder / "loaders.py").read_text()
    assert not any(word in (folder / "test.py").read_text() for word in ("rank", *WRITTEN))


@pytest.mark.parametrize("jobs", ["0", "2"])
def test_a_program_that_fails_in_another_script_is_left_whole(project: Path, jobs: str) -> None:
    (project / "test.py").write_text(SECOND)
    (project / "loaders.py").write_text(ASKING)
    code, told, folder = output(project, "--jobs", jobs)
    assert code == 1
    assert "no launch script" in told
    assert nothing_of_it(folder)
    assert not (folder / SCRIPT).exists()
    assert "model = torch.nn.Linear(1, 1).npu()" in (folder / "main.py").read_text()  # the migration itself stays
    log = (folder / "msFmkTranspltlog.txt").read_text()
    assert "NPU332" in log
    assert "get_world_size() without a process group when test.py runs this (loaders.py:" in log
    assert not any(f"NPU3{number}" in (folder / "change_list.csv").read_text() for number in range(33, 50))


def test_without_an_output(project: Path) -> None:
    (project / "test.py").write_text(SECOND)
    (project / "loaders.py").write_text(ASKING)
    done = in_another_process("-i", "src", "--diff", "distributed", "-m", "src/main.py", cwd=project.parent)
    assert done.returncode == 1
    assert not any(word in done.stdout for word in WRITTEN)
    code, _, folder = output(project, "--report-only")
    assert code == 1
    assert "was not made distributed" in (folder / "msFmkTranspltlog.txt").read_text()
    assert not (folder / SCRIPT).exists() and not (folder / "main.py").exists()


def test_other_themes_stay(project: Path) -> None:
    (project / "test.py").write_text(SECOND)
    (project / "loaders.py").write_text(ASKING)
    _, _, folder = output(project, "--amp", "native")
    assert nothing_of_it(folder)
    assert "torch.autocast" in (folder / "main.py").read_text()


@pytest.mark.parametrize("path", ["main.py", "loaders.py"])
def test_what_is_taken_back_in_one_file_is_taken_back_in_all(
    project: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def broken(work: Work, outcome: object, applied: object) -> str:
        return "it does not hold" if work.scan.path == path and b"npu_port" in outcome.data else ""  # type: ignore[attr-defined]

    monkeypatch.setattr(verify, "_broken", broken)
    code, told, folder = output(project)
    assert code == 1, told
    assert nothing_of_it(folder)
    log = (folder / "msFmkTranspltlog.txt").read_text()
    assert f"this script was not made distributed: it does not hold ({path})" in log
    assert "NPU992" not in log  # no file has anything left to take back


def test_a_refusal_has_no_launch_script(project: Path) -> None:
    (project / "main.py").write_text("import torch\n\nmodel = torch.nn.Linear(1, 1).cuda()\n")
    code, told, folder = output(project)
    assert code == 1
    assert "no launch script: the program was not made distributed (NPU332): " in told
    assert f" {folder} --main main.py\n" in told
    assert not (folder / SCRIPT).exists()


@pytest.mark.parametrize(
    "start",
    ['dist.init_process_group("nccl")\n', "import torch.multiprocessing as mp\n\nmp.spawn(print, nprocs=2)\n"],
)
def test_a_program_of_several_processes_has_its_launch_script(project: Path, start: str) -> None:
    (project / "main.py").write_text("import torch.distributed as dist\n" + start)
    code, told, folder = output(project)
    assert code == 0, told
    assert (folder / SCRIPT).is_file()
