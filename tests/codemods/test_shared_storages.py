"""Storages that processes share through CUDA's handles."""

from __future__ import annotations

import pytest

from tests.harness import check_noop


@pytest.mark.parametrize("call", ["storage._share_cuda_()", "torch.UntypedStorage._new_shared_cuda(*handle)"])
def test_handles_of_cuda_are_found(call: str) -> None:
    check_noop(f"import torch\n\ndef f(storage, handle):\n    return {call}\n", open_codes=["NPU274"])


def test_shared_memory_of_the_cpu_is_none_of_them() -> None:
    check_noop("import torch\n\ndef f(cuda_storage):\n    return cuda_storage._share_fd_cpu_()\n")
