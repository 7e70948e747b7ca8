"""Tokens in files that are not Python: counted, and reported line by line with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import migrate, pattern, record
from transplt.base.finding import Status
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.engine.files.kind import kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.engine.files.tokens import OtherFile, scan_other_file
from transplt.flow.facts import ProjectFacts
from transplt.project.torch_version import choose_target

TARGET = choose_target(Path(), "2.8")


def other(path: str, text: str) -> OtherFile:
    data = text.encode()
    found = scan_other_file(data, path, kind_of(path, data), TARGET)
    record([], sorted({finding.code for finding in found.findings}))
    return found


def check(path: str, text: str, codes: list[str]) -> None:
    """The lines that name CUDA are reported, in order, and every token is accounted for."""
    found = other(path, text)
    assert [finding.code for finding in found.findings] == codes
    assert found.tokens.found == found.tokens.manual + found.tokens.ignored


@pytest.mark.parametrize(
    ("path", "text", "codes"),
    [
        ("train.sh", "#!/bin/bash\nCUDA_VISIBLE_DEVICES=0,1 python train.py\n", ["NPU801"]),
        ("run.sh", "torchrun train.py --dist-backend nccl\n", ["NPU801"]),
        ("run.sh", "torchrun --nproc_per_node 8 train.py\n", []),
        ("run.sh", "export NCCL_DEBUG=INFO\n", ["NPU801"]),
        ("train.yaml", "dist:\n  backend: nccl\n", ["NPU802"]),
        ("setup.toml", 'device = "cuda"\n', ["NPU802"]),
        ("requirements.txt", "numpy\nnvidia-cublas-cu12==12.1.3.1\n", ["NPU804"]),
        ("Dockerfile", "FROM nvidia/cuda:11.8.0-devel-ubuntu22.04\n", ["NPU805"]),
    ],
)
def test_what_no_editor_speaks_of_is_reported(path: str, text: str, codes: list[str]) -> None:
    check(path, text, codes)


@pattern("P72", "T28")
def test_a_comment_in_a_shell_script_is_counted_apart() -> None:
    found = other("run.sh", "# needs CUDA 11\npython train.py\n")
    assert (found.findings, found.tokens.found, found.tokens.comments) == ((), 0, 1)


# --- what a migration does with them, beside a program that reads them -----------------------------------------------

TRAIN = """\
import argparse
import json

import torch
import torch.distributed as dist

p = argparse.ArgumentParser()
p.add_argument("--device", default="cuda")
p.add_argument("--dist-backend", default="nccl")
args = p.parse_args()
cfg = json.load(open("config.json"))
dist.init_process_group(args.dist_backend if args.dist_backend else cfg["dist"]["backend"])
torch.ones(1).to(args.device).to(cfg["device"])
"""


def migrated(path: str, text: str, after: str | None, *left: str, version: str = "2.8") -> None:
    """A file of a project with such a program becomes `after` (None: it stays); `left` are the codes of all that is
    said and not done.
    """
    settings, data = Settings(torch_version=version), text.encode()
    project = ProjectFacts.join([index_source(TRAIN.encode(), "train.py", settings)])
    result, _ = migrate_other(data, path, kind_of(path, data), settings, choose_target(Path(), version), project)
    said = [each.code for each in result.findings if not each.applied]
    record([each.code for each in result.findings if each.applied], said)
    assert result.data.decode() == (text if after is None else after)
    assert said == list(left)
    assert result.tokens.unknown == 0


@pattern("P70", "T25")
@pytest.mark.parametrize("line", ["CUDA_VISIBLE_DEVICES=0,1 python train.py", "export CUDA_VISIBLE_DEVICES=0"])
def test_visible_devices_in_a_shell_script(line: str) -> None:
    migrated("train.sh", f"#!/bin/bash\n{line}\n", f"#!/bin/bash\n{line.replace('CUDA', 'ASCEND_RT')}\n")


@pattern("P71")
@pytest.mark.parametrize(
    "line", ["torchrun --nproc_per_node 8 train.py", "python -m torch.distributed.launch --nproc_per_node=8 train.py"]
)
def test_a_launcher_is_not_bound_to_cuda(line: str) -> None:
    migrated("run.sh", f"{line}\n", None)


@pattern("P71")
@pytest.mark.parametrize(("old", "new"), [("--dist-backend nccl", "--dist-backend hccl"),
                                          ("--device cuda:0", "--device npu:0")])  # fmt: skip
def test_a_launcher_with_a_backend_or_a_device(old: str, new: str) -> None:
    migrated("run.sh", f"torchrun train.py {old}\n", f"torchrun train.py {new}\n")


@pattern("P72")
@pytest.mark.parametrize(
    ("line", "after", "left"),
    [
        ("export NCCL_SOCKET_IFNAME=eth0", "export HCCL_SOCKET_IFNAME=eth0", ()),
        ("export CUDA_LAUNCH_BLOCKING=1", "export ASCEND_LAUNCH_BLOCKING=1", ()),
        ("export NCCL_DEBUG=INFO", None, ("NPU811",)),
        ("export NCCL_IB_DISABLE=1", None, ("NPU812",)),
        ("export CUDA_DEVICE_MAX_CONNECTIONS=1", None, ("NPU812",)),
    ],
)
def test_variables_in_a_shell_script(line: str, after: str | None, left: tuple[str, ...]) -> None:
    migrated("run.sh", f"{line}\n", None if after is None else f"{after}\n", *left)


@pattern("P73")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("train.yaml", "dist:\n  backend: nccl\n"),
        ("train.yml", "device: cuda\n"),
        ("ds_config.json", '{"device": "cuda:0"}\n'),
        ("setup.toml", 'device = "cuda"\n'),
    ],
)
def test_configuration(path: str, text: str) -> None:
    migrated(path, text, text.replace("cuda", "npu").replace("nccl", "hccl"))


@pattern("P73")
def test_a_configuration_that_nobody_reads_as_a_device() -> None:
    migrated("train.yaml", "precision: cuda\n", None, "NPU821")


@pattern("P73")
def test_a_configuration_without_cuda() -> None:
    migrated("train.yaml", "device: cpu\nbackend: gloo\n", None)


@pattern("P74")
@pytest.mark.parametrize(
    ("line", "after", "left"),
    [
        ("torch==2.8.0+cu126", "torch==2.8.0\ntorch-npu=={npu}\n", ("NPU843",)),
        ("torch==2.8.0", "torch==2.8.0\ntorch-npu=={npu}\n", ("NPU843",)),
        ("nvidia-cublas-cu12==12.1.3.1", "", ()),
        ("cupy-cuda11x", None, ("NPU804",)),
    ],
)
def test_requirements(line: str, after: str | None, left: tuple[str, ...]) -> None:
    if after is not None:
        after = "numpy\n" + after.format(npu=TARGET.torch_npu)
    migrated("requirements.txt", f"numpy\n{line}\n", after, *left)


@pattern("P75")
@pytest.mark.parametrize("image", ["nvidia/cuda:11.8.0-devel-ubuntu22.04", "nvcr.io/nvidia/pytorch:23.10-py3"])
def test_base_images(image: str) -> None:
    migrated("Dockerfile", f"FROM {image}\n", None, "NPU850")


@pattern("P75")
def test_a_base_image_without_cuda() -> None:
    migrated("Dockerfile", "FROM python:3.11\n", None)


@pattern("T31")
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("print 'on cuda'\n", "Python 2"),
        ("import torch.cuda\n{% if cuda %}\n", "template"),
        ("def f(:\n    torch.cuda.is_available()\n", "syntax error"),
    ],
)
def test_a_file_that_does_not_parse_is_copied_and_listed(source: str, said: str) -> None:
    result = migrate_source(source.encode(), "m.py", Settings())
    record([], [finding.code for finding in result.findings])
    assert result.status is Status.UNREADABLE
    assert result.data == source.encode()
    assert [finding.code for finding in result.findings] == ["NPU901"]
    assert said in result.findings[0].message
    assert result.tokens.found == result.tokens.manual


@pattern("P5")
def test_empty_cache() -> None:
    assert b"torch.npu.empty_cache()" in migrate("import torch\ntorch.cuda.empty_cache()\n").data


@pattern("P6")
@pytest.mark.parametrize("name", ["manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed"])
def test_seeds(name: str) -> None:
    assert f"torch.npu.{name}(3)".encode() in migrate(f"import torch\ntorch.cuda.{name}(3)\n").data


@pattern("P42")
def test_spawned_workers() -> None:
    result = migrate(
        """
        import torch
        import torch.multiprocessing as mp

        def worker(rank):
            torch.cuda.set_device(rank)

        if __name__ == "__main__":
            mp.spawn(worker, nprocs=torch.cuda.device_count())
        """
    )
    assert b"mp.spawn(worker, nprocs=torch.npu.device_count())" in result.data


@pattern("P42")
def test_spawn_alone_is_not_bound_to_cuda() -> None:
    source = "import torch.multiprocessing as mp\nmp.spawn(print, nprocs=2)\n"
    assert migrate(source).data == source.encode()
