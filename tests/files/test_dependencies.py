"""Dependency files ask for the torch that torch_npu is for, with torch-npu, and for no parts of CUDA."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transplt.base.finding import FileResult
from transplt.base.settings import Settings, TorchTarget
from transplt.base.text.requirement import normalised
from transplt.base.text.toml import parse_toml
from transplt.base.text.toml_places import toml_values
from transplt.engine.engine import index_source, join_facts
from transplt.engine.files.dependency_files import requirements_of
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.other_file import migrate_other

#: No build that PyPI does not have: torch_npu 2.12 asks for torch 2.12.0. 2.8 asks for 2.8.0+cpu on x86_64.
NEW = TorchTarget("2.12", "", "2.12.0", "9.1.0", "2.12.0")
OLD = TorchTarget("2.8", "", "2.8.0.post4", "9.0.0", "2.8.0")


def migrate(
    text: str, path: str = "requirements.txt", target: TorchTarget = NEW, **settings: object
) -> FileResult:
    data = text.encode()
    chosen = Settings(**settings)  # type: ignore[arg-type]
    result, _ = migrate_other(data, path, kind_of(path, data), chosen, target)
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored
    made = sorted((each for each in result.findings if each.applied), key=lambda each: (each.span.start, each.span.end))
    new, at = b"", 0
    for each in made:
        assert each.edit is not None
        new += data[at : each.span.start] + each.edit.after.encode()
        at = each.span.end
    assert new + data[at:] == result.data, "the recorded edits give the output"
    again, _ = migrate_other(result.data, path, kind_of(path, data), chosen, target)
    assert again.data == result.data, "a second run changes nothing"
    return result


def check(before: str, after: str, path: str = "requirements.txt", **more: object) -> FileResult:
    result = migrate(before, path, **more)  # type: ignore[arg-type]
    assert result.data.decode() == after
    assert not [each for each in result.findings if each.code == "NPU992"]
    return result


def open_codes(result: FileResult) -> list[str]:
    return sorted({each.code for each in result.findings if each.open})


LINES = [
    ("torch\nnumpy\n", "torch\ntorch-npu==2.12.0\nnumpy\n"),
    ("torch", "torch\ntorch-npu==2.12.0"),
    ("torch\r\nnumpy\r\n", "torch\r\ntorch-npu==2.12.0\r\nnumpy\r\n"),
    ("torch==1.13.1+cu117\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
    ("torch==2.12.0+cu130\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
    ("torch==2.12.1\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
    ("torch == 1.8.0  # old\n", "torch == 2.12.0  # old\ntorch-npu == 2.12.0\n"),
    ("torch>=1.7,<1.13\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
    ("torch~=1.13.0\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
    ("torch>=2.1\n", "torch>=2.1\ntorch-npu==2.12.0\n"),
    ("torch>=2.1,!=2.3.0,<3\n", "torch>=2.1,!=2.3.0,<3\ntorch-npu==2.12.0\n"),
    ("torch==2.12.*\n", "torch==2.12.*\ntorch-npu==2.12.0\n"),
    (
        'torch==2.1.0; python_version < "3.11"  # why\n',
        'torch==2.12.0; python_version < "3.11"  # why\ntorch-npu==2.12.0; python_version < "3.11"\n',
    ),
    (
        'torch ; sys_platform == "darwin"\ntorch ; sys_platform == "linux"\n',
        'torch ; sys_platform == "darwin"\ntorch ; sys_platform == "linux"\n'
        'torch-npu==2.12.0 ; sys_platform == "linux"\n',
    ),
    ("torch \\\n    >=2.1\nnumpy\n", "torch \\\n    >=2.1\ntorch-npu==2.12.0\nnumpy\n"),
    ("torch\ntorchvision==0.14.1\ntorchaudio==0.13.1\n",
     "torch\ntorch-npu==2.12.0\ntorchvision==0.27.0\ntorchaudio==2.11.0\n"),
    ("torch\ntorchvision>=0.9\n", "torch\ntorch-npu==2.12.0\ntorchvision>=0.9\n"),
    ("numpy\nnvidia-cublas-cu12==12.1.3.1\nnvidia-cudnn-cu12\ntorch\n", "numpy\ntorch\ntorch-npu==2.12.0\n"),
    ("numpy\nnvidia-cublas-cu12", "numpy"),
    (
        "--extra-index-url https://download.pytorch.org/whl/cu118\ntorch==2.0.1+cu118\n",
        "--extra-index-url https://download.pytorch.org/whl/cpu\ntorch==2.12.0\ntorch-npu==2.12.0\n",
    ),
    (
        "--extra-index-url https://download.pytorch.org/whl/rocm5.4.2\ntorch==2.0.1\n",
        "--extra-index-url https://download.pytorch.org/whl/cpu\ntorch==2.12.0\ntorch-npu==2.12.0\n",
    ),
    (
        "-f https://download.pytorch.org/whl/torch_stable.html\ntorch==1.9.0+cu111\n",
        "--extra-index-url https://download.pytorch.org/whl/cpu\ntorch==2.12.0\ntorch-npu==2.12.0\n",
    ),
    (
        "--index-url=https://download.pytorch.org/whl/cu118\ntorch\n",
        "--extra-index-url=https://download.pytorch.org/whl/cpu\ntorch\ntorch-npu==2.12.0\n",
    ),
    (
        "-i https://download.pytorch.org/whl/cu118\n--extra-index-url https://pypi.org/simple\ntorch\n",
        "-i https://download.pytorch.org/whl/cpu\n--extra-index-url https://pypi.org/simple\ntorch\ntorch-npu==2.12.0\n",
    ),
    (
        "https://download.pytorch.org/whl/cu111/torch-1.8.1%2Bcu111-cp37-cp37m-linux_x86_64.whl\nnumpy\n",
        "torch==2.12.0\ntorch-npu==2.12.0\nnumpy\n",
    ),
    ("torch @ https://x.org/torch-1.8.1-cp37-cp37m-linux_x86_64.whl\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
    ("pytorch==1.4.0\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
    ("# Ä\ntorch==1.4 # ß\n", "# Ä\ntorch==2.12.0 # ß\ntorch-npu==2.12.0\n"),
    ("-r base.txt\n-e .\ntorch\n", "-r base.txt\n-e .\ntorch\ntorch-npu==2.12.0\n"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), LINES)
def test_requirements(before: str, after: str) -> None:
    check(before, after)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "numpy\n",
        "torch\ntorch-npu==2.12.0\n",
        "torch==2.12.0\ntorch_npu==2.12.0.post3\n",
        "# torch==1.4.0+cu92\n",
        "torchvision>=0.9\n",
        "torchmetrics\ntorch-geometric\ntorchtext==0.6\n",
        "flash-attn==2.5\ncupy-cuda12x\n",
        "torch==2.0.1+rocm5.4.2\n",
        "--extra-index-url https://download.pytorch.org/whl/rocm5.4.2\ntorch==2.0.1+rocm5.4.2\n",
        "--extra-index-url https://download.pytorch.org/whl/rocm5.4.2\nnumpy\n",
        "torch==2.15.0.dev20260812\n",
        "git+https://github.com/pytorch/vision.git\n",
        "git+https://github.com/NVlabs/tiny-cuda-nn/#subdirectory=bindings/torch\n",
        "x @ git+https://github.com/o/x/#subdirectory=bindings/torch\n",
        "--extra-index-url https://download.pytorch.org/whl/nightly/cu130\nnumpy\n",
        "-f https://download.pytorch.org/whl/cu118\nxformers\n",
        'torch==1.4; sys_platform == "win32"\n'.replace("==1.4", ""),
        "torch==2.12.0 --hash=sha256:00\n",
        "#\n# This file is autogenerated by pip-compile with Python 3.10\n#\ntorch==1.13\nnvidia-cublas-cu11==11.10\n",
        "torch===${TORCH}\ntorch-npu\n",
    ],
)
def test_requirements_that_stay(text: str) -> None:
    assert not migrate(text).changed


@pytest.mark.parametrize(
    "path",
    [
        "docs/requirements.txt", "requirements-cpu.txt", "requirements/rocm.txt", "requirements_npu.txt",
        "lint-requirements.txt", "requirements_flax.txt", "jax/requirements.txt",
        "skills/rocm-kernels/requirements.txt", "README.md", "notes.txt",
    ],
)  # fmt: skip
def test_files_for_others_stay(path: str) -> None:
    assert not migrate("torch==1.13.1\n", path).changed


#: (before, after, path): what has a condition that no host with NPUs meets stays, with the words of CUDA in it.
ELSEWHERE = [
    (
        "torch<2.3 ; platform_system == 'Darwin'\ntorch==1.13.1+cu117 ; sys_platform == 'win32'\n"
        "torch==1.13.1 ; platform_system == 'Linux'\n",
        "torch<2.3 ; platform_system == 'Darwin'\ntorch==1.13.1+cu117 ; sys_platform == 'win32'\n"
        "torch==2.12.0 ; platform_system == 'Linux'\ntorch-npu==2.12.0 ; platform_system == 'Linux'\n",
        "requirements.txt",
    ),
    (
        "torch==1.13.1 ; sys_platform == 'win32' or sys_platform == 'linux'\n",
        "torch==2.12.0 ; sys_platform == 'win32' or sys_platform == 'linux'\n"
        "torch-npu==2.12.0 ; sys_platform == 'win32' or sys_platform == 'linux'\n",
        "requirements.txt",
    ),
    (
        "nvidia-cublas-cu12 ; sys_platform == 'win32'\nnvidia-cudnn-cu12 ; platform_machine == 'x86_64'\ntorch\n",
        "nvidia-cublas-cu12 ; sys_platform == 'win32'\ntorch\ntorch-npu==2.12.0\n",
        "requirements.txt",
    ),
    (
        "[project]\ndependencies = [\n  \"torch<2.3 ; platform_system == 'Darwin'\",\n"
        "  \"torch==1.13.1 ; platform_system == 'Linux'\",\n]\n",
        "[project]\ndependencies = [\n  \"torch<2.3 ; platform_system == 'Darwin'\",\n"
        "  \"torch==2.12.0 ; platform_system == 'Linux'\",\n  \"torch-npu==2.12.0 ; platform_system == 'Linux'\",\n]\n",
        "pyproject.toml",
    ),
    (
        "[project]\ndependencies = [\"torch>=2.1\"]\n\n[tool.uv.sources]\ntorch = [\n"
        "  { index = \"win\", marker = \"sys_platform == 'win32'\" },\n"
        "  { index = \"linux\", marker = \"sys_platform == 'linux'\" },\n]\n\n"
        '[[tool.uv.index]]\nname = "win"\nurl = "https://download.pytorch.org/whl/cu124"\n\n'
        '[[tool.uv.index]]\nname = "linux"\nurl = "https://download.pytorch.org/whl/cu126"\n',
        "[project]\ndependencies = [\"torch>=2.1\", \"torch-npu==2.12.0\"]\n\n[tool.uv.sources]\ntorch = [\n"
        "  { index = \"win\", marker = \"sys_platform == 'win32'\" },\n"
        "  { index = \"linux\", marker = \"sys_platform == 'linux'\" },\n]\n\n"
        '[[tool.uv.index]]\nname = "win"\nurl = "https://download.pytorch.org/whl/cu124"\n\n'
        '[[tool.uv.index]]\nname = "linux"\nurl = "https://download.pytorch.org/whl/cpu"\n',
        "pyproject.toml",
    ),
    (
        "dependencies:\n  - python=3.10\n  - pip:\n    - torch==2.2.1 ; sys_platform == 'darwin'\n"
        "    - torch==2.2.1 ; sys_platform == 'linux'\n    - \"nvidia-nccl-cu12 ; sys_platform == 'win32'\"\n",
        "dependencies:\n  - python=3.10\n  - pip:\n    - torch==2.2.1 ; sys_platform == 'darwin'\n"
        "    - torch==2.12.0 ; sys_platform == 'linux'\n    - torch-npu==2.12.0 ; sys_platform == 'linux'\n"
        "    - \"nvidia-nccl-cu12 ; sys_platform == 'win32'\"\n",
        "environment.yml",
    ),
    (
        "pip install \"torch==1.13.1; sys_platform == 'darwin'\" \"nvidia-nccl-cu12; sys_platform == 'win32'\" torch\n",
        "pip install \"torch==1.13.1; sys_platform == 'darwin'\" \"nvidia-nccl-cu12; sys_platform == 'win32'\" torch"
        " torch-npu==2.12.0\n",
        "install.sh",
    ),
]


@pytest.mark.parametrize(("before", "after", "path"), ELSEWHERE)
def test_what_no_host_with_npus_installs_stays(before: str, after: str, path: str) -> None:
    result = check(before, after, path)
    gone = before.count("nvidia-cudnn") * 2
    assert (result.tokens.converted, result.tokens.ignored) == (gone, result.tokens.found - gone)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("torch<2.3 ; platform_system == 'Darwin'\n", "requirements.txt"),
        ("torch==1.13.1+cu117 ; sys_platform == 'win32'\n", "requirements.txt"),
        ("torch==2.0.1 ; platform_machine == 'arm64'\n", "requirements.txt"),
        ("torch==1.10.0 ; python_version < '3.7'\n", "requirements.txt"),
        ("torch==1.13.1 ; sys_platform == 'win32' and extra == 'gpu'\n", "requirements.txt"),
        ("https://x.org/torch-1.8.1%2Bcu111-cp38-cp38-win_amd64.whl ; sys_platform == 'win32'\n", "requirements.txt"),
        ("nvidia-cublas-cu12 ; os_name == 'nt'\ncupy-cuda12x ; os_name == 'nt'\n", "requirements.txt"),
        ("triton ; platform_system == 'Windows'\n", "requirements.txt"),
        ("xformers ; sys_platform == 'win32'\n", "requirements.txt"),
        ('[project]\ndependencies = ["torch<2.3 ; sys_platform == \\"darwin\\""]\n', "pyproject.toml"),
        ('[tool.poetry.dependencies]\ntorch = { version = "1.13", platform = "darwin" }\n', "pyproject.toml"),
        (
            "[tool.poetry.dependencies]\n"
            "nvidia-nccl-cu12 = { version = \"2\", markers = \"sys_platform == 'win32'\" }\n",
            "pyproject.toml",
        ),
        ("[options]\ninstall_requires =\n    torch==1.13 ; sys_platform == 'win32'\n", "setup.cfg"),
        ("[packages]\ntorch = { version = \"==1.13.1\", sys_platform = \"== 'win32'\" }\n", "Pipfile"),
        ("pip install \"torch==2.2.2; sys_platform == 'darwin'\"\n", "install.sh"),
        ("pip install \"torch==2.2.2+cu118; sys_platform == 'win32'\"\n", "install.sh"),
    ],
)
def test_files_with_nothing_for_a_host_with_npus_stay(text: str, path: str) -> None:
    result = migrate(text, path)
    assert not result.changed and open_codes(result) == []
    assert result.tokens.ignored == result.tokens.found


def test_constraints_get_the_release_and_no_more() -> None:
    check("torch==1.13.1\n", "torch==2.12.0\n", "constraints.txt")


def test_x86_64_needs_an_index() -> None:
    """setuptools may read a file without options, and refuses them: there it is a finding."""
    result = check("torch\n", "torch\ntorch-npu==2.8.0.post4\n", target=OLD)
    assert open_codes(result) == ["NPU843"]
    index = "--extra-index-url https://download.pytorch.org/whl/cpu"
    result = check("-r a.txt\ntorch\n", f"-r a.txt\ntorch\ntorch-npu==2.8.0.post4\n{index}\n", target=OLD)
    assert open_codes(result) == []
    assert open_codes(check(f"{index}\ntorch\n", f"{index}\ntorch\ntorch-npu==2.8.0.post4\n", target=OLD)) == []


TOML = [
    (
        '[project]\ndependencies = ["torch>=2.1", "numpy"]\n',
        '[project]\ndependencies = ["torch>=2.1", "torch-npu==2.12.0", "numpy"]\n',
    ),
    ("[project]\ndependencies = ['torch']\n", "[project]\ndependencies = ['torch', 'torch-npu==2.12.0']\n"),
    (
        '[project]\ndependencies = [\n  "numpy",\n  "torch==1.13.1"  # old\n]\n',
        '[project]\ndependencies = [\n  "numpy",\n  "torch==2.12.0",  # old\n  "torch-npu==2.12.0"\n]\n',
    ),
    (
        '[project]\ndependencies = [\n\t"torch", # a\n\t"numpy",\n]\n',
        '[project]\ndependencies = [\n\t"torch", # a\n\t"torch-npu==2.12.0",\n\t"numpy",\n]\n',
    ),
    (
        '[project]\ndependencies = ["torch"]\n[project.optional-dependencies]\ntrain = ["torch", "nvidia-nccl-cu12"]\n',
        '[project]\ndependencies = ["torch", "torch-npu==2.12.0"]\n'
        '[project.optional-dependencies]\ntrain = ["torch"]\n',
    ),
    (
        '[project.optional-dependencies]\na = ["torch<2"]\ncpu = ["torch"]\n',
        '[project.optional-dependencies]\na = ["torch==2.12.0", "torch-npu==2.12.0"]\ncpu = ["torch"]\n',
    ),
    (
        '[tool.poetry.dependencies]\npython = "^3.10"\ntorch = "^1.13"\n',
        '[tool.poetry.dependencies]\npython = "^3.10"\ntorch = "==2.12.0"\ntorch-npu = "==2.12.0"\n',
    ),
    (
        '[tool.poetry.dependencies]\ntorch = { version = "1.13.1", source = "cu" }\n\n'
        '[[tool.poetry.source]]\nname = "cu"\nurl = "https://download.pytorch.org/whl/cu117"\n',
        '[tool.poetry.dependencies]\ntorch = { version = "2.12.0", source = "cu" }\ntorch-npu = "==2.12.0"\n\n'
        '[[tool.poetry.source]]\nname = "cu"\nurl = "https://download.pytorch.org/whl/cpu"\n',
    ),
    (
        '[dependency-groups]\ndev = ["torch"]\n\n[[tool.uv.index]]\nname = "pytorch-cu118"\n'
        'url = "https://download.pytorch.org/whl/cu118"\nexplicit = true\n',
        '[dependency-groups]\ndev = ["torch", "torch-npu==2.12.0"]\n\n[[tool.uv.index]]\nname = "pytorch-cu118"\n'
        'url = "https://download.pytorch.org/whl/cpu"\nexplicit = true\n',
    ),
    (
        '[build-system]\nrequires = ["setuptools", "torch==1.13"]\n',
        '[build-system]\nrequires = ["setuptools", "torch==2.12.0"]\n',
    ),
]


@pytest.mark.parametrize(("before", "after"), TOML)
def test_pyproject(before: str, after: str) -> None:
    check(before, after, "pyproject.toml")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('[project]\nname = "x"\ndependencies = ["numpy"]\n', []),
        ('[project]\ndependencies = ["torch", "torch_npu"]\n', []),
        ('[tool.ruff]\nfirst-party = ["torch"]\n', []),
        ("[project\n", []),
        ("[project\ntorch\n", []),
        ('[tool.poetry.dependencies]\ntorch = { version = ">=2.1", optional = true }\n', ["NPU844"]),
        ('[tool.poetry.dependencies]\ntorch = [{ version = ">=2.1", platform = "linux" }]\n', ["NPU844"]),
    ],
)
def test_pyproject_that_stays(text: str, codes: list[str]) -> None:
    result = migrate(text, "pyproject.toml")
    assert not result.changed and open_codes(result) == codes


def test_names_of_extras_and_sources_stay_with_their_reason() -> None:
    text = (
        '[project.optional-dependencies]\ncuda = ["numpy"]\n\n[tool.uv.sources]\nnumpy = { index = "my-cuda" }\n'
        "# torch\n"
    )
    result = migrate(text, "pyproject.toml")
    assert (result.tokens.found, result.tokens.ignored, result.changed) == (2, 2, False)


OTHERS = [
    (
        "setup.cfg",
        "[options]\ninstall_requires =\n    torch==1.13\n    nvidia-cublas-cu11\n    numpy\n",
        "[options]\ninstall_requires =\n    torch==2.12.0\n    torch-npu==2.12.0\n    numpy\n",
    ),
    (
        "Pipfile",
        '[packages]\ntorch = "==1.13.1"\nnumpy = "*"\n',
        '[packages]\ntorch = "==2.12.0"\ntorch-npu = "==2.12.0"\nnumpy = "*"\n',
    ),
    (
        "environment.yml",
        "channels:\n  - pytorch\n  - nvidia\ndependencies:\n  - python=3.10\n  - pytorch=2.0.1\n  - torchvision\n"
        "  - pytorch-cuda=11.8\n  - numpy\n  - pip:\n    - tqdm\n",
        "channels:\n  - pytorch\ndependencies:\n  - python=3.10\n  - numpy\n  - pip:\n    - torch==2.12.0\n"
        "    - torch-npu==2.12.0\n    - torchvision==0.27.0\n    - tqdm\n",
    ),
    (
        "environment.yml",
        "dependencies:\n- python=3.10\n- pytorch::pytorch >=1.0\n",
        "dependencies:\n- python=3.10\n- pip\n- pip:\n  - torch==2.12.0\n  - torch-npu==2.12.0\n",
    ),
    (
        "environment.yml",
        "dependencies:\n  - cuda-nvcc=12.1\n  - cuda-nvrtc-dev\n  - nvidia::cuda-cccl\n  - libcufft-dev\n"
        "  - libcusolver-static\n  - cuda-nvcc_linux-64\n  - cuda-profiler-api\n  - libcudnn-dev\n  - numpy\n"
        "  - cuda-python\n  - pip:\n    - torch==1.9.0\n",
        "dependencies:\n  - numpy\n  - cuda-python\n  - pip:\n    - torch==2.12.0\n    - torch-npu==2.12.0\n",
    ),
    (
        "environment.yml",
        "dependencies:\n  - cudatoolkit=11.3\n  - pip:\n    - torch==1.9.0 # x\n",
        "dependencies:\n  - pip:\n    - torch==2.12.0 # x\n    - torch-npu==2.12.0\n",
    ),
]


@pytest.mark.parametrize(("path", "before", "after"), OTHERS)
def test_other_formats(path: str, before: str, after: str) -> None:
    check(before, after, path)


@pytest.mark.parametrize(
    ("path", "text", "codes"),
    [
        ("environment.yml", "dependencies:\n  - pytorch\n  - torchmetrics\n", ["NPU844"]),
        ("environment.yml", "dependencies:\n  - numpy\n  - pip:\n    - tqdm\n", []),
        ("environment.yml", "name: torch\nchannels:\n  - nvidia\n", ["NPU804"]),
        ("environment.yml", "dependencies:\n\t- pytorch: [\n", ["NPU844"]),
        ("setup.cfg", "[flake8]\nignore =\n    torch\n", []),
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "1.13"\n\n[[package]]\nname = "cupy"\n', ["NPU290"]),
    ],
)
def test_other_formats_that_stay(path: str, text: str, codes: list[str]) -> None:
    result = migrate(text, path)
    assert not result.changed and open_codes(result) == codes


def test_a_lock_file_is_one_finding() -> None:
    text = "".join(f'[[package]]\nname = "nvidia-{name}-cu12"\n\n' for name in ("cublas", "cudnn", "nccl"))
    result = migrate(text, "uv.lock")
    assert [each.code for each in result.findings] == ["NPU290"] and result.tokens.manual == result.tokens.found > 3


def test_a_python_without_wheels() -> None:
    old = migrate("dependencies:\n  - python=3.7\n  - numpy # torch\n", "environment.yml")
    assert [each.code for each in old.findings] == ["NPU845"]
    bounded = migrate("dependencies:\n  - python>=3.8, < 3.10  # x\n  - numpy # torch\n", "environment.yml")
    assert [each.message.partition(" for ")[2] for each in bounded.findings] == ["Python >=3.8, < 3.10"]
    for path, text in (
        ("environment.yml", "dependencies:\n  - python>=3.8, < 3.12\n  - numpy # torch\n"),
        ("environment.yml", "dependencies:\n  - python=3.11\n  - numpy # torch\n"),
        ("environment.yml", "dependencies:\n  - python\n  - numpy # torch\n"),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.8"\nname = "torchx"\n'),
        ("Pipfile", '[requires]\npython_version = "3.10"\n# torch\n'),
    ):
        assert open_codes(migrate(text, path)) == []
    assert open_codes(migrate('[project]\nrequires-python = "<3.9"\nname = "torchx"\n', "pyproject.toml")) == ["NPU845"]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("clip-anytorch\ntorchx\n", ["NPU845"]),
        ("webrtcvad==2.0.10\npyworld\ntorchx\n", ["NPU845"]),
        ("clip-anytorch\nsetuptools<82\ntorchx\n", []),
        ("setuptools==69.1.0\ntorchx\n", ["NPU845"]),  # torch 2.13 and newer ask for 77.0.3
        ("lightning==2.1.2\ntorchx\n", ["NPU845"]),  # NumPy 2 it knows
        ("pytorch-lightning<=1.9\nnumpy<2\ntorchmetrics~=0.6\ntorchx\n", ["NPU845"]),
        ("lightning\npytorch_lightning>=1.9\ntorchmetrics==1.0.0\nclip\ntorchx\n", []),
    ],
)
def test_packages_that_import_what_setuptools_gave_up(text: str, codes: list[str]) -> None:
    new = TorchTarget("2.14", "", "2.14.0", "9.1.0", "2.14.0")
    found = migrate(f"torch\n{text}", target=new)
    assert open_codes(found) == codes
    assert open_codes(migrate(f"torch\n{text}")) == []  # torch 2.12 keeps it back itself


@pytest.mark.parametrize(
    ("source", "said"), [("import torchmetrics", True), ("from lightning.x import y", True), ("import torch", False)]
)
def test_setuptools_is_kept_back_for_what_some_file_imports(source: str, said: bool) -> None:
    project = join_facts([index_source(source.encode(), "train.py", Settings())], Settings())
    new, path = TorchTarget("2.14", "", "2.14.0", "9.1.0", "2.14.0"), "requirements.txt"
    data = b"torch\npytorch-lightning==1.9.5\ntorchmetrics==0.11.0\n"
    found = migrate_other(data, path, kind_of(path, data), Settings(), new, project)[0].findings
    assert ("NPU845" in {each.code for each in found if each.open}) == said


def test_pip_replaces_the_setuptools_of_conda() -> None:
    new = TorchTarget("2.14", "", "2.14.0", "9.1.0", "2.14.0")
    text = "dependencies:\n  - python=3.11\n  - {}setuptools=69.5.1\n  - pip:\n    - torch\n{}"
    assert open_codes(migrate(text.format("", ""), "environment.yml", target=new)) == []
    pinned = text.format("numpy # ", "    - setuptools==69.5.1\n")
    assert open_codes(migrate(pinned, "environment.yml", target=new)) == ["NPU845"]


EXTRAS = [
    # A table of extras is written where there is none; what follows the last row stays behind its row.
    (
        '[project]\ndependencies = ["torch>=2"]\n',
        '[project]\ndependencies = ["torch>=2"]\n\n[project.optional-dependencies]\nnpu = ["torch-npu>=2.1"]\n',
    ),
    (
        '[project]\ndependencies = ["torch"]\n[project.optional-dependencies]\ndev = ["x"] # y\n\n[tool.z]\n',
        '[project]\ndependencies = ["torch"]\n[project.optional-dependencies]\ndev = ["x"] # y\n'
        'npu = ["torch-npu>=2.1"]\n\n[tool.z]\n',
    ),
    (
        '[project]\ndependencies = [\n    "torch",\n]  # all\n\n# of the tool\n[tool.z]\na = 1\n',
        '[project]\ndependencies = [\n    "torch",\n]  # all\n\n[project.optional-dependencies]\n'
        'npu = ["torch-npu>=2.1"]\n\n# of the tool\n[tool.z]\na = 1\n',
    ),
    # In the layout of the row before: lines, indentation, the last comma, an empty line between rows.
    (
        '[project]\ndependencies = ["torch"]\n[project.optional-dependencies]\ndev = [\n  "x", # y\n]\n\n'
        't = [\n  "z"\n]\n',
        '[project]\ndependencies = ["torch"]\n[project.optional-dependencies]\ndev = [\n  "x", # y\n]\n\n'
        't = [\n  "z"\n]\n\nnpu = [\n  "torch-npu>=2.1"\n]\n',
    ),
    # Poetry: an extra where the package has some, else a group, for the Pythons that torch_npu has.
    (
        '[tool.poetry.dependencies]\npython = ">=3.11"\ntorch = "^2.0"\n\n[tool.poetry.extras]\na = ["foo"]\n',
        '[tool.poetry.dependencies]\npython = ">=3.11"\ntorch = "^2.0"\n'
        'torch-npu = { version = ">=2.1", optional = true }\n\n[tool.poetry.extras]\na = ["foo"]\n'
        'npu = ["torch-npu"]\n',
    ),
    (
        '[tool.poetry.dependencies]\npython = "^3.8"\ntorch = "^2.0"\n',
        '[tool.poetry.dependencies]\npython = "^3.8"\ntorch = "^2.0"\n\n[tool.poetry.group.npu]\noptional = true\n\n'
        '[tool.poetry.group.npu.dependencies]\ntorch-npu = { version = ">=2.1", python = ">=3.10" }\n',
    ),
]


@pytest.mark.parametrize(("before", "after"), EXTRAS)
def test_portable_gets_an_extra(before: str, after: str) -> None:
    check(before, after, "pyproject.toml", style="portable")
    assert parse_toml(after)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        # pip would refuse the extra beside what the project pins.
        (
            '[project]\ndependencies = ["torch==1.13.1+cu117"]\n',
            "no extra can: torch==1.13.1+cu117 rules out torch 2.12.0",
        ),
        ('[tool.poetry.dependencies]\ntorch = "~2.3"\n', "no extra can: torch~2.3 rules out torch 2.12.0"),
        ('[project]\ndependencies = ["torch"]\ndynamic = ["optional-dependencies"]\n', ""),
        ('[project]\ndependencies = ["torch"]\noptional-dependencies.dev = ["x"]\n', ""),
        ('[project]\ndependencies = ["torch"]\n[project.optional-dependencies]\nascend = ["x"]\n', ""),
        ('[tool.poetry.dependencies]\ntorch = "*"\n[tool.poetry.extras]\nnpu = ["x"]\n', ""),
    ],
)
def test_portable_without_an_extra(text: str, why: str) -> None:
    result = migrate(text, "pyproject.toml", style="portable")
    (said,) = (each for each in result.findings if each.code == "NPU844")
    assert not result.changed and why in said.message


@pytest.mark.parametrize(
    "text",
    [
        '[project]\ndependencies = ["numpy"]\n[project.optional-dependencies]\ndev = ["x"]\n',
        '[project]\ndependencies = ["torch"]\n[project.optional-dependencies]\nnpu = ["torch-npu==2.12.0"]\n',
        '[build-system]\nrequires = ["torch"]\n',
        '[tool.poetry.dependencies]\ntorch = "*"\ntorch_npu = "*"\n',
    ],
)
def test_portable_needs_no_extra(text: str) -> None:
    result = migrate(text, "pyproject.toml", style="portable")
    assert not result.changed and not open_codes(result)


def test_portable_leaves_the_list_itself() -> None:
    result = migrate("torch==1.13.1\nnvidia-nccl-cu12\n", style="portable")
    (said,) = (each for each in result.findings if each.code == "NPU844")
    assert not result.changed and "requirements-npu.txt" in said.help


def test_what_a_comment_switches_off_stays() -> None:
    assert not migrate("torch==1.13.1 # transplt: ignore[NPU84]\n").changed


@pytest.mark.parametrize("data", [b"torch==1.4\xff\n", b"\xff\xfet\x00o\x00r\x00c\x00h\x00", b"torch\n" + b"\0" * 9])
def test_other_bytes_stay(data: bytes) -> None:
    result, _ = migrate_other(data, "requirements.txt", kind_of("requirements.txt", data), Settings(), NEW)
    assert result.data == data


PIECES = st.lists(
    st.sampled_from(
        [
            "torch", "torch==1.13.1+cu117", "torch>=2.1 ; python_version > '3.8'", "torchvision==0.14.1", "numpy",
            "nvidia-cublas-cu12==12.1", "# torch", "", "-f https://download.pytorch.org/whl/torch_stable.html",
            "--extra-index-url https://download.pytorch.org/whl/cu118", "-e .", "pytorch", "é", "torch \\", "torch @ x",
        ]
    )
)  # fmt: skip


@given(PIECES, st.sampled_from(["\n", "\r\n"]), st.sampled_from([NEW, OLD]))
def test_any_requirements_keep_what_is_not_of_torch(lines: list[str], end: str, target: TorchTarget) -> None:
    text = end.join(lines)
    new = migrate(text, target=target).data.decode()
    before, after = (
        [each.name for each in requirements_of(each_text, "requirements.txt", FileKind.REQUIREMENTS)]
        for each_text in (text, new)
    )
    others = [name for name in before if not name.startswith(("torch", "pytorch", "nvidia"))]
    assert [name for name in after if not name.startswith(("torch", "pytorch", "nvidia"))] == others
    torch = sum(name in ("torch", "pytorch") for name in before)
    assert sum(normalised(name) == "torch-npu" for name in after) <= torch


@given(
    st.lists(st.sampled_from(["torch", "torch<2", "numpy", "nvidia-nccl-cu12", "torchaudio==0.12"]), max_size=5),
    st.sampled_from(["{}", "\n  {}\n", "\n  {},\n", " {} "]),
    st.sampled_from([", ", ",\n  ", " , # x\n  "]),
)
def test_any_list_of_toml_parses(names: list[str], around: str, between: str) -> None:
    inner = around.format(between.join(f'"{name}"' for name in names)) if names else ""
    result = migrate(f"[project]\ndependencies = [{inner}]\n", "pyproject.toml")
    said = parse_toml(result.data.decode())["project"]["dependencies"]
    assert said.count("numpy") == names.count("numpy") and "nvidia-nccl-cu12" not in said
    assert ("torch-npu==2.12.0" in said) == any(name.startswith("torch") and "audio" not in name for name in names)


def test_places_of_toml() -> None:
    text = 'a.b = "x" # "y"\n[t]\n"k" = [1, { z = \'w\' }, """q"""]\n[[u]]\nd = 2020-01-01 10:00:00\n'
    found = [(".".join(each.path), text[each.start : each.end]) for each in toml_values(text)]
    assert found == [
        ("a.b", '"x"'),
        ("t.k", '[1, { z = \'w\' }, """q"""]'),
        ("t.k.[]", "1"),
        ("t.k.[]", "{ z = 'w' }"),
        ("t.k.[].z", "'w'"),
        ("t.k.[]", '"""q"""'),
        ("u.d", "2020-01-01 10:00:00"),
    ]
    assert toml_values("[a\n") == toml_values("a = [") == []


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('a = """x \\  \n  y"""\n', ['"""x \\  \n  y"""']),  # blanks behind the backslash that ends a line
        ('a = {\n  b = "\\e",  # c\n  c = 07:32,\n}\n', ['"\\e"', "07:32"]),  # TOML 1.1
    ],
)
def test_places_of_toml_where_other_readers_stop(text: str, values: list[str]) -> None:
    found = [text[each.start : each.end] for each in toml_values(text)]
    assert [each for each in found if each[0] != "{"] == values


@pytest.mark.slow
@pytest.mark.skipif("TRANSPLT_EXAMPLES" not in os.environ, reason="TRANSPLT_EXAMPLES names a folder of projects")
def test_real_files() -> None:
    """Every dependency file of a folder: edits that are recorded, a second run without any, files that parse."""
    root = Path(os.environ["TRANSPLT_EXAMPLES"])
    for path in sorted(root.rglob("*")):
        if path.is_file() and kind_of(str(path.relative_to(root)), b"") is FileKind.REQUIREMENTS:
            text = path.read_bytes().decode("utf-8", "replace")
            result = migrate(text, str(path.relative_to(root)))
            if not any(each.applied for each in result.findings):
                assert result.data == text.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch==2.8.0\nx==1\n", "torch==2.8.0\ntorch-npu==2.8.0.post4\nx==1\n"),
        ("torch==2.2.2\ntorchvision==0.17.2\n", "torch==2.2.0\ntorch-npu==2.2.0.post2\ntorchvision==0.17.0\n"),
        ("torch~=2.7.0\n", "torch~=2.7.0\ntorch-npu==2.7.1.post8\n"),
        ("torch>=2.0,<2.7\n", "torch>=2.0,<2.7\ntorch-npu==2.6.0.post5\n"),
    ],
)
def test_the_requirements_of_a_part_of_a_project_keep_their_torch_where_it_has_a_torch_npu(
    before: str, after: str
) -> None:
    result = check(before, after, "examples/gan/requirements.txt")
    assert [each.message for each in result.findings if not each.applied and each.code == "NPU840"] == [
        "examples/gan requires its own torch, which is not changed; the migration aims at torch 2.12"
    ]


#: The default, in a project whose folders pin torch of their own.
PARTS = TorchTarget("2.12", "", "2.12.0", "9.1.0", "2.12.0", of_parts=True)


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("b/requirements.txt", "torch==1.8.1\ntorchvision==0.9.1\n",
         "torch==2.1.0\ntorch-npu==2.1.0.post17\ntorchvision==0.16.0\n"),
        ("b/requirements.txt", "torch<2\n", "torch==2.1.0\ntorch-npu==2.1.0.post17\n"),
        ("b/requirements.txt", "torch>=1.4,<2.1\n", "torch==2.1.0\ntorch-npu==2.1.0.post17\n"),
        ("b/requirements.txt", "torch==2.4.1\n", "torch==2.4.0\ntorch-npu==2.4.0.post4\n"),
        ("b/requirements.txt", "torch==2.99\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
        ("b/requirements.txt", "torch>=1.8\n", "torch>=1.8\ntorch-npu==2.12.0\n"),
        ("b/requirements.txt", "torch<1.9 ; os_name == 'nt'\ntorch\n",
         "torch<1.9 ; os_name == 'nt'\ntorch\ntorch-npu==2.12.0\n"),
        ("requirements.txt", "torch==1.8.1\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
        ("b/install.sh", "pip install torch==1.8.1\n", "pip install torch==2.1.0 torch-npu==2.1.0.post17"
         " --extra-index-url https://download.pytorch.org/whl/cpu\n"),
        ("b/install.sh", "pip install torch==2.4.0\n", "pip install torch==2.4.0 torch-npu==2.4.0.post4"
         " --extra-index-url https://download.pytorch.org/whl/cpu\n"),
        ("b/install.sh", "pip install torch\n", "pip install torch torch-npu==2.12.0\n"),
        ("install.sh", "pip install torch==1.8.1\n", "pip install torch==2.12.0 torch-npu==2.12.0\n"),
    ],
)  # fmt: skip
def test_each_part_has_its_own_torch_and_one_without_a_torch_npu_the_oldest(
    path: str, before: str, after: str
) -> None:
    said = [each.message for each in check(before, after, path, target=PARTS).findings if each.code == "NPU840"]
    raised = "b requires a torch without a torch_npu release; it gets 2.1.0, the oldest with one; the migration aims at"
    named = "torch-npu==2.1.0" in after and path.endswith(".txt")
    assert any(each.startswith(raised) for each in said) is named


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        # those of the project were weighed
        ("requirements.txt", "torch==2.8.0\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
        ("requirements/train.txt", "torch==2.8.0\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
        ("docker/requirements.txt", "torch==2.8.0\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
        # no torch_npu
        ("examples/gan/requirements.txt", "torch==1.13.1\n", "torch==2.12.0\ntorch-npu==2.12.0\n"),
        # nothing that would be excluded
        ("examples/gan/requirements.txt", "torch>=2.1\n", "torch>=2.1\ntorch-npu==2.12.0\n"),
        ("examples/gan/requirements.txt", "torch<3\n", "torch<3\ntorch-npu==2.12.0\n"),
        ("examples/gan/requirements.txt", "torch\n", "torch\ntorch-npu==2.12.0\n"),
    ],
)
def test_other_requirements_get_the_torch_of_the_migration(path: str, before: str, after: str) -> None:
    assert not [each for each in check(before, after, path).findings if not each.applied and each.code == "NPU840"]


def test_pins_of_conda_too() -> None:
    before = "name: x\ndependencies:\n  - numpy=1.15.4\n  - pytorch=1.0.0\n  - tqdm=4.28.1\n"
    (note,) = [each for each in migrate(before, "environment.yml").findings if each.code == "NPU845"]
    assert note.message.startswith("numpy==1.15.4.*: no wheel for Python")


@pytest.mark.parametrize(
    ("before", "target", "named"),
    [
        ("numpy==1.18.5\nscipy==1.5.2\ntorch==1.6.0\n", NEW, "numpy==1.18.5, scipy==1.5.2"),
        ("numpy<1.20\ntorch\n", NEW, "numpy<1.20"),
        ("numpy~=1.18.5\ntorch\n", NEW, "numpy~=1.18.5"),
        ("numpy==1.18.*\ntorch\n", OLD, "numpy==1.18.*"),
        ("torch==1.6.0\nscikit_learn==0.20.1\n", NEW, "scikit_learn==0.20.1"),
        ("torch==1.4.0\nopencv-python==4.2.0.34\n", NEW, "opencv-python==4.2.0.34"),
        ("tensorflow==2.3.1\ntorch\nnumba==0.48\n", NEW, "tensorflow==2.3.1, numba==0.48"),
        ("torch\nonnxruntime==1.8.0\nav==8.0.3\n", NEW, "onnxruntime==1.8.0, av==8.0.3"),
        ("torch\ntransformers==4.15.0\ndataclasses==0.8\n", NEW, "transformers==4.15.0, dataclasses==0.8"),
    ],
)
def test_pins_without_a_wheel_for_the_pythons_of_torch_npu_are_reported(
    before: str, target: TorchTarget, named: str
) -> None:
    found = [each for each in migrate(before, target=target).findings if each.code == "NPU845"]
    first = "3.10" if target is NEW else "3.9"
    said = f": no wheel for Python {first} or newer, which torch {target.release} needs"
    assert [each.message.partition("; ")[0] for each in found] == [f"{pin}{said}" for pin in named.split(", ")]
    assert all(before.splitlines()[each.span.line - 1].startswith(each.api) for each in found)


@pytest.mark.parametrize(
    "before",
    [
        "numpy==1.21.2\nscipy==1.7.2\ntorch\n",
        "numpy>=1.15.1\ntorch\n",
        "numpy<2\ntorch\n",
        "numpy~=1.18\ntorch\n",
        "numpy==1.18.5 ; python_version < '3.8'\ntorch\n",
        "numpy==1.18.5\nflask\n",  # nothing is raised here
        "numpydoc==0.1\ntorch\n",
        "opencv-python==4.6.0.66\nopencv-python-headless~=4.5\ntorch\nnumpy<2\n",
        "pandas==1.5.3\ntorch\nscipy==1.10.1\n",  # which has a bound of NumPy
        "pandas==1.5.3\ntorch\nnumba==0.57.0\nh5py==3.10.0\n",
        "pandas==2.1.2\nscikit-learn==1.3.1\nmatplotlib~=3.7\ntorch\n",
        "pyyaml==5.3.1\npyyaml>=5.4\ntorch\n",
        "tensorflow-datasets==1.0\nnumba==0.57.0\ntorch\n",
        "torch\n",
        "torch\ntensorboard==2.11.1\ntensorboardX==2.6\n",
        "torch\ntransformers==4.16.0\ndataclasses==0.6\nlibrosa==0.9.0\n",
        "torch\nlibrosa==0.8.0\nnumpy==1.22.0\n",
        "torch\ntensorboard>=2.5\ntensorboardX\n",
        "torch\ntensorboard==2.5.0\nprotobuf==3.20.1\nnumpy==1.23.5\n",
    ],
)
def test_pins_with_a_wheel_are_not(before: str) -> None:
    assert "NPU845" not in {each.code for each in migrate(before).findings}


@pytest.mark.parametrize(
    ("pin", "codes"),
    [
        ("transformers==3.4.0", {"NPU291", "NPU845"}),  # 4.16.0 has a wheel, 4.32.0 knows NPUs
        ("transformers==4.16.0", {"NPU291"}),
        ("transformers==4.32.0", set()),
        ("numpy==1.19.4", {"NPU845"}),
        ("torchvision==0.8.2", set()),  # which is edited
    ],
)
def test_a_pin_without_a_wheel_may_be_too_old_for_npus_as_well(pin: str, codes: set[str]) -> None:
    """Who raised it to the first with a wheel would have to raise it again."""
    found = migrate(f"torch==1.9.0\n{pin}\n").findings
    assert {each.code for each in found if each.span.line == 2 and not each.applied} == codes


@pytest.mark.parametrize(
    ("pin", "fails", "bound"),
    [
        ("tensorboard==2.5.0", "protobuf 4 and NumPy 1.24", "protobuf<=3.20.3 and numpy<1.24"),
        ("tensorboard==2.5.0\nprotobuf==3.20.1", "NumPy 1.24", "numpy<1.24"),
        ("tensorboard==2.5.0\nnumpy==1.23.5", "protobuf 4", "protobuf<=3.20.3"),
        ("tensorboard<2.9", "protobuf 4 and NumPy 2", "protobuf<=3.20.3 and numpy<2"),
        ("tensorboard==2.9.0", "NumPy 2", "numpy<2"),
        ("tensorboardX==2.1", "protobuf 4", ""),
        ("lightning==2.0.9\nsetuptools<82", "NumPy 2", "numpy<2"),
        ("albumentations==0.5.2", "NumPy 2", "numpy<2"),
        ("pandas==1.5.3", "NumPy 2", "numpy<2"),
        ("pandas==1.5.3\nnumpy>=1.20\nscipy>=1.7", "NumPy 2", "numpy<2"),
        ("pandas==1.5.3\nscipy==1.13.0", "NumPy 2", "numpy<2"),
        ("librosa==0.8.0\nnumpy<2", "NumPy 1.24", "numpy<1.24"),
        ("tensorboardX<=2.4", "protobuf 4", ""),  # add_image reads what Pillow 10 removed
        ("datasets==2.12.0", "pyarrow 21", "pyarrow<21"),
    ],
)
def test_pins_that_protobuf_and_numpy_of_today_break(pin: str, fails: str, bound: str) -> None:
    (note,) = [each for each in migrate(f"torch==1.9.0\n{pin}\n").findings if each.code == "NPU845"]
    pin, _, _ = pin.partition("\n")
    assert note.message == f"{pin} fails with {fails} or newer, which pip installs"
    assert note.help == f"require a newer {note.api}" + (f", or add {bound}" if bound else "")


@pytest.mark.parametrize(
    ("pin", "why"),
    [
        ("gym==0.21.0", "newer setuptools refuses its setup; 0.22.0 is the first known to install"),
        ("gym[atari]<=0.21", "newer setuptools refuses its setup; 0.22.0 is the first known to install"),
        ("pyyaml==5.4.1", "Cython 3 refuses its setup; 6.0 is the first known to install"),
        ("pims==0.5", "it imports a name that Python 3.10 removed; 0.6.0 is the first known to install"),
        ("gym~=0.15.3", ""),  # pip builds these
        ("gym==0.12.1", ""),
    ],
)
def test_pins_of_sources_that_are_not_built_any_more(pin: str, why: str) -> None:
    found = [each.message for each in migrate(f"torch==1.9.0\n{pin}\n").findings if each.code == "NPU845"]
    assert found == [f"{pin.replace('[atari]', '')}: pip has to build it, and {why}"] * bool(why)


@pytest.mark.parametrize(
    ("pin", "advice"),
    [
        ("numpy<2\nwandb==0.15.3", "require setuptools<82, or wandb>=0.16.0"),
        ("torchmetrics==0.11.4", "require setuptools<82, or torchmetrics>=1.0.0"),
        ("clip-anytorch", "require setuptools<82"),
        ("webrtcvad\nsetuptools>=41.0.0", "require setuptools<82"),
    ],
)
def test_a_newer_release_is_named_where_there_is_one(pin: str, advice: str) -> None:
    found = migrate(f"torch\n{pin}\n", target=TorchTarget("2.14", "", "2.14.0", "9.1.0", "2.14.0")).findings
    assert [each.help for each in found if each.code == "NPU845"] == [advice]


@pytest.mark.parametrize("pin", ["sentencepiece==0.1.96", "numba==0.56.4", "onnxruntime<1.15"])
def test_pins_that_the_oldest_python_alone_has_a_wheel_of(pin: str) -> None:
    (note,) = [each for each in migrate(f"torch==1.9.0\n{pin}\n").findings if each.code == "NPU845"]
    assert note.message == f"{pin}: of the Pythons that torch {NEW.release} needs, only 3.10 has a wheel"
    asked = f"name: a\ndependencies:\n  - python=3.10\n  - pip:\n    - torch==1.9.0\n    - {pin}\n"
    assert "NPU845" not in open_codes(migrate(asked, "environment.yml"))
    assert "NPU845" not in open_codes(migrate(f"torch==1.9.0\n{pin.split('=')[0].split('<')[0]}==99\n"))


@pytest.mark.parametrize("more", ["", "numpy==1.18.5\n"])  # such a numpy has to be a newer one, and has no np.complex
def test_pins_that_numpy_of_today_breaks(more: str) -> None:
    found = [each.message for each in migrate(f"torch==1.9.0\nlibrosa==0.8.0\n{more}").findings]
    assert "librosa==0.8.0 fails with NumPy 1.24 or newer, which pip installs" in found


@pytest.mark.parametrize(
    ("path", "said"), [("requirements.txt", True), ("docs/requirements.txt", False), ("requirements-dev.txt", False)]
)
def test_pins_of_what_is_installed_beside_torch(path: str, said: bool) -> None:
    project = join_facts([index_source(b"import torch\n", "train.py", Settings())], Settings())
    data = b"numpy==1.18.5\ntqdm\n"
    found = migrate_other(data, path, kind_of(path, data), Settings(), NEW, project)[0].findings
    assert ("NPU845" in {each.code for each in found}) == said


@pytest.mark.parametrize(
    ("pin", "torch"),
    [
        ("typing-extensions==3.7.4.3", NEW), ("typing_extensions<4", NEW), ("typing-extensions==4.9.0", NEW),
        ("typing-extensions>=3.7", None), ("typing-extensions==4.12.2", None),
    ],
)  # fmt: skip
def test_pins_that_torch_itself_refuses(pin: str, torch: TorchTarget | None) -> None:
    said = [each.message for each in migrate(f"torch==1.6.0\n{pin}\n").findings if each.code == "NPU845"]
    assert bool(said) == bool(torch) and all(each.startswith("torch 2.") for each in said)


COG = """\
build:
  gpu: true
  cuda: "11.1"
  python_version: "3.10"
  python_packages:
    - "torch==1.8.0"
    - numpy
  run:
    - pip install flash-attn
predict: "predict.py:Predictor"
"""


def test_the_packages_of_cog_are_requirements_and_its_cuda_is_no_device() -> None:
    after = COG.replace('"torch==1.8.0"\n', '"torch==2.12.0"\n    - torch-npu==2.12.0\n')
    result = check(COG, after, "cog.yaml")
    assert open_codes(result) == ["NPU290", "NPU850"]
    on_cpu = COG.replace("gpu: true\n  cuda: \"11.1\"", "gpu: false").replace("flash-attn", "tqdm")
    assert open_codes(migrate(on_cpu, "cog.yaml")) == []


def test_an_item_of_yaml_in_quotes_is_a_line() -> None:
    before = "dependencies:\n  - python=3.10\n  - pip:\n    - 'torch==1.8'\n    - tqdm\n"
    after = before.replace("'torch==1.8'", "'torch==2.12.0'\n    - torch-npu==2.12.0")
    check(before, after, "environment.yml")
