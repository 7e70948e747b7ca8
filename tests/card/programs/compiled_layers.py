"""Layers of image and speech models by the older interface of operators, which `jit_compile=True` takes."""

from __future__ import annotations

from functools import partial

import torch
from both import assert_same
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
torch.npu.set_compile_mode(jit_compile=True)
INPUTS, TARGETS = torch.tensor([9, 7]), torch.tensor([3, 2])


class Images(nn.Module):
    """Resizing, padding, group norm and activations with a gradient of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 3)
        self.norm = nn.GroupNorm(2, 8)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        value = functional.silu(self.norm(self.first(functional.pad(images, (1, 2, 0, 1), mode="reflect"))))
        value = functional.interpolate(value, size=(9, 7), mode="bilinear", align_corners=True)
        value = functional.interpolate(functional.hardsigmoid(value), scale_factor=2, mode="nearest")
        value = functional.elu(self.last(functional.pad(value, (0, 1, 2, 1), mode="replicate")))
        return value.mean((2, 3))


class Letters(nn.Module):
    """Logarithms of the chances of letters."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.GRU(4, 6, bidirectional=True), nn.Linear(12, 5)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(sound)[0]).log_softmax(-1)


def of_images(model: nn.Module, images: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return functional.mse_loss(model(images), wanted)


def of_letters(model: nn.Module, sound: torch.Tensor, letters: torch.Tensor) -> torch.Tensor:
    return functional.ctc_loss(model(sound), letters, INPUTS, TARGETS, zero_infinity=True)


descent = partial(torch.optim.SGD, lr=0.1)
pictures = [(torch.randn(2, 3, 10, 8), torch.randn(2, 4)) for _ in range(3)]
assert_same("images", Images(), pictures, of_images, descent)
sounds = [(torch.randn(9, 2, 4), torch.randint(1, 5, (2, 3))) for _ in range(3)]
assert_same("letters", Letters(), sounds, of_letters, descent)
