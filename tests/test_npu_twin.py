"""A file for the NPU beside another one answers for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from transplt.base.finding import Finding, Level, Span
from transplt.engine.actions.actions import actions_of
from transplt.engine.files.twin_names import twins
from transplt.engine.own_npu_folders import own_places
from transplt.faces.cli.main import main
from transplt.project.checking.check_run import check_paths
from transplt.project.options import Options, make_plan
from transplt.project.tree import migrate_tree


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("run.sh", "run_npu.sh"),
        ("run.sh", "run-npu.sh"),
        ("scripts/run.sh", "scripts/run_npu.sh"),
        ("train_gpu.sh", "train_npu.sh"),
        ("Dockerfile", "Dockerfile.npu"),
        ("requirements.txt", "requirements-npu.txt"),
        ("config.yaml", "config_ascend.yaml"),
        ("docker/Dockerfile", "docker/ascend/Dockerfile"),
        ("docker/cu124/Dockerfile", "docker/ascend/Dockerfile"),
        ("scripts/gpu/run.sh", "scripts/npu/run.sh"),
    ],
)
def test_names_of_twins(name: str, twin: str) -> None:
    assert twin in twins(name)


@pytest.mark.parametrize("name", ["run_npu.sh", "ascend/../run-npu.sh", "run-npu.sh"])
def test_a_file_for_the_npu_has_none(name: str) -> None:
    assert twins(name) == []


@pytest.mark.parametrize(
    ("beside", "left"),
    [("run_npu.sh", 0), ("npu.sh", 1), ("other/run_npu.sh", 1), ("run_cpu.sh", 1), ("run.npu.sh", 0)],
)
def test_what_it_answers_for_is_no_work(tmp_path: Path, beside: str, left: int) -> None:
    source = tmp_path / "demo"
    (source / beside).parent.mkdir(parents=True)
    (source / "run.sh").write_text("export NCCL_DEBUG=INFO\n")
    (source / beside).write_text("export ASCEND_RT_VISIBLE_DEVICES=0\n")
    done = CliRunner().invoke(main, ["-i", str(source), "-o", str(tmp_path / "out")])
    assert ("to do: 1 action" if left else "nothing left to do") in done.output
    (row,) = (tmp_path / "out" / "demo_msft" / "tokens.csv").read_text().splitlines()[1:]
    said = "ignored,NPU801,a file for the NPU exists next to it"
    assert row.split(",", 4)[4] == said if not left else ",left," in row


CHOOSES = "import torch\ndevice = 'npu' if torch.npu.is_available() else 'cuda'\n"
WORKFLOW = """jobs:
  gpu:
    runs-on: {group: aws-g4dn-2xlarge}
    env: {CUDA_VISIBLE_DEVICES: "0"}
    container: {image: "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-devel", options: --gpus all}
"""
FOR_CUDA = {
    "docker/cu124/Dockerfile.base": "FROM nvidia/cuda:12.4.1-devel\nRUN pip install torch==2.6.0 flash-attn\n",
    "run_h100.sh": "export CUDA_VISIBLE_DEVICES=0,1\npip install torch==2.6.0\n",
    "requirements.txt": "torch==2.6.0\nnvidia-nccl-cu12\n",
    ".github/workflows/tests.yml": WORKFLOW,
}


def migrated(tmp_path: Path, files: dict[str, str]) -> tuple[str, Path]:
    source = tmp_path / "demo"
    for path, text in files.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text)
    done = CliRunner().invoke(main, ["-i", str(source), "-o", str(tmp_path / "out")])
    return done.output, tmp_path / "out" / "demo_msft"


@pytest.mark.parametrize("path", FOR_CUDA)
def test_files_for_cuda_stay_in_a_project_that_handles_the_npu(tmp_path: Path, path: str) -> None:
    output, out = migrated(tmp_path, {"device.py": CHOOSES, path: FOR_CUDA[path]})
    assert (out / path).read_text() == FOR_CUDA[path]
    assert "nothing left to do" in output
    rows = (out / "tokens.csv").read_text().splitlines()[1:]
    assert all("ignored" in row for row in rows)


@pytest.mark.parametrize("path", [each for each in FOR_CUDA if "Dockerfile" not in each])
def test_elsewhere_they_are_edited(tmp_path: Path, path: str) -> None:
    _, out = migrated(tmp_path, {"device.py": "import torch\ndevice = 'cuda'\nx.to(device)\n", path: FOR_CUDA[path]})
    assert (out / path).read_text() != FOR_CUDA[path]


@pytest.mark.parametrize(("path", "stays"), [("conf/runtime_env.yaml", True), ("npu/runtime_env.yaml", False)])
def test_variables_of_a_configuration_stay_there(tmp_path: Path, path: str, stays: bool) -> None:
    text = "env_vars:\n  NCCL_SOCKET_IFNAME: eth0\n"
    _, out = migrated(tmp_path, {"device.py": CHOOSES, path: text})
    assert ((out / path).read_text() == text) is stays


def test_what_is_for_the_npu_there_is_looked_at(tmp_path: Path) -> None:
    _, out = migrated(tmp_path, {"device.py": CHOOSES, "run_npu.sh": "export CUDA_VISIBLE_DEVICES=0\n"})
    assert (out / "run_npu.sh").read_text() == "export ASCEND_RT_VISIBLE_DEVICES=0\n"


CHOOSES = 'import torch\n\ndevice = "npu" if torch.npu.is_available() else "cuda"\n'
MOVES = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\n"


@pytest.mark.parametrize(("source", "left"), [(MOVES, {"NPU280"}), (CHOOSES, set())])
def test_an_output_chooses_between_cuda_and_the_npu_where_its_input_did(
    tmp_path: Path, source: str, left: set[str]
) -> None:
    """Half of what was migrated looks as if it chose: what is left of its scripts stays left."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(source)
    (project / "run.sh").write_text("docker run --gpus all image python train.py\n")
    done = migrate_tree(make_plan(Options(source=project, out=tmp_path / "out", analysis=True, jobs=0)))
    (done.output / "train.py").write_text(CHOOSES)
    found = check_paths([done.output], Options(jobs=0)).findings
    assert {each.code for each in found if each.path.endswith("run.sh")} == left


@pytest.mark.parametrize(
    ("paths", "places"),
    [
        (["ascend-support/README.md", "ascend-support/run.sh", "train.py"], ["ascend-support/"]),
        (["recipes/finetune/ascend/a.md", "docs/npu.md", "run_npu.sh"], ["run_npu.sh", "docs/npu.md",
                                                                         "recipes/finetune/ascend/"]),
        (["pkg/npu_attention.py"], ["pkg/npu_attention.py"]),
        (["inputs/a.py", "descend.py", "docs/ascending.md"], []),
        (["tests/npu/test_a.py", ".github/workflows/npu.yml"], []),
    ],
)  # fmt: skip
def test_what_a_project_has_for_npus(paths: list[str], places: list[str]) -> None:
    assert own_places(paths) == places


def test_the_summary_names_what_the_project_has_for_npus(tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "ascend-support").mkdir(parents=True)
    (source / "ascend-support" / "README.md").write_text("# Ascend\n")
    (source / "train.py").write_text("import torch\nx = torch.ones(1).cuda()\n")
    said = CliRunner().invoke(main, ["-i", str(source), "-o", str(tmp_path / "out"), "--jobs", "0"]).output
    assert "its own NPU code; read it first: ascend-support/" in said


SETS = CHOOSES + "def start(config):\n    config.trainer.device = get_device_name()\n"
CONFIG = "trainer:\n  device: cuda\n"
JOB = "resources:\n  accelerators: H100:8\nrun: |\n  pip install flash-attn\n"
IMAGE = "FROM quay.io/ascend/cann:8.3.rc1\nRUN git clone https://github.com/NVIDIA/Megatron-LM.git\n"
VLLM = "python -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=vllm trainer.device=npu\n"


@pytest.mark.parametrize(
    ("files", "left"),
    [
        # the project sets the device as it starts
        ({"device.py": SETS, "conf/a.yaml": CONFIG}, set()),
        # nobody does, and a key of another name
        ({"device.py": CHOOSES + "def f(config):\n    return config.trainer.device\n", "conf/a.yaml": CONFIG},
         {"NPU821"}),
        ({"device.py": SETS.replace(".trainer.", ".rollout."), "conf/a.yaml": CONFIG}, {"NPU821"}),
        # its own scripts and images for the NPU, and a job for a cloud of GPUs
        ({"device.py": CHOOSES, "run_npu.sh": VLLM}, set()),
        ({"device.py": CHOOSES, "docker/ascend/Dockerfile": IMAGE}, set()),
        ({"device.py": CHOOSES, "examples/sky.yaml": JOB}, set()),
        # options of a profiler for CUDA, by whatever key
        ({"device.py": CHOOSES, "conf/prof.yaml": "tool:\n  trace: cuda,nvtx\n  cuda-memory-usage: 'true'\n"}, set()),
        # a project for CUDA alone
        ({"device.py": MOVES, "run_npu.sh": VLLM}, {"NPU512"}),
        ({"device.py": MOVES, "conf/prof.yaml": "tool:\n  trace: cuda,nvtx\n"}, {"NPU802"}),
        ({"device.py": MOVES, "examples/sky.yaml": JOB}, {"NPU280", "NPU290"}),
    ],
)  # fmt: skip
def test_what_a_project_that_handles_the_npu_has_seen_to(tmp_path: Path, files: dict[str, str], left: set[str]) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = check_paths([tmp_path], Options(jobs=0)).findings
    assert {each.code for each in found if each.open and not each.path.endswith(".py")} == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("import os\nos.environ['NCCL_DEBUG'] = 'WARN'\n", {"NPU221"}),
        ("import vllm\nllm = vllm.LLM('a')\n", {"NPU512"}),
        ("import torch\nx = torch.utils.dlpack.from_dlpack(y)\n", {"NPU520"}),
        ("import megatron\nmegatron.core.get_cuda_rng_tracker()\n", {"NPU602"}),
        ("import cupy\n", {"NPU510"}),
    ],
)
def test_what_is_undecided_is_a_remark_in_a_project_that_trains_on_npus(
    tmp_path: Path, text: str, left: set[str]
) -> None:
    for name, device in (("cuda", "import torch\ntorch.nn.Linear(2, 2).cuda()\n"), ("both", CHOOSES)):
        project = tmp_path / name
        project.mkdir()
        (project / "device.py").write_text(device)
        (project / "train.py").write_text(text)
        plan = make_plan(Options(source=project, out=tmp_path / "out", analysis=True, jobs=0, torch_version="2.7"))
        found = [each for each in migrate_tree(plan).findings if each.path == "train.py" and each.open]
        assert {each.code for each in found} == (left if name == "cuda" or left == {"NPU510"} else set())
        assert all(each.late == ("handled" if name == "both" else "") for each in found)


def test_nothing_stops_the_start_of_a_project_that_trains_on_npus() -> None:
    message = "the package cupy does not support NPUs"
    found = [Finding("a.py", Span(1, 1, 1, 5, 0, 4), "NPU510", Level.MANUAL, message, "cupy")]
    assert [action.blocks for action in actions_of(found)] == ["import"]
    assert [action.blocks for action in actions_of([replace(each, late="handled") for each in found])] == ["later"]
