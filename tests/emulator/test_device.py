"""The device: behaviours, operators against the CPU, collectives, forks, memory."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

pytestmark = pytest.mark.torch


def test_behaviours(program: Any) -> None:
    told = program("probes.py").stdout.splitlines()[-1]
    # It compiles with Triton for Ascend alone, and adds tensors of two cards.
    known = {"compile_", "second_device"}
    assert set(told.partition("failed: ")[2].split()) <= known


def test_collectives_on_two_ranks(program: Any) -> None:
    out = program("collectives.py", nproc=2).stdout
    assert "ddp rank 0: 27/27; failed: none" in out and "ddp rank 1: 27/27; failed: none" in out


def test_sync_batch_norm_equals_batch_norm_of_the_joined_batch(program: Any) -> None:
    out = program("sync_batch_norm.py", nproc=2).stdout
    assert "syncbn rank 0: 4/4" in out and "syncbn rank 1: 4/4" in out


def test_npu_of_a_module_takes_a_number(program: Any) -> None:
    found = json.loads(program("moves_of_modules.py").stdout.splitlines()[-1])
    refused = "TypeError: device(): argument 'index' (position 2) must be int, not "
    assert found[:3] == ["npu:2", "npu:2", "npu:1"]
    assert found[3:6] == [refused + kind for kind in ("str", "torch.device", "torch.device")]
    assert found[6:] == ["npu:1"] * 4


def test_forked_workers(program: Any) -> None:
    assert "fork: 2/2" in program("fork.py").stdout


@pytest.mark.slow
def test_memory_stays_flat(program: Any) -> None:
    program("leak.py")


@pytest.mark.slow
def test_compile_backends_that_need_no_code_generator(program: Any) -> None:
    assert "compile: eager aot_eager" in program("compiled.py").stdout


def test_safetensors(program: Any) -> None:
    pytest.importorskip("safetensors")
    assert "safetensors: 2/2" in program("safetensors_files.py").stdout


@pytest.mark.slow
def test_transformers(program: Any) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    assert "transformers rank 0: ok" in program("with_transformers.py").stdout


@pytest.mark.slow
def test_transformers_and_accelerate_on_two_ranks(program: Any) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    out = program("with_transformers.py", nproc=2).stdout
    assert all(f"transformers rank {rank}: ok" in out for rank in (0, 1))
    out = program("with_accelerate.py", nproc=2).stdout
    assert all(f"accelerate rank {rank}: ok, MULTI_NPU" in out for rank in (0, 1))


@pytest.mark.slow
def test_a_transformer_step_costs_at_most_three_times_the_cpus(program: Any) -> None:
    def times(device: str) -> dict[str, float]:
        return {n: float(t) for n, t in re.findall(r"(\w+) ([\d.]+)\n", program("speed.py", device).stdout)}

    ratios = []
    for _ in range(3):  # other work on the machine slows either side now and then
        cpu, npu = times("cpu"), times("npu")
        ratios.append(npu["transformer"] / cpu["transformer"])
        if ratios[-1] <= 3:
            return
    raise AssertionError(f"npu / cpu: {ratios}")
