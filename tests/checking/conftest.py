"""A small project, and the command in this process."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from transplt.faces.cli import main as cli

TRAIN = """import torch
import torch.nn as nn

device = torch.device("cuda")


def wrap(model):
    return nn.DataParallel, model.to(device)
"""
FIXED = TRAIN.replace("import torch\n", "import torch\nimport torch_npu  # noqa: F401\n", 1).replace('"cuda"', '"npu"')

#: Exit code, stdout and stderr of `transplt ARGUMENTS`.
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Call:
    def run(*arguments: object, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["transplt", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setattr(cli, "_catch_signals", lambda: None)
        code = cli.entry_point()
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one file, which is the current one; not in a repository."""
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "setup.py").write_text("")
    monkeypatch.chdir(folder)
    return folder


def git(folder: Path, *arguments: str) -> str:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(folder), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def commit_all(folder: Path) -> None:
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
