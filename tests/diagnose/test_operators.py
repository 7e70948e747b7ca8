"""The operators that lines name, and where a report shows them."""

from __future__ import annotations

import pytest

from tests.diagnose.diagnoses import diagnosed
from transplt.precision.diagnose.findings import NEAR
from transplt.precision.diagnose.operators import operators_in

INNER = (
    "RuntimeError: The Inner error is reported as above. The process exits for this inner error, and the current "
    "working "
    "operator name is {}."
)
NUMBER = "[W compiler_depend.ts:122] Warning: NPU warning, error code is 507015[Error]: "


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (INNER.format("SelfAttentionOperation"), ["SelfAttentionOperation"]),
        (INNER.format("aclnnMul"), ["aclnnMul"]),
        ("NPU function error: call aclnnInplaceCopy failed, error code is 561103", ["aclnnInplaceCopy"]),
        ("aclnnAddGetWorkspaceSize failed with aclnnStatus=561002.", ["aclnnAdd"]),
        ("InnerRun:x.ts:234 OPS function error: Conv3D, error code is 500002", ["Conv3D"]),
        ("[rank1]:[E1023 x.ts:429] SelfAttentionOperation setup failed!", ["SelfAttentionOperation"]),
        ("LinearOperation CreateOperation failed", ["LinearOperation"]),
        ("EZ9999: 2024-05-17-18:46:14.721.067  Op Equal does not has any binary.", ["Equal"]),
        ("Kernel Run failed. opType: 88, Equal", ["Equal"]),
        ("Aicpu kernel execute failed, fault so_name=a.so, fault kernel_name=GetNext, fault op_name=", ["GetNext"]),
        (
            "Aicore kernel execute failed, fault kernel_name=RealDiv_ee98c6628030785f610b924ab1557b31_high_precision_2",
            ["RealDiv"],
        ),
        ("No engine for [MaxPoolGradWithArgmaxV180], optype [MaxPoolGradWithArgmaxV1]", ["MaxPoolGradWithArgmaxV1"]),
        ("E40021: Failed to compile Op [Conv3D1_to_Conv3dv2,[Conv3D1,Conv3D1]]. (oppath: ...", ["Conv3D1_to_Conv3dv2"]),
        ("[ERROR][MoeDistributeDispatchV2] Get attr and set tiling data failed.", ["MoeDistributeDispatchV2"]),
        ("Could not run 'aten::trunc.out' with arguments from the 'NPUTensorId' backend.", ["aten::trunc.out"]),
    ],
)  # fmt: skip
def test_the_operators_of_a_line(line: str, names: list[str]) -> None:
    assert operators_in(line) == names


@pytest.mark.parametrize(
    "line",
    [
        "OPS function error: HcclAllreduce, error code is 6",
        "fault so_name=, fault kernel_name=, fault op_name=, extend_info=",
        "[ERROR][Triton][BEG]",
        "[ERROR][Trainer] the loss is nan",
        "CAUTION: The operator 'aten::isin' is not currently supported on the NPU backend and will fall back to run on",
        "the operator name is relu",
    ],
)
def test_lines_that_name_none(line: str) -> None:
    assert operators_in(line) == []


def test_a_name_before_and_behind_an_error_belongs_to_it() -> None:
    said = diagnosed(f"Kernel Run failed. opType: 88, Equal\n{NUMBER}\n{INNER.format('Identity')}\n")
    assert said.heads == ["acl-507015"]
    assert said.failures[0].operators == ("Equal", "Identity")


def test_a_name_that_is_far_away_or_of_another_rank_does_not() -> None:
    far = "step\n" * (NEAR + 1)
    assert diagnosed(f"opType: 88, Equal\n{far}{NUMBER}\n").failures[0].operators == ()
    assert diagnosed(f"[rank1]: opType: 88, Equal\n[rank0]: {NUMBER}\n").failures[0].operators == ()
