"""What a migration edits in kernels of Triton, run: the kernels of the original and of the migrated program agree."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.test_quick_start import typed

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs pip install '.[triton]'"),
]
#: Its last line launches where the file is imported, as scripts without a main guard do.
ORIGINAL = '''import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def rows(x_ptr, y_ptr, width, N: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for first in tl.static_range(0, N, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        mask = columns < width
        x = tl.load(x_ptr + row * width + columns, mask=mask, other=0.0, cache_modifier=".cg")
        tl.store(y_ptr + row * width + columns, libdevice.tanh(x), mask=mask)


def main():
    x = torch.randn(5, 100, device=DEVICE)
    y = torch.empty_like(x)
    rows[(5,)](x, y, 100, N=128, BLOCK=64, num_warps=4)
    print("right", torch.allclose(y, torch.tanh(x)))


main()
'''


@pytest.mark.slow
def test_edited_kernels_agree(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "main.py").write_text(ORIGINAL)
    typed(tmp_path, "transplt -i project -o out -q", 1)  # triton-ascend is to be installed
    new = (tmp_path / "out" / "project_msft" / "main.py").read_text()
    gone = ("num_warps", "cache_modifier", "extra.cuda", "get_active_torch_device", "static_range")
    assert [word for word in gone if word in new] == []
    assert "tl.range(0, N, BLOCK)" in new and 'torch.device("npu", torch.npu.current_device())' in new
    told = typed(tmp_path, "transplt prove --kernels project out/project_msft --main main.py", 0)
    assert "equal: 1 kernel compared in 1 launch, bit-identical" in told, told
    assert "right True" in typed(tmp_path, "transplt run out/project_msft/main.py", 0)
