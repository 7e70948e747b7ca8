"""Files that their format does not read are copied as they are, and named where they speak of CUDA."""

from __future__ import annotations

import pytest

from tests.files.shell_pairs import TARGET
from transplt.base.settings import Settings
from transplt.engine.files.kind import kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.flow.facts import ProjectFacts


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("conf/a.json", b'{"device": "cuda", "backend": "nccl"'),
        ("conf/a.json", b'{"device": "cuda",, "x": 1}'),
        ("conf/a.json", b'{"device": "cuda"}\n{"device": "cuda"'),
        ("conf/a.yaml", b"dist:\n\tbackend: nccl\n\tdevice: cuda\n"),
        ("conf/a.yaml", b"a: [device: cuda\nb: }\n"),
        ("conf/a.yaml", b"a: &x cuda\nb: *y\n"),
        ("conf/a.toml", b'[train\ndevice = "cuda"\n'),
        ("conf/a.toml", b'device = "cuda"\ndevice = "cuda"\nx = \n'),
        ("a.ipynb", b'{"cells": [{"cell_type": "code", "source": ["x.cuda()"'),
        ("a.ipynb", b'["torch.cuda"]'),
        ("environment.yml", b"dependencies:\n\t- cudatoolkit=11\n"),
        ("run.sh", b"export CUDA_VISIBLE_DEVICES=0 'x\n"),
        ("run.sh", b"if true; then CUDA_VISIBLE_DEVICES=0 python a.py\nfi fi )\n" + b"\xff\xfe\xff"),
        ("docker-compose.yml", b"services:\n  a:\n\truntime: nvidia\n"),
        ("Dockerfile", b"FROM nvidia/cuda:12.1\nRUN nvcc \\\n"),
    ],
)
def test_it_is_copied_and_named(name: str, data: bytes) -> None:
    kind = kind_of(name, data)
    result, _ = migrate_other(data, name, kind, Settings(), TARGET, ProjectFacts(known=True))
    assert result.data == data and not result.changed
    assert any(each.open for each in result.findings), result.findings
    assert result.tokens.manual + result.tokens.unknown > 0
