"""A device string that torch and another library share."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern


@pattern("T9")
def test_a_string_that_torch_and_jax_share_is_reported() -> None:
    check_rewrite(
        """
        import jax, torch
        def f(x, place='cuda'):
            y = jax.devices(place)
            return x.to(place), y
        """,
        """
        import jax, torch
        import torch_npu  # noqa: F401
        def f(x, place='npu'):
            y = jax.devices(place)
            return x.to(place), y
        """,
        open_codes=["NPU203"],
    )


@pattern("T9")
@pytest.mark.parametrize("line", ["jax.devices(place)", "jax.devices('cpu')", "jax.jit(x)"])
def test_what_is_no_device_of_torch(line: str) -> None:
    check_noop(f"import jax\ndef f(x, place=None):\n    print('cuda')\n    return {line}\n")
