"""The module of the portable style, on a host without a card and on the real torch_npu over the emulated card."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from transplt.edits.helper_file import helper_text
from transplt.edits.helper_source import owners

pytestmark = pytest.mark.torch
EVERY = [name for name, module in owners().items() if module == "accelerator"]
_ON_CPU = """
import device, torch
assert (device.DEVICE_TYPE, device.DIST_BACKEND) == ("cuda", "nccl")
assert device.VISIBLE_DEVICES == "CUDA_VISIBLE_DEVICES"
assert device.device_module is torch.cuda
assert device.device() == torch.device("cuda") and device.device(1) == torch.device("cuda:1")
scaler = device.grad_scaler(enabled=False)
assert not scaler.is_enabled()


class Double(torch.autograd.Function):
    @staticmethod
    @device.custom_fwd
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @device.custom_bwd
    def backward(ctx, grad):
        return grad * 2


class Half(torch.autograd.Function):
    @staticmethod
    @device.custom_fwd(cast_inputs=torch.float32)
    def forward(ctx, x):
        return x / 2


x = torch.ones(2, requires_grad=True)
Double.apply(x).sum().backward()
assert x.grad.tolist() == [2, 2] and Half.apply(x.detach()).tolist() == [0.5, 0.5]
"""


def test_a_host_with_neither_card_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "device.py").write_text(helper_text(EVERY, portable=True), encoding="ascii")
    (tmp_path / "use.py").write_text(_ON_CPU, encoding="ascii")
    subprocess.run([sys.executable, "-W", "error", "use.py"], cwd=tmp_path, check=True)
