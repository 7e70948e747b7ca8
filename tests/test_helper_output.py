"""npu_port.py in what comes out: written where it is called, listed everywhere, and left to its owner."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import transplt
from tests.forked import transplt_run
from transplt.base.disk.manifest import edited_since, read_manifest
from transplt.edits.helper_file import helper_text
from transplt.faces.cli.main import main

TEXT = helper_text(["OneCardDataParallel"])
TRAIN = "import torch\nfrom models.net import wrap\n\nnet = torch.nn.DataParallel(wrap(1)).cuda()\n"
NET = "import torch\n\n\ndef wrap(net):\n    return torch.nn.DataParallel(net)\n"
PLAIN = "import torch\n\nx = torch.ones(1).cuda()\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    (folder / "models").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "models" / "net.py").write_text(NET)
    (folder / "other.py").write_text(PLAIN)
    return folder


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, [*arguments, "--exit-zero"])


def migrated(folder: Path, out: Path, *options: str) -> Path:
    done = run("-i", str(folder), "-o", str(out), "--jobs", "0", *options)
    assert done.exit_code == 0, done.output
    return out / f"{folder.stem}_msft"


def tree(folder: Path) -> dict[str, bytes]:
    """The files without the reports, whose names are those of the folder."""
    reports = ("change_list.csv", "tokens.csv", "report.html", "unsupported_op.xlsx", "msFmkTranspltlog.txt")
    every = (path for path in folder.rglob("*") if path.is_file() and ".transplt" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in every if path.name not in reports}


def test_what_is_written(project: Path, tmp_path: Path) -> None:
    out = migrated(project, tmp_path / "out")
    assert (out / "npu_port.py").read_text() == TEXT
    assert (out / "train.py").read_text() == (
        "import torch\nimport torch_npu  # noqa: F401\nimport npu_port\nfrom models.net import wrap\n\n"
        "net = npu_port.OneCardDataParallel(wrap(1)).npu()\n"
    )
    assert (out / "models" / "net.py").read_text() == (
        "import torch\n\nimport npu_port\n\n\ndef wrap(net):\n    return npu_port.OneCardDataParallel(net)\n"
    )
    assert sorted(tree(out)) == ["models/net.py", "npu_port.py", "other.py", "train.py"]


def test_what_is_listed(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("-i", str(project), "-o", str(out))
    said = "npu_port.py: new file for the port: OneCardDataParallel; it is part of your project now"
    assert said in " ".join(done.stderr.split())
    assert "converted: 8 edits in 3 of 3 files and npu_port.py\n" in done.stderr
    with open(out / "proj_msft" / "change_list.csv", newline="", encoding="utf-8") as file:
        every = [*csv.DictReader(file)]
    rows = [row for row in every if row["File"] == "npu_port.py"]
    (row,) = rows
    assert len(every) == 8  # one count on every face
    assert row["Code"] == "NPU156" and row["Operation Type"] == "INSERT" and not row["Before"]
    assert row["After"].startswith("# SPDX-License-Identifier: 0BSD\\n")
    manifest = json.loads((out / "proj_msft" / ".transplt" / "manifest.json").read_text())
    assert manifest["helpers"] == ["npu_port.py"] and "npu_port.py" in manifest["files"]
    assert edited_since(out / "proj_msft", manifest) == []


@pytest.mark.parametrize("how", [("--jobs", "2"), ("--executor", "inline"), ("--executor", "processes:2")])
def test_all_ways_of_working_give_the_same_bytes(project: Path, tmp_path: Path, how: tuple[str, str]) -> None:
    for number in range(20):
        (project / f"m{number}.py").write_text(NET)
    alone = migrated(project, tmp_path / "alone")
    done = run("-i", str(project), "-o", str(tmp_path / "many"), *how)
    assert done.exit_code == 0, done.output
    assert tree(alone) == tree(tmp_path / "many" / "proj_msft")


def test_a_second_run_changes_nothing_and_says_nothing_new(project: Path, tmp_path: Path) -> None:
    once = migrated(project, tmp_path / "once")
    twice = migrated(once, tmp_path / "twice")
    assert tree(once) == tree(twice)
    assert "npu_port" not in (twice / "change_list.csv").read_text()
    assert "npu_port.py:" not in (twice / "msFmkTranspltlog.txt").read_text()
    (left,), (again,) = (read_manifest(each)["actions"] for each in (once, twice))  # type: ignore[index]
    assert left["title"] == again["title"] and left["title"].startswith("Replace DataParallel")


def test_one_that_was_moved_away_is_written_anew(project: Path, tmp_path: Path) -> None:
    once = migrated(project, tmp_path / "once")
    (once / "npu_port.py").unlink()
    assert (migrated(once, tmp_path / "twice") / "npu_port.py").read_text() == TEXT


def test_where_nothing_calls_it_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj" / "train.py").write_text(PLAIN)
    out = migrated(tmp_path / "proj", tmp_path / "out")
    assert sorted(tree(out)) == ["train.py"] and "helpers" not in read_manifest(out)  # type: ignore[operator]


def test_portable_style_leaves_the_class_that_it_is(project: Path, tmp_path: Path) -> None:
    files = tree(migrated(project, tmp_path / "out", "--style", "portable"))
    assert b"return torch.nn.DataParallel(net)" in files["models/net.py"]
    assert not any(b"OneCardDataParallel" in text for text in files.values())
    files = tree(migrated(project, tmp_path / "named", "--style", "portable", "--helper", "cards"))
    assert "cards.py" in files and b"from cards import DEVICE_TYPE\n" in files["other.py"]
    again = tree(migrated(tmp_path / "named" / "proj_msft", tmp_path / "again", "--style", "portable"))
    assert {path: again[path] for path in files} == files
    files = tree(migrated(project, tmp_path / "inline", "--style", "portable", "--inline"))
    assert "device.py" not in files and b"torch.nn.DataParallel(net)" in files["models/net.py"]


VAE = """\
import torch
import torch.nn.functional as F

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sigmoid()).cuda()
optimizer = torch.optim.Adam(model.parameters())
for x in torch.rand(3, 8, 4):
    x = x.cuda()
    optimizer.zero_grad()
    loss = F.binary_cross_entropy(model(x), x)
    loss.backward()
    optimizer.step()
"""


def test_what_mixed_precision_calls_is_written(tmp_path: Path) -> None:
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj" / "train.py").write_text(VAE)
    files = tree(migrated(tmp_path / "proj", tmp_path / "out", "--amp", "native"))
    assert b"npu_port.in_float32(F.binary_cross_entropy)" in files["train.py"]
    assert files["npu_port.py"].decode() == helper_text(["Float32Sigmoid", "in_float32"])


def test_what_nobody_asked_for_twice(project: Path, tmp_path: Path) -> None:
    (project / "npu_port.py").write_text("x = 1\n")
    files = tree(migrated(project, tmp_path / "out"))
    assert files["npu_port.py"] == b"x = 1\n" and files["npu_port_1.py"].decode() == TEXT
    assert b"net = npu_port_1.OneCardDataParallel(wrap(1)).npu()" in files["train.py"]
    said = (tmp_path / "out" / "proj_msft" / "change_list.csv").read_text()
    assert "It has this name because the project has a module npu_port already" in said


def test_scripts_of_several_folders_get_one_each(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "proj" / name).mkdir(parents=True)
        (tmp_path / "proj" / name / "train.py").write_text(PLAIN if name == "c" else TRAIN.replace("models.net", "x"))
        (tmp_path / "proj" / name / "x.py").write_text("def wrap(net):\n    return net\n")
    files = tree(migrated(tmp_path / "proj", tmp_path / "out"))
    assert [name for name in sorted(files) if "npu_port" in name] == ["a/npu_port.py", "b/npu_port.py"]


OVERLAPS = "import torch\nimport iou3d_cuda\n\n\ndef f(a, b, c):\n    iou3d_cuda.boxes_overlap_bev_gpu(a, b, c)\n"
GUARD = "\n\nif __name__ == '__main__':\n    f(1, 2, 3)\n"


def test_modules_of_several_folders_on_one_path_hold_the_same(tmp_path: Path) -> None:
    """The interpreter keeps the first `npu_port` that it finds, for all that ask for one."""
    for extends in (True, False):
        project = tmp_path / f"proj{extends}"
        (project / "boxes").mkdir(parents=True)
        path = "import sys\n\nsys.path.append('boxes')\nnet = importlib.import_module('overlaps')\n" if extends else ""
        (project / "train.py").write_text(f"import importlib\n{path}{TRAIN.replace('from models.net import wrap', '')}")
        (project / "boxes" / "overlaps.py").write_text(OVERLAPS + GUARD)
        output = migrated(project, tmp_path / f"out{extends}", "--adapt", "kernels")
        files = tree(output)
        alone, beside = files["npu_port.py"], files["boxes/npu_port.py"]
        assert b"def boxes_overlap_bev_gpu" in beside
        assert (alone == beside) is extends, sorted(files)


_OF_SPHINX = "sys.path.insert(0, os.path.abspath('..'))\n"


@pytest.mark.parametrize(
    ("path", "line", "joins"),
    [
        # Settings of a manual name folders for Sphinx, which starts none of them.
        *((path, _OF_SPHINX, False) for path in ("docs/conf.py", "docs/source/conf.py", "doc/source/conf.py")),
        ("source/conf.py", _OF_SPHINX, True),
        # The project has no folder of that name: it is a library's.
        ("a/more.py", "sys.path.append('third/tvm/python')\n", False),
        ("a/more.py", "sys.path.append('../b')\n", True),
        ("a/more.py", "sys.path.append('..')\n", True),
        ("a/more.py", "sys.path.append('third')\nsys.path.append(here)\n", True),
    ],
)
def test_what_joins_several_programs(path: str, line: str, joins: bool, tmp_path: Path) -> None:
    project = tmp_path / "proj"
    for name in ("a", "b"):
        (project / name).mkdir(parents=True)
    (project / "a" / "train.py").write_text("import torch\nx = torch.ones(1).cuda()\n")
    (project / "b" / "train.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    (project / path).write_text(f"import os\nimport sys\n\n{line}")
    files = tree(migrated(project, tmp_path / "out", "--style", "portable"))
    of_a, of_b = (b"device_module" in files[f"{each}/device.py"] for each in ("a", "b"))
    assert of_b and of_a is joins


# --- other faces -----------------------------------------------------------------------------------------------------


def test_the_diff_makes_the_same_tree(project: Path, tmp_path: Path) -> None:
    done = run("-i", str(project), "--diff")
    head = "diff --git a/npu_port.py b/npu_port.py\nnew file mode 100644\n--- /dev/null\n+++ b/npu_port.py\n"
    assert head in done.stdout
    assert not (project / "npu_port.py").exists()
    wanted = tree(migrated(project, tmp_path / "out"))
    subprocess.run(["git", "apply", "-"], cwd=project, input=done.stdout.encode(), check=True)
    assert tree(project) == wanted


@pytest.mark.parametrize("what", ["inline", "one file", "reports"])
def test_no_second_file(project: Path, tmp_path: Path, what: str) -> None:
    if what == "inline":
        files = tree(migrated(project, tmp_path / "out", "--inline"))
    elif what == "one file":
        files = tree(migrated(project / "train.py", tmp_path / "out"))
    else:
        out = migrated(project, tmp_path / "out", "--report-only")
        assert tree(out) == {} and "npu_port.py" in (out / "change_list.csv").read_text()
        return
    assert "npu_port.py" not in files and b"npu_port" not in b"".join(files.values())
    assert b"class OneCardDataParallel(torch.nn.DataParallel):" in files["train.py"]


def test_a_check_mends_the_file_itself(project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(["git", "add", "-A"], cwd=project, check=True)
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *author, "commit", "-qm", "x"], cwd=project, check=True)
    done = run("check", "--fix", "--style", "npu", str(project))
    assert done.exit_code == 0, done.output
    assert "class OneCardDataParallel(torch.nn.DataParallel):" in (project / "models" / "net.py").read_text()
    assert not (project / "npu_port.py").exists()


def test_the_library_writes_a_tree_with_it_and_a_file_without(project: Path, tmp_path: Path) -> None:
    transplt.migrate_tree(project, tmp_path / "out", jobs=0)
    assert (tmp_path / "out" / "proj_msft" / "npu_port.py").is_file()
    assert b"class OneCardDataParallel(" in transplt.migrate_source(NET).data


def test_a_port_takes_it_along(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "person@example.org")

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True)
        return done.stdout.decode()

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "begin")
    done = run("port", str(project))
    assert done.exit_code == 0, done.output
    subjects = git("log", "--reverse", "--format=%s", "main..npu-port").splitlines()
    assert subjects[0] == "Add the functions that the port calls"
    first = git("rev-list", "--reverse", "main..npu-port").split()[0]
    assert git("show", f"{first}:npu_port.py") == TEXT
    assert "import npu_port\n" in git("show", f"{first}:models/net.py")
    assert "npu_port.OneCardDataParallel(" in git("show", "npu-port:train.py")
    # The user changes it; a port that goes on leaves it as it is.
    git("switch", "-q", "npu-port")
    (project / "npu_port.py").write_text(TEXT + "# mine\n")
    (project / "more.py").write_text(NET)
    git("add", "-A")
    git("commit", "-qm", "mine")
    git("switch", "-q", "main")
    git("merge", "-q", "npu-port")
    done = run("port", str(project))
    assert done.exit_code == 0, done.output
    assert git("show", "npu-port:npu_port.py") == TEXT + "# mine\n"
    assert "npu_port.OneCardDataParallel(net)" in git("show", "npu-port:more.py")


# --- what a user has changed -----------------------------------------------------------------------------------------


def test_a_changed_one_survives_force(project: Path, tmp_path: Path) -> None:
    out = migrated(project, tmp_path / "out")
    (out / "npu_port.py").write_text(TEXT + "# mine\n")
    done = run("-i", str(project), "-o", str(tmp_path / "out"), "--force")
    assert done.exit_code == 0, done.output
    assert "npu_port.py had been changed since it was written: your file is now npu_port.py.yours" in done.stderr
    assert (out / "npu_port.py").read_text() == TEXT
    assert (out / "npu_port.py.yours").read_text() == TEXT + "# mine\n"
    # And the next time, with another change.
    (out / "npu_port.py").write_text(TEXT + "# again\n")
    migrated(project, tmp_path / "out", "--force")
    assert (out / "npu_port.py.yours").read_text() == TEXT + "# mine\n"
    assert (out / "npu_port.py.yours2").read_text() == TEXT + "# again\n"
    migrated(project, tmp_path / "out", "--force")
    assert sorted(name for name in os.listdir(out) if "yours" in name) == ["npu_port.py.yours", "npu_port.py.yours2"]


def test_it_survives_discarded_edits_and_a_project_that_needs_it_no_more(project: Path, tmp_path: Path) -> None:
    out = migrated(project, tmp_path / "out")
    (out / "npu_port.py").write_text("mine\n")
    (out / "train.py").write_text("edited\n")
    refused = run("-i", str(project), "-o", str(tmp_path / "out"), "--force")
    assert "was edited after transplt wrote it (train.py)" in str(refused.exception)
    (project / "train.py").write_text(PLAIN)
    (project / "models" / "net.py").write_text(PLAIN)
    migrated(project, tmp_path / "out", "--force", "--discard-edits")
    assert not (out / "npu_port.py").exists() and (out / "npu_port.py.yours").read_text() == "mine\n"


def test_an_unchanged_one_is_replaced(project: Path, tmp_path: Path) -> None:
    out = migrated(project, tmp_path / "out")
    migrated(project, tmp_path / "out", "--force")
    assert not any("yours" in name for name in os.listdir(out))


@pytest.mark.torch
def test_what_is_written_runs(project: Path, tmp_path: Path) -> None:
    (project / "models" / "net.py").write_text(
        "import torch\n\n\ndef wrap(width):\n    return torch.nn.DataParallel(torch.nn.Linear(width, 2))\n"
    )
    (project / "train.py").write_text(
        "import torch\nfrom models.net import wrap\n\nnet = torch.nn.DataParallel(wrap(3).module).cuda()\n"
        "print(net(torch.ones(4, 3).cuda()).shape, type(net).__name__, [*net.state_dict()])\n"
    )
    out = migrated(project, tmp_path / "out")
    _, printed, errors = transplt_run(["train.py"], out)
    assert "torch.Size([4, 2]) OneCardDataParallel ['module.weight', 'module.bias']" in printed, errors


def test_everybody_finds_it(tmp_path: Path) -> None:
    """Scripts in the package and outside, a test, and whoever imports the package and none of these."""
    wraps = NET.replace("wrap(net)", "wrap(net=None)")
    files = {
        "proj/pkg/__init__.py": "",
        "proj/pkg/net.py": wraps,
        "proj/pkg/more.py": wraps,
        "proj/pkg/train.py": "import net\n\nnet.wrap()\n",
        "proj/tools/train.py": "import torch\nimport pkg.more\nfrom pkg.net import wrap\n\n"
        "wrap(torch.nn.DataParallel(1))\n",
        "proj/tests/test_net.py": "from pkg.net import wrap\n\nwrap()\n",
        "libs/torch/__init__.py": "from torch import nn\n",
        "libs/torch/nn.py": "class Module:\n    pass\n\n\n"
        "class DataParallel:\n    def __init__(self, *given):\n        pass\n",
        "libs/torch_npu.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    out = migrated(tmp_path / "proj", tmp_path / "out")
    written = sorted(path.relative_to(out).as_posix() for path in out.rglob("npu_port.py"))
    assert written == ["npu_port.py", "pkg/npu_port.py", "tools/npu_port.py"]
    ways = (["pkg/train.py"], ["tools/train.py"], ["tests/test_net.py"], ["-c", "import pkg.net, pkg.more"])
    for way in ways:
        alone = [str(tmp_path / "libs")] + [str(out)] * (way != ["pkg/train.py"])
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(alone), "PYTHONSAFEPATH": ""}
        done = subprocess.run([sys.executable, *way], cwd=out, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (way, done.stderr)


@pytest.mark.parametrize(
    ("name", "text", "shows"),
    [
        ("run.sh", "CUDA_VISIBLE_DEVICES=0,1 python train.py\n", True),
        ("README.md", "    CUDA_VISIBLE_DEVICES=0 python train.py\n", True),
        ("main.py", 'import os\n\nos.environ["CUDA_VISIBLE_DEVICES"] = "0"\n', True),
        ("run.sh", "CUDA_LAUNCH_BLOCKING=1 python train.py\n", False),
        ("README.md", "Needs CUDA.\n", False),
    ],
)
def test_cards_that_cuda_is_shown_count_where_the_project_names_them(
    tmp_path: Path, name: str, text: str, shows: bool
) -> None:
    source = tmp_path / "net"
    source.mkdir()
    (source / "train.py").write_text("# Copyright A\nimport torch\n\nx = torch.ones(1).cuda()\n")
    (source / name).write_text(text)
    done = CliRunner().invoke(main, ["-i", str(source), "-o", str(tmp_path / "out"), "--style", "portable"])
    assert done.exit_code in (0, 1), done.output
    module = (tmp_path / "out" / "net_msft" / "device.py").read_text()
    assert module.startswith('"""') and ("CUDA_VISIBLE_DEVICES" in module) is shows
