"""LibCST's own door: `python -m libcst.tool codemod -x transplt.codemod.Migrate FILE`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import libcst as cst
import pytest
from libcst.codemod import CodemodContext

from transplt.base.errors import UsageError
from transplt.codemod import Migrate

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "import torch\n\nx = torch.ones( 1 ).cuda()\n"
AFTER = "import torch\nimport torch_npu  # noqa: F401\n\nx = torch.ones( 1 ).npu()\n"


def codemod(folder: Path, *arguments: str) -> str:
    """What the tool says after it has worked on train.py in a folder."""
    (folder / "train.py").write_text(BEFORE)
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "libcst.tool", "codemod", *arguments, "train.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_the_command(tmp_path: Path) -> None:
    """LibCST's tool runs black over what a codemod has changed; here that is a program that changes nothing."""
    black = tmp_path / "bin" / "black"
    black.parent.mkdir()
    black.write_text("#!/bin/sh\nexec cat\n")
    black.chmod(0o755)
    assert "Transformed 1 files successfully" in codemod(tmp_path, "-x", "transplt.codemod.Migrate")
    assert (tmp_path / "train.py").read_text() == AFTER


def test_without_a_formatter(tmp_path: Path) -> None:
    codemod(tmp_path, "--no-format", "-x", "transplt.codemod.Migrate", "--style", "portable", "--torch-version", "2.8")
    fixed = (tmp_path / "train.py").read_text()
    assert 'DEVICE_TYPE = "npu" if _has_npu else "cuda"\n' in fixed
    assert fixed.endswith("x = torch.ones( 1 ).to(DEVICE_TYPE)\n")


def test_findings_are_warnings() -> None:
    context = CodemodContext(filename="train.py")
    module = cst.parse_module("import torch\n\nprint(torch.cuda.get_arch_list())\n")
    assert Migrate(context).transform_module(module).deep_equals(module)
    (warning,) = context.warnings
    assert warning.startswith("3:")


@pytest.mark.parametrize("source", ["x = 1\n", "import torch\n", "cuda = 1\n", ""])
def test_what_is_not_bound_to_cuda_stays(source: str) -> None:
    module = cst.parse_module(source)
    assert Migrate(CodemodContext()).transform_module(module).code == source


def test_a_wrong_version_is_refused() -> None:
    with pytest.raises(UsageError):
        Migrate(CodemodContext(), torch_version="1.0").transform_module(cst.parse_module("x = 1\n"))
