"""Datasets of a few random images, the same in every process."""

import os

import torch
from npu_emulator.stubs import pictures

# Forty of ten classes where a script looks for pairs: a file beside it says so.
COUNT, CLASSES = (40, 10) if os.path.exists("stub_pairs") else (16, 4)


class _Images(torch.utils.data.Dataset):
    shape = (1, 28, 28)

    def __init__(self, root=None, *args, transform=None, target_transform=None, **kwargs):
        count = pictures(self, "torchvision", COUNT)
        generator = torch.Generator().manual_seed(1)
        self.data = torch.randint(256, (count, *self.shape), generator=generator, dtype=torch.uint8)
        self.targets = torch.arange(count) % CLASSES
        if self.shape[0] == 1:
            self.data = self.data[:, 0]
        self.transform, self.imgs = transform, list(range(count))
        self.train = kwargs.get("train", True)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image = self.data[index].float() / 255
        image = image[None] if image.ndim == 2 else image
        return self.transform(image) if self.transform else image, int(self.targets[index])


class MNIST(_Images):
    pass


class FashionMNIST(MNIST):
    pass


class CIFAR10(_Images):
    shape = (3, 32, 32)


class CIFAR100(CIFAR10):
    pass


class SVHN(CIFAR10):
    pass


class STL10(_Images):
    shape = (3, 96, 96)


class ImageFolder(_Images):
    shape = (3, 64, 64)


class LSUN(ImageFolder):
    pass


class FakeData(ImageFolder):
    pass
