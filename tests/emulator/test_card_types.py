"""Types of tensors that operators of the emulated card refuse, or compute on its AI CPU, as CANN's source says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import forked

pytestmark = pytest.mark.torch
PROGRAM = Path(__file__).parent / "programs" / "card_types.py"
REFUSED = [
    "polar float64", "index complex64", "index complex128", "index by mask complex64", "index_put complex64",
    "gather complex64", "cat complex128", "silu float64", "gelu float64", "index uint16",
]  # fmt: skip


def told(program: Any, **config: Any) -> dict[str, str]:
    found: dict[str, str] = json.loads(program("card_types.py", **config).stdout.splitlines()[-1])
    return {name: forked.in_words_of_cann(error) for name, error in found.items()}


def test_what_a_910b_refuses_and_takes(program: Any) -> None:
    found = told(program)
    assert [name for name, error in found.items() if error] == REFUSED
    assert found["index complex64"] == (
        "[emulated npu] call aclnnIndex failed, error code is 161002. AclNN_Parameter_Error(EZ1001): Tensor self not "
        "implemented for DT_COMPLEX64, should be in dtype support list [DT_FLOAT,DT_FLOAT16,DT_INT64,DT_INT32,DT_BOOL,"
        "DT_INT8,DT_UINT8,DT_BFLOAT16,DT_DOUBLE,DT_INT16,]. aten::index takes no complex64 on Ascend 910B (Atlas A2): "
        "make its tensors float32, or compute this on the CPU [NPU791]"
    )


def test_another_card_takes_others(program: Any) -> None:
    found = told(program, card="950")
    assert not found["index complex64"] and found["index complex128"] and found["polar float64"]


def test_of_cards_whose_operators_are_not_read_nothing_is_refused(program: Any) -> None:
    assert not any(told(program, card="910").values())


def test_the_ai_cpu_is_told_with_the_count_of_calls(transplt_run: Callable[..., Any]) -> None:
    script = "import torch, torch_npu\nx = torch.ones(4, dtype=torch.float64).npu()\nfor _ in range(3):\n    x.exp()\n"
    code, report, _ = transplt_run(script)
    assert (code, report["verdict"]) == (0, "runs")
    (finding,) = [each for each in report["findings"] if each["code"] == "NPU795"]
    assert (finding["line"], finding["count"], finding["level"]) == (4, 3, "info")
    assert finding["message"] == "aten::exp of float64 runs on the AI CPU of Ascend 910B (Atlas A2): right, and slow"


def test_what_the_own_card_did_comes_before_the_table(program: Any) -> None:
    own = {
        "aten::index.Tensor": {"complex64,int64": ""},
        "aten::silu": {"float64": ""},
        "aten::mul.Tensor": {"complex64,complex64": "no such product (card.json)"},
    }
    found = told(program, own=own)
    assert not found["index complex64"] and not found["silu float64"] and found["index complex128"]
    assert found["mul complex64"] == "[emulated npu] no such product (card.json)"
