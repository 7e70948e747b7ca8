"""Tokens in files that are not Python: counted, and reported line by line with what to do."""

from __future__ import annotations

import pytest

from tests.harness import migrate, pattern, record
from transplt.apply.engine import migrate_source
from transplt.files.kind import kind_of
from transplt.files.tokens import OtherFile, scan_other_file
from transplt.finding import Status
from transplt.run.torch_version import TorchTarget
from transplt.settings import Settings

TARGET = TorchTarget("2.8", "2.8.0.post5", "8.5.0", "given")


def other(path: str, text: str) -> OtherFile:
    data = text.encode()
    found = scan_other_file(data, path, kind_of(path, data), TARGET)
    record([], sorted({finding.code for finding in found.findings}))
    return found


def check(path: str, text: str, codes: list[str], *, helps: str = "") -> None:
    """The lines that name CUDA are reported, in order, and every token is accounted for."""
    found = other(path, text)
    assert [finding.code for finding in found.findings] == codes
    assert found.tokens.found == found.tokens.manual + found.tokens.ignored
    if helps:
        assert helps in found.findings[0].help


@pattern("P70", "T25")
@pytest.mark.parametrize("line", ["CUDA_VISIBLE_DEVICES=0,1 python train.py", "export CUDA_VISIBLE_DEVICES=0"])
def test_visible_devices_in_a_shell_script(line: str) -> None:
    check("train.sh", f"#!/bin/bash\n{line}\n", ["NPU801"], helps="ASCEND_RT_VISIBLE_DEVICES")


@pattern("P71")
@pytest.mark.parametrize(
    "line", ["torchrun --nproc_per_node 8 train.py", "python -m torch.distributed.launch --nproc_per_node=8 train.py"]
)
def test_a_launcher_is_not_bound_to_cuda(line: str) -> None:
    check("run.sh", f"{line}\n", [])


@pattern("P71")
def test_a_launcher_with_a_backend() -> None:
    check("run.sh", "torchrun train.py --dist-backend nccl\n", ["NPU801"])


@pattern("P72")
@pytest.mark.parametrize("name", ["NCCL_DEBUG=INFO", "NCCL_IB_DISABLE=1", "CUDA_DEVICE_MAX_CONNECTIONS=1"])
def test_variables_in_a_shell_script(name: str) -> None:
    check("run.sh", f"export {name}\n", ["NPU801"])


@pattern("P72", "T28")
def test_a_comment_in_a_shell_script_is_counted_apart() -> None:
    found = other("run.sh", "# needs CUDA 11\npython train.py\n")
    assert (found.findings, found.tokens.found, found.tokens.comments) == ((), 0, 1)


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
    check(path, text, ["NPU802"])


@pattern("P73")
def test_a_configuration_without_cuda() -> None:
    check("train.yaml", "device: cpu\nbackend: gloo\n", [])


@pattern("P74")
@pytest.mark.parametrize("line", ["torch==2.1.0+cu118", "nvidia-cublas-cu12==12.1.3.1", "cupy-cuda11x"])
def test_requirements(line: str) -> None:
    check("requirements.txt", f"numpy\n{line}\n", ["NPU804"])


@pattern("P74")
def test_requirements_without_cuda() -> None:
    check("requirements.txt", "numpy\ntorch==2.1.0\n", [])


@pattern("P75")
@pytest.mark.parametrize("image", ["nvidia/cuda:11.8.0-devel-ubuntu22.04", "nvcr.io/nvidia/pytorch:23.10-py3"])
def test_base_images(image: str) -> None:
    check("Dockerfile", f"FROM {image}\n", ["NPU805"])


@pattern("P75")
def test_a_base_image_without_cuda() -> None:
    check("Dockerfile", "FROM python:3.11\n", [])


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
