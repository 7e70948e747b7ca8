"""The cyclic shift of Swin's windows."""

from __future__ import annotations

import pytest

from tests.tunings.tuned import check_tuned, check_untuned

HEAD = """
    import torch


    def reverse(windows, B, H, W):
        x = windows.view(B, H // 7, W // 7, 7, 7, -1)
        x = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)
        return x


    def unknown(x):
        return x


    def forward(x, other, B, H, W, C, s):
        {}
    """


@pytest.mark.parametrize(
    "line",
    [
        "x = x.view(B, H, W, C)\n        x = {roll}(x, shifts=(-s, -s), dims=(1, 2))",
        "x = x.reshape((B, H, W, C)).contiguous()\n        y = {roll}(x, (s, s), (1, 2))",
        "return {roll}(other.permute(0, 2, 3, 1), (1, 2), dims=(1, 2))",
        "y = reverse(other, B, H, W)\n        return {roll}(y, shifts=(s, s), dims=(1, 2))",
    ],
)
def test_four_dimensions_are_seen(line: str) -> None:
    after = HEAD.format(line.format(roll="torch_npu.contrib.function.roll"))
    after = after.replace("import torch\n", "import torch\n    import torch_npu  # noqa: F401\n", 1)
    check_tuned("window-roll", HEAD.format(line.format(roll="torch.roll")), after)


@pytest.mark.parametrize(
    "line",
    [
        "return torch.roll(x, shifts=(s, s), dims=(1, 2))",
        "x = x.view(B, -1, C)\n        return torch.roll(x, shifts=(s, s), dims=(1, 2))",
        "x = x.view(*other)\n        return torch.roll(x, shifts=(s, s), dims=(1, 2))",
        "x = x.view(B, H, W, C)\n        return torch.roll(x, shifts=(s, s), dims=(2, 3))",
        "x = x.view(B, H, W, C)\n        return torch.roll(x, shifts=s, dims=(1, 2))",
        "x = x.view(B, H, W, C)\n        return torch.roll(input=x, shifts=(s, s), dims=(1, 2))",
        "x = x.view(B, H, W, C)\n        return other.roll(x, shifts=(s, s), dims=(1, 2))",
        "x = unknown(other)\n        return torch.roll(x, shifts=(s, s), dims=(1, 2))",
        "x = other(x)\n        return torch.roll(x, shifts=(s, s), dims=(1, 2))",
        "x = x.view(B, H, W, C)\n        for x in other:\n            torch.roll(x, shifts=(s, s), dims=(1, 2))",
    ],
)
def test_what_stays(line: str) -> None:
    check_untuned("window-roll", HEAD.format(line))
