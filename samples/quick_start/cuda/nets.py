"""Small networks of two families: one is a whole, the others have `features` and a classifier."""

import torch
import torch.nn as nn


class Residual(nn.Module):
    def __init__(self, width=8, classes=6):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.block = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        self.head = nn.Linear(width * 16, classes)

    def forward(self, x):
        x = self.stem(x)
        x = torch.max_pool2d(x + self.block(x), 2)
        return self.head(torch.flatten(x, 1))


class Staged(nn.Module):
    def __init__(self, widths, classes=6):
        super().__init__()
        layers = []
        for before, after in zip((1, *widths), widths):
            layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(inplace=True)]
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4))
        self.classifier = nn.Sequential(nn.Dropout(0.1), nn.Linear(widths[-1] * 16, classes))

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


def resnet_small(pretrained=False):
    return _weights(Residual(), pretrained)


def alexnet_small(pretrained=False):
    return _weights(Staged((8,)), pretrained)


def vgg_small(pretrained=False):
    return _weights(Staged((8, 12)), pretrained)


def _weights(model, pretrained):
    """There is nothing to fetch: what is called pretrained begins small."""
    if pretrained:
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(0.5)
    return model
