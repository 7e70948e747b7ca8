"""Pinned memory: torch up to 2.6 pins for CUDA unless it is told a device."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern
from transplt.base.settings import TORCH_VERSIONS

LINE = "from torch.utils.data import DataLoader\nloader = DataLoader(data, batch_size=2, pin_memory=True)\n"


@pattern("P50")
@pytest.mark.parametrize("version", ["2.1", "2.5", "2.6"])
def test_the_device_is_named(version: str) -> None:
    check_rewrite(
        LINE,
        """
        from torch.utils.data import DataLoader
        import torch_npu  # noqa: F401
        loader = DataLoader(data, batch_size=2, pin_memory=True, pin_memory_device="npu")
        """,
        torch_version=version,
        codes_applied=["NPU124", "NPU403"],
    )


@pattern("P50")
def test_the_layout_of_the_call_stays() -> None:
    check_rewrite(
        """
        import torch
        loader = torch.utils.data.DataLoader(
            data,
            pin_memory=True,  # faster
        )
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        loader = torch.utils.data.DataLoader(
            data,
            pin_memory=True,
            pin_memory_device="npu",  # faster
        )
        """,
        torch_version="2.5",
    )


@pattern("P50")
@pytest.mark.parametrize("version", ["2.7", "2.9", TORCH_VERSIONS[-1]])
def test_later_versions_pin_for_the_accelerator(version: str) -> None:
    check_noop(LINE, torch_version=version)


@pattern("P50")
@pytest.mark.parametrize(
    "call",
    [
        "DataLoader(data)",
        "DataLoader(data, pin_memory=False)",
        'DataLoader(data, pin_memory=True, pin_memory_device="npu")',
        "MyLoader(data, pin_memory=True)",
    ],
)
def test_loaders_that_stay(call: str) -> None:
    check_noop(f"from torch.utils.data import DataLoader\nloader = {call}\n", torch_version="2.5")


@pattern("P50")
@pytest.mark.parametrize("arguments", ["pin_memory=flag", "pin_memory=True, **more"])
def test_what_cannot_be_seen_is_said(arguments: str) -> None:
    check_noop(
        f"from torch.utils.data import DataLoader\nloader = DataLoader(data, {arguments})\n",
        torch_version="2.5",
        open_codes=["NPU124"],
    )
