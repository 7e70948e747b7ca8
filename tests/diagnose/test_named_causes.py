"""Causes that a log itself names (a version, a place, a form of shapes), and texts beside them that name none."""

from __future__ import annotations

import json

import pytest

from tests.diagnose.diagnoses import diagnosed
from tests.diagnose.test_readings import SITE, TRACE, told
from transplt.rules.errors import error_called
from transplt.rules.tables import rules_dir

PLOG = "[ERROR] HCCL(7,train):2026-01-02-03:04:05.678.901 [socket.cc:1] [8]{}\n"
COMPILER = "NPU function error: at_npu::native::AclSetCompileopt(option), error code is 500001\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("AttributeError: module 'torch_npu' has no attribute 'current_stream'", "name-of-torch-npu"),
        ("AttributeError: module 'torch_npu' has no attribute 'npu_some_operator'", "torch-npu-too-old"),
        ("ImportError: cannot import name 'set_device' from 'torch_npu' (/x/__init__.py)", "name-of-torch-npu"),
        ("ImportError: cannot import name 'other' from 'torch_npu' (/x/torch_npu/__init__.py)", "import-name"),
        ("AttributeError: module 'torch.npu' has no attribute 'empty_cache'", "torch-npu-too-old"),
        ("ImportError: cannot import name 'Engine' from 'vllm' (unknown location)", "package-hollow"),
        ("ImportError: cannot import name 'Engine' from 'vllm' (/x/vllm/__init__.py)", "vllm-pair"),
        ("ImportError: cannot import name 'jit' from 'triton' (unknown location)", "triton-two"),
        ("ValueError: Your assigned backend nccl is not avaliable, please use hccl", "trainer-backend"),
        ("RuntimeError: No backend type associated with device type npu", "no-backend-for-npu"),
        ("Failed to obtain op buffer size of the second operand", "triton-compile"),
        ('loc("/tmp/a/kernel.ttadapter.mlir":3:4): error: cannot place the result', "triton-compile"),
        ('loc(callsite("/a/k.py":1:2 at "/a/j.py":3:4)): error: cannot place the result', "triton-compile"),
        ("/tmp/a/kernel.ttadapter.mlir:3:4: error: cannot place the result", "triton-compile"),
        ("error: 'hivm.hir.vadd' op operands differ", "triton-compile"),
        ("error: 'hivm.hir.vabs' op failed to verify that operand at idx 0 should have", "triton-unsupported"),
        ("LLVM ERROR: unsupported datatype for arith::ExtFOp to hfusion", "triton-unsupported"),
        ("error: cc overflow, requires 2097152 bits while 1048576 bits available!", "triton-ub-overflow"),
        ("loc(\"step@main\"): error: 'tf.Foo' op is unknown", ""),
        ('loc("/tmp/a/kernel.ttadapter.mlir":3:4): warning: slow layout', ""),
        (PLOG.format("[Wait]wait socket establish timeout, role[1]"), "hccl-ei0006"),
        (PLOG.format("[Wait]links establish, role[1] failed"), "plog-hccl"),
    ],
)
def test_texts_that_are_near_to_each_other(text: str, name: str) -> None:
    said = diagnosed(text)
    assert (said.first if said.first != "?" else "") == name
    assert len(said.heads) <= 1


def test_names_of_torch_npu_are_those_of_its_wheels() -> None:
    """None of the names lies at the top of torch_npu in any version."""
    table = json.loads((rules_dir() / "support" / "npu_names.json").read_text("utf-8"))["names"]
    every = {name for names in table.values() for name in names}
    error = error_called("name-of-torch-npu")
    assert error is not None and error.when[0].pattern is not None
    names = error.when[0].pattern.pattern.split("(?P<name>")[1].split(")")[0].split("|")
    assert len(names) > 40
    assert {f"torch.npu.{name}" for name in names} <= every
    assert not {f"torch_npu.{name}" for name in names} & every


ON = "AssertionError: Expects tensor to be on the compute device npu:{}, was on {}\n"
SIZES = "RuntimeError: The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension {}\n"


@pytest.mark.parametrize(
    ("text", "names", "not_names"),
    [
        (ON.format(3, "npu:0"), "NOSET_ASCEND_RT_VISIBLE_DEVICES", "offload"),
        (ON.format(3, "cpu"), "offload", "NOSET"),
        ("AssertionError: Expects a tensor\n", "check of the program", "FSDP"),
        (SIZES.format(32, 64, 3), "rotary", "BSH"),
        (SIZES.format(128, 64, 3), "rotary", "BSH"),
        (SIZES.format(32, 64, 1), "BSH", "rotary"),
        (SIZES.format(32, 640, 3), "BSH", "rotary"),
        (SIZES.format(33, 64, 3), "BSH", "rotary"),
        ("Successfully installed numpy-2.1.0 foo-1.0\n" + COMPILER, "numpy<2", "were not sourced"),
        ("numpy     2.2.6\n" + COMPILER, "numpy<2", "set_env.sh was not sourced"),
        ("Successfully installed numpy-1.26.4\n" + COMPILER, "set_env.sh was not sourced", "numpy<2"),
        ("Uninstalling numpy-2.1.0:\n" + COMPILER, "set_env.sh was not sourced", "numpy<2"),
        ("foo requires numpy>=2.0\n" + COMPILER, "set_env.sh was not sourced", "numpy<2"),
        ("fsdp_version: 2\nAssertionError: Torch not compiled with CUDA enabled\n", "newer accelerate", "4.49"),
        ("fsdp_version: 1\nAssertionError: Torch not compiled with CUDA enabled\n", "4.49", "accelerate"),
        ("fsdp_version: 2\n" + TRACE.format(f"{SITE}/foo/a.py", "x.cuda()")
         + "AssertionError: Torch not compiled with CUDA enabled\n", "A newer foo", "3790"),
        ("ImportError: cannot import name 'Engine' from 'foo.bar' (unknown location)\n", "uninstall foo,", "PACKAGE"),
        ("Failed to obtain op buffer shape\n", "Split the kernel", "TRITON_DEBUG"),
        ("error: 'hivm.hir.vadd' op operands differ\n", "TRITON_DEBUG", "Split the kernel"),
        ("start\nLLVM ERROR: cannot place a register\n", "A compiler gave up", "No row"),
        (PLOG.format("wait socket establish timeout"), "HCCL_CONNECT_TIMEOUT", "without numbers"),
        (PLOG.format("| LINK_ERROR_INFO |"), "TLS switch", "without numbers"),
        ("Failed to bind the IP port (EJ0003): bound.\n", "an offset", "16666"),
        ("AttributeError: module 'torch_npu.npu' has no attribute 'npu_foo'\n", "torch_npu.npu_foo", "ms_fmk"),
        ("AttributeError: module 'torch_npu' has no attribute 'foo'\n", "ms_fmk", "torch.npu.foo"),
    ],
)  # fmt: skip
def test_what_the_log_names_decides(text: str, names: str, not_names: str) -> None:
    said = told(text)
    assert names in said and not_names not in said


def test_a_module_is_named_once_in_a_title() -> None:
    (failure,) = diagnosed(PLOG.format("odd")).failures
    assert failure.head.error is not None
    assert failure.head.error.title == "HCCL, the communication between cards, reports an error"


@pytest.mark.parametrize("last", ["LLVM version 19: found", "LLVM errors: 0", "INFO LLVM ERROR handler is set (1)"])
def test_a_log_that_only_names_the_compiler_ends_well(last: str) -> None:
    assert diagnosed(f"start\n{last}\n").heads == []


@pytest.mark.parametrize(
    ("module", "named"),
    [
        ("torch_scatter", "pip install torch_scatter"),
        ("dateutil", "pip install python-dateutil"),
        ("clip", "pip install git+https://github.com/openai/CLIP"),
        ("utils", "top of the project"),
    ],
)
def test_a_module_that_is_missing_is_named_as_pip_calls_it(module: str, named: str) -> None:
    assert named in told(f"ModuleNotFoundError: No module named '{module}'\n")
