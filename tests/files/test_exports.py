"""Lists that conda and pip print of what is installed: they stay in their form, and one finding says what to do."""

from __future__ import annotations

import pytest

from tests.files.recipes import migrated, said
from transplt.engine.files.dependencies.exports import export_of

HEAD = "# This file may be used to create an environment using:\n# $ conda create --name <env> --file <this file>\n"
EXPORT = HEAD + "# platform: linux-64\n_libgcc_mutex=0.1=main\ncudatoolkit=10.2.89=hfd86e86_1\npytorch=1.8.1=py3_0\n"
EXPLICIT = (
    HEAD + "@EXPLICIT\nhttps://conda.anaconda.org/main/linux-64/blas-1.0-mkl.conda\n"
    "https://conda.anaconda.org/pytorch/linux-64/pytorch-1.8.1-py3.7_cuda10.2_0.tar.bz2\n"
)
PIP = "Package     Version\n----------- -----------\nnumpy       1.21.2\ntorch       1.8.1+cu102\n"
CONDA = "# packages in environment at /opt/x:\n#\n# Name    Version   Build  Channel\npytorch   1.8.1   py3_cuda10\n"


@pytest.mark.parametrize(
    ("text", "line"), [(EXPORT, 6), (EXPORT.replace("\n", "\r\n"), 6), (EXPLICIT, 5), (PIP, 4), (CONDA, 4)]
)
def test_a_list_keeps_its_form(text: str, line: int) -> None:
    result = migrated("requirements.txt", text)
    assert not result.changed
    assert (line, "NPU844") in said(result)


def test_the_finding_says_what_goes_and_what_comes() -> None:
    (note,) = [each for each in migrated("requirements.txt", EXPORT).findings if each.code == "NPU844"]
    assert note.help == "remove cudatoolkit, pytorch, and pip install torch==2.8.0 torch-npu==2.8.0.post4"


@pytest.mark.parametrize(
    "text",
    [
        EXPORT.replace("pytorch=1.8.1=py3_0\n", ""),  # no torch in it
        EXPORT + "torch-npu=2.8.0=pypi_0\n",
        EXPLICIT.replace("pytorch-1.8.1", "pytorch-lightning-1.8.1"),
    ],
)
def test_nothing_is_missing(text: str) -> None:
    result = migrated("requirements.txt", text)
    assert not result.changed
    assert "NPU844" not in [code for _, code in said(result)]


@pytest.mark.parametrize(
    "text", ["torch==1.8.1\n", "torch=1.8.1\n", "a=1=x\ntorch==1.8.1\n", "# Name Version\ntorch\n", "", "# torch=1=2\n"]
)
def test_requirements_are_no_list(text: str) -> None:
    assert export_of(text) == ""


def test_requirements_get_their_line() -> None:
    assert b"\ntorch-npu==" in migrated("requirements.txt", HEAD + "torch==2.8.0\n").data


def test_what_goes_has_no_finding_of_its_own() -> None:
    result = migrated("requirements.txt", EXPORT + "torchvision=0.5.0=py37_cu101\nnumpy=1.18.1=py37\n")
    assert [code for _, code in said(result)] == ["NPU844"]


def test_an_old_pin_of_requirements_is_still_told() -> None:
    found = [code for _, code in said(migrated("requirements.txt", "torch==2.8.0\ntransformers==4.20\n"))]
    assert "NPU291" in found
