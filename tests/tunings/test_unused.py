"""Imports go when nothing needs them any more, whatever was replaced."""

from __future__ import annotations

import pytest

from tests.harness import migrate

NET = """\
import torch
from torch import nn
{head}


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(8, 16)
        self.w2 = nn.Linear(8, 8)

    def forward(self, x):
        h = self.w1(x)
        a, b = h.chunk(2, dim=-1)
        return self.w2({silu}(a) * b)
"""


@pytest.mark.parametrize(
    ("head", "silu", "left"),
    [
        ("from torch.nn.functional import silu", "silu", ""),
        ("from torch.nn.functional import silu as swish", "swish", ""),
        ("from torch.nn.functional import gelu, silu", "silu", "from torch.nn.functional import gelu"),
        ("import torch.nn.functional as F", "F.silu", ""),
        ("import os; import torch.nn.functional as F", "F.silu", "import os"),
    ],
)
def test_an_import_without_a_use(head: str, silu: str, left: str) -> None:
    result = migrate(NET.format(head=head, silu=silu), path="net.py", tune=(("swiglu", ""),))
    text = result.data.decode()
    assert "npu_swiglu" in text
    assert [line for line in text.split("\n")[3:5] if line] == ([left] if left else [])


USED = "from torch.nn.functional import silu"


@pytest.mark.parametrize(
    ("head", "files"),
    [
        (USED, {"other.py": "from net import silu\n"}),
        (USED, {"other.py": "from net import (\n    Gated,\n    silu,\n)\n"}),
        (USED, {"other.py": "from net import *\n"}),
        (f'{USED}\n\n__all__ = ["Gated", "silu"]', {}),
        (f'{USED}\n\n__all__ = ["Gated"]\n__all__ += ["silu"]', {}),
        (f"{USED}\n\n\ndef other(x):\n    return silu(x)", {}),
        (f"try:\n    {USED}\nexcept ImportError:\n    from mine import silu", {}),
    ],
)
def test_an_import_that_is_used_elsewhere(head: str, files: dict[str, str]) -> None:
    result = migrate(NET.format(head=head, silu="silu"), path="net.py", files=files, tune=(("swiglu", ""),))
    assert USED in result.data.decode()


def test_a_name_of_a_function_is_its_own() -> None:
    head = f"\n\ndef other(silu):\n    return silu(1)\n\n\n{USED}"
    text = migrate(NET.format(head=head, silu="silu"), path="net.py", tune=(("swiglu", ""),)).data.decode()
    assert "npu_swiglu" in text and USED not in text
