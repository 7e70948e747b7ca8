"""Text for people stays as it is; with `--texts` it speaks of the NPU where its code does, and names in it stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern, reasons
from transplt.base.errors import UsageError
from transplt.base.settings import TorchTarget
from transplt.project.config import Config
from transplt.project.options import Options, settings_of

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
    check_rewrite(f"{_HEAD}parser.add_argument({before})\n", f"{_HEAD}parser.add_argument({after})\n", texts=True)


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
    check_noop(f"{_HEAD}parser.add_argument({arguments})\n", texts=True)


@pattern("T6")
def test_the_help_of_a_choice_that_stays() -> None:
    check_noop(
        f"{_HEAD}parser.add_argument('--mode', choices=['cuda', 'ref'], help='cuda: the fast kernel')\n",
        open_codes=["NPU203"],
        texts=True,
    )


@pattern("T6", "T26")
@pytest.mark.parametrize(
    "flag", ["'--cuda_ray', help='use CUDA raymarching'", "'--cuda-graph', help='capture a CUDA graph'"]
)
def test_a_flag_that_switches_code_of_cuda(flag: str) -> None:
    check_noop(f"{_HEAD}parser.add_argument({flag})\n", texts=True)


#: A line, the same line of a migration, and of one with `--texts`.
_MESSAGES = [
    (
        'print(f"CUDA available: {torch.cuda.is_available()}")',
        'print(f"CUDA available: {torch.npu.is_available()}")',
        'print(f"NPU available: {torch.npu.is_available()}")',
    ),
    (
        'assert torch.cuda.is_available(), "Distributed mode requires CUDA."',
        'assert torch.npu.is_available(), "Distributed mode requires CUDA."',
        'assert torch.npu.is_available(), "Distributed mode requires NPU."',
    ),
    (
        'if not torch.cuda.is_available():\n    raise RuntimeError("no CUDA here")',
        'if not torch.npu.is_available():\n    raise RuntimeError("no CUDA here")',
        'if not torch.npu.is_available():\n    raise RuntimeError("no NPU here")',
    ),
    (
        'x = torch.ones(1).cuda()\nlogging.info("on %d cuda devices", 1)',
        'x = torch.ones(1).npu()\nlogging.info("on %d cuda devices", 1)',
        'x = torch.ones(1).npu()\nlogging.info("on %d npu devices", 1)',
    ),
    (
        'x = torch.ones(1).cuda()\nwarnings.warn("slow " "without CUDA")',
        'x = torch.ones(1).npu()\nwarnings.warn("slow " "without CUDA")',
        'x = torch.ones(1).npu()\nwarnings.warn("slow " "without NPU")',
    ),
    (
        'parser.add_argument("--device", default="cuda", help="CUDA or CPU")',
        'parser.add_argument("--device", default="npu", help="CUDA or CPU")',
        'parser.add_argument("--device", default="npu", help="NPU or CPU")',
    ),
]
_TOP = "import argparse\nimport logging\nimport warnings\nimport torch\n{}parser = argparse.ArgumentParser()\n"
_BEFORE, _AFTER = _TOP.format(""), _TOP.format("import torch_npu  # noqa: F401\n")


@pattern("P34", "T6", "T28")
@pytest.mark.parametrize(("before", "after", "texts"), _MESSAGES)
def test_messages_stay_and_follow_when_that_is_asked_for(before: str, after: str, texts: str) -> None:
    kept = check_rewrite(f"{_BEFORE}{before}\n", f"{_AFTER}{after}\n")
    assert reasons(kept) == {"text for people": 1}
    check_rewrite(f"{_BEFORE}{before}\n", f"{_AFTER}{texts}\n", texts=True)


@pattern("T6", "T28")
@pytest.mark.parametrize(
    "line",
    [
        'print("CUDA " + str(1))',  # no code of this file moves
        'x = "CUDA is used"',
        '"""CUDA is used."""',
        'print("cuda")',  # a value as likely as a text
        'print("see torch.cuda and CUDA_HOME")',
    ],
)
def test_what_is_no_text_on_code_that_moves(line: str) -> None:
    check_noop(f"{line}\n", texts=True)


@pattern("T6", "T28")
@pytest.mark.parametrize(
    "line",
    [
        'print("built with CUDA 11.8")',
        'print("compiling CUDA kernels")',
        'print("the NVIDIA CUDA compiler is missing")',
        'out.write("uses CUDA here")',
        'self.log("CUDA memory", 1)',
        'with pytest.raises(RuntimeError, match="CUDA is missing here"):\n    pass',
    ],
)
def test_texts_that_stay_beside_code_that_moves(line: str) -> None:
    head = "import pytest\nimport torch\n"
    new = "import pytest\nimport torch\nimport torch_npu  # noqa: F401\n"
    check_rewrite(
        f"{head}x = torch.ones(1).cuda()\n{line}\n", f"{new}x = torch.ones(1).npu()\n{line}\n", texts=True
    )


@pattern("T6")
def test_a_text_on_code_that_stays() -> None:
    head = "import torch\n"
    line = 'if torch.cuda.get_device_capability()[0] < 8:\n    raise RuntimeError("CUDA of this card is too old")\n'
    result = migrate(f"{head}{line}x.cuda()\n", texts=True)
    assert '"CUDA of this card is too old"' in result.data.decode()


@pattern("P34")
def test_the_portable_style_edits_no_text() -> None:
    with pytest.raises(UsageError, match="--texts only writes for NPUs"):
        settings_of(Options(style="portable", texts=True), Config(), TorchTarget("2.13", "asked for"), Path())
