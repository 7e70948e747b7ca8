"""The device: behaviours, operators against the CPU, collectives, forks, memory."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from tests import forked

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("vtable", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_behaviours(program: Any, vtable: bool) -> None:
    told = program("probes.py", vtable=vtable).stdout.splitlines()[-1]
    if not forked.on_real_torch_npu():
        assert told == "probes: 107/107; failed: none"
        return
    # It compiles with Triton for Ascend alone, and adds tensors of two cards.
    known = {"compile_", "second_device"}
    assert set(told.partition("failed: ")[2].split()) <= known


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "figure"),
    [("float32", "672/677"), ("int64", "465/468"), ("complex64", "390/394"), ("bfloat16", "543/551")],
)
def test_operators_equal_the_cpus(program: Any, dtype: str, figure: str) -> None:
    # Left over: sparse layouts, artefacts of the test (as_strided.partial_views, tensor_split), rounding in bfloat16.
    assert f"samples {dtype}: {figure};" in program("op_samples.py", dtype, random="cpu").stdout


def test_collectives_on_two_ranks(program: Any) -> None:
    out = program("collectives.py", nproc=2).stdout
    assert "ddp rank 0: 27/27; failed: none" in out and "ddp rank 1: 27/27; failed: none" in out


@pytest.mark.slow
def test_collectives_without_the_vtable(program: Any) -> None:
    out = program("collectives.py", nproc=2, vtable=False).stdout
    assert all(f"ddp rank {rank}: 25/27; failed: DDP unused, DDP static" in out for rank in (0, 1))


def test_sync_batch_norm_equals_batch_norm_of_the_joined_batch(program: Any) -> None:
    out = program("sync_batch_norm.py", nproc=2).stdout
    assert "syncbn rank 0: 4/4" in out and "syncbn rank 1: 4/4" in out


@pytest.mark.skipif(sys.platform != "linux", reason="looks at threads in /proc")
def test_ranks_end_with_their_own_exit_code(program: Any) -> None:
    forked.need_the_hand_made("the program looks into its threads of gloo")
    done = program("ending.py")
    lines = set(done.stdout.splitlines())
    for how in ("destroyed hccl", "held hccl", "left hccl", "left gloo"):
        assert {f"{how} [3, 4]", f"at exit {how.split()[0]} 0", f"at exit {how.split()[0]} 1"} <= lines, done.stderr
    assert {"gone hccl [1, 4]", "at exit gone 0", "threads: ok"} <= lines
    assert "RuntimeError" in done.stderr, "the rank that lost the other one lost its traceback"


def test_sparse_tensors_have_the_operators_of_torch_npu(program: Any) -> None:
    forked.need_the_hand_made("the program looks into its list of sparse operators")
    assert "sparse: ok" in program("sparse.py").stdout


def test_types_of_tensors(program: Any) -> None:
    forked.need_the_hand_made("torch_npu makes no tensor of such a type of one on the host")
    assert "tensor types: ok" in program("tensor_types.py").stdout


def test_lazy_modules_and_the_profiler_of_autograd(program: Any) -> None:
    forked.need_the_hand_made("torch_npu has no column npu_time_total in PyTorch's own profiler")
    done = program("lazy_and_profiled.py")
    assert "lazy and profiled: ok" in done.stdout and "INTERNAL ASSERT" not in done.stderr


@pytest.mark.parametrize(
    ("version", "by_number", "by_device"),
    [
        ("2.13", "npu:1", "TypeError: device(): argument 'index' (position 2) must be int, not "),
        ("2.7", "npu:1", "TypeError: device(): argument 'index' (position 2) must be int, not "),
        ("2.9", "npu:2", "npu:2"),
    ],
)
def test_npu_of_a_module_takes_a_number(program: Any, version: str, by_number: str, by_device: str) -> None:
    if version != "2.13":
        forked.need_the_hand_made("the vendor's own is that of the torch that is installed")
    found = json.loads(program("moves_of_modules.py", torch_version=version).stdout.splitlines()[-1])
    kinds = ["str", "torch.device", "torch.device"] if by_device.startswith("Type") else ["", "", ""]
    assert found[:3] == ["npu:2", "npu:2", by_number]
    assert found[3:6] == [by_device + kind for kind in kinds]
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
