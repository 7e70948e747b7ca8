"""The help of a flag speaks of the NPU once the flag's values do; names in it stay."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern

_HEAD = "import argparse\nparser = argparse.ArgumentParser()\n"


@pattern("P34", "T6")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("'--cuda', action='store_true', help='use CUDA'", "'--cuda', action='store_true', help='use NPU'"),
        ("'--no-cuda', help='disables CUDA training'", "'--no-cuda', help='disables NPU training'"),
        ("'--gpu', help='cuda device, i.e. 0 (see --no-cuda)'", "'--gpu', help='npu device, i.e. 0 (see --no-cuda)'"),
        ("'--b', help='one of gloo, nccl'", "'--b', help='one of gloo, hccl'"),
        ("'--c', help='on ' 'CUDA or CPU'", "'--c', help='on ' 'NPU or CPU'"),
        ("'--device', default='cuda', help='cuda or cpu'", "'--device', default='npu', help='npu or cpu'"),
    ],
)
def test_words_of_the_help(before: str, after: str) -> None:
    check_rewrite(f"{_HEAD}parser.add_argument({before})\n", f"{_HEAD}parser.add_argument({after})\n")


@pattern("P34", "T28")
@pytest.mark.parametrize(
    "arguments",
    [
        "'--a', help='sets CUDA_VISIBLE_DEVICES'",
        "'--b', help='path below /usr/local/cuda'",
        "'--c', help='like torch.cuda.amp'",
        "'--d', help='the CUDA version to build for'",
        "'--e', help='needs the CUDA toolkit'",
        "'--f', help='see https://docs.nvidia.com/cuda/'",
        "'--use_cuda', action='store_true'",
        "'--g', metavar='CUDA'",
    ],
)
def test_names_in_the_help_stay(arguments: str) -> None:
    check_noop(f"{_HEAD}parser.add_argument({arguments})\n")


@pattern("T6")
def test_the_help_of_a_choice_that_stays() -> None:
    check_noop(
        f"{_HEAD}parser.add_argument('--mode', choices=['cuda', 'ref'], help='cuda: the fast kernel')\n",
        open_codes=["NPU203"],
    )


@pattern("T6", "T26")
@pytest.mark.parametrize(
    "flag", ["'--cuda_ray', help='use CUDA raymarching'", "'--cuda-graph', help='capture a CUDA graph'"]
)
def test_a_flag_that_switches_code_of_cuda(flag: str) -> None:
    check_noop(f"{_HEAD}parser.add_argument({flag})\n")
