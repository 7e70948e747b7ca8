"""Which torch the files of a project allow together: small trees, the version, and what was weighed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.distributed.running import in_process as transplt
from transplt.base.settings import TORCH_VERSIONS
from transplt.project.torch_version import choose_target
from transplt.rules.companions import companions, torch_beside, torch_minors
from transplt.rules.tables import read_table

NEWEST = TORCH_VERSIONS[-1]
NONE = "for which no torch_npu is supported; chosen: the newest torch with the fewest known blockers in this project"
Tree = dict[str, str]


def made(folder: Path, tree: Tree) -> Path:
    for name, text in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def conda(*packages: str) -> str:
    listed = "".join(f"  - {package}\n" for package in packages)
    return f"name: x\nchannels:\n  - pytorch\ndependencies:\n  - python=3.10\n{listed}"


#: (tree, version, why, what was weighed)
TOGETHER: list[tuple[Tree, str, str, str]] = [
    # a container with a torch that no torch_npu is for, and requirements that allow newer ones
    (
        {"requirements.txt": "torch>=1.5.0\n", "Dockerfile": "FROM pytorch/pytorch:1.5-cuda10.1-cudnn7-devel\n"},
        NEWEST,
        f"Dockerfile requires torch==1.5, {NONE}",
        "requirements.txt torch>=1.5.0; Dockerfile torch==1.5 (no torch_npu)",
    ),
    (
        {"requirements.txt": "torch>=1.5.0\n",
         "docker/dev/Dockerfile": 'ARG PYTORCH="1.6.0"\nARG CUDA=10.1\nFROM pytorch/pytorch:${PYTORCH}-cuda${CUDA}\n'},
        NEWEST,
        f"docker/dev/Dockerfile requires torch==1.6.0, {NONE}",
        "requirements.txt torch>=1.5.0; docker/dev/Dockerfile torch==1.6.0 (no torch_npu)",
    ),
    # a package that goes with one torch
    ({"requirements.txt": "torch\ntorchvision==0.20.0\n"}, "2.5",
     "requirements.txt requires torchvision==0.20.0 (torch 2.5)", ""),
    ({"requirements.txt": "torch\ntorchaudio==2.3.1\n"}, "2.3",
     "requirements.txt requires torchaudio==2.3.1 (torch 2.3)", ""),
    ({"requirements.txt": "torch\nxformers==0.0.28.post3\n"}, "2.5",
     "requirements.txt requires xformers==0.0.28.post3 (torch 2.5)", ""),
    ({"requirements.txt": "torch\ntorch_npu==2.4.0.post2\n"}, "2.4",
     "requirements.txt requires torch-npu==2.4.0.post2 (torch 2.4)", ""),
    ({"requirements.txt": "torch\ntorchvision<0.20\n"}, "2.4",
     "requirements.txt requires torchvision<0.20 (torch 1.2-2.4)", ""),
    (
        {"requirements.txt": "torch>=2.1\n", "environment.yml": conda("torchvision=0.18")},
        "2.3",
        "environment.yml requires torchvision==0.18.* (torch 2.3)",
        "requirements.txt torch>=2.1; environment.yml torchvision==0.18.* (torch 2.3)",
    ),
    # a package that does install beside another torch is heard where nothing else speaks
    ({"requirements.txt": "torch\ntriton==3.0.0\n"}, "2.4", "requirements.txt requires triton==3.0.0 (torch 2.4)", ""),
    ({"requirements.txt": "torch==2.6.0\ntriton==3.0.0\n"}, "2.6", "requirements.txt requires torch==2.6.0", ""),
    # environments of conda under any name
    ({"environment_gpu.yml": conda("pytorch=2.4")}, "2.4", "environment_gpu.yml requires torch==2.4.*", ""),
    ({"ldm.yaml": conda("pytorch=2.4")}, "2.4", "ldm.yaml requires torch==2.4.*", ""),
    ({"envs/train.yml": "channels: [x]\ndependencies:\n  - pip:\n    - torch==2.4.1\n"}, "2.4",
     "envs/train.yml requires torch==2.4.1", ""),
    # all together: the newest that each allows
    (
        {"requirements.txt": "torch>=2.1\n", "setup.py": "setup(install_requires=['torch<2.6'])\n"},
        "2.5",
        "setup.py requires torch<2.6",
        "requirements.txt torch>=2.1; setup.py torch<2.6",
    ),
    (
        {"requirements.txt": "torch!=2.8.*,>=2.4\n", "pyproject.toml": '[project]\ndependencies = ["torch<2.9"]\n'},
        "2.7",
        "pyproject.toml requires torch<2.9",
        "requirements.txt torch!=2.8.*,>=2.4; pyproject.toml torch<2.9",
    ),
    # what installs torch_npu says it better than extras and containers for CUDA
    (
        {
            "setup.py": "from setuptools import setup\nX = ['torch==2.9.1']\nsetup(extras_require={'x': X})\n",
            "docker/cuda/Dockerfile": "FROM ubuntu\nRUN pip install torch==2.6.0\n",
            "docker/ascend/Dockerfile": "FROM ubuntu\nRUN pip install torch==2.7.1 torch_npu==2.7.1\n",
        },
        "2.7",
        "docker/ascend/Dockerfile requires torch==2.7.1",
        "docker/ascend/Dockerfile torch==2.7.1; docker/ascend/Dockerfile torch-npu==2.7.1 (torch 2.7)",
    ),
    (
        {"setup.py": "from setuptools import setup\nsetup(extras_require={'x': ['torch==2.9.1']})\n"},
        "2.9",
        "setup.py requires torch==2.9.1",
        "",
    ),
    # parts say it where the project itself asks for nothing, and all of them bound it
    (
        {"backend/requirements.txt": "torch==2.4.0\n", "web/requirements.txt": "flask\n"},
        "2.4",
        "backend/requirements.txt requires torch==2.4.0",
        "",
    ),
    (
        {"a/requirements.txt": "torch==2.4.0\n", "b/ml/pyproject.toml": '[project]\ndependencies = ["torch<2.6"]\n'},
        "2.4",
        "a/requirements.txt requires torch==2.4.0",
        "a/requirements.txt torch==2.4.0; b/ml/pyproject.toml torch<2.6",
    ),
    # what is included counts where it is included
    ({"requirements.txt": "numpy\n-r deps/train.txt\n", "deps/train.txt": "torch==2.4.0\n"}, NEWEST,
     "the default, since no requirement file pins torch", ""),
    ({"requirements.txt": "numpy\n-r deps/requirements-train.txt\n", "deps/requirements-train.txt": "torch==2.4.0\n"},
     "2.4", "deps/requirements-train.txt requires torch==2.4.0", ""),
    ({"requirements.txt": "torch\n-c deps/constraints.txt\n", "deps/constraints.txt": "torch<2.7\n"}, "2.6",
     "deps/constraints.txt requires torch<2.7", ""),
    ({"requirements.txt": "torch\n# -r deps/requirements.txt\n", "deps/requirements.txt": "torch==2.4\n"}, NEWEST,
     "the default, since no requirement file pins torch", ""),
    ({"requirements.txt": "torch\n-r ../requirements.txt\n-r requirements.txt\n"}, NEWEST,
     "the default, since no requirement file pins torch", ""),
    # conditions: those of other systems do not hold, others are alternatives
    ({"requirements.txt": 'torch==2.1.0; sys_platform == "darwin"\ntorch==2.4.0; sys_platform == "linux"\n'}, "2.4",
     "requirements.txt requires torch==2.4.0", ""),
    (
        {"requirements.txt": 'torch==2.4.0; python_version < "3.9"\ntorch==2.6.0; python_version >= "3.9"\n'},
        "2.6",
        "requirements.txt requires torch==2.6.0",
        "requirements.txt torch==2.4.0; requirements.txt torch==2.6.0",
    ),
    (
        {"pyproject.toml": '[project]\ndependencies = ["torch>=2.1"]\n[project.optional-dependencies]\n'
                           'old = ["torch==2.2.0"]\nnew = ["torch==2.7.1"]\n'},
        "2.7",
        "pyproject.toml requires torch==2.7.1",
        "pyproject.toml torch>=2.1; pyproject.toml torch==2.2.0; pyproject.toml torch==2.7.1",
    ),
    # other devices and documents are heard where nothing else speaks
    ({"requirements.txt": "torch==2.6.0\n", "requirements-rocm.txt": "torch==2.3.0\n",
      "requirements/docs.txt": "torch==2.1.0\n"}, "2.6", "requirements.txt requires torch==2.6.0", ""),
    ({"requirements.txt": "numpy\n", "requirements-cpu.txt": "torch==2.3.0\n"}, "2.3",
     "requirements-cpu.txt requires torch==2.3.0", ""),
    ({"requirements.txt": "torch>=2.1\n", "npu-requirements.txt": "torch==2.1.0\n"}, "2.1",
     "npu-requirements.txt requires torch==2.1.0",
     "requirements.txt torch>=2.1; npu-requirements.txt torch==2.1.0"),
    # several containers stand for each other
    (
        {"Dockerfile.cu118": "FROM pytorch/pytorch:2.3.1-cuda11.8-cudnn8-devel\n",
         "Dockerfile.cu124": "FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-devel\n"},
        "2.5",
        "Dockerfile.cu124 requires torch==2.5.1",
        "Dockerfile.cu118 torch==2.3.1; Dockerfile.cu124 torch==2.5.1",
    ),
    # a folder that is called like a file
    ({"requirements.txt": "torch\n", "dockerfile/Dockerfile": "RUN pip install torch==2.4.0\n"}, "2.4",
     "dockerfile/Dockerfile requires torch==2.4.0", ""),
    # a script that installs, and the service of a compose file
    ({"install.sh": "pip install torch==2.4.0\n", "train.sh": "pip install torch==2.1.0\n"}, "2.4",
     "install.sh requires torch==2.4.0", ""),
    ({"docker-compose.yml": "services:\n  train:\n    image: pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime\n"}, "2.4",
     "docker-compose.yml requires torch==2.4.0", ""),
    # the image of a project that asks for torch_npu is to be another one
    ({"requirements.txt": "torch==2.6.0\ntorch-npu==2.6.0\n", "Dockerfile": "FROM pytorch/pytorch:1.5-cuda10.1\n"},
     "2.6", "requirements.txt requires torch==2.6.0",
     "requirements.txt torch==2.6.0; requirements.txt torch-npu==2.6.0 (torch 2.6)"),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "version", "why", "weighed"), TOGETHER)
def test_the_version_that_all_files_allow(tmp_path: Path, tree: Tree, version: str, why: str, weighed: str) -> None:
    target = choose_target(made(tmp_path, tree), None)
    assert (target.version, target.why) == (version, why)
    assert target.weighed == ((f"weighed: {weighed}",) if weighed else ())
    assert target.disagreements == ()


#: Trees that say nothing of a version.
SILENT: list[Tree] = [
    {"requirements.txt": "torch\ntorchvision>=0.15\n"},
    {"requirements.txt": "torch\ntorchvision==0.2.1\n"},
    {"requirements.txt": "torch\nxformers==0.0.20\n"},
    {"requirements.txt": "torch\ntorchvision!=0.20.0\n"},
    {"requirements.txt": 'torch==2.4.0; sys_platform == "win32"\n'},
    {"Chart.yaml": "apiVersion: v2\ndependencies:\n  - name: torch\n    version: 2.4.0\n"},
    {"config.yml": "dependencies:\n  - pytorch=2.4\n"},
    {"workflow.yml": "jobs:\n  x:\n    steps:\n      - run: pip install torch==2.4.0\n"},
    {"examples/requirements.txt": "torch==2.4.0\n"},
    {"third_party/x/requirements.txt": "torch==2.4.0\n"},
    {"a/requirements.txt": "torch\n"},
    {"a/b/c/requirements.txt": "torch==2.4.0\n"},
    {"Dockerfile": "ARG TORCH\nFROM pytorch/pytorch:${TORCH}-cuda12.1\n"},
]


@pytest.mark.parametrize("tree", SILENT)
def test_what_says_nothing_of_a_version(tmp_path: Path, tree: Tree) -> None:
    target = choose_target(made(tmp_path, tree), None)
    assert (target.version, target.why) == (NEWEST, "the default, since no requirement file pins torch")
    assert (target.weighed, target.disagreements) == ((), ())


#: (tree, version, the file and line of the finding, its message)
DISAGREE = [
    (
        {"requirements.txt": "numpy\ntorch==1.13.1\ntorchvision==0.8.1\n"},
        NEWEST, "requirements.txt", 3,
        "no version of torch satisfies both torchvision==0.8.1 (torch 1.7) and torch==1.13.1 (line 2)",
    ),
    (
        {"requirements.txt": "torch==2.6.0\n", "environment.yml": conda("pytorch=2.4", "torchvision=0.19")},
        "2.6", "environment.yml", 6,
        "no version of torch satisfies both torch==2.4.* and torch==2.6.0 (requirements.txt, line 1)",
    ),
    (
        {"requirements.txt": "torch>=2.4\n", "setup.py": "setup(\n    install_requires=['torch<2.2'],\n)\n"},
        NEWEST, "setup.py", 2,
        "no version of torch satisfies both torch<2.2 and torch>=2.4 (requirements.txt, line 1)",
    ),
    # the version that most allow
    (
        {"requirements.txt": "torch==2.6.0\n", "setup.py": "x = ['torch==2.4.0']\n",
         "Dockerfile": "RUN pip install torch==2.4.0\n"},
        "2.4", "setup.py", 1,
        "no version of torch satisfies both torch==2.4.0 and torch==2.6.0 (requirements.txt, line 1)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "version", "path", "line", "message"), DISAGREE)
def test_files_that_exclude_each_other(
    tmp_path: Path, tree: Tree, version: str, path: str, line: int, message: str
) -> None:
    target = choose_target(made(tmp_path, tree), None)
    first = target.disagreements[0]
    assert (target.version, first.path, first.span.line, first.message) == (version, path, line, message)


def test_a_release_that_both_allow_is_no_contradiction(tmp_path: Path) -> None:
    """2.1.0 is left out, which torch_npu 2.1 goes with; the lock has 2.1.1, and both hold."""
    tree = {"setup.py": "setup(\n    install_requires=['torch>=2.0.0,<3,!=2.1.0'],\n)\n"}
    found = choose_target(made(tmp_path, {**tree, "requirements.txt": "torch==2.1.1\n"}), None)
    assert found.disagreements == ()
    found = choose_target(made(tmp_path / "b", {**tree, "requirements.txt": "torch==2.1.0\n"}), None)
    assert len(found.disagreements) == 1


def test_a_list_for_npus_contradicts_nothing(tmp_path: Path) -> None:
    tree = {"requirements.txt": "torch==1.13.1+cu117\n", "requirements-npu.txt": "torch==2.8.0\ntorch-npu==2.8.0\n"}
    assert choose_target(made(tmp_path, tree), None).disagreements == ()


def test_a_list_of_what_was_installed_contradicts_nothing(tmp_path: Path) -> None:
    """It stays as it is, and another finding says so: a migration that pins torch elsewhere must not add one."""
    tree = {"env.yml": conda("pytorch=2.6"), "requirements.txt": "pytorch=1.4.0=py3.7_cuda10.1\nnumpy=1.18.1=py37_0\n"}
    assert choose_target(made(tmp_path, tree), None).disagreements == ()


@pytest.mark.parametrize(
    ("tree", "open_"),
    [
        ({"requirements.txt": "torch==1.13.1\ntorchvision==0.8.1\n"}, False),  # a migration writes both lines
        ({"requirements.txt": "torch==2.6.0\n", "setup.py": "x = ['torch==2.4.0']\n"}, True),
    ],
)
def test_what_a_migration_writes_is_no_work(tmp_path: Path, tree: Tree, open_: bool) -> None:
    found = choose_target(made(tmp_path, tree), None).disagreements
    assert any(each.open for each in found) == open_


def test_a_comment_switches_the_finding_off(tmp_path: Path) -> None:
    tree = {"requirements.txt": "torch==2.4.0\ntorchvision==0.8.1  # transplt: ignore[NPU846]\n"}
    assert choose_target(made(tmp_path, tree), None).disagreements == ()
    transplt("check", str(tmp_path), "--output-file", "found.txt", cwd=tmp_path)
    assert "NPU612" not in (tmp_path / "found.txt").read_text()


def test_what_is_asked_for_wins_and_weighs_nothing(tmp_path: Path) -> None:
    target = choose_target(made(tmp_path, {"requirements.txt": "torch==2.4.0\ntorchvision==0.8.1\n"}), "2.8")
    assert (target.version, target.why, target.weighed, target.disagreements) == ("2.8", "--torch-version", (), ())


SCHEDULER = "from torch.optim.lr_scheduler import ReduceLROnPlateau\nReduceLROnPlateau(optimizer, verbose=True)\n"
#: (a file of a project that pins torch 1.8, version, what is said of blockers)
BLOCKED = [
    ("import torch\ntorch.zeros(1).cuda()\n", NEWEST, ""),
    (SCHEDULER, "2.6", "torch 2.7 removed verbose from ReduceLROnPlateau (torch 2.7-2.14)"),
    (SCHEDULER.replace("verbose", "patience"), NEWEST, ""),
    ("import logging  # torch\nReduceLROnPlateau = print\nReduceLROnPlateau(1, verbose=True)\n", NEWEST, ""),
    (f"{SCHEDULER}import torch\ntorch.cuda.nvtx.range_push('x')\n", "2.14",
     "torch.cuda.nvtx.range_push is missing (torch 2.1-2.6, 2.8)"),
    ("import torch\ntorch.cuda.nvtx.range_push('x')\n", NEWEST,
     "torch.cuda.nvtx.range_push is missing (torch 2.1-2.6, 2.8)"),
    ("import torch\nprint 'python 2', torch.cuda.nvtx.range_push\n", NEWEST, ""),
    ("import torch\nclass S(torch.utils.data.Sampler):\n    def __init__(self, d):\n        super().__init__(d)\n",
     "2.9", "Sampler.__init__ raises a TypeError for its argument since torch 2.10 (torch 2.10-2.14)"),
    ("import torch\nclass S(torch.utils.data.Sampler):\n    def __init__(self, d):\n        super().__init__()\n",
     NEWEST, ""),
    ("import torch, torchvision\ntorchvision.ops.nms(boxes, scores, 0.5)\n", NEWEST, ""),
    ("from torch.optim.lr_scheduler import LambdaLR\nLambdaLR(optimizer, rate, -1, True)\n", "2.6",
     "torch 2.7 removed verbose from LambdaLR (torch 2.7-2.14)"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "version", "said"), BLOCKED)
def test_a_pin_without_a_torch_npu_goes_to_the_fewest_blockers(
    tmp_path: Path, code: str, version: str, said: str
) -> None:
    target = choose_target(made(tmp_path, {"requirements.txt": "torch==1.8.1\n", "train.py": code}), None)
    assert target.gap
    assert (target.version, target.why) == (version, f"requirements.txt requires torch==1.8.1, {NONE}")
    assert target.weighed == ((f"blockers of other versions: {said}",) if said else ())


@pytest.mark.parametrize(
    ("python", "version", "said"),
    [
        ("python>=3.8, <3.10", "2.8", "environment.yml asks for Python >=3.8, <3.10 (torch 2.9-2.14)"),
        ("python=3.8", "2.4", "environment.yml asks for Python 3.8 (torch 2.5-2.14)"),
        ("python=3.6", NEWEST, ""),
        ("python>=3.7", NEWEST, ""),
        ("python=3.10", NEWEST, ""),
    ],
)
def test_a_python_that_a_torch_has_no_wheels_for_is_a_blocker(
    tmp_path: Path, python: str, version: str, said: str
) -> None:
    tree = {"environment.yml": f"dependencies:\n  - {python}\n  - pytorch=1.12.1\n"}
    target = choose_target(made(tmp_path, tree), None)
    assert (target.version, target.weighed) == (version, (f"blockers of other versions: {said}",) if said else ())


def test_where_a_version_is_asked_for_no_blockers_are_counted(tmp_path: Path) -> None:
    target = choose_target(made(tmp_path, {"requirements.txt": "torch<2.10\n", "train.py": SCHEDULER}), None)
    assert (target.version, target.weighed) == ("2.9", ())


def test_the_summary_the_log_and_check_say_what_was_weighed(tmp_path: Path) -> None:
    tree = {"requirements.txt": "torch>=1.5.0\n", "Dockerfile": "FROM pytorch/pytorch:1.5-cuda10.1\n",
            "setup.py": "x = ['torch>=1.9']\n", "train.py": "import torch\ntorch.zeros(1).cuda()\n"}  # fmt: skip
    project = made(tmp_path / "detector", tree)
    line = "weighed: requirements.txt torch>=1.5.0; setup.py torch>=1.9; Dockerfile torch==1.5 (no torch_npu)"
    message = "no version of torch satisfies both torch==1.5 and torch>=1.9 (setup.py, line 1)"
    done = transplt("-v", "-i", str(project), "-o", str(tmp_path / "out"), cwd=tmp_path)
    assert f"\n  {line}\n" in done.stderr
    out = tmp_path / "out" / "detector_msft"
    assert f"\n{line}\n" in (out / "msFmkTranspltlog.txt").read_text()
    assert message in (out / "report.html").read_text()
    transplt("check", str(project), "--format", "json", "--output-file", "found.json", cwd=tmp_path)
    table = json.loads((tmp_path / "found.json").read_text())
    assert table["summary"]["torch"][0]["weighed"] == [line]
    (found,) = [each for each in table["findings"] if each["code"] == "NPU846"]
    assert (found["path"], found["message"]) == ("detector/Dockerfile", message)
    settings = '[tool.transplt.per-file-ignores]\n"Dockerfile" = ["NPU846"]\n'
    (project / "pyproject.toml").write_text(settings)
    transplt("check", str(project), "--format", "json", "--output-file", "found.json", cwd=tmp_path)
    assert "NPU846" not in (tmp_path / "found.json").read_text()
    transplt("-i", str(project), "-o", str(tmp_path / "quiet"), cwd=tmp_path)
    assert "NPU846" not in (tmp_path / "quiet" / "detector_msft" / "report.html").read_text()


# --- the table -------------------------------------------------------------------------------------------------------


def test_each_package_of_the_table_names_its_source() -> None:
    table = read_table("support/companions.json")
    assert set(table["packages"]) <= set(table["sources"])
    assert all(table["sources"].values())
    assert all(table["same"].values())
    assert companions() == {*table["packages"], *table["same"], "vllm", "vllm-ascend"}
    assert {version for rows in table["packages"].values() for version in rows} <= set(torch_minors())


@pytest.mark.parametrize("package", ["torchvision", "torchaudio"])
def test_every_torch_with_a_torch_npu_has_its_companions(package: str) -> None:
    rows = read_table("support/companions.json")["packages"][package]
    assert set(TORCH_VERSIONS) <= set(rows)


@pytest.mark.parametrize(
    ("package", "release", "torch"),
    [
        ("torchvision", "0.20.1", {"2.5"}),
        ("torchvision", "0.4.1", {"1.2", "1.3"}),
        ("torchvision", "0.2.1", set()),
        ("torchaudio", "2.11.0", {"2.11", "2.12", "2.13", "2.14"}),
        ("xformers", "0.0.23.post1", {"2.1"}),
        ("numpy", "1.0", set()),
    ],
)
def test_which_torch_a_release_goes_with(package: str, release: str, torch: set[str]) -> None:
    assert torch_beside(package, lambda each: each == release) == torch


#: (tree without a torch in its own folder, version, why): no part bounds torch to a version with a torch_npu
OLDER_PARTS: list[tuple[Tree, str, str]] = [
    ({"a/requirements.txt": "torch==1.4.0\n"}, NEWEST, f"a/requirements.txt requires torch==1.4.0, {NONE}"),
    ({"a/requirements.txt": "torch==1.11.0\n", "a/b/requirements.txt": "torch==1.8.0\n"}, NEWEST,
     f"a/requirements.txt requires torch==1.11.0, {NONE}"),
    ({"a/requirements.txt": "torch==1.8.1\n", "a/train.py": SCHEDULER}, "2.6",
     f"a/requirements.txt requires torch==1.8.1, {NONE}"),
    ({"a/setup.py": "setup(install_requires=['torch==1.4.0'])\n", "b/requirements.txt": "torch\n"}, NEWEST,
     f"a/setup.py requires torch==1.4.0, {NONE}"),
    ({"a/requirements.txt": "torch==2.99\n"}, NEWEST,
     "a/requirements.txt requires torch==2.99, for which no torch_npu is supported; chosen: the newest torch with one"),
    ({"a/requirements.txt": "torch==1.4.0\n", "requirements.txt": "torch\n"}, NEWEST,
     "the default, since no requirement file pins torch"),
    ({"examples/requirements.txt": "torch==1.4.0\n"}, NEWEST, "the default, since no requirement file pins torch"),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "version", "why"), OLDER_PARTS)
def test_parts_that_ask_for_an_older_torch_are_the_reason(tmp_path: Path, tree: Tree, version: str, why: str) -> None:
    target = choose_target(made(tmp_path, tree), None)
    assert (target.version, target.why) == (version, why)
    assert target.gap == ("is supported" in why) and (target.disagreements, target.of_parts) == ((), False)


@pytest.mark.parametrize("other", ["torch==2.6.0\n", "torch\n", "torch==2.99\n"])
def test_parts_that_do_not_agree_decide_nothing(tmp_path: Path, other: str) -> None:
    target = choose_target(made(tmp_path, {"a/requirements.txt": "torch==2.4.0\n", "b/requirements.txt": other}), None)
    assert target.version == NEWEST
    assert target.why == "the default, since parts of the project pin different releases of torch"


OLDER = "requires torch==1.8.1, for which no torch_npu is supported: 2.1 is used, the oldest with one"


def test_a_part_without_a_torch_npu_is_named(tmp_path: Path) -> None:
    files = {"a/requirements.txt": "torch==2.4.0\n", "b/requirements.txt": "torch==1.8.1\n"}
    target = choose_target(made(tmp_path, files), None)
    assert (target.version, target.of_parts) == (NEWEST, True)
    default = "the default, since parts of the project pin different releases of torch"
    assert target.why == f"{default}; b/requirements.txt {OLDER}"


@pytest.mark.parametrize(
    "files",
    [
        {"a/requirements.txt": "torch==2.4.0\n", "b/setup.py": "setup(install_requires=['torch==1.8.1'])\n"},
        {"a/requirements.txt": "torch==2.4.0\n", "b/requirements.txt": "torch\n"},
        {"a/requirements.txt": "torch==1.4.0\n", "b/requirements.txt": "torch==1.8.1\n"},
        {"requirements.txt": "torch==2.4.0\n", "b/requirements.txt": "torch==1.8.1\n"},
        {"b/requirements.txt": "torch==1.8.1\n"},
    ],
)
def test_no_part_is_named(tmp_path: Path, files: dict[str, str]) -> None:
    assert OLDER not in choose_target(made(tmp_path, files), None).why
