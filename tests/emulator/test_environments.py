"""Whose interpreter runs a program: of the environments that a project has, as each tool leaves them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import cache_of_its_own
from tests.privileges import as_any_owner
from transplt.proof.launch import environments, interpreter
from transplt.proof.launch.environments import choose, place_of, project_of, remembered
from transplt.proof.launch.options import UsageError

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="transplt run is for Linux and macOS")


def environment(folder: Path, torch: str = "2.13.0+cpu", conda: bool = False) -> Path:
    """An environment whose Python says that it has a torch; conda leaves another mark in one than venv."""
    site = folder / "site"
    for name, version in (("torch", torch), ("numpy", "2.1")):
        if version:
            info = site / f"{name}-{version}.dist-info" / "METADATA"
            info.parent.mkdir(parents=True, exist_ok=True)
            info.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={site} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    (folder / "conda-meta").mkdir() if conda else (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    return python


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in a home of its own, and nothing that is active."""
    home = tmp_path / "home"
    folder = home / "net"
    (folder / ".git").mkdir(parents=True)
    (folder / "scripts").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_of_its_own(tmp_path / "cache")))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(environments.shutil, "which", lambda name: None)
    return folder


def remember(project: Path, folder: Path, of: str = "") -> None:
    place = place_of(project)
    place.mkdir(parents=True, exist_ok=True)
    record = {"environment": str(folder), "project": str(project), "of": of}
    (place / environments.RECORD).write_text(json.dumps(record))


@pytest.mark.parametrize("name", [".venv", "venv", "env"])
def test_an_environment_in_the_project(project: Path, name: str) -> None:
    python = environment(project / name)
    chosen = choose("", project / "scripts")
    assert (chosen.python, chosen.versions.torch) == (str(python), "2.13.0+cpu")
    assert chosen.in_words == f"{python} (torch 2.13.0+cpu): the project's {name}"


def test_uv_may_have_it_elsewhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", ".uv")
    python = environment(project / ".uv")
    assert choose("", project).python == str(python)


@pytest.mark.parametrize(("variable", "conda"), [("VIRTUAL_ENV", False), ("CONDA_PREFIX", True)])
def test_the_environment_that_is_active(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, conda: bool
) -> None:
    python = environment(tmp_path / "active", conda=conda)
    monkeypatch.setenv(variable, str(tmp_path / "active"))
    assert choose("", project).python == str(python)
    own = environment(project / ".venv")
    assert choose("", project).python == str(own), "the project's own is surer"


def test_the_conda_environment_of_the_project_by_its_name(project: Path) -> None:
    python = environment(project.parent / "miniconda" / "envs" / "nets", conda=True)
    (project.parent / ".conda").mkdir()
    noted = f"{python.parents[1].parent / 'x'}\n{python.parents[1]}\n"
    (project.parent / ".conda" / "environments.txt").write_text(noted)
    (project / "environment.yml").write_text("name: nets\ndependencies:\n  - pytorch\n")
    assert choose("", project).python == str(python)
    (project / "environment.yml").write_text("name: other\ndependencies:\n  - pytorch\n")
    assert not [*environments._found(project)]


def test_poetry_is_asked_of_its_own_projects_only(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = environment(tmp_path / "virtualenvs" / "net-py3.11")
    poetry = tmp_path / "poetry"
    poetry.write_text(f'#!/bin/sh\ntest "$1 $2 $3" = "env info --path" && echo {python.parents[1]}\n')
    poetry.chmod(0o755)
    monkeypatch.setattr(environments.shutil, "which", lambda name: str(poetry))
    assert not [*environments._found(project)]
    (project / "pyproject.toml").write_text('[tool.poetry]\nname = "net"\n')
    assert choose("", project).python == str(python)


@pytest.mark.parametrize(
    ("torch", "said"),
    [
        ("2.15.0", "the project's .venv has torch 2.15.0"),
        ("1.13.1", "the project's .venv has torch 1.13.1"),
        ("", "the project's .venv has no torch"),
    ],
)
def test_where_its_torch_will_not_do_ours_runs_it_and_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch, torch: str, said: str
) -> None:
    environment(project / ".venv", torch)
    ours = interpreter.Versions("2.13.0", "2.1", "3.11.7")
    monkeypatch.setattr(interpreter, "versions_of", lambda python, way: ours)
    chosen = choose("", project)
    assert chosen.python == sys.executable and chosen.in_words.endswith(f"transplt's own, because {said}")


def test_where_ours_has_none_either_it_is_one_sentence(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(project / ".venv", "2.15.0")
    whole_of = interpreter.whole_of
    empty = interpreter.Versions("", "", "3.11.7")
    monkeypatch.setattr(interpreter, "whole_of", lambda each: empty if each == sys.executable else whole_of(each))
    said = r"^the project's .venv has torch 2.15.0; PyTorch 2.10 or newer is needed: "
    with pytest.raises(UsageError, match=rf"{said}`transplt run --setup {project}` makes .* requires, or name "):
        choose("", project)


def test_a_torch_of_which_nobody_knows(project: Path) -> None:
    python = environment(project / ".venv", "2.15.0")
    with pytest.raises(UsageError, match=r"PyTorch 2.14 or older, .*has 2.15.0: pip install 'torch<2.15', or name"):
        choose(str(python), project)


def test_one_that_is_named_is_taken_and_a_folder_stands_for_its_own(project: Path, tmp_path: Path) -> None:
    environment(project / ".venv")
    python = environment(tmp_path / "other")
    for given in (python, tmp_path / "other", os.path.relpath(python)):
        chosen = choose(str(given), project)
        assert chosen.python == str(python) and chosen.in_words == ""
    with pytest.raises(UsageError, match="cannot be started"):
        choose(str(tmp_path / "nowhere"), project)


def test_what_setup_made_comes_first_and_only_when_it_is_whole(project: Path, tmp_path: Path) -> None:
    own, made = environment(project / ".venv"), environment(tmp_path / "made")
    place_of(project).mkdir(parents=True)
    assert choose("", project).python == str(own)
    place_of(project).rmdir()
    remember(project, tmp_path / "made")
    assert choose("", project / "scripts").python == str(made)


def test_the_output_of_a_migration_has_the_environment_of_its_input(project: Path, tmp_path: Path) -> None:
    output = tmp_path / "out" / "net_msft"
    (output / ".transplt").mkdir(parents=True)
    manifest = {"tool": "transplt", "format": 1, "name": "net", "files": {}, "reports": {}}
    (output / ".transplt" / "manifest.json").write_text(json.dumps(manifest))
    remember(project, tmp_path / "made")
    assert remembered(output) == tmp_path / "made" and project_of(output) == output
    other = tmp_path / "elsewhere" / "net"
    other.mkdir(parents=True)
    (place_of(project) / "setup.json").unlink()
    remember(output, tmp_path / "made", of="net")
    assert remembered(project) == tmp_path / "made", "one for the output is one for the input"
    (place_of(output) / "setup.json").unlink()
    remember(project, tmp_path / "made")
    remember(other, tmp_path / "made too")
    assert remembered(output) is None, "two inputs of that name"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"project": 1}'])
def test_a_record_that_is_damaged_is_none(project: Path, text: str) -> None:
    place = place_of(project)
    place.mkdir(parents=True)
    (place / environments.RECORD).write_text(text)
    assert remembered(project) is None


def test_nothing_above_a_project_is_looked_at(project: Path) -> None:
    environment(project.parent / ".venv")
    assert not [*environments._found(project / "scripts")]
    (project / ".git").rmdir()
    assert not [*environments._found(project / "scripts")]
    assert project_of(project / "scripts") == project / "scripts"


def test_a_folder_that_is_no_environment_is_none(project: Path) -> None:
    python = environment(project / "env")
    os.unlink(project / "env" / "pyvenv.cfg")
    assert not [*environments._found(project)] and python.is_file()


def test_a_host_that_can_run_nothing_is_told_of_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UsageError, match=r"on Linux and macOS only: docker build -t transplt -f docs/container/"):
        interpreter.refuse_windows()


@pytest.fixture
def own(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The interpreter of a real environment in the project, which nobody may write to, on a machine without network."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project / ".venv"], check=True)
    (site,) = (project / ".venv").glob("lib/python3*/site-packages")
    packages = sorted({each for each in sys.path if each.endswith("site-packages")})
    (site / "those_of_the_tests.pth").write_text("\n".join(packages))
    (site / "only_there.py").write_text("VALUE = 7\n")
    for folder, _, names in os.walk(project / ".venv"):
        for each in [folder, *(os.path.join(folder, name) for name in names)]:
            if not os.path.islink(each):
                os.chmod(each, os.stat(each).st_mode & 0o555)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    return project / ".venv" / "bin" / "python"


TRAIN = """\
import only_there, torch
model = torch.nn.Linear(only_there.VALUE, 1).{move}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.ones(1, 7).{move}).sum().backward()
    optimizer.step()
"""


@pytest.mark.torch
def test_a_script_runs_in_the_environment_of_its_project(project: Path, own: Path) -> None:
    (project / "train.py").write_text("import torch_npu\n" + TRAIN.format(move="npu()"))
    command = [sys.executable, "-m", "transplt", "run", project / "train.py"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    with as_any_owner():
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=False)
    version = choose(str(own), project).versions.torch
    assert done.stderr.splitlines()[0] == f"transplt run: with {own} (torch {version}): the project's .venv"
    assert "transplt run: runs: " in done.stderr and done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.torch
def test_a_migration_is_proved_in_the_environment_of_its_project(
    project: Path, own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (project / "train.py").write_text(TRAIN.format(move="cuda()"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    words = ["-i", project, "-o", tmp_path / "out", "--no-html", "--prove", "train.py"]
    command = [sys.executable, "-m", "transplt", *words]
    with as_any_owner():
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert f"prove: with {own} (torch " in done.stderr, done.stderr
    assert "transplt prove: equal: 2 steps compared" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("files", "script", "top"),
    [
        (["repo/README.md"], "repo/train.py", "repo"),
        (["repo/requirements.txt", "repo/tools/README.md"], "repo/tools/train.py", "repo"),
        (["README.md", "repo/README.md"], "repo/train.py", "."),
        (["repo/notes.md"], "repo/train.py", "."),
    ],
)
def test_where_a_project_begins_that_is_no_repository(
    files: list[str], script: str, top: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (*files, script):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert environments.project_of((tmp_path / script).parent) == (tmp_path / top).resolve()
