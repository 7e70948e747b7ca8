"""Advice on precision and performance: what is said, and what is left in peace."""

from __future__ import annotations

import pytest

from tests.support.harness import findings, said
from transplt.finding import Level

LOOP = (
    "import torch\ndef train(loader, model):\n    for x in loader:\n        loss = model(x)\n        loss.backward()\n"
)


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        ("import torch\nx = torch.zeros(3, dtype=torch.double)\n", "NPU710", 2),
        ("import torch\ndef f(x: torch.Tensor):\n    return x.double()\n", "NPU710", 3),
        ("import torch\nx = s.masked_fill(m, float('-inf'))\n", "NPU711", 2),
        ("import torch\nx = torch.full((2,), -torch.inf)\n", "NPU711", 2),
        ("import torch, numpy as np\nx = s.masked_fill_(m, value=-np.inf)\n", "NPU711", 2),
        ("import torch\nx = s.masked_fill(m, -float('inf'))\n", "NPU711", 2),
        ("import torch\nx = torch.nonzero(y)\n", "NPU712", 2),
        ("import torch\nx = torch.where(y)\n", "NPU712", 2),
        ("import torch\ndef f(x: torch.Tensor):\n    return x[x > 0]\n", "NPU712", 3),
        (LOOP + "        print(loss.item())\n", "NPU713", 6),
        (LOOP + "        keep(loss.detach().cpu().numpy())\n", "NPU713", 6),
        (LOOP, "NPU730", 5),
        ("from torch.utils.data import DataLoader\nx = DataLoader(d, 4, True)\n", "NPU714", 2),
        ("from torch.utils.data import DataLoader\nx = DataLoader(d, num_workers=0, pin_memory=True)\n", "NPU720", 2),
        ("import torch\ntorch.baddbmm(a, b, c)\n", "NPU715", 2),
        ("import torch\ntorch.nn.parallel.DistributedDataParallel(m)\n", "NPU721", 2),
        ("import torch\nwith torch.autograd.detect_anomaly():\n    pass\n", "NPU722", 2),
        ("import torch\nx = y.to(memory_format=torch.channels_last)\n", "NPU723", 2),
        ("import torch.multiprocessing as mp\nmp.set_start_method('fork')\n", "NPU724", 2),
        ("import torch\nimport multiprocessing\nmultiprocessing.get_context('fork')\n", "NPU724", 3),
        ("import torch\ntorch.use_deterministic_algorithms(True)\n", "NPU725", 2),
    ],
)
def test_said(source: str, code: str, line: int) -> None:
    assert [each[2] for each in said(source, code)] == [line]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import torch\nok = x.dtype == torch.float64\n", "NPU710"),
        ("import torch\nok = x.dtype in (torch.float32, torch.float64)\n", "NPU710"),
        ("import torch\nNAMES = {torch.float64: 'fp64'}\n", "NPU710"),
        ("import torch\nx = frame.double()\n", "NPU710"),
        ("import torch, numpy as np\nx = np.zeros(3, dtype=np.float64)\n", "NPU710"),
        ("import torch\nx = s.masked_fill(m, -1e9)\n", "NPU711"),
        ("import torch\nx = s.masked_fill(m, float('inf'))\n", "NPU711"),
        ("import torch\nx = torch.where(a, b, c)\n", "NPU712"),
        ("import torch, numpy as np\nx = np.unique(y)\nz = names.unique()\n", "NPU712"),
        ("import torch\ndef f(x):\n    return x[x > 0]\n", "NPU712"),
        ("import torch\ndef f(x: torch.Tensor, n: int):\n    return x[n > 0 or 1]\n", "NPU712"),
        ("import torch\ndef f(x: torch.Tensor):\n    x[x > 0] = 1\n", "NPU712"),
        ("import torch\nfor x in y:\n    print(x.item())\n", "NPU713"),
        (LOOP + "    print(loss.item())\n", "NPU713"),
        (LOOP + "        for key, value in table.items():\n            print(value)\n", "NPU713"),
        ("from torch.utils.data import DataLoader\nx = DataLoader(d, shuffle=True, drop_last=True)\n", "NPU714"),
        ("from torch.utils.data import DataLoader\nx = DataLoader(d, **options)\n", "NPU720"),
        ("from torch.utils.data import DataLoader\nx = DataLoader(d, num_workers=n, pin_memory=pin)\n", "NPU720"),
        ("import torch\ntorch.nn.parallel.DistributedDataParallel(m, bucket_cap_mb=100)\n", "NPU721"),
        ("import torch\ntorch.autograd.set_detect_anomaly(False)\n", "NPU722"),
        ("import torch\nok = x.is_contiguous(memory_format=torch.channels_last)\n", "NPU723"),
        ("import torch\nx = y.to(memory_format=torch.preserve_format)\n", "NPU723"),
        ("import torch.multiprocessing as mp\nmp.set_start_method('spawn')\n", "NPU724"),
        ("import torch\nfork.set_start_method('fork')\n", "NPU724"),
        ("import torch\ntorch.use_deterministic_algorithms(False)\n", "NPU725"),
    ],
)
def test_left_in_peace(source: str, code: str) -> None:
    assert said(source, code) == []


def test_only_what_fails_is_work() -> None:
    source = "import torch\nx = y.to(memory_format=torch.channels_last)\nz = torch.nonzero(x)\n"
    assert {(each.code, each.level) for each in findings(source) if each.code >= "NPU7"} == {
        ("NPU723", Level.MANUAL),
        ("NPU712", Level.INFO),
    }


def test_packages_that_work() -> None:
    source = "import torch\nimport accelerate\nfrom transformers import AutoModel\nimport transformers.models\n"
    assert said(source, "NPU513") == [("NPU513", "accelerate", 2), ("NPU513", "transformers", 3)]
    assert all("confidence: " in each.help for each in findings(source) if each.code == "NPU513")
    assert said("import torch\nimport json\nfrom .accelerate import x\n", "NPU513") == []
