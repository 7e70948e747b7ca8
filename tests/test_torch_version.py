"""Which torch a project asks for, from files that are read and never run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.running import in_process as transplt
from transplt.base.errors import UsageError
from transplt.base.settings import TORCH_VERSIONS
from transplt.project.part_requirements import asked_in_parts
from transplt.project.pins import asked_versions
from transplt.project.torch_version import check_version, choose_target
from transplt.rules.tables import read_table

OLDEST, NEWEST = TORCH_VERSIONS[0], TORCH_VERSIONS[-1]


def target_of(tmp_path: Path, name: str, text: str) -> tuple[str, str]:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    target = choose_target(tmp_path, None)
    return target.version, target.why


@pytest.mark.parametrize(
    ("specifier", "version"),
    [
        ("torch==2.4.1", "2.4"),
        ("torch==2.4.1+cu121", "2.4"),
        ("torch == 2.4.1  # pinned", "2.4"),
        ("torch==2.4.1; sys_platform == 'linux'", "2.4"),
        ("torch==2.4.*", "2.4"),
        ("torch~=2.4.0", "2.4"),
        ("torch[opt]>=2.1,<2.6", "2.5"),
        ("torch>=2.1, <2.6", "2.5"),
        ("torch<=2.3", "2.3"),
        ("torch>=2.0,!=2.5.0,<3", NEWEST),
        ("torch<2.6,!=2.5.0", "2.5"),
        ("torch<2.6,!=2.5.1", "2.4"),  # the one of 2.5 that torch_npu goes with
        ("Torch==2.6.0 --hash=sha256:00", "2.6"),
        ("torch (==2.7.1)", "2.7"),
    ],
)
def test_pins(tmp_path: Path, specifier: str, version: str) -> None:
    found, why = target_of(tmp_path, "requirements.txt", f"numpy\n# torch==2.1\n{specifier}\ntorchvision==0.5\n")
    assert found == version
    assert why.startswith("requirements.txt requires torch")


@pytest.mark.parametrize(
    "line",
    ["torch", "torch!=2.1", "torchvision==2.4", "# torch==2.4", "torch @ https://x/y.whl", "-r torch==2.4",
     "pytorch-lightning==2.4.0", "torch===what", "torch @ git+https://x/torch-2.4.0"],
)  # fmt: skip
def test_no_pins(tmp_path: Path, line: str) -> None:
    assert target_of(tmp_path, "requirements.txt", f"{line}\n") == (
        NEWEST,
        "the default, since no requirement file pins torch",
    )


NONE = "for which no torch_npu is supported; chosen:"


@pytest.mark.parametrize(
    ("specifier", "version", "why"),
    [
        ("==1.8.1", NEWEST, f"{NONE} the newest torch with the fewest known blockers in this project"),
        ("==1.13.1+cu117", NEWEST, f"{NONE} the newest torch with the fewest known blockers in this project"),
        ("==2.0.1", NEWEST, f"{NONE} the newest torch with the fewest known blockers in this project"),
        ("<2.0", NEWEST, f"{NONE} the newest torch with the fewest known blockers in this project"),
        (">=1.8,<1.12", NEWEST, f"{NONE} the newest torch with the fewest known blockers in this project"),
        ("~=1.13.1", NEWEST, f"{NONE} the newest torch with the fewest known blockers in this project"),
        (">=1.8", NEWEST, "chosen: the newest such release that has a torch_npu"),
        (">2.0", NEWEST, "chosen: the newest such release that has a torch_npu"),
        (f"=={NEWEST}.0", NEWEST, ""),
        ("==2.99", NEWEST, f"{NONE} the newest torch with one"),
        ("==3.0.0", NEWEST, f"{NONE} the newest torch with one"),
        (">=2.99", NEWEST, f"{NONE} the newest torch with one"),
    ],
)
def test_a_version_that_the_tables_do_not_have_is_named(tmp_path: Path, specifier: str, version: str, why: str) -> None:
    found, said = target_of(tmp_path, "requirements.txt", f"torch{specifier}\n")
    assert found == version
    mark = ";" if why.startswith("chosen") else ","
    assert said == f"requirements.txt requires torch{specifier}" + (f"{mark} {why}" if why else "")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("torch==1.4", ["1.5", "1.6", "1.7", "1.8", "2.0", "2.6"]),
        ("torch==1.8.1", ["2.0", "2.6"]),
        ("torch==2.0.1", ["2.6"]),
        ("torch>=1.8", ["2.0", "2.6"]),
        ("torch==2.4.0", []),
        ("torch==2.99", []),
        ("torch", []),
    ],
)
def test_what_changed_on_the_way_is_said(tmp_path: Path, line: str, told: list[str]) -> None:
    (tmp_path / "requirements.txt").write_text(f"{line}\n")
    changes = choose_target(tmp_path, None).changes
    assert [change.split()[1].rstrip(":") for change in changes] == told


def test_the_summary_and_the_log_say_what_changed(tmp_path: Path) -> None:
    project = tmp_path / "old"
    project.mkdir()
    (project / "requirements.txt").write_text("torch==1.8.1\n")
    (project / "train.py").write_text("import torch\ntorch.zeros(1).cuda()\n")
    done = transplt("-i", str(project), "-o", str(tmp_path / "out"), cwd=tmp_path)
    said = f"requirements.txt requires torch==1.8.1, {NONE} the newest torch with the fewest known blockers in this "
    said += "project"
    assert f"  torch {NEWEST} with torch_npu {NEWEST}" in done.stderr and f": {said}\n" in done.stderr
    log = (tmp_path / "out" / "old_msft" / "msFmkTranspltlog.txt").read_text()
    assert f"torch {NEWEST} ({said})" in log
    assert "\nchanged in torch 2.0: torch._six" in log


LOCK = '[[package]]\nname = "numpy"\nversion = "1.26.0"\n\n[[package]]\nname = "{}"\nversion = "{}"\n'


#: Each says 2.4, as projects that are public write it.
STYLES = [
    ("requirements.txt", "--extra-index-url https://x/cu121\ntorch==2.4.0+cu121\n"),
    ("requirements.txt", "torch==2.4.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n"),
    ("requirements.txt", 'torch==2.4.0 ; python_version >= "3.9"\n'),
    ("requirements.txt", "https://x/whl/cu121/torch-2.4.0%2Bcu121-cp310-cp310-linux_x86_64.whl\n"),
    ("requirements.txt", "torch @ https://x/whl/torch-2.4.0-cp310-cp310-linux_x86_64.whl\n"),
    ("requirements-gpu.txt", "torch==2.4.0\n"),
    ("requirements/base.txt", "torch==2.4.0\n"),
    ("constraints.txt", "torch==2.4.0\n"),
    ("setup.py", "from setuptools import setup\nraise SystemExit\nsetup(install_requires=['x', 'torch==2.4.0'])\n"),
    ("setup.py", "REQUIREMENTS = '''\ntorch==2.4.0\nnumpy\n'''\n"),
    ("setup.cfg", "[options]\ninstall_requires = torch==2.4.0\n"),
    ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch==2.4.0\n"),
    ("pyproject.toml", '[project]\ndependencies = ["numpy", "torch>=2.1,<2.5"]\n'),
    ("pyproject.toml", '[project.optional-dependencies]\ntrain = ["torch==2.4.0"]\n'),
    ("pyproject.toml", '[dependency-groups]\ntrain = [{include-group = "x"}, "torch==2.4.0"]\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "~2.4.0"\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "2.4.*"\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = "2.4.1", optional = true}\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {url = "https://x/torch-2.4.0-cp310-cp310-linux.whl"}\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = [{version = "2.4.1", platform = "linux"}]\n'),
    (
        "pyproject.toml",
        '[tool.poetry.dependencies]\ntorch = [{version = "2.2.1", platform = "darwin"}, '
        '{version = "2.4.1", platform = "linux"}]\n',
    ),
    ("setup.py", "setup(install_requires=['torch<2.3; sys_platform == \"darwin\"', 'torch==2.4.0'])\n"),
    ("pyproject.toml", '[tool.poetry.group.train.dependencies]\ntorch = "2.4.1"\n'),
    ("pyproject.toml", '[tool.pdm.dev-dependencies]\ntrain = ["torch==2.4.1"]\n'),
    ("pyproject.toml", '[tool.uv]\nconstraint-dependencies = ["torch<2.5"]\n'),
    ("poetry.lock", LOCK.format("torch", "2.4.1")),
    ("pdm.lock", LOCK.format("torch", "2.4.1+cu121")),
    ("uv.lock", LOCK.format("torch", "2.4.1")),
    ("pylock.toml", LOCK.replace("[[package]]", "[[packages]]").format("torch", "2.4.1")),
    ("Pipfile", '[packages]\ntorch = "==2.4.0"\n'),
    ("Pipfile.lock", '{"default": {"torch": {"hashes": ["sha256:00"], "version": "==2.4.0"}}}\n'),
    ("pixi.toml", '[dependencies]\npytorch = "2.4.*"\n'),
    ("environment.yml", "dependencies:\n  - python=3.10\n  - pytorch=2.4.1=py3.10_cuda12.1\n"),
    ("environment.yaml", "dependencies:\n  - pytorch::pytorch=2.4\n"),
    ("environment.yml", "dependencies:\n  - pytorch>=2.1,<2.5\n"),
    ("environment.yml", "dependencies:\n  - pip:\n    - torch==2.4.0\n"),
    ("environment.yml", "dependencies:\n  - pip:\n    - https://x/torch-2.4.0%2Bcu121-cp310-linux.whl\n"),
    ("Dockerfile", "FROM python:3.10\nRUN apt-get install x && \\\n    pip3 install torch==2.4.0 torchvision\n"),
    ("Dockerfile", 'RUN python -m pip install --no-cache-dir "torch[opt]==2.4.0+cu121" -f https://x\n'),
    ("docker/Dockerfile.gpu", "RUN uv pip install torch~=2.4.0\n"),
    ("train.Dockerfile", "RUN conda install -y pytorch=2.4.1 torchvision -c pytorch\n"),
    ("Dockerfile", "FROM --platform=linux/amd64 pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime AS base\n"),
]


@pytest.mark.parametrize(("name", "text"), STYLES, ids=lambda text: text if "\n" not in text else "")
def test_every_kind_of_file(tmp_path: Path, name: str, text: str) -> None:
    found, why = target_of(tmp_path, name, text)
    assert found == "2.4"
    assert why.startswith(f"{name} requires torch")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Dockerfile", "# RUN pip install torch==2.4.0\nRUN echo torch==2.4.0\n"),
        ("Dockerfile", "FROM nvidia/cuda:12.1.0\nRUN pip install torch torchmetrics==0.19\n"),
        ("Dockerfile", "RUN pip install pytorch-lightning==2.4.0 torch-scatter==2.1.2\n"),
        ("Dockerfile", "FROM nvcr.io/nvidia/pytorch:22.11-py3\n"),
        ("uv.lock", LOCK.format("torchvision", "2.4.1")),
        ("poetry.lock", 'name = "x"\nversion = "1"\ndescription = "name = torch version = 2.4"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "*"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {git = "https://x"}\n'),
        ("Pipfile", '[packages]\ntorch = "*"\n'),
        ("setup.cfg", "[metadata]\nlong_description =\n    torch==2.4.0\n"),
        ("environment.yml", "variables:\n  - torch==2.4.0\n"),
        ("README.md", "pip install torch==2.4.0\n"),
    ],
)
def test_what_asks_for_no_version(tmp_path: Path, name: str, text: str) -> None:
    assert target_of(tmp_path, name, text) == (NEWEST, "the default, since no requirement file pins torch")


def test_a_pin_wins_over_a_lower_bound(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=1.8\n")
    (tmp_path / "Dockerfile").write_text("RUN pip install torch==2.6.0\n")
    assert target_of(tmp_path, "uv.lock", LOCK.format("torch", "2.4.1"))[1] == "Dockerfile requires torch==2.6.0"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[project\n"),
        ("pyproject.toml", 'project = "no table"\ntool = 1\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.1"\n'),
        ("setup.py", "print 'python 2'\n"),
        ("environment.yml", "dependencies:\n  - pytorch\n  - pytorch=\n"),
    ],
)
def test_what_cannot_be_read_pins_nothing(tmp_path: Path, name: str, text: str) -> None:
    assert target_of(tmp_path, name, text)[0] == NEWEST


def test_the_plain_requirements_file_comes_first(tmp_path: Path) -> None:
    (tmp_path / "requirements-dev.txt").write_text("torch==2.3.0\n")
    (tmp_path / "setup.py").write_text("x = 'torch==2.2.0'\n")
    assert target_of(tmp_path, "requirements.txt", "torch==2.4.0\n")[0] == "2.4"


def test_what_was_asked_for_wins_and_knows_its_releases(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.4.0\n")
    target = choose_target(tmp_path, "2.8")
    assert (target.version, target.why) == ("2.8", "--torch-version")
    assert target.torch_npu.startswith("2.8.")
    assert target.pin.startswith("2.8.")


@pytest.mark.parametrize("text", ["2", "1.13", "2.99", "two", "2.4.1.2", ""])
def test_unknown_versions(text: str) -> None:
    with pytest.raises(UsageError, match=rf"is not known; choose one of {OLDEST} to {NEWEST}"):
        check_version(text)


@pytest.mark.parametrize(
    ("name", "text", "asked"),
    [
        ("requirements.txt", "transformers==4.46\naccelerate>=0.21  # x\n", ("accelerate>=0.21", "transformers==4.46")),
        ("requirements.txt", "transformers[torch] == 4.46.0 ; python_version > '3.8'\n", ("transformers==4.46.0",)),
        ("requirements.txt", "accelerate @ git+https://github.com/huggingface/accelerate@main\n", ("accelerate@",)),
        ("requirements.txt", "transformers\n-e .\n# accelerate==1.0\n", ()),
        ("requirements.txt", "my-transformers==1.0\ntransformers-x==1\n", ()),
        ("environment.yml", "dependencies:\n  - transformers=4.46\n", ("transformers==4.46.*",)),
        ("setup.py", "setup(install_requires=['accelerate>=0.30'])\n", ("accelerate>=0.30",)),
        ("pyproject.toml", '[project]\ndependencies = ["deepspeed<0.10"]\n', ("deepspeed<0.10",)),
        ("pyproject.toml", '[tool.poetry.dependencies]\ndeepspeed = "^0.9"\n', ("deepspeed>=0.9,<0.10",)),
        ("pyproject.toml", '[project.optional-dependencies]\nx = ["deepspeed==0.14"]\n', ("deepspeed==0.14",)),
        ("Dockerfile", "RUN pip install Accelerate==1.0\n", ("accelerate==1.0",)),
        ("uv.lock", LOCK.format("transformers", "4.46.0"), ("transformers==4.46.0",)),
    ],
)
def test_what_is_asked_of_other_packages(tmp_path: Path, name: str, text: str, asked: tuple[str, ...]) -> None:
    (tmp_path / name).write_text(text)
    found = asked_versions(tmp_path, ("accelerate", "deepspeed", "transformers"))
    assert tuple(f"{package}{version}" for package, version in found) == asked


def test_a_list_for_npus_says_what_they_install(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("accelerate==0.3\ntransformers==3.4.0\n")
    (tmp_path / "requirements-npu.txt").write_text("-r requirements.txt\ntransformers>=4.32.0,<4.33\n")
    found = asked_versions(tmp_path, ("accelerate", "transformers"))
    assert found == (("accelerate", "==0.3"), ("transformers", ">=4.32.0,<4.33"))


def test_what_parts_ask_for_of_other_packages(tmp_path: Path) -> None:
    files = {"requirements.txt": "numpy==2.1\n", "b/requirements.txt": "numpy==1.21.2\nx==1\n", "b/setup.py": "numpy",
             "b/c/d/requirements.txt": "numpy<2\n", "b/c/d/e/requirements.txt": "numpy==1\n",
             "examples/requirements.txt": "numpy==1.2\n", "f/requirements.txt": "numpy\n"}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [*asked_in_parts(tmp_path, ["numpy"])] == [("b/numpy", "==1.21.2"), ("b/c/d/numpy", "<2")]


def test_each_line_of_what_changed_names_its_source() -> None:
    table = read_table("support/torch_changes.json")
    assert table["changes"].keys() == table["sources"].keys()
    assert all(table["sources"].values())


@pytest.mark.parametrize(
    ("requirements", "version"),
    [
        ("torch>=2.0\ntorchvision>=0.21\n", NEWEST),
        ("torch>=2.0\ntorchvision>=0.15\n", "2.2"),
        ("torch>=2.0\n", "2.2"),
        ("torchvision>=0.21\n", "2.2"),  # alone it says nothing of torch
        ("torch==2.4.1\ntorchvision>=0.21\n", "2.4"),
    ],
)
def test_a_floor_of_torchvision_beside_the_torch_of_its_file(tmp_path: Path, requirements: str, version: str) -> None:
    (tmp_path / "environment.yml").write_text("dependencies:\n  - pip:\n    - torch==2.2.2\n")
    assert target_of(tmp_path, "requirements.txt", requirements)[0] == version
