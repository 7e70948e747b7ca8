"""timm_loader_on_npu(): create_loader of timm with and without a place for a device."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from transplt.helper import timm_loader  # noqa: E402

pytestmark = pytest.mark.torch


class Loader:
    """Two batches of images and labels."""

    sampler = "its sampler"

    def __iter__(self) -> Any:
        yield from [(torch.zeros(2, 3), torch.tensor([0, 1]))] * 2

    def __len__(self) -> int:
        return 2


def newer(dataset: Any, batch_size: int, use_prefetcher: bool = True, device: Any = None) -> Any:
    return dataset, batch_size, use_prefetcher, device


def older(dataset: Any, batch_size: int, use_prefetcher: bool = True) -> Any:
    assert not use_prefetcher
    return Loader()


@pytest.fixture
def npu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timm_loader, "card_kind", lambda: "npu")
    monkeypatch.setattr(timm_loader, "card", lambda: torch.device("cpu"))


@pytest.mark.usefixtures("npu")
def test_a_newer_timm_gets_the_card() -> None:
    assert timm_loader.timm_loader_on_npu(newer, "data", 8) == ("data", 8, True, torch.device("cpu"))
    assert timm_loader.timm_loader_on_npu(newer, "data", 8, device="cpu")[3] == "cpu"
    assert timm_loader.timm_loader_on_npu(newer, "data", 8, use_prefetcher=False) == ("data", 8, False, None)


@pytest.mark.usefixtures("npu")
def test_batches_of_an_older_one_are_moved() -> None:
    loader = timm_loader.timm_loader_on_npu(older, "data", 8)
    assert len(loader) == 2 and loader.sampler == "its sampler"
    assert [labels.tolist() for _, labels in loader] == [[0, 1], [0, 1]]


def test_elsewhere_it_is_the_call_itself() -> None:
    assert timm_loader.timm_loader_on_npu(newer, "data", 8) == ("data", 8, True, None)


@pytest.mark.usefixtures("npu")
def test_targets_of_mixup_are_made_on_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("timm_data_mixup")
    module.mixup_target = lambda labels, device="cuda": (labels, device)
    make = type("Mixup", (), {"__module__": module.__name__, "targets": lambda self: module.mixup_target(1)})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert timm_loader.timm_mixup_on_npu(make).targets() == (1, torch.device("cpu"))
    assert module.mixup_target(1, device="elsewhere") == module.mixup_target(1, "elsewhere") == (1, "elsewhere")
    module.mixup_target = lambda labels: labels
    assert timm_loader.timm_mixup_on_npu(make).targets() == 1
