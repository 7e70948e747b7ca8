"""Files saved on a GPU."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, pattern


@pattern("P49", "T16")
@pytest.mark.parametrize(
    "line",
    ["torch.load(path)", "torch.load(path, weights_only=False)", "model.load_state_dict(torch.load(path)['model'])"],
)
def test_a_file_that_may_come_from_a_gpu(line: str) -> None:
    check_noop(f"import torch\nuse_cuda = True\n{line}\n", open_codes=["NPU152"])


@pattern("P49")
@pytest.mark.parametrize(
    "line",
    [
        "torch.load(path, 'cpu')",
        "torch.load(path, map_location='cpu')",
        "torch.load(path, map_location=where)",
        "torch.load(path, **options)",
        "torch.load(*arguments)",
        "np.load(path)",
        "loader.load(path)",
        "load = torch.load",
    ],
)
def test_the_device_is_said_or_it_is_another_load(line: str) -> None:
    check_noop(f"import numpy as np\nimport torch\nuse_cuda = True\n{line}\n")
