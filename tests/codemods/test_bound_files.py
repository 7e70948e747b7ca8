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
