"""Options of torch.npu.set_option that torch_npu does not know (rules/support/npu_options.json)."""

from __future__ import annotations

import pytest

from tests.harness import check_noop

HEAD = "import torch\nimport torch_npu\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("torch.npu.set_option({'ACL_PRECISION': 'x'})", "has no option ACL_PRECISION, and raises an error"),
        ("torch_npu.npu.set_option({'PTCOPY_ENABLE': '1'})", "has no option PTCOPY_ENABLE"),
        ("torch.npu.set_option(option={'acl_debug_dir': '.'})", "has no option acl_debug_dir"),
        ("from torch_npu.npu import set_option\nset_option({'Jit': 1})", "has no option Jit"),
        ("o = {'Jit': 1}\ntorch.npu.set_option(o)", "has no option Jit"),
        ("o = {}\no['Jit'] = 1\ntorch.npu.set_option(o)", "has no option Jit"),
        ("torch.npu.set_option({'ACL_OP_DEBUG_LEVEL': 5})", "takes 0 or 1 or 2 or 3 or 4 for ACL_OP_DEBUG_LEVEL"),
        ("torch.npu.set_option({'ACL_AICORE_NUM': 33})", "takes 1 to 32 for ACL_AICORE_NUM"),
        ("torch.npu.set_option({'ACL_PRECISION_MODE': 'fast'})", "takes allow_fp32_to_fp16 or must_keep_origin_dtype"),
    ],
)
def test_reported(source: str, said: str) -> None:
    result = check_noop(f"{HEAD}{source}\n", open_codes=["NPU558"])
    assert any(said in finding.message for finding in result.findings)


def test_the_nearest_key_is_named() -> None:
    source = f"{HEAD}torch.npu.set_option({{'ACL_OP_SELECT_IMPLMODE': 'high_precision'}})\n"
    result = check_noop(source, open_codes=["NPU558"])
    assert [finding.help for finding in result.findings] == ["did you mean ACL_OP_SELECT_IMPL_MODE?"]


def test_a_key_that_torch_npu_advises_against_is_a_remark() -> None:
    source = f"{HEAD}torch.npu.set_option({{'ACL_OP_SELECT_IMPL_MODE': 'high_precision'}})\n"
    result = check_noop(source, open_codes=["NPU558"])
    assert [finding.level.value for finding in result.findings] == ["info"]


@pytest.mark.parametrize(
    "source",
    [
        "torch.npu.set_option({'ACL_PRECISION_MODE': 'must_keep_origin_dtype'})",
        "torch.npu.set_option({'ACL_OP_DEBUG_LEVEL': 1, 'ACL_AICORE_NUM': '32'})",
        "torch.npu.set_option({'ACL_DEBUG_DIR': folder, 'ACL_OP_DEBUG_OPTION': 'oom'})",
        "torch.npu.set_option({'ACL_PRECISION_MODE': mode})",
        "o = {}\no['MM_BMM_ND_ENABLE'] = 'enable'\ntorch.npu.set_option(o)",
        "torch.npu.set_option({'jitCompile': 'disable', 'ALLOW_CONV_HF32': 'enable'})",
        "torch.npu.set_option({**more, key: 1})",
        "torch.npu.set_option(options)",
        "torch.npu.set_option(dict(Jit=1))",
        "o = {'Jit': 1}\no = read()\ntorch.npu.set_option(o)",
        "def f():\n    o = {'Jit': 1}\ndef g(o):\n    torch.npu.set_option(o)",
        "torch.npu.set_option()",
        "mine.set_option({'Jit': 1})",
        "pandas.set_option('display.width', 80)",
        "def set_option(o):\n    pass\nset_option({'Jit': 1})",
    ],
)
def test_silent(source: str) -> None:
    check_noop(f"{HEAD}{source}\n")
