"""Functions of torch_npu for what PyTorch has under other names, forward and backward, beside plain PyTorch."""

from __future__ import annotations

from typing import Any

import torch
import torch_npu
from beside import TOLERANCE, compare, run_checks
from torch.nn import functional as F


def fast_gelu(x: Any) -> Any:
    return x * torch.sigmoid(1.702 * x)


def check_activations() -> None:
    x = torch.randn(3, 10)
    for kind in TOLERANCE:
        compare(
            lambda x: torch_npu.npu_geglu(x)[0], lambda x: x[:, :5] * F.gelu(x[:, 5:], approximate="tanh"), [x], kind
        )
        compare(torch_npu.npu_gelu, F.gelu, [x], kind)
        compare(
            lambda x: torch_npu.npu_gelu(x, approximate="tanh"), lambda x: F.gelu(x, approximate="tanh"), [x], kind
        )
        compare(torch_npu.npu_fast_gelu, fast_gelu, [x], kind)
        compare(torch_npu.fast_gelu, fast_gelu, [x], kind)
        compare(torch_npu.npu_gelu_mul, lambda x: F.gelu(x[:, :5]) * x[:, 5:], [x], kind, gradients=False)


def check_matrices() -> None:
    for kind in TOLERANCE:
        compare(torch_npu.npu_linear, F.linear, [torch.randn(3, 10), torch.randn(4, 10), torch.randn(4)], kind)
        compare(
            lambda a, b: torch_npu.npu_bmmV2(a, b, []), torch.bmm, [torch.randn(2, 3, 4), torch.randn(2, 4, 5)], kind
        )
        compare(
            lambda x, w, b: torch_npu.npu_convolution(x, w, b, [1, 1], [1, 1], [1, 1], 1),
            lambda x, w, b: F.conv2d(x, w, b, 1, 1),
            [torch.randn(2, 4, 5, 5), torch.randn(6, 4, 3, 3), torch.randn(6)], kind,
        )  # fmt: skip
        compare(
            lambda x, w: torch_npu.npu_convolution_transpose(x, w, None, [1, 1], [0, 0], [2, 2], [1, 1], 1),
            lambda x, w: F.conv_transpose2d(x, w, None, 2, 1),
            [torch.randn(2, 4, 5, 5), torch.randn(4, 3, 3, 3)], kind,
        )  # fmt: skip


def check_forms() -> None:
    x = torch.randn(3, 10)
    for kind in TOLERANCE:
        for function, other in ((torch_npu.npu_max, torch.max), (torch_npu.npu_min, torch.min)):
            for keep in (True, False):
                compare(
                    lambda x, function=function, keep=keep: function(x, 1, keep)[0],
                    lambda x, other=other, keep=keep: other(x, 1, keep)[0], [x], kind,
                )  # fmt: skip
        compare(lambda x: torch_npu.npu_format_cast(x, 29), lambda x: x * 1, [x], kind)
        compare(
            lambda x: torch_npu.npu_dtype_cast(torch_npu.npu_dtype_cast(x, torch.float32) * 2, x.dtype),
            lambda x: x * 2, [x], kind,
        )  # fmt: skip
        compare(
            lambda x: torch_npu.npu_confusion_transpose(x, (1, 0), (30,), True), lambda x: x.t().reshape(30), [x], kind
        )


def check_losses_and_norms() -> None:
    x, target = torch.randn(3, 10), torch.tensor([0, 3, 1])
    for kind in TOLERANCE:
        for given in ({}, {"reduction": "sum", "label_smoothing": 0.2}):
            compare(
                lambda x, given=given: torch_npu.npu_cross_entropy_loss(x, target.npu(), **given)[0].reshape(()),
                lambda x, given=given: F.cross_entropy(x, target, **given), [x], kind,
            )  # fmt: skip
        compare(
            lambda x, g: torch_npu.npu_rms_norm(x, g, 1e-5)[0], lambda x, g: F.rms_norm(x, (10,), g, 1e-5),
            [x, torch.rand(10)], kind,
        )  # fmt: skip
        compare(
            lambda x, g: torch_npu.npu_gemma_rms_norm(x, g, 1e-5)[0],
            lambda x, g: F.rms_norm(x, (10,), g + 1, 1e-5), [x, torch.rand(10)], kind, gradients=False,
        )  # fmt: skip


if __name__ == "__main__":
    run_checks(globals())
