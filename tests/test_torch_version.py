"""Which torch a project asks for, from files that are read and never run."""

from __future__ import annotations

from pathlib import Path

import pytest

from transplt.errors import UsageError
from transplt.run.requirements import asked_versions
from transplt.run.torch_version import check_version, choose_target


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
        ("torch>=2.0,!=2.5.0,<3", "2.13"),
        ("Torch==2.6.0 --hash=sha256:00", "2.6"),
        ("torch (==2.7.1)", "2.7"),
    ],
)
def test_pins(tmp_path: Path, specifier: str, version: str) -> None:
    found, why = target_of(tmp_path, "requirements.txt", f"numpy\n# torch==2.1\n{specifier}\ntorchvision==0.5\n")
    assert found == version
    assert why.startswith("requirements.txt asks for torch")


@pytest.mark.parametrize(
    "line",
    ["torch", "torch>=1.10", "torch!=2.1", "torchvision==2.4", "# torch==2.4", "torch==1.13.1", "torch @ https://x/y.whl",
     "-r torch==2.4", "pytorch-lightning==2.4.0", "torch===what"],
)  # fmt: skip
def test_no_pins(tmp_path: Path, line: str) -> None:
    assert target_of(tmp_path, "requirements.txt", f"{line}\n") == (
        "2.13",
        "the default: no requirement file pins torch",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements-gpu.txt", "torch==2.4.0\n"),
        ("requirements/base.txt", "torch==2.4.0\n"),
        ("setup.py", "from setuptools import setup\nraise SystemExit\nsetup(install_requires=['x', 'torch==2.4.0'])\n"),
        ("setup.py", "REQUIREMENTS = '''\ntorch==2.4.0\nnumpy\n'''\n"),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch==2.4.0\n"),
        ("pyproject.toml", '[project]\ndependencies = ["numpy", "torch>=2.1,<2.5"]\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "~2.4.0"\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = "2.4.1", optional = true}\n'),
        ("environment.yml", "dependencies:\n  - python=3.10\n  - pytorch=2.4.1=py3.10_cuda12.1\n"),
        ("environment.yaml", "dependencies:\n  - pytorch::pytorch=2.4\n"),
        ("environment.yml", "dependencies:\n  - pip:\n    - torch==2.4.0\n"),
    ],
)
def test_every_kind_of_file(tmp_path: Path, name: str, text: str) -> None:
    found, why = target_of(tmp_path, name, text)
    assert found == "2.4"
    assert why.startswith(f"{name} asks for torch")


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
    assert target_of(tmp_path, name, text)[0] == "2.13"


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
    with pytest.raises(UsageError, match=r"is not known; choose one of 2\.1 to 2\.13"):
        check_version(text)


@pytest.mark.parametrize(
    ("name", "text", "asked"),
    [
        ("requirements.txt", "transformers==4.46\naccelerate>=0.21  # x\n", ("accelerate>=0.21", "transformers==4.46")),
        ("requirements.txt", "transformers[torch] == 4.46.0 ; python_version > '3.8'\n", ("transformers==4.46.0",)),
        ("requirements.txt", "transformers\n-e .\n# accelerate==1.0\n", ()),
        ("requirements.txt", "my-transformers==1.0\ntransformers-x==1\n", ()),
        ("environment.yml", "dependencies:\n  - transformers=4.46\n", ("transformers==4.46.*",)),
        ("setup.py", "setup(install_requires=['accelerate>=0.30'])\n", ("accelerate>=0.30",)),
        ("pyproject.toml", '[project]\ndependencies = ["deepspeed<0.10"]\n', ("deepspeed<0.10",)),
        ("pyproject.toml", '[tool.poetry.dependencies]\ndeepspeed = "^0.9"\n', ("deepspeed>=0.9,<1",)),
    ],
)
def test_what_is_asked_of_other_packages(tmp_path: Path, name: str, text: str, asked: tuple[str, ...]) -> None:
    (tmp_path / name).write_text(text)
    found = asked_versions(tmp_path, ("accelerate", "deepspeed", "transformers"))
    assert tuple(f"{package}{version}" for package, version in found) == asked
