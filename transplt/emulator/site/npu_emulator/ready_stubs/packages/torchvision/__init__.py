"""As much of torchvision as training scripts import: a few random images, transforms of tensors, small networks."""

from . import datasets, models, transforms, utils  # noqa: F401

__version__ = "0.0"
