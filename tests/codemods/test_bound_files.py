"""Files that stand on a package bound to CUDA stay, and are reported once."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate, reasons

BODY = """
def infer(context, stream: torch.cuda.Stream):
    context.execute_async_v3(stream.cuda_stream)
    torch.cuda.empty_cache()
    return torch.zeros(1, device="cuda")
"""


@pytest.mark.parametrize(
    "head",
    [
        "import tensorrt as trt",
        "from torch2trt import torch2trt",
        "import pycuda.driver as drv",
        "from cuda import cudart",
    ],
)
def test_a_file_of_such_a_package_stays(head: str) -> None:
    result = check_noop(f"{head}\nimport torch\n{BODY}", open_codes=["NPU510"])
    assert len(result.findings) == 1
    assert "reported-package" in {row.cause.reason for row in result.ledger}
    assert result.tokens.unknown == 0 and reasons(result)


@pytest.mark.parametrize(
    "head",
    [
        "try:\n    import tensorrt as trt\nexcept ImportError:\n    trt = None",
        "def export():\n    import tensorrt as trt\n    return trt",
        "import bitsandbytes as bnb",
        "import tensorrt as trt\n\ndef step(loss):\n    loss.backward()",
    ],
)
def test_a_file_that_does_without_it_is_edited(head: str) -> None:
    result = migrate(f"import torch\n{head}\n{BODY}")
    assert b"torch.npu.empty_cache()" in result.data


ENGINE = "import tensorrt as trt\n\nclass Engine:\n    def cuda(self):\n        return self\n"


def test_what_derives_from_such_a_file_stays_with_it() -> None:
    head = "import torch\nfrom engine import Engine\n\nclass Vae(Engine):\n"
    source = f"{head}    def run(self, x):\n        return self.cuda(x.cuda())\n"
    result = migrate(source, files={"engine.py": ENGINE})
    assert not result.changed and not [each for each in result.findings if each.open]
    assert {row.cause.reason for row in result.ledger} == {"bound-base"}


def test_so_does_what_takes_the_class_from_the_package_that_hands_it_on() -> None:
    source = "import torch\nfrom trt import Engine\n\nclass Clip(Engine):\n    s: torch.cuda.Stream\n"
    files = {"trt/__init__.py": "from trt.base import Engine\n", "trt/base.py": ENGINE}
    assert not migrate(source, path="clip.py", files=files).changed
    files["trt/base.py"] = ENGINE.replace("import tensorrt as trt", "import torch")
    assert migrate(source, path="clip.py", files=files).changed


@pytest.mark.parametrize(
    ("source", "engine"),
    [
        ("import torch\nfrom engine import Engine\n\nx = torch.zeros(1).cuda()\ne = Engine()\n", ENGINE),
        ("import torch\nfrom engine import Engine\n\nclass Vae(Engine):\n    x = torch.zeros(1).cuda()\n",
         ENGINE.replace("import tensorrt as trt", "import torch")),
        ("import torch\nfrom engine import Engine\n\nclass Vae(Engine):\n    x = torch.zeros(1).cuda()\n",
         ENGINE + "\ndef step(loss):\n    loss.backward()\n"),
    ],
)
def test_what_only_uses_such_a_file_or_derives_from_another_moves(source: str, engine: str) -> None:
    assert b".npu()" in migrate(source, files={"engine.py": engine}).data


PADDLE = """
import paddle
from utils import log

class Features:
    def to(self, device: str = "cuda:0"):
        return self.x.to(device)
    def cuda(self):
        return self.to().cuda()
"""
TORCH = "import torch\nx = torch.ones(1).cuda()\nx.sum().backward()\n"


def test_what_computes_with_another_framework_beside_torch_stays() -> None:
    files = {"train.py": TORCH, "p/utils.py": "log = print\n", "utils.py": "import torch\nlog = torch.log\n"}
    result = migrate(PADDLE, path="p/data.py", files=files)
    assert not result.changed and not [each for each in result.findings if each.open]
    assert "other-framework" in {row.cause.reason for row in result.ledger}


@pytest.mark.parametrize(
    ("source", "files"),
    [
        # torch imports it, is imported by it, or may be by a library
        (PADDLE, {"train.py": f"import data\n{TORCH}", "utils.py": "log = print\n"}),
        (PADDLE, {"train.py": TORCH, "utils.py": "import torch\nlog = torch.log\n"}),
        (f"import timm\n{PADDLE}", {"train.py": TORCH, "utils.py": "log = print\n"}),
        (f"import torch\n{PADDLE}", {"train.py": TORCH, "utils.py": "log = print\n"}),
        # TensorBoard's writer is no framework of the file
        ("import tensorboard\n" + PADDLE.replace("import paddle\n", ""), {"train.py": TORCH, "utils.py": "log = 1\n"}),
    ],
)
def test_what_may_meet_torch_is_edited(source: str, files: dict[str, str]) -> None:
    assert b'"npu:0"' in migrate(source, path="data.py", files=files).data
