"""Keys of checkpoints."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern


@pattern("P9", "T14")
@pytest.mark.parametrize(
    "line",
    [
        'state = {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all()}',
        'state = {"cuda": torch.cuda.get_rng_state() if on else None}',
        'state = {"torch.cuda": torch.cuda.get_rng_state()}',
        'state["cuda"] = torch.cuda.get_rng_state()',
    ],
)
def test_keys_of_saved_random_states_stay(line: str) -> None:
    after = line.replace("torch.cuda.get", "torch.npu.get")
    check_rewrite(f"import torch\n{line}\n", f"import torch\nimport torch_npu  # noqa: F401\n{after}\n")


@pattern("T14", "T20")
def test_a_table_of_something_else_is_still_looked_at() -> None:
    check_noop('import torch\ntable = {"cuda": first, "xpu": torch.get_rng_state()}\n', open_codes=["NPU213"])


def test_a_device_beside_a_saved_random_state_moves() -> None:
    check_rewrite(
        'import torch\nstate = {"device": "cuda", "rng": torch.get_rng_state()}\n',
        'import torch\nimport torch_npu  # noqa: F401\nstate = {"device": "npu", "rng": torch.get_rng_state()}\n',
    )
