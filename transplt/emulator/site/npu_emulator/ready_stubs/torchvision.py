"""Random pictures for torchvision's data sets (torchvision=256: so many in each), models without downloaded weights.

Where torchvision is not installed, a package of the same name with small networks and a few transforms stands in.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

import torch
from npu_emulator.stubs import pictures, when_imported


class _Images(torch.utils.data.Dataset):  # type: ignore[misc]
    """`count` random images with labels that go round; built with any data set's arguments."""

    size, mode, count, classes_count = (28, 28), "L", 256, 10

    def __init__(
        self,
        root: Any = None,
        *args: Any,
        train: bool = True,
        transform: Any = None,
        target_transform: Any = None,
        download: bool = False,
        **kwargs: Any,
    ) -> None:
        import numpy as np

        self.count = pictures(self, "torchvision", self.count)
        callables = [a for a in args if callable(a)]
        self.root, self.train = root, train
        self.transform = transform if transform is not None else (callables[0] if callables else None)
        self.target_transform = (
            target_transform if target_transform is not None else (callables[1] if len(callables) > 1 else None)
        )
        shape = (self.count, *self.size, *(() if self.mode == "L" else (3,)))
        self._pixels = np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8)
        self.data = torch.from_numpy(self._pixels)
        self.targets = torch.arange(self.count) % self.classes_count
        self.classes = [str(i) for i in range(self.classes_count)]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        from PIL import Image

        image: Any = Image.fromarray(self._pixels[index])
        target: Any = int(self.targets[index])
        if self.transform:
            image = self.transform(image)
        return image, self.target_transform(target) if self.target_transform else target


def _kind(name: str, **attributes: Any) -> type:
    return type(name, (_Images,), attributes)


_COLOUR = {"size": (32, 32), "mode": "RGB"}
_LARGE = {"size": (64, 64), "mode": "RGB", "count": 16}
DATASETS = {
    **{name: _kind(name) for name in ("MNIST", "FashionMNIST", "KMNIST", "QMNIST", "EMNIST", "USPS")},
    "CIFAR10": _kind("CIFAR10", **_COLOUR),
    "CIFAR100": _kind("CIFAR100", classes_count=100, **_COLOUR),
    **{name: _kind(name, **_COLOUR) for name in ("SVHN", "STL10", "GTSRB")},
    **{
        name: _kind(name, **_LARGE)
        for name in ("ImageFolder", "LSUN", "ImageNet", "CelebA", "Food101", "Flowers102", "FakeData")
    },
}


globals().update(DATASETS)  # spawned processes look them up by name


def _replace_datasets(module: Any) -> None:
    for name, kind in DATASETS.items():
        if hasattr(module, name):
            setattr(module, name, kind)


def _without_weights(module: Any) -> None:
    """Models are built untrained instead of downloading weights."""
    import functools

    for name in dir(module):
        function = getattr(module, name)
        if (
            name[0].islower()
            and callable(function)
            and getattr(function, "__module__", "").startswith("torchvision.models.")
        ):

            def build(
                *args: Any,
                _original: Any = function,
                pretrained: Any = None,
                weights: Any = None,
                weights_backbone: Any = None,
                **kwargs: Any,
            ) -> Any:
                return _original(**kwargs)

            setattr(module, name, functools.wraps(function)(build))


_PACKAGES = os.path.join(os.path.dirname(__file__), "packages")
_FOUND = importlib.util.find_spec("torchvision")
if _FOUND is None:
    sys.path.append(_PACKAGES)
elif not (_FOUND.origin or "").startswith(_PACKAGES):  # a spawned process has the path already
    when_imported("torchvision.datasets", _replace_datasets)
    when_imported("torchvision.models", _without_weights)
