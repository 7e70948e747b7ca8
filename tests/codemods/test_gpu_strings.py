"""Strings for a GPU that torch reads as devices."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite

NPU = "import torch\nimport torch_npu  # noqa: F401\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('device = torch.device("gpu")\n', 'device = torch.device("npu")\n'),
        ("x = torch.zeros(2, device='gpu:1')\n", "x = torch.zeros(2, device='npu:1')\n"),
        ('model = model.to("gpu")\n', 'model = model.to("npu")\n'),
        ('state = torch.load(path, map_location="gpu:0")\n', 'state = torch.load(path, map_location="npu:0")\n'),
        (
            'DEVICE = "gpu:0"\ntorch.cuda.set_device(DEVICE)\nmodel = model.cuda()\nimages = images.to(DEVICE)\n',
            'DEVICE = "npu:0"\ntorch.npu.set_device(DEVICE)\nmodel = model.npu()\nimages = images.to(DEVICE)\n',
        ),
        ("def main():\n    d = 'gpu'\n    return net.to(d)\n", "def main():\n    d = 'npu'\n    return net.to(d)\n"),
    ],
)
def test_devices(before: str, after: str) -> None:
    check_rewrite(f"import torch\n{before}", f"{NPU}{after}")


@pytest.mark.parametrize(
    "source",
    [
        'kind = "gpu"\nif kind == "gpu":\n    print(torch.__version__)\n',
        'kind = "gpu"\nprint(kind)\nmodel = model.to(kind)\n',
        'kind = "gpu"\nkind = "cpu"\nmodel = model.to(kind)\n',
        'parser.add_argument("--device", default="gpu")\n',
        'settings = {"device": "gpu"}\n',
        'import tensorflow as tf\nwith tf.device("gpu:0"):\n    pass\n',
        'import jax\ndevices = jax.devices("gpu")\n',
        'import paddle\npaddle.set_device("gpu:0")\n',
        'booster = train(x, device="gpu")\n',
        'import convert\nx = convert.to("gpu")\n',
        'name = "gpu:0"\n',
        'model = model.to("gpu:x")\n',
    ],
)
def test_what_is_no_device_of_torch_stays(source: str) -> None:
    check_noop(f"import torch\n{source}")


def test_without_torch_nothing_is_read() -> None:
    check_noop('model = model.to("gpu")\n')
