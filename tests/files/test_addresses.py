"""Names that merely hold a word of CUDA: models of a hub, repositories, what a build leaves."""

from __future__ import annotations

import pytest

from tests.files.shell_pairs import TARGET
from transplt.base.settings import Settings
from transplt.engine.files.kind import kind_of
from transplt.engine.files.other_file import migrate_other


def told(path: str, text: str) -> tuple[list[str], int]:
    """The codes of what is left for a person, and how many words are ignored."""
    data = text.encode()
    result, _ = migrate_other(data, path, kind_of(path, data), Settings(), TARGET)
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored
    return [each.code for each in result.findings if each.open], tokens.ignored


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("get.sh", "hf download nvidia/GR1-100 --repo-type dataset"),
        ("get.sh", 'export MODEL_NAME="nvidia/Cosmos-Predict2.5-2B"'),
        ("c.yaml", "model: nvidia/segformer-b0"),
        ("build.sh", "rm -rf *_cuda.egg-info build dist"),
        ("requirements.txt", "git+https://github.com/NVIDIA/dllogger.git"),
    ],
)
def test_names(path: str, line: str) -> None:
    assert told(path, f"{line}\n") == ([], 1)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("run.sh", "docker run nvidia/own-image x"),
        ("run.sh", "start nvidia/cuda:12.1"),
        ("run.sh", "start nvidia/pytorch:24.01"),
        ("c.yaml", "image: nvidia/samples"),
        ("run.sh", "ls /usr/lib/nvidia/lib64"),
        ("build.sh", "cp ops_cuda.so build"),
        ("requirements.txt", "git+https://github.com/NVIDIA/apex.git"),
        ("requirements.txt", "git+https://github.com/NVIDIA/nobody-knows.git"),
    ],
)
def test_what_is_work(path: str, line: str) -> None:
    codes, _ = told(path, f"{line}\n")
    assert codes
