"""As much of Pillow as training scripts take: images of random points, the same for the same path."""

from . import Image, ImageFile  # noqa: F401
