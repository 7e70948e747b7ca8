"""Transforms of tensors of the shape (channels, height, width); what is drawn at random elsewhere is left out."""

import sys

import numpy as np
import torch


def _tensor(image):
    """A tensor as it is; an image of the other stub becomes one of values from 0 to 1."""
    if isinstance(image, torch.Tensor):
        return image
    points = np.ascontiguousarray(np.asarray(image))
    points = points[..., None] if points.ndim == 2 else points
    return torch.from_numpy(points).permute(2, 0, 1).float() / 255


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        image = _tensor(image)
        for each in self.transforms:
            image = each(image)
        return image


class _Same:
    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, image):
        return _tensor(image)


ToTensor = ToPILImage = RandomHorizontalFlip = ColorJitter = RandomRotation = Grayscale = Pad = _Same
RandomApply = RandomGrayscale = RandomVerticalFlip = RandomAffine = RandomErasing = GaussianBlur = _Same


class Resize:
    def __init__(self, size, *args, **kwargs):
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def __call__(self, image):
        return torch.nn.functional.interpolate(image[None], size=self.size)[0]


CenterCrop = RandomCrop = RandomResizedCrop = Scale = Resize


class Normalize:
    def __init__(self, mean, std, inplace=False):
        self.mean, self.std = (torch.tensor(each).view(-1, 1, 1) for each in (mean, std))

    def __call__(self, image):
        return (image - self.mean.to(image.device)) / self.std.to(image.device)


class Lambda:
    def __init__(self, function):
        self.function = function

    def __call__(self, image):
        return self.function(image)


class InterpolationMode:
    BICUBIC = BILINEAR = 2


class functional:
    to_tensor = staticmethod(_tensor)
    resize = staticmethod(lambda image, size, *args: Resize(size)(image))


sys.modules[__name__ + ".functional"] = functional
#: `from torchvision.transforms import transforms`: the package has a module of its own name, with the same classes.
transforms = sys.modules[__name__ + ".transforms"] = sys.modules[__name__]
