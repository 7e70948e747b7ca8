"""Where files import torch_npu and none asks for torch-npu, that is a finding of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from transplt.base.finding import Finding
from transplt.engine.actions.actions import actions_of
from transplt.project.options import Options, make_plan
from transplt.project.tree import migrate_tree

MODEL = "import torch\nmodel = torch.nn.Linear(2, 2).cuda()\n"


SETUP = "from setuptools import setup\nsetup(install_requires=['torch'])\n"


TRAINS = f"{MODEL}model(torch.ones(2).cuda()).sum().backward()\n"


def found(folder: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    return [(each.path, each.level.value) for each in findings(folder, files) if each.code == "NPU844"]


def findings(folder: Path, files: dict[str, str], *, analysis: bool = False) -> tuple[Finding, ...]:
    source = folder / "in"
    for path, text in {"train.py": MODEL, **files}.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
    options = Options(source=source, out=folder / "out", jobs=1, page=False, analysis=analysis)
    return migrate_tree(make_plan(options)).findings


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
        (
            {"setup.py": SETUP.replace("torch", "numpy"), "pyproject.toml": "[build-system]\nrequires = ['wheel']\n"},
            [("setup.py", "manual")],
        ),
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


@pytest.mark.parametrize(
    ("files", "blocks"),
    [
        ({}, "import"),
        ({"docs/requirements.txt": "torch\n"}, "import"),
        ({"Dockerfile": "RUN pip install torch\n"}, "import"),
        # another list installs it
        ({"requirements.txt": "torch\n"}, "tidy"),
        ({"environment.yml": "dependencies:\n  - pytorch=1.12\n  - pip:\n    - -e .\n"}, "tidy"),
    ],
)
def test_what_a_package_without_torch_npu_stops(tmp_path: Path, files: dict[str, str], blocks: str) -> None:
    actions = actions_of(findings(tmp_path, {"setup.py": SETUP, **files}))
    assert [each.blocks for each in actions if each.codes == ("NPU844",) and each.first.startswith("setup")] == [blocks]


@pytest.mark.parametrize(
    ("starts", "blocks"),
    [
        ("import lib\n", "first step"),
        ("import lib\nlib.f().cuda()\n", "import"),
        ("import sys\nif len(sys.argv) > 1:\n    import lib\n", "later"),
    ],
)
def test_a_package_that_imports_no_torch_npu(tmp_path: Path, starts: str, blocks: str) -> None:
    """torch loads torch_npu by itself, where it is installed."""
    files = {"train.py": starts, "lib.py": "import torch\ndef f():\n    return torch.ones(2).cuda()\n"}
    actions = actions_of(findings(tmp_path, {"setup.py": SETUP, **files}))
    assert [each.blocks for each in actions if each.codes == ("NPU844",)] == [blocks]


@pytest.mark.parametrize(("files", "aside"), [({"requirements.txt": "./lib/.\n"}, False), ({"setup.py": SETUP}, True)])
def test_a_part_of_the_project_that_alone_requires_torch(tmp_path: Path, files: dict[str, str], aside: bool) -> None:
    """No training script reaches a setup.py in a folder; pip does."""
    actions = actions_of(findings(tmp_path, {"train.py": TRAINS, "lib/setup.py": SETUP, **files}))
    of_torch = [each for action in actions for each in action.findings if each.code == "NPU844"]
    assert {each.aside for each in of_torch if each.path == "lib/setup.py"} == {aside}


@pytest.mark.parametrize(
    ("files", "levels"),
    [
        ({"train.py": "import torch\nnet = torch.nn.Linear(2, 2)\nnet(torch.ones(2)).sum().backward()\n"}, {"info"}),
        ({"train.py": MODEL}, {"manual"}),
        # a library chooses the card, a kernel needs one, or a configuration or a command names it
        ({"train.py": "import accelerate\nd = accelerate.Accelerator().device\n"}, {"manual"}),
        ({"train.py": "import flash_attn\n"}, {"manual"}),
        ({"train.py": "import torch\n", "requirements.txt": "flash-attn\n"}, {"manual"}),
        ({"train.py": "import torch\nd = torch.device(cfg.device)\n", "a.yaml": "device: cuda\n"}, {"manual"}),
        ({"train.py": "import torch\n", "README.md": "```\npython train.py --device cuda\n```\n"}, {"manual"}),
    ],
)
def test_a_project_that_asks_for_no_card(tmp_path: Path, files: dict[str, str], levels: set[str]) -> None:
    """It trains on the CPU, as before: its pin of torch may stay, and nothing imports torch_npu."""
    files = {**files, "setup.py": SETUP.replace("torch'", "torch==1.3.1'")}
    of_torch = [each for each in findings(tmp_path, files, analysis=True) if each.code in ("NPU844", "NPU291")]
    assert {each.level.value for each in of_torch} == levels


INSTALLS = "```\nconda install pytorch torchvision cudatoolkit=9.0 -c pytorch\n```\n"


@pytest.mark.parametrize(
    ("files", "blocks"),
    [
        ({"requirements.txt": "numpy\n", "Dockerfile": "RUN pip install torch\n"}, "import"),
        ({}, "import"),
        ({"requirements.txt": "torch\n"}, "tidy"),
        ({"requirements.txt": "numpy\n"}, "import"),
        ({"setup.py": SETUP}, "tidy"),
    ],
)
def test_a_readme_that_alone_installs_torch(tmp_path: Path, files: dict[str, str], blocks: str) -> None:
    actions = actions_of(findings(tmp_path, {"README.md": INSTALLS, **files}))
    assert [each.blocks for each in actions if each.codes == ("NPU865",)] == [blocks]
