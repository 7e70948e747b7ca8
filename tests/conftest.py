"""What every test shares: repeatable property tests, and skips that say what is missing."""

from __future__ import annotations

import importlib.util
import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "default")

HAS_TORCH = importlib.util.find_spec("torch") is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not HAS_TORCH and item.get_closest_marker("torch") is not None:
        pytest.skip("needs the extra: pip install 'transplt[emulator]'")
