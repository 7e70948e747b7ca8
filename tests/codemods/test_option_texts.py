"""Texts that name the values of an option follow them; all other text for people stays without `--texts`."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern


def moved(before: str, after: str, **more: object) -> None:
    imported = "import torch\nimport torch_npu  # noqa: F401\n"
    check_rewrite(f"import torch\n{before}\n", f"{imported}{after}\n", **more)


@pattern("P34", "T6")
@pytest.mark.parametrize(
    "line",
    [
        'parser.add_argument("--device", default="cuda", help="cuda or cpu")',
        'parser.add_argument("--device", choices=["cuda", "cpu"], help="cuda|cpu|mps")',
        'parser.add_argument("--dev", default="cuda:0", help="device, i.e. 0 or cpu (cuda:0 by default)")',
        'parser.add_argument("--dist-backend", default="nccl", help="backend: nccl or gloo")',
        'parser.add_argument("--device", default=None, help="cuda or cpu")',
        'parser.add_argument("--device", help="cuda:1, " "cuda:2 or cpu")',
        'flags.DEFINE_string("device", "cuda", "cuda or cpu")',
        'device: str = field(default="cuda", metadata={"help": "cuda or cpu"})',
        'device: str = Field("cuda", description="the device: cuda or cpu")',
        '@click.option("--device", default="cuda", type=click.Choice(["cuda", "cpu"]), help="cuda or cpu")\n'
        "def main(device): ...",
        'def main(device: str = typer.Option("cuda", help="cuda or cpu")): ...',
        'def main(device: Annotated[str, typer.Option(help="cuda or cpu")] = "cuda"): ...',
        'device: Annotated[str, Field(description="cuda or cpu")] = "cuda"',
    ],
)
def test_the_help_of_a_value(line: str) -> None:
    before, after = line, line.replace("cuda", "npu").replace("nccl", "hccl")
    values = (after != line and any(f"{key}=" in line for key in ("default", "choices"))) or "DEFINE" in line
    result = migrate(f"import torch\n{before}\n")
    assert after in result.data.decode(), values


@pattern("P34", "T6", "T28")
@pytest.mark.parametrize(
    "line",
    [
        'parser.add_argument("--no-cuda", action="store_true", help="do not use cuda")',
        'parser.add_argument("--cuda_ray", action="store_true", help="use cuda ray marching")',
        'parser.add_argument("--cuda-graph", default=False, help="capture a cuda graph")',
        'parser.add_argument("--arch", help="architecture to build cuda for")',
        'parser.add_argument("--seed", type=int, default=0, help="seed, on cuda too")',
        'lr: float = field(default=1.0, metadata={"help": "rate on cuda"})',
        'raise ValueError("device must be cuda or cpu")',
        'if kind == "fast":\n    raise ValueError("the fast kind needs cuda")',
        'print("usage: --device cuda")',
    ],
)
def test_other_text_stays(line: str) -> None:
    check_noop(f"import torch\n{line}\n")


@pattern("T6")
@pytest.mark.parametrize(
    ("help_", "after"),
    [
        ("CUDA device or cpu", "CUDA device or cpu"),
        ("needs cuda 11.8 or newer", "needs cuda 11.8 or newer"),
        ("a path such as /usr/local/cuda", "a path such as /usr/local/cuda"),
        ("as torch.cuda has it", "as torch.cuda has it"),
        ("cuda (an NVIDIA card) or cpu", "cuda (an NVIDIA card) or cpu"),
        ("cuda, or cpu; CUDA 12 is fine", "npu, or cpu; CUDA 12 is fine"),
        ("see --cuda-id; cuda or cpu", "see --cuda-id; npu or cpu"),
    ],
)
def test_only_values_change(help_: str, after: str) -> None:
    line = 'parser.add_argument("--device", default="{}", help="{}")'
    moved(line.format("cuda", help_), line.format("npu", after))


MESSAGES = [
    'if device not in ("cuda", "cpu"):\n    raise ValueError("device must be \'cuda\' or \'cpu\'")',
    'if device == "cuda":\n    x.to(device)\nelse:\n    raise ValueError(f"unknown {device}: cuda or cpu")',
    'assert device in ["cuda", "cpu"], f"{device} is neither cuda nor cpu"',
    'if device not in ("cuda", "cpu"):\n    parser.error("--device is cuda or cpu")',
    'if backend not in ("nccl", "gloo"):\n    raise ValueError("backend is nccl or gloo")',
]
TAIL = "\nx.to(torch.device(device))\ntorch.distributed.init_process_group(backend)"


@pattern("P34", "T6")
@pytest.mark.parametrize("message", MESSAGES)
def test_the_error_beside_a_test(message: str) -> None:
    result = migrate(f"import torch\n\n\ndef f(x, device, backend):\n{indented(message + TAIL)}\n")
    assert indented(message.replace("cuda", "npu").replace("nccl", "hccl")) in result.data.decode()


@pattern("T6")
def test_a_test_that_asks_for_the_card_too() -> None:
    line = 'if device == "{}" and not torch.{}.is_available():\n    raise ValueError("{} asked for, but {} is missing")'
    moved(f"device = torch.device('cpu').type\n{line.format('cuda', 'cuda', 'cuda', 'CUDA')}",
          f"device = torch.device('cpu').type\n{line.format('npu', 'npu', 'npu', 'NPU')}")  # fmt: skip


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


@pattern("T6", "T28")
def test_an_error_that_a_test_looks_for_stays() -> None:
    text = f"import torch\n\n\ndef f(x, device, backend):\n{indented(MESSAGES[0] + TAIL)}\n"
    test = 'import pytest\nwith pytest.raises(ValueError, match="must be \'cuda\'"):\n    f(1, 2)\n'
    kept = migrate(text, files={"test_train.py": test}).data.decode()
    assert 'not in ("npu", "cpu")' in kept
    assert "must be 'cuda'" in kept


@pattern("T6")
def test_an_error_under_another_test_stays() -> None:
    text = 'if torch.cuda.is_available() and n > 3:\n    raise ValueError("too many for cuda")'
    result = migrate(f"import torch\n{text}\n")
    assert "too many for cuda" in result.data.decode()


USAGE = '''"""Train.

Usage: train.py [options]

Options:
  --device=<d>   cuda or cpu [default: cuda].
  --preset=<p>   a preset, with cuda or without [default: ].
  -b --backend=<b>   nccl or gloo
                     [default: nccl]
"""
from docopt import docopt
args = docopt(__doc__)
'''


def test_the_usage_that_docopt_reads() -> None:
    after = USAGE.replace("cuda or cpu [default: cuda]", "npu or cpu [default: npu]").replace("nccl", "hccl")
    result = migrate(USAGE)
    assert result.data.decode().replace("import torch_npu  # noqa: F401\n", "") == after


def test_a_docstring_that_docopt_does_not_read() -> None:
    check_noop(USAGE.replace("docopt(__doc__)", "parse(__doc__)"))
    check_noop(USAGE.replace("[default: cuda]", "").replace("[default: nccl]", ""))


@pattern("P34")
def test_the_portable_style_edits_no_text() -> None:
    line = 'parser.add_argument("--device", default="cuda", help="cuda or cpu")'
    assert 'help="cuda or cpu"' in migrate(f"import torch\n{line}\n", style="portable").data.decode()
