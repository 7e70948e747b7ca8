"""CONTRIBUTING.md is followed as it stands: its blocks go into a copy, its commands pass; a file left out is named."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_PART = re.compile(r"^## (Add an? .+)$", re.MULTILINE)
_FILE = re.compile(r"^\*\*([\w./]+)\*\*([^\n]*)\n\n(`{3,})\w+\n(.*?)\n\3$", re.MULTILINE | re.DOTALL)
#: What is said where a file is left out; for most it begins with the name of the file.
SAID = {
    "rules/libraries.json": "is missing is a row in a table of rules/ (rules/libraries.json)",
    "tests/codemods/test_fastlib.py": "a file in tests/codemods/ is missing: a pair with fastlib.cuda_sync",
    "transplt/fixers/codemods/lib_warm.py": "a module in transplt/fixers/ is missing, with `fixer = Fixer(",
}


@dataclass(frozen=True)
class Added:
    """A file of a step: a new one, or a text that goes into one that is there, behind the first `into`."""

    path: str
    text: str
    into: str

    def write(self, folder: Path) -> None:
        file = folder / self.path
        if not self.into:
            assert not file.exists(), f"{self.path} already exists"
            file.write_text(self.text + "\n", encoding="utf-8")
            return
        text = file.read_text(encoding="utf-8")
        at = re.search(self.into, text)
        assert at is not None, (self.path, self.into)
        file.write_text(f"{text[: at.end()]}{self.text}\n{text[at.end() :]}", encoding="utf-8")


def _place(path: str, words: str) -> str:
    """Where in a file that is there a text goes: the end of what this expression finds."""
    if not (ROOT / path).exists():
        return ""
    name = re.search(r"`([\w-]+)`", words)
    assert name is not None, f"CONTRIBUTING.md does not say where in {path} the text goes"
    return rf'"{name[1]}": \[\n' if path.endswith(".json") else rf"\| `{name[1]}` \|.*\n"


@dataclass(frozen=True)
class Step:
    """A part of the page: its files and the command at its end."""

    name: str
    files: tuple[Added, ...]
    command: tuple[str, ...]

    def run(self, folder: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *self.command[1:], "-q", "-p", "no:cacheprovider", "-n0"]
        environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "400"}
        environment.pop("PYTEST_ADDOPTS", None)
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def _steps() -> dict[str, Step]:
    pieces = _PART.split((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## What is generated")[0])
    found = {}
    for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
        files = tuple(Added(path, body, _place(path, words)) for path, words, _, body in _FILE.findall(text))
        command = re.search(r"^    \.venv/bin/(python -m pytest .*)$", text, re.MULTILINE)
        assert command is not None, name
        found[name] = Step(name, files, tuple(shlex.split(command[1])))
    return found


STEPS = _steps()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the commands of the page need of the repository."""
    folder = tmp_path / "transplt"
    left = shutil.ignore_patterns("fuzz", "fixtures", "*.npz")  # with what is compiled
    for name in ("transplt", "rules", "tests", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=left)
    (folder / "docs" / "reference").mkdir(parents=True)
    for name in ("pyproject.toml", "docs/tunings.md", "docs/adaptors.md", "docs/reference/npu_port.md"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def test_the_page_has_four_steps_and_each_has_few_files() -> None:
    counts = {name.removeprefix("Add a").strip("n "): len(step.files) for name, step in STEPS.items()}
    assert counts == {"rename": 2, "fixer": 3, "tuning": 4, "error of diagnose": 1}


@pytest.mark.parametrize("name", STEPS)
def test_the_page_as_it_stands_passes(name: str, checkout: Path) -> None:
    for file in STEPS[name].files:
        file.write(checkout)
    done = STEPS[name].run(checkout)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "left_out"),
    [(name, file.path) for name, step in STEPS.items() for file in step.files if len(step.files) > 1],
)
def test_a_file_that_is_left_out_is_named(name: str, left_out: str, checkout: Path) -> None:
    step = STEPS[name]
    for file in step.files:
        if file.path != left_out:
            file.write(checkout)
    command = tuple(word for word in step.command if word != left_out)
    done = Step(name, (), command).run(checkout)
    said = SAID.get(left_out, left_out)
    assert done.returncode == 1, done.stdout[-3000:] + done.stderr[-2000:]
    assert any(said in line for line in done.stdout.splitlines() if line.startswith(("E ", "FAILED"))), done.stdout
