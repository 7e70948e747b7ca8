"""The portable style: what a list of packages is on NPUs lies beside it, in a file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from transplt.faces.cli.main import main

_CONDA = "name: net\nchannels:\n  - pytorch\n  - nvidia\ndependencies:\n  - pytorch\n  - pytorch-cuda=11.8\n  - numpy\n"
_TRAIN = 'import torch\ntorch.zeros(1, device="cuda")\n'


def migrated(tmp_path: Path, style: str = "portable", **files: str) -> Path:
    source = tmp_path / "net"
    source.mkdir(exist_ok=True)
    for name, text in {"train.py": _TRAIN, **files}.items():
        (source / name).write_text(text)
    return _migrated(source, tmp_path / style, style)


def _migrated(source: Path, out: Path, style: str) -> Path:
    command = ["-i", str(source), "-o", str(out), "--style", style, "--torch-version", "2.12"]
    assert CliRunner().invoke(main, command).exit_code in (0, 1)
    return out / f"{source.name}_msft"


@pytest.mark.parametrize(
    ("name", "text", "twin", "new"),
    [
        # What everybody installs stays what it is, and torch-npu comes on top of it.
        ("requirements.txt", "numpy\ntorch>=2.1\n", "requirements-npu.txt", "-r requirements.txt\ntorch-npu==2.12.0\n"),
        # Packages of CUDA, or another torch, are no part of it.
        (
            "requirements.txt",
            "torch==2.1.0\nnvidia-nccl-cu12\nnumpy\n",
            "requirements-npu.txt",
            "torch==2.12.0\ntorch-npu==2.12.0\nnumpy\n",
        ),
        (
            "environment.yml",
            _CONDA,
            "environment-npu.yml",
            "name: net\nchannels:\n  - pytorch\ndependencies:\n  - numpy\n  - pip\n  - pip:\n    - torch==2.12.0\n"
            "    - torch-npu==2.12.0\n",
        ),
    ],
)
def test_a_list_of_packages_gets_one_for_npus(tmp_path: Path, name: str, text: str, twin: str, new: str) -> None:
    out = migrated(tmp_path, **{name: text})
    assert (out / name).read_text() == text
    assert (out / twin).read_text() == new
    assert ",manual," not in (out / "tokens.csv").read_text()
    assert f"what {name} asks for, on NPUs" in (out / "msFmkTranspltlog.txt").read_text()
    again = _migrated(out, tmp_path / "again", "portable")
    assert [path.name for path in again.iterdir() if "npu" in path.name] == [twin]


@pytest.mark.parametrize(
    "files",
    [
        {"requirements.txt": "numpy\n"},
        {"requirements.txt": "torch>=2.1\ntorch-npu==2.12.0\n"},
        {"requirements.txt": "torch>=2.1\n", "requirements_npu.txt": "torch-npu\n"},
        {"requirements.txt": "torch==2.1.0 --hash=sha256:00\n"},
        {"setup.cfg": "[options]\ninstall_requires =\n    torch\n"},
        {"poetry.lock": '[[package]]\nname = "torch"\nversion = "2.1.0"\n'},
    ],
)
def test_lists_that_get_none(tmp_path: Path, files: dict[str, str]) -> None:
    made = {path.name for path in migrated(tmp_path, **files).iterdir()}
    assert not {name for name in made if "-npu" in name}


def test_for_npus_alone_the_list_itself_is_theirs(tmp_path: Path) -> None:
    out = migrated(tmp_path, "npu", **{"requirements.txt": "numpy\ntorch>=2.1\n"})
    assert not (out / "requirements-npu.txt").exists() and "torch-npu" in (out / "requirements.txt").read_text()
