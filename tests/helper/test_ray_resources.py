"""What a task of ray asks for."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from transplt.helper.ray_resources import npus_of_ray, ray_backend


def test_a_number_is_one_of_npus_beside_other_resources() -> None:
    given = {"node": 1.0}
    assert npus_of_ray(0.2) == {"NPU": 0.2}
    assert npus_of_ray(0, given) == {"node": 1.0, "NPU": 0}
    assert given == {"node": 1.0}


def test_none_asks_for_none() -> None:
    assert npus_of_ray(None) is None
    assert npus_of_ray(None, {"node": 1.0}) == {"node": 1.0}


def test_hccl_is_registered_once_in_a_process_for_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[str] = []

    def register() -> None:
        if registered:
            raise ValueError("Backend HCCL already registered")
        registered.append("HCCL")

    plugin = ModuleType("ray_ascend")
    plugin.register_hccl_collective_backend = register  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray_ascend", plugin)
    assert ray_backend("gloo") == "gloo" and registered == []
    assert ray_backend("NCCL") == ray_backend() == "HCCL"
    assert registered == ["HCCL"]
