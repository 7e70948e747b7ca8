"""A profile of a GPU beside one of an NPU: what is matched with what, what is not, and where the times come from.

Traces and databases are made after the documented fields: Kineto's events (torch 2.13), the SQLite Export Schema
Reference of Nsight Systems, operator_details.csv of torch_npu. One trace is written by torch.profiler itself.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.profiles.profiles import KERNELS, OPERATORS, STEPS, kernel
from tests.profiles.test_command import read, refused
from transplt.precision.diagnose.profiles.names import operator_of

#: (operator, shapes, what it lies in) and the microseconds of its kernel.
Ops = list[tuple[str, list[list[int]], str, float]]


def gpu_trace(path: Path, ops: Ops, *, step: bool = True) -> Path:
    events: list[dict[str, Any]] = []
    if step:
        events.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0.5,
                       "dur": 1e6})  # fmt: skip
    for number, (name, shapes, inside, us) in enumerate(ops):
        at = 10.0 + 100 * number
        for depth, each in enumerate([*filter(None, inside.split(" > ")), name]):
            dims = {"Input Dims": [*shapes, []]} if each.startswith("aten") else {}
            events.append({"ph": "X", "cat": "cpu_op", "name": each, "pid": 1, "tid": 1, "ts": at + depth,
                           "dur": 50 - 2 * depth, "args": dims})  # fmt: skip
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 20, "dur": 2}
        events.append({"ph": "X", **launch, "args": {"correlation": number}})
        on_card = {"cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1000.0 + 1000 * number, "dur": us}
        events.append({"ph": "X", **on_card, "args": {"correlation": number, "device": 0}})
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def npu_run(folder: Path, ops: list[tuple[str, str, float]], kernels: str = "") -> Path:
    output = folder / "host_1_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    rows = "".join(f'{name},"{shapes}",,1,1,{us},{us}\n' for name, shapes, us in ops)
    (output / "operator_details.csv").write_text(OPERATORS + rows)
    (output / "step_trace_time.csv").write_text(STEPS + "0,1,900,0,0,0,100,900,0,0\n")
    if kernels:
        (output / "kernel_details.csv").write_text(KERNELS + kernels)
    return folder


def beside(npu: Path, gpu: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(read(npu, "--against", gpu, "--format=json").output)
    return dict(document["against"])


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, float, float]]:
    return [(each["name"], each["shapes"], each["how"], each["gpu_us"], each["npu_us"]) for each in found["operators"]]


CONVOLUTION = "aten::conv2d > aten::convolution > aten::_convolution"


@pytest.mark.parametrize(
    ("gpu", "npu", "expected"),
    [
        # the same operator, by name and shapes; each shape is a row of its own
        ([("aten::mm", [[8, 4], [4, 2]], "aten::linear", 10.0), ("aten::mm", [[8, 9], [9, 2]], "", 20.0)],
         [("aten::mm", "8,4;4,2", 30), ("aten::mm", "8,9;9,2", 10)],
         [("aten::mm", "8x4 4x2", "name and shapes", 10, 30), ("aten::mm", "8x9 9x2", "name and shapes", 20, 10)]),
        # in place or not, and whichever library computes it
        ([("aten::cudnn_batch_norm", [[8, 3]], "", 5.0)], [("aten::native_batch_norm", "8,3;\r\n", 7)],
         [("aten::native_batch_norm", "8x3", "name and shapes", 5, 7)]),
        # what launches the kernel lies deeper on one side: the caller that both have
        ([("aten::cudnn_frontend_conv", [[8, 3]], CONVOLUTION, 5.0)], [("aten::convolution", "8,3", 9)],
         [("aten::convolution", "8x3", "same caller", 5, 9)]),
        # other shapes are no match, and are said
        ([("aten::mm", [[8, 4]], "", 10.0)], [("aten::mm", "16,4", 30)],
         [("aten::mm", "16x4", "other shapes", 0, 30), ("aten::mm", "8x4", "other shapes", 10, 0)]),
        # on one side only
        ([("aten::mm", [[8, 4]], "", 10.0)], [("aten::nonzero", "8,4", 30)],
         [("aten::nonzero", "8x4", "only on the NPU", 0, 30), ("aten::mm", "8x4", "only on the GPU", 10, 0)]),
        # a step of autograd without shapes hides no shapes that differ
        ([("aten::mm", [[8, 4]], "autograd::engine::evaluate_function: MmBackward0", 10.0)],
         [("aten::mm", "16,4", 30), ("autograd::engine::evaluate_function: MmBackward0", "", 1)],
         [("aten::mm", "16x4", "other shapes", 0, 30),
          ("autograd::engine::evaluate_function: MmBackward0", "", "only on the NPU", 0, 1),
          ("aten::mm", "8x4", "other shapes", 10, 0)]),
    ],
)  # fmt: skip
def test_what_is_matched(tmp_path: Path, gpu: Ops, npu: list[tuple[str, str, float]], expected: object) -> None:
    found = beside(npu_run(tmp_path / "npu", npu), gpu_trace(tmp_path / "gpu.json", gpu))
    assert rows(found) == expected and found["times"] == "on the card" and found["per_step"]


def test_shares_parts_ai_cpu_and_communication(tmp_path: Path) -> None:
    gpu = gpu_trace(tmp_path / "gpu.json", [("aten::sort", [[8]], "", 90.0), ("aten::old", [[8]], "", 10.0)])
    table = json.loads(gpu.read_text())
    nccl = {"cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "pid": 0, "tid": 9}
    table["traceEvents"].append({"ph": "X", **nccl, "ts": 9000.0, "dur": 40.0, "args": {"device": 0}})
    gpu.write_text(json.dumps(table))
    kernels = kernel("Sort1", "Sort", "AI_CPU", 10, 400) + kernel(
        "hcom_allReduce__1_0", "hcom_allReduce_", "HCCL", 500, 60
    )
    npu = npu_run(tmp_path / "npu", [("aten::sort", "8", 400)], kernels)
    found = beside(npu, gpu)
    assert found["matched"] == {"gpu": 0.9286, "npu": 1.0}
    assert ("collective allreduce", "", "name and shapes", 40, 60) in rows(found)
    assert [each["ai_cpu"] for each in found["operators"]] == [True, False, False]
    assert {each["name"]: (each["gpu_us"], each["npu_us"]) for each in found["parts"]} == {
        "computing": (100, 900), "communication that is not overlapped by computation": (40, 0),
        "the card is idle": (6910 + 990, 100),
    }  # fmt: skip
    text = read(npu, "--against", gpu, "--report", tmp_path / "page.html").output
    assert "Matched, where the NPU loses most first (93 % of the GPU's and 100 % of the NPU's time)" in text
    assert "aten::sort 8 " in text and "name and shapes, AI CPU" in text and "only on the GPU" in text
    assert "Not matched: on one side only" in (tmp_path / "page.html").read_text("utf-8")


def test_kernels_alone_are_matched_by_the_function_that_launches_them(tmp_path: Path) -> None:
    gpu = gpu_trace(tmp_path / "gpu.json", [("aten::mm", [[8, 4]], "", 10.0)], step=False)
    (tmp_path / "kernel_details.csv").write_text(
        KERNELS + kernel("aclnnMm_MatMul_MatMulV3", "MatMulV3", "AI_CORE", 9, 8)
    )
    found = beside(tmp_path / "kernel_details.csv", gpu)
    assert rows(found) == [("aclnnMm", "", "name and shapes", 10, 8)] and not found["per_step"]
    assert any("matched by name" in each for each in found["remarks"])


def test_a_database_of_nsight_systems(tmp_path: Path) -> None:
    """Of two processes, 7 and 8, which both count launches from 1: another thread is what tells them apart."""
    path = tmp_path / "gpu.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(
            """CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, globalPid INT,
              correlationId INT, demangledName INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
            CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT, textId INT);
            INSERT INTO StringIds VALUES (1, 'ampere_sgemm'), (2, 'aten::linear, op_id = 6, sizes = [[8, 4], [4, 2]]');
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (90000, 100000, 0, 7 << 24, 5, 1),
              (110000, 114000, 1, 8 << 24, 5, 1);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (3000, 3100, (7 << 24) + 77, 5, 1),
              (90, 95, (8 << 24) + 78, 5, 1);
            INSERT INTO NVTX_EVENTS VALUES (1000, 9000, 59, NULL, (7 << 24) + 77, 2),
              (2000, 8000, 59, 'aten::mm, op_id = 7, sizes = [[8, 4], [4, 2]], input_op_ids = [[1,0]]',
               (7 << 24) + 77, NULL);"""
        )
    found = beside(npu_run(tmp_path / "npu", [("aten::mm", "8,4;4,2", 30)]), path)
    assert rows(found) == [
        ("aten::mm", "8x4 4x2", "name and shapes", 10, 30), ("ampere_sgemm", "", "only on the GPU", 4, 0),
    ]  # fmt: skip


def test_what_torch_profiler_writes(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        torch.nn.functional.linear(torch.ones(8, 4), torch.ones(2, 4), torch.ones(2))
    profiler.export_chrome_trace(str(tmp_path / "gpu.json"))
    found = beside(npu_run(tmp_path / "npu", [("aten::addmm", "2;8,4;4,2;;", 0)]), tmp_path / "gpu.json")
    [addmm] = [each for each in found["operators"] if each["name"] == "aten::addmm"]
    # "same caller": aten::expand, which only the CPU's addmm calls, lies in it
    assert (addmm["how"], addmm["shapes"], found["times"]) == ("same caller", "2 8x4 4x2", "on the host")


def test_what_is_refused(tmp_path: Path) -> None:
    npu = npu_run(tmp_path / "npu", [("aten::mm", "8,4", 30)])
    (tmp_path / "a.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(100))
    assert "it is no database of Nsight Systems" in refused(npu, "--against", tmp_path / "a.sqlite")
    (tmp_path / "a.txt").write_text("nonsense")
    assert "a.txt: it is no JSON of events" in refused(npu, "--against", tmp_path / "a.txt")
    assert "does not exist" in refused(npu, "--against", tmp_path / "none")


@pytest.mark.parametrize(
    ("gpu", "npu"),
    [
        ("aten::miopen_convolution", "npu::npu_convolution"),
        ("CudnnBatchNormBackward0", "autograd::engine::evaluate_function: NativeBatchNormBackward0"),
        ("aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_fused_attention_overrideable"),
        ("Optimizer.step#AdamW.step", "Optimizer.step#NpuFusedAdamW.step"),
    ],
)
def test_names_of_the_same(gpu: str, npu: str) -> None:
    assert operator_of(gpu) == operator_of(npu)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("aten::mm", "aten::bmm"),
        ("aten::relu", "aten::relu6"),
        ("", "aten::npu"),
        ("void at::native::a<float>(std::array<char*, 3ul>)", "void at::native::b<float>(std::array<char*, 3ul>)"),
    ],
)
def test_names_of_others(one: str, other: str) -> None:
    assert operator_of(one) != operator_of(other)
