"""A network of convolutions with batch norm and max pool: training, then evaluation with running statistics."""

from __future__ import annotations

import copy
from functools import partial

import torch
from both import assert_same, losses
from torch import nn

torch.manual_seed(0)


class Network(nn.Module):
    """Pools of all kinds, padded and dilated convolutions, groups."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=2, dilation=2, groups=4), nn.GroupNorm(4, 16), nn.ELU(),
            nn.MaxPool2d(3, stride=1, padding=1), nn.AvgPool2d(2, ceil_mode=True), nn.InstanceNorm2d(16, affine=True),
            nn.AdaptiveMaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(16, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(images))


def loss(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(images), labels, label_smoothing=0.1)


model = Network()
batches = [(torch.randn(4, 3, 17, 15), torch.randint(0, 5, (4,))) for _ in range(3)]
assert_same("convolutions", model, batches, loss, partial(torch.optim.SGD, lr=0.1, momentum=0.9))

signal = nn.Sequential(
    nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.MaxPool1d(2), nn.ConvTranspose1d(4, 4, 3, stride=2), nn.AvgPool1d(2),
    nn.ReflectionPad1d(1), nn.Flatten(), nn.LazyLinear(5),
)  # fmt: skip
signal(torch.randn(2, 2, 20))
batches = [(torch.randn(4, 2, 20), torch.randint(0, 5, (4,))) for _ in range(3)]
assert_same("one axis", signal, batches, loss, partial(torch.optim.SGD, lr=0.1))

volume = nn.Sequential(
    nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4), nn.SiLU(), nn.MaxPool3d(2), nn.ReplicationPad3d(1),
    nn.ConvTranspose3d(4, 3, 2, stride=2), nn.AvgPool3d(2), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(3, 5),
)  # fmt: skip
batches = [(torch.randn(2, 2, 6, 6, 6), torch.randint(0, 5, (2,))) for _ in range(3)]
assert_same("three axes", volume, batches, loss, partial(torch.optim.AdamW, lr=0.01))

images, labels = torch.randn(4, 3, 17, 15), torch.randint(0, 5, (4,))
rested = copy.deepcopy(model)
losses(rested, "cpu", [(images, labels)], loss, partial(torch.optim.SGD, lr=0.1))
with torch.no_grad():
    expected, found = rested.eval()(images), rested.npu()(images.npu()).cpu()
torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
