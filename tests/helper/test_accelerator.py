"""The module of the portable style, on a host without a card and on the real torch_npu over the emulated card."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.processes import unmeasured
from transplt.edits.helper_file import helper_text
from transplt.edits.helper_source import owners

pytestmark = pytest.mark.torch
_SITE = Path(__file__).parents[2] / "transplt" / "emulator" / "site_cuda"
EVERY = [name for name, module in owners().items() if module == "accelerator"]
_ON_CPU = """
import device, torch
assert (device.DEVICE_TYPE, device.DIST_BACKEND) == ("cuda", "nccl")
assert (device.VISIBLE_DEVICES, device.LAUNCH_BLOCKING) == ("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING")
assert device.device_module is torch.cuda and device.profiler is torch.profiler
assert device.DEVICE_ACTIVITY is torch.profiler.ProfilerActivity.CUDA
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


_ON_OLD_TORCH = """
import sys
import types

torch = types.ModuleType("torch")
torch.device, torch.float32, torch.float64 = object, 32, 64
torch.profiler = types.SimpleNamespace(ProfilerActivity=types.SimpleNamespace(CUDA=1))
names = ("autocast", "GradScaler", "custom_fwd", "custom_bwd")


def made(home, name):
    return lambda *given, **options: (home, name, given, options)


torch.cuda = types.SimpleNamespace(amp=types.SimpleNamespace(**{name: made("cuda", name) for name in names}))
for name in sys.argv[1].split():
    home, _, last = name.rpartition(".")
    if home and not hasattr(torch, home):
        setattr(torch, home, types.SimpleNamespace())
    if last:
        setattr(getattr(torch, home) if home else torch, last, made("torch", last))
sys.modules["torch"] = torch
import device

print(*[device.autocast()[0], device.grad_scaler()[0], device.custom_fwd(1)[0], device.custom_bwd(1)[0]])
"""


@pytest.mark.parametrize(
    ("has", "used"),
    [
        ("", "cuda cuda cuda cuda"),  # torch 1.9
        ("autocast", "torch cuda cuda cuda"),  # 1.10
        ("autocast amp.", "torch cuda cuda cuda"),  # 1.12
        ("autocast amp.GradScaler", "torch torch cuda cuda"),  # 2.3
        ("autocast amp.GradScaler amp.custom_fwd amp.custom_bwd", "torch torch torch torch"),  # 2.4
    ],
)
def test_what_an_older_torch_lacks_is_taken_from_the_card(has: str, used: str, tmp_path: Path) -> None:
    """By the names that each release has: there is no wheel of these for a Python of today."""
    text = helper_text(EVERY, portable=True).replace('find_spec("torch_npu") is not None', "find_spec('none_such')")
    (tmp_path / "device.py").write_text(text, encoding="ascii")
    (tmp_path / "use.py").write_text(_ON_OLD_TORCH, encoding="ascii")
    done = subprocess.run([sys.executable, "use.py", has], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.split() == used.split()


_ON_A_CARD = """
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import device, torch

kind, backend, visible = sys.argv[1:]
assert (device.DEVICE_TYPE, device.DIST_BACKEND, device.VISIBLE_DEVICES) == (kind, backend, visible)
assert device.device_module is getattr(torch, kind) and device.device_module.is_available()
assert not device.device_module.is_initialized()
pid = os.fork()  # as the workers of a loader are
if pid == 0:
    os._exit(int(torch.ones(2, device=device.device()).sum().item() != 2))
assert os.waitpid(pid, 0)[1] == 0
if device.device_module.device_count() > 1:
    os.environ[visible] = "1"  # as a program does with its option for a card
    assert device.device_module.device_count() == 1
x = torch.ones(2, device=device.device(0))
assert x.device == torch.device(kind, 0)
scaler = device.grad_scaler(init_scale=4.0)
assert scaler.scale(x).tolist() == [4, 4]
with device.autocast(dtype=torch.float16):
    assert (x.reshape(1, 2) @ x.reshape(2, 1)).dtype == torch.float16
assert torch.device(device.DEVICE_TYPE).type == kind
print("chosen", flush=True)
"""


def test_an_npu_is_chosen_and_not_opened_before_a_fork(tmp_path: Path) -> None:
    (tmp_path / "device.py").write_text(helper_text(EVERY, portable=True), encoding="ascii")
    (tmp_path / "use.py").write_text(_ON_A_CARD, encoding="ascii")
    done = forked.on_npus(tmp_path / "use.py", ("npu", "hccl", "ASCEND_RT_VISIBLE_DEVICES"), tmp_path)
    assert "chosen" in done.stdout, done.stdout + done.stderr


_SHOWN = """
import os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.pop("ASCEND_RT_VISIBLE_DEVICES", None)
os.environ.update(each.split("=") for each in sys.argv[2:])
import device

assert os.environ.get("ASCEND_RT_VISIBLE_DEVICES", "none") == sys.argv[1], os.environ
print("chosen", flush=True)
"""


@pytest.mark.parametrize(
    "given", [("0", "CUDA_VISIBLE_DEVICES=0"), ("none",), ("none", "CUDA_VISIBLE_DEVICES="),
              ("0", "CUDA_VISIBLE_DEVICES=1", "ASCEND_RT_VISIBLE_DEVICES=0")],
)  # fmt: skip
def test_the_cards_that_cuda_is_shown_are_those_of_the_npu(given: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "device.py").write_text(helper_text(EVERY, portable=True), encoding="ascii")
    (tmp_path / "use.py").write_text(_SHOWN, encoding="ascii")
    done = forked.on_npus(tmp_path / "use.py", given, tmp_path)
    assert "chosen" in done.stdout, done.stdout + done.stderr


def test_cuda_is_chosen_on_the_stand_in_for_it(tmp_path: Path) -> None:
    (tmp_path / "device.py").write_text(helper_text(EVERY, portable=True), encoding="ascii")
    (tmp_path / "use.py").write_text(_ON_A_CARD, encoding="ascii")
    environment = {**unmeasured(), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(_SITE)}
    done = forked.run(tmp_path / "use.py", ("cuda", "nccl", "CUDA_VISIBLE_DEVICES"), environment, tmp_path)
    assert "chosen" in done.stdout, done.stdout + done.stderr
