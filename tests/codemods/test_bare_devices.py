"""Integers as devices, by version of torch."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern
from transplt.base.settings import TORCH_VERSIONS

LITERALS = [
    ("y = x.cuda(x).to(0)", 'y = x.npu(x).to("npu:0")'),
    ("y = x.cuda(x).to(device=1)", 'y = x.npu(x).to(device="npu:1")'),
    ("y = x.cuda(x).to(0, non_blocking=True)", 'y = x.npu(x).to("npu:0", non_blocking=True)'),
    ("d = torch.device(0), x.cuda()", 'd = torch.device("npu:0"), x.npu()'),
    ("y = torch.ones(2, device=0), x.cuda()", 'y = torch.ones(2, device="npu:0"), x.npu()'),
]
NAMED = ["x.to(rank)", "x.to(args.local_rank)", "torch.ones(2, device=gpu)", "torch.device(local_rank)"]


def function(line: str, *, npu: bool = False) -> str:
    head = "import torch\n" + ("import torch_npu  # noqa: F401\n" if npu else "")
    return f"{head}def move(x, rank, gpu, local_rank, args, device):\n    {line}\n"


@pattern("P25", "T16")
@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize(("before", "after"), LITERALS)
def test_numbers_before_2_3(before: str, after: str, version: str) -> None:
    check_rewrite(function(before), function(after, npu=True), torch_version=version)


@pattern("P25", "T16")
@pytest.mark.parametrize("version", ["2.3", "2.8", TORCH_VERSIONS[-1]])
@pytest.mark.parametrize(("before", "after"), LITERALS)
def test_numbers_are_npus_from_2_3_on(before: str, after: str, version: str) -> None:
    moved = before.replace(".cuda(", ".npu(")
    remark = [] if ".to(" in before else ["NPU282"]
    check_rewrite(function(before), function(moved, npu=True), open_codes=remark, torch_version=version)


@pattern("P25", "T16")
@pytest.mark.parametrize("expression", NAMED)
def test_ranks_before_2_3(expression: str) -> None:
    source = function(f"return {expression}  # cuda")
    check_noop(source, open_codes=["NPU248"], torch_version="2.1")


@pattern("P25", "T16")
@pytest.mark.parametrize("expression", NAMED)
def test_ranks_from_2_3_on(expression: str) -> None:
    check_noop(function(f"return {expression}  # cuda"))


@pattern("P25", "T16")
def test_the_current_device_is_a_number() -> None:
    before = function("return torch.ones(2, device=torch.cuda.current_device())")
    after = function("return torch.ones(2, device=torch.npu.current_device())", npu=True)
    check_rewrite(before, after, open_codes=["NPU248"], torch_version="2.1")
    check_rewrite(before, after)


@pattern("P21", "T16")
@pytest.mark.parametrize("version", ["2.1", TORCH_VERSIONS[-1]])
def test_numbers_of_the_npu_methods_stay(version: str) -> None:
    before = function("torch.cuda.set_device(0); return x.cuda(0)")
    after = function("torch.npu.set_device(0); return x.npu(0)", npu=True)
    check_rewrite(before, after, torch_version=version)


@pattern("P25", "T16")
@pytest.mark.parametrize(
    "line", ["return x.to(device)", "return x.to(x.dtype)", "return pipeline(x, device=0)", "return x.to(True)"]
)
def test_what_is_no_number_of_a_device(line: str) -> None:
    check_noop(function(f"{line}  # cuda"), torch_version="2.1")
