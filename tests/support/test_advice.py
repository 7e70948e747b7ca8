"""Advice on precision and performance: what is said, and what is left in peace."""

from __future__ import annotations

import pytest

from tests.support.harness import findings, said
from transplt.base.finding import Level

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
        ("import torch\ndef f(x: torch.Tensor):\n    m = x > 0\n    return x[m]\n", "NPU712", 4),
        ("import torch\ndef f(x: torch.Tensor):\n    m = (x > 0) & ~(x == 1)\n    return x[~m]\n", "NPU712", 4),
        ("import torch\ndef f(x: torch.Tensor, y: torch.Tensor):\n    return x[y.bool()]\n", "NPU712", 3),
        (LOOP + "        print(loss.item())\n", "NPU713", 6),
        (LOOP + "        keep(loss.detach().cpu().numpy())\n", "NPU713", 6),
        (LOOP + "        print(loss)\n", "NPU713", 6),
        (LOOP + "        keep(repr(loss))\n", "NPU713", 6),
        (LOOP + "        print(f'loss {loss:.3f}')\n", "NPU713", 6),
        (LOOP + "        total += float(loss)\n", "NPU713", 6),
        (LOOP + "        log('{}'.format(loss))\n        log('%d %f' % (step, loss))\n", "NPU713", 6),
        (LOOP + "        if loss.item() > best:\n            keep(model)\n", "NPU713", 6),
        (LOOP + "        a.item()\n        if x is None:\n            b.item()\n", "NPU713", 6),
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
        ("import torch\ndef f(x: torch.Tensor):\n    m = x.argmax()\n    return x[m]\n", "NPU712"),
        ("import torch\ndef f(x: torch.Tensor, n: int):\n    m = n > 0\n    return x[m]\n", "NPU712"),
        ("import torch\ndef f(x: torch.Tensor, m):\n    return x[m & 1]\n", "NPU712"),
        ("import torch\ndef f(x, m: torch.Tensor):\n    k = m > 0\n    return x[k]\n", "NPU712"),
        ("import torch\nfor x in y:\n    print(x.item())\n", "NPU713"),
        (LOOP + "    print(loss.item())\n", "NPU713"),
        (LOOP.replace("loss.backward", "ctx.backward") + "        print(loss.item())\n", "NPU713"),  # no backward pass
        (LOOP + "        if step % 100 == 0:\n            print(loss.item())\n", "NPU713"),
        (LOOP + "        if x is None:\n            print(loss)\n            raise ValueError(loss)\n", "NPU713"),
        (LOOP + "        if bad(x):\n            print(loss.item())\n            sys.exit(1)\n", "NPU713"),
        (LOOP + "        losses.append(loss)\n        step(loss)\n        total += loss\n", "NPU713"),
        (LOOP + "    print(loss)\n    return float(loss)\n", "NPU713"),
        (LOOP + "        print(step)\n        log(loss)\n", "NPU713"),
        (LOOP.replace("import torch", "from mine import float, print") + "        print(loss)\n", "NPU713"),
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


SHUFFLE = """\
import torch
def shuffle(x, g):
    b, c, h, w = x.size()
    return x.view(b, g, c // g, h, w).transpose(1, 2).contiguous().view(b, c, h, w)
"""
POSITIONS = """\
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.position = nn.Embedding(64, 32)
    def forward(self, x, y):
        ids = torch.arange(x.size(1), dtype=torch.long)
        return self.position(ids)
"""


def test_shapes_are_told_once_for_each_api() -> None:
    source = "import torch\ndef f(x: torch.Tensor):\n    y = x.nonzero()\n    return x[x > 0], x.nonzero(), x[x < 0]\n"
    told = [(each.api, each.span.line, "also in" in each.message) for each in findings(source) if each.code == "NPU712"]
    assert told == [("torch.Tensor.nonzero", 3, True), ("torch.Tensor.__getitem__", 4, False)]


def test_copies_and_wide_indices() -> None:
    """One remark a file, which names the other lines."""
    chain = "x.t().contiguous().view(3, 4, 5).permute(1, 0, 2).contiguous()"
    twice = f"import torch\ndef f(x: torch.Tensor):\n    return {chain}\n"
    assert said(SHUFFLE, "NPU726") == [("NPU726", "", 4)]
    assert said(twice, "NPU726") == [("NPU726", "torch.Tensor.contiguous", 3)]
    both = SHUFFLE + SHUFFLE.replace("shuffle", "other").replace("import torch", "")
    assert [each.message for each in findings(both) if each.code == "NPU726"] == [
        "a channel shuffle by views, which have to be copied (also in line 8)"
    ]
    assert said(POSITIONS, "NPU727") == [("NPU727", "torch.long", 8)]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import torch\ndef f(x: torch.Tensor):\n    return x.permute(0, 2, 1).contiguous().view(3, -1)\n", "NPU726"),
        ("import torch\ndef f(x: torch.Tensor):\n    return x.transpose(1, 2).reshape(3, 4, 5)\n", "NPU726"),
        ("import torch\ndef f(x: torch.Tensor):\n    return x.contiguous().view(3, -1).t().contiguous()\n", "NPU726"),
        (SHUFFLE.replace("b, c, h, w = x.size()", "b, c, h, w = g"), "NPU726"),
        (POSITIONS.replace("self.position(ids)", "self.position(ids) + ids"), "NPU727"),
        (POSITIONS.replace("dtype=torch.long", "dtype=torch.int32"), "NPU727"),
        (POSITIONS.replace("self.position(ids)", "y.gather(1, ids)"), "NPU727"),
        (POSITIONS.replace("self.position(ids)", "y[ids]"), "NPU727"),
        ("import torch\ndef f(x, loss):\n    return loss(x, x.long())\n", "NPU727"),
    ],
)
def test_views_and_indices_left_in_peace(source: str, code: str) -> None:
    assert said(source, code) == []


def test_a_folder_of_the_project_is_not_the_package() -> None:
    files = {"ext/kernels/__init__.py": "", "ext/kernels/ops.py": ""}
    assert said("import torch\nimport kernels\n", "NPU513") == [("NPU513", "kernels", 2)]
    assert said("import torch\nimport kernels\n", "NPU513", path="ext/run.py", files=files) == []


def test_only_what_fails_is_work() -> None:
    source = "import torch\nx = y.to(memory_format=torch.channels_last)\nz = torch.nonzero(x)\n"
    assert {(each.code, each.level) for each in findings(source) if each.code >= "NPU7"} == {
        ("NPU723", Level.MANUAL),
        ("NPU712", Level.INFO),
    }


def test_a_fork_that_a_gpu_would_refuse_too_is_no_work() -> None:
    source = "import torch.multiprocessing as mp\nmp.set_start_method('fork')\nm.to('cuda')\n"
    assert [each.level for each in findings(source) if each.code == "NPU724"] == [Level.INFO]


def test_packages_that_work() -> None:
    source = "import torch\nimport accelerate\nfrom transformers import AutoModel\nimport transformers.models\n"
    assert said(source, "NPU513") == [("NPU513", "accelerate", 2), ("NPU513", "transformers", 3)]
    assert all("confidence: " in each.help for each in findings(source) if each.code == "NPU513")
    assert said("import torch\nimport json\nfrom .accelerate import x\n", "NPU513") == []
