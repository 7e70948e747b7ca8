"""`python -m transplt` in a folder of somebody else runs none of its modules, in no process of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from transplt.base.disk.search_path import leave_current_folder

ROOT = Path(__file__).resolve().parent.parent
#: What we import of others, and what these look for.
PACKAGES = (
    "click", "libcst", "rich", "pathspec", "openpyxl", "jsonschema", "jinja2", "packaging", "tomli", "lxml", "numpy",
    "PIL", "yaml", "typing_extensions", "attr", "attrs", "referencing", "rpds", "markupsafe", "et_xmlfile",
    "defusedxml", "colorama", "re2", "hyperscan", "sitecustomize", "usercustomize", "torch", "torch_npu", "rules",
)  # fmt: skip
FILES = {"a.py": 'import torch\nx = torch.zeros(1, device="cuda")\n', "b.py": "import torch\ntorch.cuda.foo()\n"}


@pytest.fixture(scope="module")
def imported_by_python(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The modules that `python -m` imports before ours, with the current folder in its path: nobody can help these."""
    folder = tmp_path_factory.mktemp("empty")
    (folder / "empty.py").write_text("import sys\nprint(*sys.modules)\n")
    done = subprocess.run([sys.executable, "-m", "empty"], cwd=folder, capture_output=True, text=True, check=True)
    return frozenset(name.partition(".")[0] for name in done.stdout.split())


@pytest.fixture
def hostile(tmp_path: Path, imported_by_python: frozenset[str]) -> Path:
    """A project with a module for every name that an import may look for; each writes its name down."""
    folder = tmp_path / "proj"
    folder.mkdir()
    for name in {*sys.stdlib_module_names, *PACKAGES} - imported_by_python:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name + ' '!r})\n")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def python(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, both outputs, and what ran of the folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}
    environment["PYTHONPATH"] = str(ROOT)
    environment.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    ran = folder.parent / "ran"
    return done.returncode, done.stdout, ran.read_text() if ran.exists() else ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["-m", "transplt", "--help"], 0),
        (["-m", "transplt", "check", "a.py", "b.py"], 1),
        (["-m", "transplt", "-i", ".", "-o", "../out", "--jobs", "2"], 1),
        (["-m", "transplt.proof", "--help"], 0),
        (["-m", "transplt", "run", "--python", "/no/python", "a.py"], 2),
    ],
    ids=("help", "check", "migrate", "emulator", "run"),
)
def test_no_module_of_the_folder_runs(hostile: Path, arguments: list[str], code: int) -> None:
    ended, output, ran = python(hostile, *arguments)
    assert ran == ""
    assert ended == code, output


_SPAWN = """
import sys
if __name__ == "__main__":
    del sys.path[0]
    import transplt.project.pool
    transplt.project.pool._can_fork = lambda: False
    import runpy
    sys.argv = ["transplt", "-i", ".", "-o", "../out", "--jobs", "2"]
    runpy.run_module("transplt", run_name="__main__", alter_sys=True)
"""


#: These tests start Python with `-c` in the folder.
BY_COMMAND = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="with -c Python imports linecache from the folder before any of our lines runs"
)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no safe path")
@BY_COMMAND
def test_no_module_of_the_folder_runs_in_a_process_that_is_not_forked(hostile: Path) -> None:
    ended, output, ran = python(hostile, "-c", _SPAWN)
    assert ran == ""
    assert ended == 1, output
    assert "failed" not in output.replace("0 failed", "")


@BY_COMMAND
def test_an_interpreter_is_asked_for_torch_without_the_folder(hostile: Path) -> None:
    ask = "from transplt.proof.launch.interpreter import _ASK; print(_ASK)"
    asked = python(ROOT, "-c", ask)[1]
    _, output, ran = python(hostile, "-c", asked)
    assert ran == "", output


def path_after(monkeypatch: pytest.MonkeyPatch, folder: Path, path: list[str]) -> list[str]:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", path)
    leave_current_folder()
    return sys.path


def test_the_path_without_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = str(tmp_path)
    (tmp_path / "link").symlink_to(".")
    given = [here, "/x", "", ".", here + "/link", here + "/sub"]
    assert path_after(monkeypatch, tmp_path, given) == ["/x", here + "/sub"]


@pytest.mark.parametrize("folder", [ROOT, Path(os.__file__).parent], ids=["transplt", "python"])
def test_a_folder_that_is_needed_comes_last(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert path_after(monkeypatch, folder, ["", "/x"]) == ["/x", os.path.realpath(folder)]


def test_a_folder_that_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(sys, "path", ["", "/x"])
    leave_current_folder()
    assert sys.path == ["/x"]
