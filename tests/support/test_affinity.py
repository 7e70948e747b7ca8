"""Faster forms: where they are offered, and where not."""

from __future__ import annotations

import pytest

from tests.support.harness import findings, said
from transplt.base.settings import TORCH_VERSIONS
from transplt.rules.tables import read_table

FORMS = read_table("support/affinity.json")["forms"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import torch\nopt = torch.optim.AdamW(p)\n", "torch_npu.optim.NpuFusedAdamW"),
        ("from torch.optim import SGD\nopt = SGD(p, lr=1)\n", "torch_npu.optim.NpuFusedSGD"),
        ("import torch\nopt = functools.partial(torch.optim.Adam, lr=1)\n", "torch_npu.optim.NpuFusedAdam"),
        ("import torch.nn.functional as F\nF.scaled_dot_product_attention(q, k, v)\n", "Mask polarity is inverted"),
        ("import torch\nfrom flash_attn import flash_attn_func\nflash_attn_func(q, k, v)\n", "sparse_mode=3"),
        (
            "import torch\nimport xformers.ops as xops\nxops.memory_efficient_attention(q, k, v)\n",
            "npu_fusion_attention",
        ),
        ("import torch\nfrom mmcv.ops import knn\nknn(3, x)\n", "DrivingSDK"),
        (
            "import torch\nclass MyRMSNorm(torch.nn.Module):\n    def forward(self, x):\n"
            "        return x * torch.rsqrt(x.pow(2).mean(-1))\n",
            "npu_rms_norm(",
        ),
        ("import torch\ndef rotate_half(x):\n    return x\n", "npu_rotary_mul("),
        ("import torch.nn.functional as F\ndef f(a, b):\n    return F.silu(a) * b\n", "npu_swiglu("),
        ("import torch.nn.functional as F\ndef f(a, b):\n    return b * F.gelu(a)\n", "npu_geglu("),
        ("import torch\ndef f(x):\n    return x * torch.sigmoid(1.702 * x)\n", "npu_fast_gelu("),
        (
            "import torch\ndef f(x, s):\n    return torch.roll(x, shifts=(-s, -s), dims=(1, 2))\n",
            "contrib.function.roll",
        ),
        (
            "import torch\nfrom timm.models.layers import DropPath\ndrop = DropPath(0.1)\n",
            "without it nothing is ever dropped",
        ),
        ("from torch import roll\ndef f(x, s):\n    return roll(x, (s, s), (1, 2))\n", "contrib.function.roll"),
    ],
)
def test_offered(source: str, words: str) -> None:
    (found,) = [each for each in findings(source) if each.code == "NPU701"]
    assert words in found.help
    assert not found.open


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ndef f(o: torch.optim.Adam):\n    return isinstance(o, torch.optim.SGD)\n",
        "import torch\nfrom mine import AdamW\nAdamW(p)\n",
        "import torch\nclass RMSNorm(torch.nn.Module):\n    def forward(self, x):\n        return x\n",
        "import torch\nclass RMSNorm:\n    def forward(self, x):\n        return x.rsqrt()\n",
        "import torch.nn.functional as F\ndef f(a):\n    return F.silu(a) * a\n",
        "import torch.nn.functional as F\ndef f(a):\n    return F.silu(a) * 2\n",
        "import torch\ndef f(x):\n    return x * torch.sigmoid(2.0 * x)\n",
        "import torch\ndef f(x, y):\n    return y * torch.sigmoid(1.702 * x)\n",
        "import torch\nfrom flash_attn import something\nsomething(q)\n",
        "import torch\ndef f(x):\n    return torch.roll(x, 1, 0)\n",
        "import torch\ndef f(x):\n    return torch.roll(x, shifts=(1, 1), dims=(2, 3))\n",
        "import torch\ndef f(x):\n    return torch.roll(x, 1)\n",
        "import numpy as np\nimport torch\ndef f(x):\n    return np.roll(x, (1, 1), (1, 2))\n",
    ],
)
def test_not_offered(source: str) -> None:
    assert said(source, "NPU701") == []


def test_only_what_the_wheel_has() -> None:
    forms = {key: form for key, form in FORMS.items() if "versions" in form}
    assert forms and all(form["versions"] for form in forms.values())
    source = "import torch\nopt = torch.optim.AdamW(p)\n"
    assert len(said(source, "NPU701", torch_version="2.1")) == 1


def test_signatures_of_the_first_wheels_are_their_own() -> None:
    source = "import torch\ndef rotate_half(x):\n    return x\n"
    old, new = (findings(source, torch_version=version)[-1].help for version in ("2.1", TORCH_VERSIONS[-1]))
    assert "rotate=None" in new and "rotate=None" not in old
