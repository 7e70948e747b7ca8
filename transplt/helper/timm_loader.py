"""The loaders of timm, whose batches come on the card, and its Mixup, whose targets do."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from transplt.helper.ranks import card, card_kind

__all__ = ["timm_loader_on_npu", "timm_mixup_on_npu"]


def timm_loader_on_npu(create: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """`create(*args, **kwargs)` of timm's create_loader or PrefetchLoader, with batches on the NPU where there is one.

    timm 0.9 and newer takes the device. An older one knows CUDA alone: its loader makes the batches on the CPU then,
    normalised there, and they are moved.

    Source: timm/data/loader.py of 0.6.13 (cuda() in PrefetchLoader), 0.9.0 (device) and 1.0.12 (a stream for NPUs).
    """
    parameters = inspect.signature(create).parameters
    given = {**dict(zip(parameters, args, strict=False)), **kwargs}
    prefetches = given.get("use_prefetcher", True)
    if card_kind() != "npu" or given.get("device") is not None or not prefetches:
        return create(*args, **kwargs)
    if "device" in parameters:
        return create(**{**given, "device": card()})
    if "use_prefetcher" not in parameters:
        raise TypeError("this timm has no place for a device: use create_loader, or timm 0.9 or newer")
    return _OnCard(create(**{**given, "use_prefetcher": False}))


class _OnCard:
    """Batches of another loader on the card; all else is that loader's."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for images, labels in self.loader:
            yield images.to(card(), non_blocking=True), labels.to(card(), non_blocking=True)

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name == "loader":  # not there yet, while it is copied
            raise AttributeError(name)
        return getattr(self.loader, name)


def timm_mixup_on_npu(make: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """`make(*args, **kwargs)` of timm's Mixup, which makes its targets on the NPU where there is one.

    Source: timm/data/mixup.py: mixup_target(device="cuda") up to 0.4.12, which FastCollateMixup tells "cpu"; from 0.5.4
    on Mixup tells it the device of the images.
    """
    if card_kind() == "npu":
        module: Any = importlib.import_module(make.__module__)
        own = module.mixup_target
        asked = inspect.signature(own)

        @functools.wraps(own)
        def targets(*given: Any, **more: Any) -> Any:
            if "device" in asked.parameters and "device" not in asked.bind(*given, **more).arguments:
                more["device"] = card()
            return own(*given, **more)

        module.mixup_target = targets
    return make(*args, **kwargs)
