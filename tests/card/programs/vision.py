"""Eight small models of the kinds that torchvision has: two steps each."""

from __future__ import annotations

from functools import partial

import torch
from both import assert_same
from torch import nn
from torch.nn import functional

torch.manual_seed(0)


def convolved(before: int, after: int, size: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution with batch norm."""
    layer = nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(after))


class Residual(nn.Module):
    """ResNet: what a block adds to its input."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(convolved(before, after, 3, stride), nn.ReLU(inplace=True), convolved(after, after))
        self.short = convolved(before, after, 1, stride)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.body(value) + self.short(value), inplace=True)


class Squeezed(nn.Module):
    """MobileNet v3 and EfficientNet: an inverted residual whose channels are weighed by their means."""

    def __init__(self, width: int, active: type[nn.Module], gate: type[nn.Module]) -> None:
        super().__init__()
        inner = width * 3
        self.open = nn.Sequential(convolved(width, inner, 1), active(), convolved(inner, inner, 5, 1, inner), active())
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(inner, 4, 1), nn.ReLU(), nn.Conv2d(4, inner, 1), gate()
        )
        self.close = convolved(inner, width, 1)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        inner = self.open(value)
        return value + self.close(inner * self.gate(inner))


class Shuffled(nn.Module):
    """ShuffleNet: one half goes through, then channels of both halves mix."""

    def __init__(self, width: int) -> None:
        super().__init__()
        half = width // 2
        self.body = nn.Sequential(convolved(half, half, 1), nn.ReLU(), convolved(half, half, 3, 1, half))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        kept, taken = value.chunk(2, 1)
        return functional.channel_shuffle(torch.cat([kept, self.body(taken)], 1), 2)


class Fire(nn.Module):
    """SqueezeNet: few channels, then two kinds of many."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.few = nn.Sequential(nn.Conv2d(before, 4, 1), nn.ReLU(inplace=True))
        self.one, self.three = nn.Conv2d(4, after // 2, 1), nn.Conv2d(4, after // 2, 3, padding=1)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        few = self.few(value)
        return functional.relu(torch.cat([self.one(few), self.three(few)], 1))


class Dense(nn.Module):
    """DenseNet: each layer sees all before it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(width + 4 * at), nn.ReLU(), nn.Conv2d(width + 4 * at, 4, 3, padding=1))
            for at in range(3)
        )
        self.across = nn.Sequential(nn.Conv2d(width + 12, width, 1), nn.AvgPool2d(2))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            value = torch.cat([value, layer(value)], 1)
        return self.across(value)


class Patches(nn.Module):
    """ViT: patches as words, and one more word that is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, 16, 4, stride=4)
        self.asked, self.places = nn.Parameter(torch.zeros(1, 1, 16)), nn.Parameter(torch.randn(1, 17, 16) * 0.02)
        layer = nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16), enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        words = self.cut(images).flatten(2).transpose(1, 2)
        words = torch.cat([self.asked.expand(len(words), -1, -1), words], 1) + self.places
        return self.head(self.layers(words)[:, 0])


class Windows(nn.Module):
    """Swin: attention inside windows that are shifted, with biases by distance."""

    def __init__(self) -> None:
        super().__init__()
        self.cut, self.norm = nn.Conv2d(3, 8, 2, stride=2), nn.LayerNorm(8)
        self.mixed, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.bias = nn.Parameter(torch.randn(2, 49) * 0.02)
        spots = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        apart = (spots[:, :, None] - spots[:, None]) + 3
        self.register_buffer("apart", apart[0] * 7 + apart[1])
        self.feed = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 8))
        self.head = nn.Linear(8, 5)

    def attend(self, value: torch.Tensor, shift: int) -> torch.Tensor:
        batch = value.shape[0]
        rolled = torch.roll(self.norm(value), (-shift, -shift), (1, 2))
        windows = rolled.view(batch, 2, 4, 2, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 8)
        query, key, each = self.mixed(windows).view(-1, 16, 3, 2, 4).permute(2, 0, 3, 1, 4)
        scores = (query * 0.5) @ key.transpose(-2, -1) + self.bias[:, self.apart]
        mixed = self.out((scores.softmax(-1) @ each).transpose(1, 2).reshape(-1, 16, 8))
        back = mixed.view(batch, 2, 2, 4, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(batch, 8, 8, 8)
        return value + torch.roll(back, (shift, shift), (1, 2))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        value = self.cut(images).permute(0, 2, 3, 1)
        for shift in (0, 2):
            value = self.attend(value, shift)
            value = value + self.feed(value)
        return self.head(value.mean((1, 2)))


def classifier(*layers: nn.Module) -> nn.Sequential:
    """Layers between a first convolution and a head."""
    return nn.Sequential(convolved(3, 8), *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LazyLinear(5))


models = {
    "ResNet": classifier(nn.MaxPool2d(3, 2, 1), Residual(8, 8, 1), Residual(8, 16, 2)),
    "MobileNet v3": classifier(nn.Hardswish(), Squeezed(8, nn.Hardswish, nn.Hardsigmoid)),
    "ShuffleNet": classifier(Shuffled(8), Shuffled(8)),
    "EfficientNet": classifier(nn.SiLU(), Squeezed(8, nn.SiLU, nn.Sigmoid)),
    "SqueezeNet": classifier(nn.MaxPool2d(3, 2, ceil_mode=True), Fire(8, 16), Fire(16, 16)),
    "DenseNet": classifier(Dense(8), nn.BatchNorm2d(8)),
    "ViT": Patches(),
    "Swin": Windows(),
}


def loss(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(images), labels)


batches = [(torch.randn(4, 3, 16, 16), torch.randint(0, 5, (4,))) for _ in range(2)]
for name, model in models.items():
    model(batches[0][0])
    assert_same(name, model, batches, loss, partial(torch.optim.SGD, lr=0.05, momentum=0.9))
