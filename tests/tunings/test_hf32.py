"""NPU754: what sets the TF32 flags sets those of HF32."""

from __future__ import annotations

import pytest

from tests.tunings.tuned import check_tuned, check_untuned

MATMUL, CUDNN = "torch.backends.cuda.matmul", "torch.backends.cudnn"
HEAD, TUNED = "import torch\n\n", "import torch\nimport torch_npu  # noqa: F401\n\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{MATMUL}.allow_tf32 = True", "torch.npu.matmul.allow_hf32 = True"),
        (f"{MATMUL}.allow_tf32 = False", "torch.npu.matmul.allow_hf32 = False"),
        (f"{CUDNN}.allow_tf32 = True", "torch.npu.conv.allow_hf32 = True"),
        (f"{CUDNN}.allow_tf32 = not exact", "torch.npu.conv.allow_hf32 = not exact"),
        (f"{CUDNN}.allow_tf32 = mode == 'fast'", "torch.npu.conv.allow_hf32 = mode == 'fast'"),
        (f"{CUDNN}.allow_tf32 = bool(fast)", "torch.npu.conv.allow_hf32 = bool(fast)"),
        (f"{MATMUL}.fp32_precision = 'tf32'", "torch.npu.matmul.allow_hf32 = True"),
        (f"{MATMUL}.fp32_precision = 'ieee'  # exact", "torch.npu.matmul.allow_hf32 = False  # exact"),
        (f"{CUDNN}.conv.fp32_precision = 'tf32'", "torch.npu.conv.allow_hf32 = True"),
        ("torch.set_float32_matmul_precision('high')", "torch.npu.matmul.allow_hf32 = True"),
        ("torch.set_float32_matmul_precision('medium')  # fast", "torch.npu.matmul.allow_hf32 = True  # fast"),
        ("torch.set_float32_matmul_precision(precision='highest')", "torch.npu.matmul.allow_hf32 = False"),
    ],
)
def test_flags(before: str, after: str) -> None:
    check_tuned("hf32", f"{HEAD}{before}\n", f"{TUNED}{after}\n")


def test_under_other_names() -> None:
    check_tuned(
        "hf32",
        """
        import torch as th
        from torch.backends import cudnn
        from torch import set_float32_matmul_precision


        def setup():
            cudnn.allow_tf32 = False
            if th.cuda.is_available(): set_float32_matmul_precision("high")
        """,
        """
        import torch as th
        import torch_npu  # noqa: F401


        def setup():
            th.npu.conv.allow_hf32 = False
            if th.npu.is_available(): th.npu.matmul.allow_hf32 = True
        """,
    )


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        (f"{CUDNN}.allow_tf32 = args.tf32", ["NPU504", "NPU754"]),
        (f"{CUDNN}.allow_tf32 = {MATMUL}.allow_tf32 = True", ["NPU504", "NPU754"]),
        (f"{MATMUL}.fp32_precision = wanted", ["NPU504", "NPU754"]),
        ("torch.set_float32_matmul_precision(args.precision)", ["NPU504", "NPU754"]),
        (f"print({MATMUL}.allow_tf32)", ["NPU504"]),
        (f"{CUDNN}.benchmark = True", ["NPU504"]),
        (f"{CUDNN}.deterministic = True", ["NPU504"]),
        ("torch.npu.matmul.allow_hf32 = True", []),
        ("self.allow_tf32 = True", []),
        ("mine.set_float32_matmul_precision('high')", []),
    ],
)
def test_left_as_it_is(source: str, codes: list[str]) -> None:
    check_untuned("hf32", f"{HEAD}{source}\n", open_codes=codes)
