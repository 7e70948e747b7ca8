"""Where files import torch_npu and none asks for torch-npu, that is a finding of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from transplt.project.options import Options, make_plan
from transplt.project.tree import migrate_tree

MODEL = "import torch\nmodel = torch.nn.Linear(2, 2).cuda()\n"


def found(folder: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    source = folder / "in"
    for path, text in {"train.py": MODEL, **files}.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
    result = migrate_tree(make_plan(Options(source=source, out=folder / "out", jobs=1, page=False)))
    return [(each.path, each.level.value) for each in result.findings if each.code == "NPU844"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, [("train.py", "info")]),
        ({"requirements.txt": "numpy\n"}, [("requirements.txt", "manual")]),
        ({"setup.py": "from setuptools import setup\nsetup(install_requires=['numpy'])\n"}, [("setup.py", "manual")]),
        ({"docs/requirements.txt": "torch\n"}, [("train.py", "manual")]),
        ({"uv.lock": '[[package]]\nname = "torch-npu"\n'}, [("train.py", "info")]),
        ({"requirements.txt": "torch\n"}, []),
        ({"requirements.txt": "# here: torch-npu\n"}, [("train.py", "info")]),
        ({"setup.py": "", "pyproject.toml": "[tool.black]\n"}, [("train.py", "info")]),
        ({"requirements.txt": "torch_npu\n"}, []),
        ({"setup.py": "from setuptools import setup\nsetup(install_requires=['torch'])\n"}, [("setup.py", "manual")]),
        ({"setup.py": "from setuptools import setup\nsetup(install_requires=['torch-npu'])\n"}, []),
        ({"Dockerfile": "RUN pip install torch-npu\n"}, []),
        ({"Dockerfile": "RUN conda install -y pytorch cudatoolkit -c pytorch\n"}, []),  # pip installs both now
        ({"Dockerfile": "RUN conda install -y numpy cudatoolkit -c pytorch\n"}, [("train.py", "info")]),
        ({"train.py": "import torch\n"}, []),
    ],
)
def test_what_asks_for_torch_npu(tmp_path: Path, files: dict[str, str], expected: list[tuple[str, str]]) -> None:
    assert found(tmp_path, files) == expected
