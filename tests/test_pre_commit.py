"""The hooks, run by the real pre-commit in an environment that it makes."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checking.conftest import FIXED, TRAIN, commit_all, git
from transplt import __version__

ROOT = Path(__file__).resolve().parent.parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.xdist_group("pre-commit"),
    pytest.mark.skipif(importlib.util.find_spec("pre_commit") is None, reason="needs pre-commit (the extra `dev`)"),
]


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project as a repository that pre-commit can install from, and its cache beside it."""
    folder = tmp_path_factory.mktemp("hooks") / "transplt"
    folder.mkdir()
    for name in ("transplt", "rules"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, folder / name)
    commit_all(folder)
    git(folder, "tag", f"v{__version__}")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[tool.transplt]\nstyle = "npu"\n')
    (folder / "README").write_text("cuda\n")
    commit_all(folder)
    return folder


def pre_commit(hooks: Path, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHONPATH"))}
    environment |= {
        "PRE_COMMIT_HOME": str(hooks.parent / "cache"),
        "PRE_COMMIT_COLOR": "never",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    command = [sys.executable, "-m", "pre_commit", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def run(hooks: Path, project: Path, hook: str, *arguments: str, args: str = "[]") -> subprocess.CompletedProcess[str]:
    """The hook as a configuration names it; one environment serves all tests."""
    revision = git(hooks, "rev-parse", "HEAD").strip()
    config = hooks.parent / "config.yaml"
    config.write_text(f"repos:\n- repo: {hooks}\n  rev: {revision}\n  hooks:\n  - id: {hook}\n    args: {args}\n")
    return pre_commit(hooks, project, "run", "--config", str(config), "--verbose", hook, *arguments)


def test_try_repo(hooks: Path, project: Path) -> None:
    (project / "train.py").write_text(TRAIN)
    git(project, "add", "train.py")
    done = pre_commit(hooks, project, "try-repo", str(hooks), "transplt-check", "--verbose")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "train.py:4:24: NPU201 [*] device string" in done.stdout


def test_the_configuration_of_the_document(hooks: Path, project: Path) -> None:
    """Both hooks by the tag of this version, from a repository of its own: an environment of their own too."""
    page = (ROOT / "docs" / "check.md").read_text("utf-8")
    shown = re.findall(r"```yaml\n(repos:\n.*?)```", page, re.DOTALL)[0]
    assert f"rev: v{__version__}" in shown
    config = shown.replace("https://example.org/transplt", str(hooks)).replace("# - id", "- id")
    (project / ".pre-commit-config.yaml").write_text(config)
    (project / "train.py").write_text("import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\n")
    git(project, "add", "-A")
    done = pre_commit(hooks, project, "run", "--all-files")
    assert done.returncode == 1
    assert "train.py:3:31: NPU210 [*]" in done.stdout and "files were modified by this hook" in done.stdout, done.stdout
    assert ".npu()" in (project / "train.py").read_text()
    git(project, "add", "-A")
    done = pre_commit(hooks, project, "run", "--all-files")
    assert done.returncode == 0 and done.stdout.count("Passed") == 2, done.stdout


def test_the_configuration_of_the_page_on_portable_repositories(hooks: Path, project: Path) -> None:
    """What somebody writes for CUDA alone fails, with the name that the project's module has for it."""
    page = (ROOT / "docs" / "device_agnostic.md").read_text("utf-8")
    (shown,) = re.findall(r"```yaml\n(repos:\n.*?)```", page, re.DOTALL)
    assert f"rev: v{__version__}" in shown
    (project / ".pre-commit-config.yaml").write_text(shown.replace("https://example.org/transplt", str(hooks)))
    (project / "pyproject.toml").write_text(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0])
    (project / "device.py").write_text('DEVICE_TYPE = "npu" if find_npu() else "cuda"\n')
    source = "import torch\n\nfrom device import DEVICE_TYPE\n\nmodel = torch.nn.Linear(2, 2).to(DEVICE_TYPE)\n"
    (project / "train.py").write_text(f"{source}data = torch.zeros(4, 2).cuda()\n")
    git(project, "add", "-A")
    done = pre_commit(hooks, project, "run")
    assert done.returncode == 1 and re.findall(r"```text\n(.*)\n", page)[0] in done.stdout, done.stdout
    (project / "train.py").write_text(f"{source}data = torch.zeros(4, 2).to(DEVICE_TYPE)\n")
    git(project, "add", "-A")
    done = pre_commit(hooks, project, "run")
    assert done.returncode == 0 and "Passed" in done.stdout, done.stdout


def test_no_matching_file(hooks: Path, project: Path) -> None:
    done = run(hooks, project, "transplt-check", "--all-files")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(no files to check)Skipped" in done.stdout


def test_check_fails_with_findings_and_torch_is_not_installed(hooks: Path, project: Path) -> None:
    (project / "train.py").write_text(TRAIN)
    git(project, "add", "train.py")
    done = run(hooks, project, "transplt-check")
    assert done.returncode == 1
    assert "train.py:4:24: NPU201 [*] device string" in done.stdout
    installed = {path.name for path in (hooks.parent / "cache").glob("*/py_env-*/lib/python*/site-packages/*")}
    assert "libcst" in installed and "transplt" in installed
    assert "torch" not in installed and "numpy" not in installed


def test_only_lines_that_changed_since_a_commit(hooks: Path, project: Path) -> None:
    (project / "train.py").write_text(TRAIN)
    commit_all(project)
    (project / "train.py").write_text(TRAIN + "\n\n# more\n")
    git(project, "add", "train.py")
    assert run(hooks, project, "transplt-check").returncode == 1
    done = run(hooks, project, "transplt-check", args="[--since, HEAD]")
    assert done.returncode == 0, done.stdout + done.stderr
    (project / "train.py").write_text(TRAIN + "\n\ntorch.cuda.synchronize()\n")
    git(project, "add", "train.py")
    done = run(hooks, project, "transplt-check", args="[--since, HEAD]")
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if line.startswith("train.py:")]
    assert any("torch.cuda.synchronize" in line for line in lines)
    assert not any(line.startswith("train.py:4:") for line in lines)  # it was there before


def test_many_files(hooks: Path, project: Path) -> None:
    names = [f"package/module_{number:03d}_{'x' * 60}.py" for number in range(300)]
    (project / "package").mkdir()
    for name in names:
        (project / name).write_text("import torch\n")
    (project / names[7]).write_text(TRAIN)
    git(project, "add", "-A")
    done = run(hooks, project, "transplt-check")
    assert done.returncode == 1
    assert {line.split(":")[0] for line in done.stdout.splitlines() if ": NPU" in line} == {names[7]}


def test_fix_edits_what_is_staged_and_nothing_else(hooks: Path, project: Path) -> None:
    file = project / "train.py"
    file.write_text(TRAIN + "\n\n\n\n\n\n\n# end\n")
    git(project, "add", "train.py")
    file.write_text(file.read_text().replace("# end", "# end, not staged: torch.cuda"))
    done = run(hooks, project, "transplt-fix")
    assert done.returncode == 1
    assert "files were modified by this hook" in done.stdout
    assert file.read_text() == FIXED + "\n\n\n\n\n\n\n# end, not staged: torch.cuda\n"
    assert git(project, "show", ":train.py") == TRAIN + "\n\n\n\n\n\n\n# end\n"


def test_fix_without_a_style_says_so(hooks: Path, project: Path) -> None:
    (project / "pyproject.toml").write_text("")
    (project / "train.py").write_text(TRAIN)
    git(project, "add", "-A")
    done = run(hooks, project, "transplt-fix")
    assert done.returncode == 1
    assert "--fix needs a style" in done.stdout
    assert (project / "train.py").read_text() == TRAIN


def test_judge_holds_a_push_against_the_original(hooks: Path, project: Path) -> None:
    """The hook of docs/agents.md: of the stage before a push, with the original as a commit."""
    page = (ROOT / "docs" / "agents.md").read_text("utf-8")
    (shown,) = re.findall(r"```yaml\n(repos:\n.*?)```", page, re.DOTALL)
    assert f"rev: v{__version__}" in shown
    (project / ".pre-commit-config.yaml").write_text(shown.replace("https://example.org/transplt", str(hooks)))
    (project / "train.py").write_text("import torch\n\nmodel = torch.nn.Linear(4, 2).cuda()\n")
    commit_all(project)
    git(project, "tag", "cuda-original")
    port = "import torch\nimport torch_npu\n\nmodel = torch.nn.Linear(4, 2).npu()\n"
    for text, code, said in ((port, 0, "accepted as read"), (port.replace("4, 2", "4, 1"), 1, "refused: ")):
        (project / "train.py").write_text(text)
        git(project, "add", "-A")
        done = pre_commit(hooks, project, "run", "--hook-stage", "pre-push", "--verbose")
        assert (done.returncode, said in done.stdout) == (code, True), done.stdout + done.stderr
