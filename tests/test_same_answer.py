"""What a migration says is left for a person, `check` and `port` say too: the same codes, and an exit code to match."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.test_port import git
from transplt.base.finding import Finding
from transplt.engine.actions.actions import actions_of
from transplt.faces.cli.main import main
from transplt.project.options import Options, make_plan
from transplt.project.tree import diff_tree

CUDA = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\n"
PLAIN = "import torch\n\nmodel = torch.nn.Linear(2, 2)\n"
CHANNELS = "import torch\n\nmodel = torch.nn.Conv2d(3, 8, 3)\nmodel.to(memory_format=torch.channels_last)\n"
#: A tree, and the codes of what it leaves for a person.
TREES: dict[str, tuple[dict[str, str], set[str]]] = {
    "nothing": ({"train.py": PLAIN}, set()),
    "edits alone": ({"train.py": CUDA}, set()),
    "a memory format, and no word of CUDA": ({"train.py": CHANNELS}, {"NPU723"}),
    "beside an edit": ({"train.py": CUDA + CHANNELS}, {"NPU723"}),
    "a memory format that is a remark of nothing": ({"train.py": PLAIN + "model.to(torch.float32)\n"}, set()),
    "an extension and what falls with it": (
        {"ops.py": "import my_cuda\n\n\ndef roll(x):\n    return my_cuda.roll(x)\n",
         "train.py": "import torch\n\nfrom ops import roll\n\nprint(roll(torch.ones(1)))\n",
         "setup.py": "from setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\n"
                     "setup(ext_modules=[CUDAExtension('my_cuda', ['a.cu'])])\n",
         "a.cu": "__global__ void roll() { __shfl_sync(0, 0, 0); }\n"},
        {"NPU550", "NPU553"},
    ),
    "no wheel of torch on x86_64": (
        {"train.py": PLAIN, "requirements.txt": 'torch==2.1.0 ; platform_machine == "x86_64"\n'}, {"NPU843"},
    ),
    "nobody asks for torch-npu": ({"train.py": CUDA, "requirements.txt": "numpy\n"}, {"NPU844"}),
    "nobody asks, and nothing goes in": ({"train.py": PLAIN, "requirements.txt": "numpy\n"}, set()),
    "a file that Python does not read": ({"train.py": CUDA, "broken.py": "x = torch.cuda(\n"}, {"NPU901"}),
    "a package that only a function imports, and the project does not install": (
        {"train.py": CUDA + "\n\ndef fast():\n    import cuequivariance_torch\n\n    return cuequivariance_torch\n",
         "requirements.txt": "torch>=2.2.0\n"},
        {"NPU510"},
    ),
    "an image": ({"train.py": PLAIN, "Dockerfile": "FROM nvidia/cuda:12.1.0-devel-ubuntu22.04\n"}, {"NPU850"}),
}  # fmt: skip


def transplt(*arguments: str) -> tuple[int, str]:
    """The exit code of a command, and its output."""
    done = CliRunner().invoke(main, [*arguments], standalone_mode=False, catch_exceptions=False)
    assert isinstance(done.return_value, int)
    return done.return_value, done.stdout


def blocking(findings: list[Finding]) -> set[str]:
    return {each.code for each in findings if each.open}


def checked(folder: Path, *options: str) -> tuple[int, set[str]]:
    """The exit code, and the codes of what no edit mends."""
    exit_code, text = transplt("check", str(folder), "-q", "--format", "json", *options)
    found = json.loads(text)["findings"]
    return exit_code, {each["code"] for each in found if each["edit"] is None and each["level"] != "info"}


@pytest.fixture(params=TREES)
def tree(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, set[str]]:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "person@example.org")
    files, codes = TREES[request.param]
    folder = tmp_path / "project"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "begin")
    return folder, codes


def test_every_command_leaves_the_same(tree: tuple[Path, set[str]], tmp_path: Path) -> None:
    folder, codes = tree
    migrated, _ = transplt("-i", str(folder), "-o", str(tmp_path / "out"), "--no-html", "-q")
    result = diff_tree(make_plan(Options(source=folder, analysis=True)))
    assert blocking(result.findings) == codes
    assert migrated == result.exit_code == int(bool(codes))

    exit_code, left = checked(folder)
    assert left == codes
    assert exit_code == int(bool(codes or result.edits))
    # Twice from the cache, and by no cache at all: the same.
    assert checked(folder) == checked(folder, "--no-cache") == (exit_code, left)

    assert transplt("port", str(folder), "-q")[0] == int(bool(codes))
    names = git(folder, "ls-tree", "--name-only", "npu-port").split() if result.edits else []
    said = git(folder, "show", "npu-port:NPU_PORT.md") if "NPU_PORT.md" in names else ""
    assert set(re.findall(r"\bNPU\d{3}\b", said)) >= (codes if result.edits else set())
    assert ("Nothing that transplt knows of is left" in said) <= (not codes)
    graded = {(each.heading.lower(), each.title) for each in actions_of(result.findings)} if result.edits else set()
    sections = (part.partition("\n") for part in said.split("\n## ")[1:])
    assert {(name.lower(), each) for name, _, text in sections for each in re.findall(r"\*\*(.+?)\*\*", text)} == graded

    assert transplt("check", str(folder), "--fix", "--style", "npu", "-q")[0] == int(bool(codes))


def test_a_remark_of_the_analysis_is_none_of_a_check(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PLAIN + "x = torch.nn.functional.silu(model(torch.ones(2))) * 2\n")
    assert checked(tmp_path) == (0, set())


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CHANNELS)
    assert checked(tmp_path) == (1, {"NPU723"})
    assert checked(tmp_path, "--ignore", "NPU723") == (0, set())
    (tmp_path / "train.py").write_text(CHANNELS.rstrip("\n") + "  # transplt: ignore[NPU723] it is fast enough\n")
    assert checked(tmp_path) == (0, set())
