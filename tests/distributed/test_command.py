"""The command line of `distributed`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.distributed.running import in_process as transplt
from transplt.edits.helper_file import defined_in, helper_text

SCRIPT = """\
import torch
from torch.utils.data import DataLoader

from data import points

loader = DataLoader(points, shuffle=True)
model = torch.nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x in loader:
        model(x).sum().backward()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "work" / "src").mkdir(parents=True)
    (tmp_path / "work" / "src" / "main.py").write_text(SCRIPT)
    (tmp_path / "work" / "src" / "data.py").write_text("points = []\n")
    (tmp_path / "work" / "setup.py").write_text("")
    return tmp_path / "work"


def test_options_before_the_command(project: Path) -> None:
    done = transplt("-i", "work", "-o", "out", "distributed", "-m", "src/main.py", cwd=project.parent)
    assert done.returncode == 0, done.stderr
    folder = project.parent / "out" / "work_msft"
    assert "npu_port.start()\n" in (folder / "src" / "main.py").read_text()
    assert "\ndef start(" in (folder / "src" / "npu_port.py").read_text()
    script = folder / "run_distributed_npu.sh"
    assert script.stat().st_mode & 0o777 == 0o755
    assert 'main="$here"/src/main.py\n' in script.read_text()
    assert "run_distributed_npu.sh" in json.loads((folder / ".transplt" / "manifest.json").read_text())["reports"]
    rows = (folder / "change_list.csv").read_text()
    assert "npu_port.shard(loader)" in rows and "npu_port.start()" in rows
    assert "npu_port.py" in rows


def test_the_portable_style_writes_one_program_for_both(project: Path) -> None:
    given = ("-i", "work", "-o", "out", "--style", "portable", "distributed", "-m", "src/main.py")
    done = transplt(*given, cwd=project.parent)
    assert done.returncode == 0, done.stderr
    folder = project.parent / "out" / "work_msft"
    text, module = ((folder / "src" / name).read_text() for name in ("main.py", "device.py"))
    assert "from device import DEVICE_TYPE, own_draws, shard, start, wrap\n" in text and "npu" not in text
    assert "\ndef start(" in module and '\nDEVICE_TYPE = "npu" if _has_npu else "cuda"\n' in module
    assert (folder / "run_distributed_npu.sh").is_file()


def test_a_module_of_an_earlier_migration_gets_the_functions(project: Path) -> None:
    module = helper_text(["DEVICE_TYPE"], portable=True) + "\nOURS = 1\n"
    (project / "src" / "device.py").write_text(module)
    given = ("-i", "work", "-o", "out", "--style", "portable", "distributed", "-m", "src/main.py")
    assert transplt(*given, cwd=project.parent).returncode == 0
    folder = project.parent / "out" / "work_msft"
    main, completed = ((folder / "src" / name).read_text() for name in ("main.py", "device.py"))
    called = re.search(r"^from device import (.*)$", main, re.MULTILINE)
    assert called is not None and "OURS = 1\n" in completed
    taken = set(called[1].split(", "))
    assert {"shard", "start", "wrap"} <= taken <= {*defined_in(completed.encode())}


def test_the_input_is_found_above_the_main_file(project: Path) -> None:
    done = transplt("distributed", "-m", "main.py", "-t", "model", cwd=project / "src")
    assert done.returncode == 0, done.stderr
    assert f"input: {project}" in done.stderr
    assert (project.parent / "work_msft" / "run_distributed_npu.sh").is_file()


def test_a_single_file(project: Path) -> None:
    done = transplt("-i", "src/main.py", "-o", "../out", "distributed", "-m", "main.py", cwd=project)
    assert done.returncode == 0, done.stderr
    assert (project.parent / "out" / "main_msft" / "run_distributed_npu.sh").is_file()


def test_a_script_of_the_project_keeps_its_name(project: Path) -> None:
    (project / "run_distributed_npu.sh").write_text("echo mine\n")
    done = transplt("-i", "work", "-o", "out", "distributed", "-m", "src/main.py", cwd=project.parent)
    assert done.returncode == 0, done.stderr
    assert (project.parent / "out/work_msft/run_distributed_npu.sh").read_text() == "echo mine\n"
    assert (project.parent / "out/work_msft/transplt_run_distributed_npu.sh").is_file()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["-i", "work", "distributed"], "Missing option '-m'"),
        (["-i", "work", "distributed", "-m", "nothing.py"], "there is no such file"),
        (["-i", "work", "distributed", "-m", "other.py"], "is not in the input"),
        (["-i", "work", "distributed", "-i", "work", "-m", "src/main.py"], "given twice"),
        (["distributed", "-m", "nothing.py"], "no such file"),
    ],
)
def test_wrong_usage(project: Path, arguments: list[str], why: str) -> None:
    (project.parent / "other.py").write_text("")
    done = transplt(*arguments, cwd=project.parent)
    assert done.returncode == 2, done.stderr
    assert why in done.stderr


TWO = """\
import torch

from net import Trainer

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
head = make_head()
head.train()
count = 1
Trainer(model)
for x in []:
    model(x).sum().backward()
"""
NET = "class Trainer:\n    def __init__(self, model):\n        self.net = model\n        self.net.train()\n"


@pytest.mark.parametrize("more", [(), ("--diff",), ("--report-only",)])
@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("nomodel", "there are model, head, self.net"),
        ("optimizer", "there are model, head, self.net"),
        ("count", "there are model, head, self.net"),
        ("self.head", "there are model, self.net, head"),
        ("q" * 4000, "there are model, head, self.net"),
    ],
)
def test_a_model_that_is_not_there_is_refused(name: str, there: str, more: tuple[str, ...], project: Path) -> None:
    (project / "src" / "main.py").write_text(TWO)
    (project / "src" / "net.py").write_text(NET)
    command = ("-i", "work", "-o", "out", *more, "distributed", "-m", "src/main.py", "-t", "model", "-t", name)
    done = transplt(*command, cwd=project.parent)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: -t ")
    assert f": no model of the program of src/main.py has this name; {there}\n" in done.stderr
    assert len(done.stderr) < 400
    assert sorted(path.name for path in project.parent.iterdir()) == ["work"]


@pytest.mark.parametrize("name", ["model", "head", "net", "self.net"])
def test_models_that_are_there_are_taken(name: str, project: Path) -> None:
    (project / "src" / "main.py").write_text(TWO)
    (project / "src" / "net.py").write_text(NET)
    done = transplt("-i", "work", "-o", "out", "distributed", "-m", "src/main.py", "-t", name, cwd=project.parent)
    assert done.returncode in (0, 1), done.stderr


@pytest.mark.parametrize(("name", "code"), [("net", 1), ("nomodel", 2)])
def test_a_model_that_nothing_is_asked_of(name: str, code: int, project: Path) -> None:
    (project / "src" / "main.py").write_text("import torch\nnet = make()\nnet(1).backward()\n")
    done = transplt("-i", "work", "-o", "out", "distributed", "-m", "src/main.py", "-t", name, cwd=project.parent)
    assert done.returncode == code
    assert ("no model was found" in done.stderr) is (code == 2)


def test_a_main_file_that_is_left_out_or_cannot_be_read_is_refused(project: Path) -> None:
    (project / "src" / "bad.py").write_text("x = 1\ndef f(:\n")
    (project / "src" / "latin.py").write_bytes(b"x = '\xff'\n")
    for arguments, why in (
        (["-m", "src/bad.py"], "-m src/bad.py:2: syntax error"),
        (["-m", "src/latin.py"], "-m src/latin.py:1: no encoding is declared"),
        (["-m", "src/main.py", "--exclude", "src/main.py"], "the migration does not include this file (excluded)"),
        (["-m", "src/main.py", "--exclude", "src/"], "the migration does not include this file (excluded)"),
    ):
        done = transplt("-i", "work", "-o", "out", "distributed", *arguments, cwd=project.parent)
        assert done.returncode == 2
        assert why in done.stderr
        assert not (project.parent / "out").exists()
