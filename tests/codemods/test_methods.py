"""`.cuda()` and `.is_cuda` on tensors and modules."""

from __future__ import annotations

import pytest
from tests.harness import check_noop, check_rewrite, pattern


@pattern("P19")
def test_call_without_arguments() -> None:
    check_rewrite(
        """
        import torch
        model = torch.nn.Linear(2, 2).cuda()
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        model = torch.nn.Linear(2, 2).npu()
        """,
        codes_applied=["NPU210", "NPU403"],
    )


@pattern("P20", "P21", "P22")
@pytest.mark.parametrize("arguments", ["non_blocking=True", "0", "rank", "gpus[0]", "device=device", "device, True"])
def test_arguments_stay(arguments: str) -> None:
    check_rewrite(
        f"""
        import torch
        def put(x, rank, gpus, device):
            return x.cuda({arguments})
        """,
        f"""
        import torch
        import torch_npu  # noqa: F401
        def put(x, rank, gpus, device):
            return x.npu({arguments})
        """,
    )


@pattern("T9")
def test_cuda_of_another_library() -> None:
    check_noop(
        """
        from numba import cuda
        import cupy

        @cuda.jit
        def kernel(x):
            i = cuda.grid(1)

        stream = cupy.cuda.Stream()
        """,
        open_codes=["NPU510"],  # the packages need CUDA; their names are not torch's
    )


@pattern("T7")
def test_data_called_cuda() -> None:
    check_noop(
        """
        def build(args, model):
            if args.cuda:
                print(args.cuda)
        """
    )
