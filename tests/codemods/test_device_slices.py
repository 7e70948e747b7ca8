"""Device strings taken apart by position: `npu` is one letter shorter than `cuda`."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern

_USE = """
import torch
def f(device, devices, text):
    torch.zeros(1, device='{cuda}')
    x = {line}
    return x
"""


def moves(before: str, after: str) -> None:
    expected = _USE.format(cuda="npu", line=after).replace("torch\n", "torch\nimport torch_npu  # noqa: F401\n", 1)
    check_rewrite(_USE.format(cuda="cuda", line=before), expected)


def stays(line: str, *open_codes: str) -> None:
    check_noop(_USE.format(cuda="cpu", line=line) + "# cuda\n", open_codes=open_codes)


@pattern("T5")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int(device[5:])", "int(device[4:])"),
        ("device[:4] == 'cuda'", "device[:3] == 'npu'"),
        ("device[0:4] == 'cuda'", "device[0:3] == 'npu'"),
        ("device[:4] in ('cuda', 'cpu')", "device[:3] in ('npu', 'cpu')"),
        ("device[:5] == 'cuda:'", "device[:4] == 'npu:'"),
        ("int(device[5])", "int(device[4])"),
        ("int(str(device)[5:])", "int(str(device)[4:])"),
        ("device[len('cuda:'):]", "device[len('npu:'):]"),
        ("device[:4:1] == 'cuda'", "device[:3:1] == 'npu'"),
        ("int(device[5::1])", "int(device[4::1])"),
    ],
)
def test_positions_move(before: str, after: str) -> None:
    moves(before, after)


@pattern("T5")
@pytest.mark.parametrize(
    "line",
    [
        "text[5:]",
        "text[:4] == 'cpu:'",
        "device[:3] == 'cpu'",
        "device[-1]",
        "device[4:]",
        "device[:4]",
        "devices[:4]",
        "devices[5::2]",
        "device.split(':')[1]",
        "device[5:6]",
    ],
)
def test_other_positions_stay(line: str) -> None:
    stays(line)


@pattern("T5")
@pytest.mark.parametrize("line", ["devices[5:]", "device[5]", "device[5::2]", "device[:4:2]"])
def test_what_may_be_a_list_is_reported(line: str) -> None:
    stays(line, "NPU202")
