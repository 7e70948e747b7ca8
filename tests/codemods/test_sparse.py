"""Operators that torch_npu lacks for sparse tensors (rules/sparse.json)."""

from __future__ import annotations

import pytest

from tests.harness import check_noop


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nx = torch.sparse.mm(a, b)",
        "import torch\nx = torch.spmm(a, b)",
        "from torch.sparse import addmm\nx = addmm(a, b, c)",
        "import torch.sparse as sp\nx = sp.softmax(a, 1)",
    ],
)
def test_operators_without_a_kernel(source: str) -> None:
    check_noop(source + "\n", open_codes=["NPU526"])


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nx = torch.sparse_coo_tensor(i, v, (2, 2)).coalesce()",
        "import torch\nx = torch.sparse.sum(a)",
        "import torch\no = torch.optim.SparseAdam(parameters)",
        "import torch\nx = torch.mm(a, b)",
        "import scipy.sparse as sp\nx = sp.softmax(a)",
        "import mylib.sparse as sp\nx = sp.spmm(a, b)",
        "def spmm(a, b):\n    return a\n\n\nspmm(1, 2)",
    ],
)
def test_what_has_one(source: str) -> None:
    check_noop(source + "\n")
