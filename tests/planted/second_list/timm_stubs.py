"""A stand-in for the few names that `import timm` takes from torchvision, where torchvision has no build for this machine."""
import enum
import sys
import types

import importlib.util

if importlib.util.find_spec("torchvision") is None and "torchvision" not in sys.modules:

    class _Module(types.ModuleType):
        __path__ = []

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            made = type(name, (), {"__init__": lambda self, *a, **k: None, "__call__": lambda self, x, *a, **k: x})
            setattr(self, name, made)
            return made

    class InterpolationMode(enum.Enum):
        NEAREST = "nearest"
        NEAREST_EXACT = "nearest-exact"
        BILINEAR = "bilinear"
        BICUBIC = "bicubic"
        BOX = "box"
        HAMMING = "hamming"
        LANCZOS = "lanczos"

    names = ["", ".transforms", ".transforms.functional", ".datasets", ".ops", ".ops.misc", ".models", ".models.feature_extraction", ".utils", ".io"]
    for n in names:
        m = _Module("torchvision" + n)
        m.__version__ = "0.28.0"
        m.__spec__ = importlib.util.spec_from_loader("torchvision" + n, loader=None)
        sys.modules["torchvision" + n] = m
    for n in names[1:]:
        parent, _, child = ("torchvision" + n).rpartition(".")
        setattr(sys.modules[parent], child, sys.modules["torchvision" + n])
    sys.modules["torchvision.transforms"].InterpolationMode = InterpolationMode
    sys.modules["torchvision.transforms.functional"].InterpolationMode = InterpolationMode
