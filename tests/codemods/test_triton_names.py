"""Names that triton-ascend has in another place or not at all: libdevice (NPU563), the active device (NPU562)."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate

HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
CANN = "triton.language.extra.cann"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from triton.language.extra import libdevice", f"from {CANN} import libdevice"),
        ("from triton.language.extra.cuda import libdevice as ld", f"from {CANN} import libdevice as ld"),
        ("import triton.language.extra.cuda.libdevice as ld", f"import {CANN}.libdevice as ld"),
        ("from triton.language.extra.libdevice import tanh", f"from {CANN}.libdevice import tanh"),
        ("from triton.language.extra.cuda.libdevice import tanh, rsqrt", f"from {CANN}.libdevice import tanh, rsqrt"),
        ("from triton.language.extra.libdevice import rsqrt", "from triton.language.math import rsqrt"),
        ("from triton.language.math import tanh, erfinv", f"from {CANN}.libdevice import tanh, erfinv"),
        ("y = tl.extra.cuda.libdevice.pow(x, x)", "y = tl.extra.cann.libdevice.pow(x, x)"),
        ("y = tl.extra.cuda.libdevice.exp(x)", "y = tl.math.exp(x)"),
        ("y = tl.libdevice.tanh(x)", "y = tl.extra.cann.libdevice.tanh(x)"),
        ("y = tl.math.erfinv(x)", "y = tl.extra.cann.libdevice.erfinv(x)"),
    ],
)
def test_functions_come_from_the_module_for_npus(before: str, after: str) -> None:
    result = check_rewrite(f"{HEAD}{before}\n", f"{HEAD}{after}\n", open_codes=["NPU512"])
    assert "NPU563" in {finding.code for finding in result.findings if finding.applied}


def test_the_module_goes_by_the_cann_of_the_target() -> None:
    before = f"{HEAD}from triton.language.extra import libdevice\n"
    after = f"{HEAD}from triton.language.extra.ascend import libdevice\n"
    check_rewrite(before, after, torch_version="2.6", open_codes=["NPU512"])


@pytest.mark.parametrize("line", ["from triton.language.math import isnan", "y = tl.math.rint(tl.math.pow(x, x))"])
def test_functions_that_one_release_has_in_math_are_those_of_libdevice_in_the_next(line: str) -> None:
    check_noop(f"{HEAD}{line}\n", torch_version="2.6", open_codes=["NPU512"])
    assert "extra.cann.libdevice" in migrate(f"{HEAD}{line}\n").data.decode()


def test_in_portable_style_libdevice_is_reported() -> None:
    source = f"{HEAD}from triton.language.extra import libdevice\ny = libdevice.popc(x)\n"
    check_noop(source, style="portable", open_codes=["NPU512", "NPU563"])


@pytest.mark.parametrize(
    "line",
    [
        "from triton.language.extra.cuda.libdevice import j0",
        "y = tl.extra.cuda.libdevice.popc(x)",
        "y = tl.math.clz(x)",
        "from triton.language.extra.libdevice import *",
    ],
)
def test_functions_that_are_nowhere_are_reported(line: str) -> None:
    check_noop(f"{HEAD}{line}\n", open_codes=["NPU512", "NPU563"])


def test_a_function_that_is_nowhere_is_reported_beside_the_import() -> None:
    source = f"{HEAD}from triton.language.extra import libdevice\n\ny = libdevice.erfcx(libdevice.tanh(x))\n"
    result = migrate(source)
    assert f"from {CANN} import libdevice" in result.data.decode()
    assert [each.message for each in result.findings if each.code == "NPU563" and not each.applied] == [
        "libdevice of triton-ascend has no erfcx"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "from triton.language.math import rsqrt",
        "from triton.language.math import tanh, exp",
        "y = tl.math.exp(x)",
        "y = tl.math.tanh(x)",
        f"from {CANN} import libdevice",
        "from mine import libdevice\n\ny = libdevice.popc(x)",
        "import math\n\ny = math.tanh(1.0)",
    ],
)
def test_other_functions_stay(line: str) -> None:
    check_noop(f"{HEAD}{line}\n", open_codes=["NPU512"])


DEVICE = "triton.runtime.driver.active.get_active_torch_device()"
NPU = 'torch.device("npu", torch.npu.current_device())'


def test_the_active_device_is_named_by_torch() -> None:
    body = "device = {}\n\n\ndef check(x):\n    assert x.device == device\n"
    after = f"import torch\nimport torch_npu  # noqa: F401\nimport triton\n{body.format(NPU)}"
    check_rewrite(f"import torch\nimport triton\n{body.format(DEVICE)}", after, open_codes=["NPU512"])


def test_without_torch_it_is_reported() -> None:
    check_noop(f"import triton\n\ndevice = {DEVICE}\n", open_codes=["NPU512", "NPU562"])


def test_in_portable_style_it_stays() -> None:
    check_noop(f"import torch\nimport triton\n\ndevice = {DEVICE}\n", style="portable", open_codes=["NPU512"])


@pytest.mark.parametrize("key", ["multiprocessor_count", "warpSize", "sm_clock_rate"])
def test_properties_that_an_npu_does_not_have_are_reported(key: str) -> None:
    asked = "triton.runtime.driver.active.utils.get_device_properties(0)"
    check_noop(f"import triton\n\nn = {asked}['{key}']\n", open_codes=["NPU512", "NPU562"])
    check_noop(f"import triton\n\np = {asked}\nn = p['{key}']\n", open_codes=["NPU512", "NPU562"])


@pytest.mark.parametrize("key", ["num_aicore", "num_vectorcore", "max_shared_mem"])
def test_properties_that_it_has_stay(key: str) -> None:
    asked = "triton.runtime.driver.active.utils.get_device_properties(0)"
    check_noop(f"import triton\n\nn = {asked}['{key}']\n", open_codes=["NPU512"])
    check_noop(f"import triton\n\nn = properties(0)['{key}_of_mine']\n", open_codes=["NPU512"])
