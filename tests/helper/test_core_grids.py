"""Grids of kernels that go through their blocks themselves."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
from transplt.helper import core_grids  # noqa: E402
from transplt.helper.core_grids import cube_grid, vector_grid  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    core_grids._cores.cache_clear()
    yield
    core_grids._cores.cache_clear()


def test_without_a_card_the_smaller_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "npu", None, raising=False)
    assert vector_grid((7,)) == (7,)
    assert vector_grid((1000, 3)) == (40,)
    assert cube_grid((5, 5, 5)) == (20,)
    assert vector_grid((0, 4)) == (0,)


def test_torch_npu_knows_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    card = SimpleNamespace(vector_core_num=48, cube_core_num=24)
    npu = SimpleNamespace(current_device=lambda: 0, get_device_properties=lambda index: card)
    monkeypatch.setattr(torch, "npu", npu, raising=False)
    assert (vector_grid((100,)), cube_grid((100,))) == ((48,), (24,))


def test_triton_knows_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = pytest.importorskip("triton.runtime")
    utils = SimpleNamespace(get_device_properties=lambda index: {"num_vectorcore": 50, "num_aicore": 25})
    monkeypatch.setattr(torch, "npu", SimpleNamespace(current_device=lambda: 0), raising=False)
    monkeypatch.setattr(runtime, "driver", SimpleNamespace(active=SimpleNamespace(utils=utils)))
    assert (vector_grid((100,)), cube_grid((100,))) == ((50,), (25,))


def test_a_grid_that_reads_constexprs_stays_a_function() -> None:
    grid = vector_grid(lambda meta: (1000 // meta["BLOCK"], 2))
    assert grid({"BLOCK": 100}) == (20,)
    assert grid({"BLOCK": 1}) == (40,)


def test_too_many_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="more than a 32-bit number counts"):
        vector_grid((2**20, 2**11))
