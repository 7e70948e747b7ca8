"""Small profiles, made after the documented columns: what the tests of profile-read share."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from transplt.precision.diagnose.profiles.findings import Found, findings_of
from transplt.precision.diagnose.profiles.op_info import OpInfo
from transplt.precision.diagnose.profiles.profile import Profile
from transplt.precision.diagnose.profiles.readers import Stacks, read_table
from transplt.precision.diagnose.profiles.trace import read_trace

KERNELS = "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Input Data Types\n"
OPERATORS = (
    "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),Device Self Duration(us),"
    "Device Total Duration(us)\n"
)
STEPS = "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Preparing\n"
APIS = "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"


def kernel(
    name: str, type_: str, core: str, start: float, us: float, *, step: int = 1, shapes: str = "8",
    types: str = "FLOAT16",
) -> str:  # fmt: skip
    """A row of kernel_details, its start with the tab that torch_npu writes."""
    return f'{step},0,{name},{type_},{core},"{start}\t",{us},"""{shapes}""",{types}\n'


def of_tables(*tables: str) -> Profile:
    """What tables say together."""
    profile = Profile("a profile")
    for table in tables:
        assert read_table(io.BytesIO(table.encode()), profile, Stacks(None))
    profile.finish()
    return profile


def of_trace(events: Any) -> Profile:
    """What a trace says: a list of events, or the text of one."""
    profile = Profile("a trace")
    text = events if isinstance(events, str) else json.dumps(events)
    read_trace(io.BytesIO(text.encode()), profile, Stacks(None))
    return profile


def named(profile: Profile) -> dict[str, Found]:
    """The findings of a profile by name."""
    return {found.remedy.name: found for found in findings_of(profile)}


def asked(type_: str, shape: str, *, stored: tuple[int, int] = (3, 3)) -> str:
    """A line of acl for one operator, as its sources format it."""
    sides = (
        f"{side}Desc[0]: [TensorDesc] DataType = 1, Format = 0, StorageFormat = {number}, Shape = [{shape}], "
        "StorageShape = [1], shapeRange = [], memtype = 0, isConst = 0 "
        for side, number in zip(("Input", "Output"), stored, strict=True)
    )
    return f"[INFO] ASCENDCL(1,python):2021-01-27 [op.cpp:1]2 aclopCompile::aclOp = OpType: {type_}, {''.join(sides)}"


def of_log(lines: list[str]) -> OpInfo:
    """The operators of one log."""
    logs = OpInfo()
    for line in lines:
        logs.line(line)
    logs.end()
    return logs


def run_folder(folder: Path) -> Path:
    """A run of torch_npu on a disk, with stacks, in `folder`."""
    output = folder / "host_1_20260101_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    stack = "/job/net/model.py(2): forward;\r\n/usr/lib/python3.10/site-packages/torch/nn/modules/module.py(9): call"
    (output / "operator_details.csv").write_text(
        OPERATORS + f'aten::contiguous,"8","{stack}",20,30,500,500\n', newline=""
    )
    (output / "kernel_details.csv").write_text(
        KERNELS
        + kernel("aclnnMatmul_X_MatMulV2", "MatMulV2", "AI_CORE", 1000, 800)
        + kernel("aclnnInplaceCopy_X_TensorMove", "TensorMove", "AI_VECTOR_CORE", 1800, 500)
    )
    (output / "step_trace_time.csv").write_text(STEPS + "0,1,1300,0,0,0,10,1310,0,1\n")
    (output / "api_statistic.csv").write_text(APIS + "host,acl,aclrtMalloc,1,1,1,1,1,0\n")
    return output.parent
